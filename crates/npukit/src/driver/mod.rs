//! What a driver has to be set up with for a compiled network: the NPU it needs, the memory, and the registers that route it.

mod routing;

use ethosu_driver::Configuration;
use ethosu_isa::{Accelerator, ConfigWordError, Payload, PayloadKind};
use ethosu_model::{Limits, Program, RegionUse, Stop};
use npub::{Blob, Framing, Storage, layout};
use serde::Serialize;

pub use routing::{ExcludedMode, MemoryOf, RegionRoute, Route, Routing, Routings};

/// The slot of Vela's fast scratch.
const FAST_REGION: u8 = ethosu_driver::FAST_MEMORY_REGION;

/// What a driver has to know about a compiled network.
///
/// Neither an `.npub` nor a payload records the memory mode that it was compiled with: [`routings`](DriverNeeds::routings) has
/// the registers for each one that it can have been.
///
/// ```
/// use npub::{Accel, Blob, BlobBuilder, Role};
/// use npukit::driver::DriverNeeds;
///
/// let mut builder = BlobBuilder::new(Accel::u55(128));
/// builder.commands(&[0xFFFF_0000]); // NPU_OP_STOP
/// let bytes = builder.build()?;
/// let needs = DriverNeeds::of_blob(&Blob::parse(&bytes)?)?;
/// assert_eq!((needs.accel.as_str(), needs.stream_version, needs.regions.len()), ("ethos-u55-128", 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DriverNeeds {
    /// The accelerator's name: product and MACs, which the hardware has to have exactly.
    pub accel: String,
    /// The product.
    pub product: String,
    /// Multiply-accumulates per cycle.
    pub macs: u32,
    /// The version of the command stream that the hardware's `CONFIG` has to name.
    pub stream_version: u8,
    /// The `CONFIG` word it was compiled for: the payload's, or else the one that Vela writes for the accelerator.
    pub config: u32,
    /// The architecture it was compiled for, where a payload says so: the hardware's major version, and at most its minor one.
    pub architecture: Option<String>,
    /// Whether it needs a custom DMA. (Commands for one can't be followed: they end in [`DriverNeedsError::Program`].)
    pub custom_dma: bool,
    /// What is around the commands: `bare`, `COP1` or `COP2`.
    pub framing: String,
    /// Whether Arm's core driver takes the commands as they are framed: it takes `COP1`. This project's takes all three.
    pub arm_driver: bool,
    /// What the address of the commands and of each region has to be a multiple of, in bytes.
    pub alignment: u32,
    /// Bytes of the bare commands, which the NPU reads.
    pub command_bytes: u64,
    /// The regions that the commands use, by number.
    pub regions: Vec<RegionNeed>,
    /// Bytes of fast scratch, in region 2, where that is memory of its own.
    pub fast_memory_bytes: Option<u64>,
    /// What keeps every driver from running it.
    pub problems: Vec<String>,
    #[serde(skip)]
    accelerator: Accelerator,
    /// Set where region 2 is another name of an earlier region.
    #[serde(skip)]
    shared_fast_memory: bool,
}

/// A region that the commands use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RegionNeed {
    /// Its number: the base pointer.
    pub region: u8,
    /// What it is for.
    pub role: String,
    /// Where its bytes are: `flash`, `arena`, `alias of` another region; `caller` for what a payload doesn't hold.
    pub storage: String,
    /// Bytes to provide.
    pub bytes: u64,
    /// How many of them the commands reach, from the first.
    pub reached_bytes: u64,
    /// Whether commands read it.
    pub read: bool,
    /// Whether commands write it.
    pub written: bool,
    /// Ports that it may not be routed to: a U55 can't write through AXI1.
    pub forbidden_ports: Vec<&'static str>,
}

