//! Work for an NPU: a command stream, and the memory it works on.

use core::fmt;

use ethosu_isa::registers::{Configuration, REGIONS};
use ethosu_isa::{Accelerator, ArchVersion, Payload, Product, Words};

use crate::config::FAST_MEMORY_REGION;
use crate::error::PayloadJobError;
use crate::scan::Usage;

/// Memory for one base pointer of a job.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Region<'m> {
    /// None: the commands don't use it.
    #[default]
    Absent,
    /// Memory that the commands only read. A job whose commands write it is refused.
    Constant(&'m [u8]),
    /// Memory that the commands may write.
    Writable(&'m mut [u8]),
    /// Memory that isn't the program's to borrow, by its address as the CPU sees it. What the commands do to it nobody checks:
    /// see the contract of [`Mmio::new`](crate::Mmio::new).
    At {
        /// Its first byte.
        address: u64,
        /// Its length in bytes.
        bytes: u64,
    },
}

/// A region as the job keeps it.
#[derive(Debug)]
enum Slot<'m> {
    Absent,
    Constant(&'m [u8]),
    Writable {
        address: u64,
        bytes: &'m mut [u8],
    },
    At {
        address: u64,
        bytes: u64,
    },
    /// A part of the blob.
    Blob {
        address: u64,
        bytes: u64,
    },
    /// A part of the arena that the job borrows.
    Arena {
        offset: usize,
        address: u64,
        bytes: u64,
        /// With padding that nothing else uses.
        room: u64,
    },
    /// A part of an arena by its address.
    Dealt {
        address: u64,
        bytes: u64,
        room: u64,
    },
    /// Fast scratch, for which only `Config::fast_memory` has memory.
    Fast {
        bytes: u64,
    },
}

impl<'m> From<Region<'m>> for Slot<'m> {
    fn from(region: Region<'m>) -> Slot<'m> {
        match region {
            Region::Absent => Slot::Absent,
            Region::Constant(bytes) => Slot::Constant(bytes),
            Region::Writable(bytes) => {
                Slot::Writable { address: bytes.as_mut_ptr().expose_provenance() as u64, bytes }
            }
            Region::At { address, bytes } => Slot::At { address, bytes },
        }
    }
}

/// A command stream, what it was compiled for, and the memory it works on. It runs any number of times.
///
/// A job borrows its memory; between runs, [`region`](Job::region) and [`region_mut`](Job::region_mut) give access to it.
/// While it runs it is borrowed itself, so nobody touches memory that the NPU works on.
///
/// ```
/// # let blob = { let mut b = npub::BlobBuilder::new(npub::Accel::u55(256)); b.commands(&[0xFFFF_0000]);
/// #     b.runtime(npub::Role::Scratch, 64); b.build().unwrap() };
/// use ethosu_driver::Job;
///
/// #[repr(align(16))]
/// struct Arena([u8; 64]);
/// let mut arena = Arena([0; 64]);
///
/// let mut job = Job::load(&blob, &mut arena.0)?;
/// job.region_mut(0).unwrap()[..3].copy_from_slice(b"abc");
/// // npu.invoke(&mut job)?;
/// assert_eq!(&job.region(0).unwrap()[..3], b"abc");
/// # Ok::<(), npub::Error>(())
/// ```
pub struct Job<'m> {
    stream: &'m [u8],
    stream_address: u64,
    compiled_for: CompiledFor,
    slots: [Slot<'m>; REGIONS],
    arena: Option<&'m mut [u8]>,
    constant: u8,
    /// Fast memory takes the place of region 2, because nobody has given that memory of its own as a [`Region`].
    lends_fast: bool,
    usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompiledFor {
    pub(crate) accelerator: AcceleratorWord,
    pub(crate) configuration: Option<Configuration>,
    pub(crate) architecture: Option<ArchVersion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceleratorWord {
    Unknown,
    Known(Accelerator),
    /// A word that names no accelerator.
    Nonsense(u32),
}

/// A region's memory, as the CPU sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// The same with padding that nothing else uses.
    pub(crate) room: u64,
}

impl Extent {
    fn new(address: u64, bytes: u64) -> Extent {
        Extent { address, bytes, room: bytes }
    }
}

fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().expose_provenance() as u64
}

impl<'m> Job<'m> {
    /// From the bytes of a `.npub` file and memory for its runtime regions. Weights and commands are used where they are.
    ///
    /// # Errors
    /// [`npub::Error`]: the file is damaged, or the arena too small.
    pub fn load(blob: &'m [u8], arena: &'m mut [u8]) -> Result<Job<'m>, npub::Error> {
        Job::load_with(blob, arena, npub::Packing::new())
    }

    /// [`load`](Job::load) with regions that are packed in another way: for a data cache, or without region 2 where
    /// [`Config::fast_memory`](crate::Config::fast_memory) has memory for it.
    /// [`npub::Blob::arena_bytes_with`] says how much arena that takes.
    ///
    /// ```
    /// # let blob = { let mut b = npub::BlobBuilder::new(npub::Accel::u65(256)); b.commands(&[0xFFFF_0000]);
    /// #     b.runtime(npub::Role::Input, 20); b.runtime(npub::Role::Scratch, 64);
    /// #     b.runtime(npub::Role::Scratch, 4096); b.build().unwrap() };
    /// use ethosu_driver::{FAST_MEMORY_REGION, Job};
    /// use npub::{Blob, Packing};
    ///
    /// // For an M55 or M85 with its data cache on: `Config::with_cache_line(32)`.
    /// #[repr(align(32))]
    /// struct Arena([u8; 96]);
    /// let mut arena = Arena([0; 96]);
    ///
    /// let packing = Packing::new().aligned(32).without(FAST_MEMORY_REGION);
    /// assert_eq!(Blob::parse(&blob)?.arena_bytes_with(packing), 96);
    /// let job = Job::load_with(&blob, &mut arena.0, packing)?;
    /// assert_eq!(job.region(0).map(<[u8]>::len), Some(20));
    /// assert_eq!(job.region(2), None);
    /// # Ok::<(), npub::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](Job::load).
    pub fn load_with(
        blob: &'m [u8],
        arena: &'m mut [u8],
        packing: npub::Packing,
    ) -> Result<Job<'m>, npub::Error> {
        let arena_base = arena.as_mut_ptr().expose_provenance() as u64;
        let lent = npub::Arena { base: arena_base, bytes: arena.len() as u64 };
        let loaded = npub::load_with(blob, address(blob), lent, None, packing)?;
        let mut job = Job::from_npub(&loaded, blob);
        for slot in &mut job.slots {
            if let Slot::Dealt { address, bytes, room } = *slot {
                // The loader has placed it inside the arena.
                let offset = address.wrapping_sub(arena_base) as usize;
                *slot = Slot::Arena { offset, address, bytes, room };
            }
        }
        job.arena = Some(arena);
        Ok(job)
    }

    /// From a `.npub` file that [`npub::load`] has turned into addresses, as the CPU sees them. `blob` is the file; its
    /// commands are read there.
    pub fn from_npub(loaded: &npub::Job, blob: &'m [u8]) -> Job<'m> {
        let start = loaded.command_offset as usize;
        let stream =
            blob.get(start..).and_then(|rest| rest.get(..loaded.command_bytes as usize)).unwrap_or_default();
        let mut constant = 0;
        let mut slots = [const { Slot::Absent }; REGIONS];
        let regions = loaded.region_base.into_iter().zip(loaded.region_size).take(loaded.region_count.into());
        for ((slot, place), (address, bytes)) in (0u8..).zip(&mut slots).zip(regions) {
            let bytes = u64::from(bytes);
            *place = if loaded.is_baked(slot) {
                constant |= 1 << slot;
                Slot::Blob { address, bytes }
            } else if loaded.is_dealt(slot) {
                Slot::Dealt { address, bytes, room: loaded.room(slot) }
            } else if slot == FAST_MEMORY_REGION {
                Slot::Fast { bytes }
            } else {
                Slot::Absent
            };
        }
        let configuration = match loaded.framing {
            npub::Framing::Cop1 { config } => config.map(Configuration),
            npub::Framing::Cop2 { config } => Some(Configuration(config)),
            _ => None,
        };
        let compiled_for =
            CompiledFor { accelerator: accelerator(loaded.accel), configuration, architecture: None };
        let mut job = Job {
            stream,
            stream_address: loaded.command_address,
            compiled_for,
            slots,
            arena: None,
            constant,
            lends_fast: true,
            usage: Usage::default(),
        };
        job.look();
        // A table of tensors is no memory that commands use, and nobody promised to align it.
        for (slot, place) in job.slots.iter_mut().enumerate() {
            if matches!(place, Slot::Blob { .. }) && job.usage.touched() & 1 << slot == 0 {
                *place = Slot::Absent;
            }
        }
        job
    }

    /// From the payload of an `ethos-u` custom operator, `COP1` or `COP2`, and the memory of its regions in order. What is given
    /// here is used: [`Config::fast_memory`](crate::Config::fast_memory) doesn't take the place of region 2.
    ///
    /// # Errors
    /// [`PayloadJobError`]: the payload can't be read, or there are more than eight regions.
    pub fn from_payload(
        payload: &'m [u8],
        regions: impl IntoIterator<Item = Region<'m>>,
    ) -> Result<Job<'m>, PayloadJobError> {
        let parsed = Payload::parse(payload)?;
        let mut slots = [const { Slot::Absent }; REGIONS];
        let mut constant = 0;
        for (found, region) in regions.into_iter().enumerate() {
            let place = slots.get_mut(found).ok_or(PayloadJobError::TooManyRegions { found: found + 1 })?;
            if matches!(region, Region::Constant(_)) {
                constant |= 1 << found;
            }
            *place = region.into();
        }
        let accelerator = match parsed.accelerator() {
            Ok(accelerator) => AcceleratorWord::Known(accelerator),
            Err(error) => AcceleratorWord::Nonsense(error.word),
        };
        let compiled_for = CompiledFor {
            accelerator,
            configuration: Some(Configuration(parsed.config_word())),
            architecture: Some(parsed.arch_version()),
        };
        let stream = parsed.stream();
        let mut job = Job {
            stream,
            stream_address: address(stream),
            compiled_for,
            slots,
            arena: None,
            constant,
            lends_fast: false,
            usage: Usage::default(),
        };
        job.look();
        Ok(job)
    }

    /// As `ethosu_invoke_v3` of Arm's driver takes it: a payload, and the base addresses and sizes of its regions.
    /// `payload_address` is where the CPU sees the payload; `None` for where the slice lies. As in Arm's driver,
    /// [`Config::fast_memory`](crate::Config::fast_memory) takes the place of region 2.
    ///
    /// # Errors
    /// As [`from_payload`](Job::from_payload). A region whose size is missing has none.
    pub fn from_addresses(
        payload: &'m [u8],
        payload_address: Option<u64>,
        bases: &[u64],
        sizes: &[usize],
    ) -> Result<Job<'m>, PayloadJobError> {
        if bases.len() > REGIONS {
            return Err(PayloadJobError::TooManyRegions { found: bases.len() });
        }
        let regions = bases.iter().enumerate().map(|(slot, &address)| Region::At {
            address,
            bytes: sizes.get(slot).map_or(0, |&bytes| bytes as u64),
        });
        let mut job = Job::from_payload(payload, regions)?;
        job.lends_fast = true;
        if let Some(base) = payload_address {
            job.stream_address = base.wrapping_add(job.stream_address.wrapping_sub(address(payload)));
        }
        Ok(job)
    }

    /// Says which accelerator it was compiled for, where its file doesn't.
    #[must_use]
    pub fn assuming(mut self, accelerator: Accelerator) -> Job<'m> {
        if self.compiled_for.accelerator == AcceleratorWord::Unknown {
            self.compiled_for.accelerator = AcceleratorWord::Known(accelerator);
            self.look();
        }
        self
    }

    fn look(&mut self) {
        // Without an accelerator no job runs, so the product doesn't matter then.
        let accelerator = self.accelerator();
        let product = accelerator.map_or(Product::U65, Accelerator::product);
        self.usage = Usage::of(self.stream, product, accelerator.map_or(1, Accelerator::weight_streams));
    }

    /// The accelerator it was compiled for, if it says so.
    pub fn accelerator(&self) -> Option<Accelerator> {
        match self.compiled_for.accelerator {
            AcceleratorWord::Known(accelerator) => Some(accelerator),
            AcceleratorWord::Unknown | AcceleratorWord::Nonsense(_) => None,
        }
    }

    /// The command stream.
    pub fn commands(&self) -> &'m [u8] {
        self.stream
    }

    /// Whether the commands write a region.
    pub fn writes(&self, region: u8) -> bool {
        region < REGIONS as u8 && self.usage.written & 1 << region != 0
    }

    /// The bytes of a region that the job borrows; `None` for others.
    pub fn region(&self, region: u8) -> Option<&[u8]> {
        match self.slots.get(usize::from(region))? {
            Slot::Constant(bytes) => Some(bytes),
            Slot::Writable { bytes, .. } => Some(bytes),
            Slot::Arena { offset, bytes, .. } => {
                self.arena.as_deref()?.get(*offset..)?.get(..*bytes as usize)
            }
            Slot::Absent | Slot::At { .. } | Slot::Blob { .. } | Slot::Dealt { .. } | Slot::Fast { .. } => {
                None
            }
        }
    }

    /// The bytes of a writable region that the job borrows; `None` for others.
    pub fn region_mut(&mut self, region: u8) -> Option<&mut [u8]> {
        match self.slots.get_mut(usize::from(region))? {
            Slot::Writable { bytes, .. } => Some(bytes),
            Slot::Arena { offset, bytes, .. } => {
                self.arena.as_deref_mut()?.get_mut(*offset..)?.get_mut(..*bytes as usize)
            }
            Slot::Absent
            | Slot::Constant(_)
            | Slot::At { .. }
            | Slot::Blob { .. }
            | Slot::Dealt { .. }
            | Slot::Fast { .. } => None,
        }
    }

    pub(crate) fn compiled_for(&self) -> CompiledFor {
        self.compiled_for
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    pub(crate) fn is_constant(&self, slot: usize) -> bool {
        self.constant & 1 << slot != 0
    }

    pub(crate) fn stream_extent(&self) -> Extent {
        Extent::new(self.stream_address, self.stream.len() as u64)
    }

    /// Whether fast memory takes the place of region 2.
    pub(crate) fn lends_fast(&self) -> bool {
        self.lends_fast
    }

    /// Whether it has memory for a region; only fast memory may be needed beside.
    pub(crate) fn has_memory(&self, slot: usize) -> bool {
        !matches!(self.slots.get(slot), None | Some(Slot::Absent | Slot::Fast { .. }))
    }

    /// Where a region lies, if the job has it. What only fast memory has a place for lies at zero.
    pub(crate) fn extent(&self, slot: usize) -> Option<Extent> {
        Some(match *self.slots.get(slot)? {
            Slot::Absent => return None,
            Slot::Constant(bytes) => Extent::new(address(bytes), bytes.len() as u64),
            Slot::Writable { address, ref bytes } => Extent::new(address, bytes.len() as u64),
            Slot::At { address, bytes } | Slot::Blob { address, bytes } => Extent::new(address, bytes),
            Slot::Dealt { address, bytes, room } | Slot::Arena { address, bytes, room, .. } => {
                Extent { address, bytes, room }
            }
            Slot::Fast { bytes } => Extent::new(0, bytes),
        })
    }
}

/// The command at a byte offset of a stream.
pub(crate) fn command_at(stream: &[u8], offset: u32) -> Option<Words> {
    const PAYLOAD_FOLLOWS: u32 = 1 << 14;
    let word = |at: usize| stream.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let offset = offset as usize;
    let control = word(offset)?;
    let payload = (control & PAYLOAD_FOLLOWS != 0).then(|| word(offset + 4)).flatten();
    Some(Words { control, payload })
}

fn accelerator(accel: npub::Accel) -> AcceleratorWord {
    let product = match accel.product() {
        Some(npub::Product::U55) => Product::U55,
        Some(npub::Product::U65) => Product::U65,
        Some(npub::Product::U85) => Product::U85,
        _ if !accel.is_known() => return AcceleratorWord::Unknown,
        _ => return AcceleratorWord::Nonsense(accel.word()),
    };
    match Accelerator::new(product, accel.macs().into()) {
        Some(accelerator) => AcceleratorWord::Known(accelerator),
        None => AcceleratorWord::Nonsense(accel.word()),
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("compiled_for", &self.compiled_for)
            .field("command_bytes", &self.stream.len())
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}