/// Why it isn't known what a driver needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverNeedsError {
    /// The blob doesn't say which accelerator it is for.
    #[error("it doesn't say which NPU it is for")]
    UnknownAccelerator,
    /// It names an accelerator that isn't built.
    #[error("it is for {found}, which is no Ethos-U configuration")]
    NoSuchAccelerator {
        /// What it says.
        found: npub::Accel,
    },
    /// The payload names an accelerator that isn't built.
    #[error(transparent)]
    Config(#[from] ConfigWordError),
    /// The commands can't be followed.
    #[error("the commands: {0}")]
    Program(#[from] Stop),
}

/// A region as the file describes it.
struct Given {
    role: String,
    storage: String,
    bytes: Option<u64>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Constant,
    Writable,
    Alias,
    Table,
}

/// Everything that doesn't come from the commands.
struct Source<'a> {
    accelerator: Accelerator,
    stream: &'a [u8],
    framing: String,
    arm_driver: bool,
    config: Option<u32>,
    architecture: Option<String>,
}

impl DriverNeeds {
    /// What an `.npub` needs.
    ///
    /// # Errors
    /// [`DriverNeedsError`]: it doesn't say which accelerator it is for, or has commands that can't be followed.
    pub fn of_blob(blob: &Blob<'_>) -> Result<DriverNeeds, DriverNeedsError> {
        match crate::accelerator_of(blob) {
            Some(accelerator) => DriverNeeds::of_blob_for(blob, accelerator),
            None if blob.accel().is_known() => {
                Err(DriverNeedsError::NoSuchAccelerator { found: blob.accel() })
            }
            None => Err(DriverNeedsError::UnknownAccelerator),
        }
    }

    /// The same for a blob that doesn't say what it is for.
    ///
    /// # Errors
    /// [`DriverNeedsError::Program`]: it has commands that can't be followed.
    pub fn of_blob_for(blob: &Blob<'_>, accelerator: Accelerator) -> Result<DriverNeeds, DriverNeedsError> {
        let commands = blob.command_stream();
        let config = match commands.framing() {
            Framing::Cop1 { config } => config,
            Framing::Cop2 { config } => Some(config),
            _ => None,
        };
        let source = Source {
            accelerator,
            stream: commands.bytes(),
            framing: commands.framing().to_string(),
            arm_driver: matches!(commands.framing(), Framing::Cop1 { config: Some(_) }),
            config,
            architecture: None,
        };
        let regions = blob.regions().iter().map(|region| {
            let (storage, kind) = match region.storage() {
                Storage::Baked { .. } => ("flash".to_owned(), Kind::Constant),
                Storage::Runtime => ("arena".to_owned(), Kind::Writable),
                Storage::Alias { of } => (format!("alias of {of}"), Kind::Alias),
                Storage::Tensors { .. } => ("tensor table".to_owned(), Kind::Table),
            };
            Some(Given { role: region.role.to_string(), storage, bytes: Some(region.size.into()), kind })
        });
        source.needs(&regions.collect::<Vec<_>>(), "the blob")
    }

    /// What the payload of an `ethos-u` operator needs. `constants`, `scratch` and `fast_scratch` are bytes of the regions 0
    /// to 2, which stand beside the payload; `fast_scratch` is `None` where it is scratch by another name. Of the regions 3
    /// and up, which have inputs and outputs, as much is needed as the commands reach.
    ///
    /// # Errors
    /// [`DriverNeedsError`]: it is for no accelerator that is built, or has commands that can't be followed.
    pub fn of_payload(
        payload: &Payload<'_>,
        constants: u64,
        scratch: u64,
        fast_scratch: Option<u64>,
    ) -> Result<DriverNeeds, DriverNeedsError> {
        let given = |role: &str, storage: &str, bytes, kind| {
            Some(Given { role: role.to_owned(), storage: storage.to_owned(), bytes, kind })
        };
        let mut regions = vec![
            given("weights", "flash", Some(constants), Kind::Constant),
            given("scratch", "caller", Some(scratch), Kind::Writable),
            match fast_scratch {
                Some(bytes) => given("scratch", "caller", Some(bytes), Kind::Writable),
                None => given("scratch", "alias of 1", Some(scratch), Kind::Alias),
            },
        ];
        if payload.metadata().is_some_and(|metadata| metadata.local_addressing()) {
            regions.push(given("input", "caller", None, Kind::Writable));
            regions.push(given("output", "caller", None, Kind::Writable));
        }
        let source = Source {
            accelerator: payload.accelerator()?,
            stream: payload.stream(),
            framing: payload.kind().to_string(),
            arm_driver: payload.kind() == PayloadKind::Cop1,
            config: Some(payload.config_word()),
            architecture: Some(payload.arch_version().to_string()),
        };
        source.needs(&regions, "the operator")
    }

    /// The accelerator.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }
}

impl Source<'_> {
    fn needs(self, given: &[Option<Given>], owner: &str) -> Result<DriverNeeds, DriverNeedsError> {
        let Source { accelerator, stream, .. } = self;
        let program = Program::decode(stream, accelerator, &Limits::default())?;
        let product = accelerator.product();
        let configuration = Configuration(self.config.unwrap_or_else(|| accelerator.config_word()));
        let mut needs = DriverNeeds {
            accel: accelerator.to_string(),
            product: product.to_string(),
            macs: accelerator.macs(),
            stream_version: configuration.stream_version(),
            config: configuration.0,
            architecture: self.architecture,
            custom_dma: configuration.custom_dma(),
            framing: self.framing,
            arm_driver: self.arm_driver,
            alignment: layout::ALIGN,
            command_bytes: stream.len() as u64,
            regions: Vec::new(),
            fast_memory_bytes: None,
            problems: Vec::new(),
            accelerator,
            shared_fast_memory: false,
        };
        for (slot, used) in (0u8..).zip(program.regions()).filter(|(_, used)| used.is_used()) {
            let given = given.get(usize::from(slot)).and_then(Option::as_ref);
            let Some(given) = given.filter(|given| given.kind != Kind::Table) else {
                needs.problems.push(format!("the commands use region {slot}, which {owner} doesn't have"));
                needs.regions.push(RegionNeed::new(slot, "other", "caller", None, used, accelerator));
                continue;
            };
            let region = RegionNeed::new(slot, &given.role, &given.storage, given.bytes, used, accelerator);
            needs.problems.extend(problems(&region, given.kind, used));
            if slot == FAST_REGION {
                needs.shared_fast_memory = given.kind == Kind::Alias;
                needs.fast_memory_bytes = (given.kind == Kind::Writable).then_some(region.bytes);
            }
            needs.regions.push(region);
        }
        Ok(needs)
    }
}

impl RegionNeed {
    fn new(
        region: u8,
        role: &str,
        storage: &str,
        bytes: Option<u64>,
        used: RegionUse,
        accelerator: Accelerator,
    ) -> RegionNeed {
        let product = accelerator.product();
        let forbidden = routing::PORTS.into_iter().filter(|port| used.writes && !port.can_write(product));
        RegionNeed {
            region,
            role: role.to_owned(),
            storage: storage.to_owned(),
            bytes: bytes.unwrap_or(used.bytes),
            reached_bytes: used.bytes,
            read: used.reads,
            written: used.writes,
            forbidden_ports: forbidden.map(|port| port.name(product)).collect(),
        }
    }
}

/// What is wrong with how a region is used.
fn problems(region: &RegionNeed, kind: Kind, used: RegionUse) -> impl Iterator<Item = String> {
    let RegionNeed { region: slot, bytes, reached_bytes, .. } = *region;
    let written = (kind == Kind::Constant && used.writes)
        .then(|| format!("the commands write region {slot}, which holds constants"));
    let behind = (reached_bytes > bytes).then(|| {
        format!("the commands reach {reached_bytes:#x} bytes of region {slot}, which has {bytes:#x}")
    });
    let before = (used.before > 0)
        .then(|| format!("the commands reach {:#x} bytes before the base of region {slot}", used.before));
    [written, behind, before].into_iter().flatten()
}
