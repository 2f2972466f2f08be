//! The writer: lays a blob out, deterministically.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::layout::{self, ALIGN, MAX_REGIONS, cop, flag, table};
use crate::region::{Flags, Region, Role};
use crate::{Accel, Blob, DType, Error, Header, Place, Quantisation, Shape, TensorKind, checksum};

/// Collects a blob's parts and lays them out: header, region table, command stream, baked regions in their order, the
/// tensor table, each of these at the next multiple of 16, unless told otherwise.
///
/// The same calls give the same bytes. Each region method returns the slot it took.
///
/// ```
/// use npub::{Accel, BlobBuilder, Role};
///
/// let weights = [7u8; 100];
/// let mut builder = BlobBuilder::new(Accel::u55(256));
/// builder.commands(&[0x0000_0000]);
/// builder.baked(Role::Weights, &weights);
/// builder.runtime(Role::Scratch, 4096);
/// let blob = builder.build()?;
/// assert_eq!(npub::Blob::parse(&blob)?.arena_bytes(), 4096);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BlobBuilder<'a> {
    accel: Accel,
    commands: Vec<u8>,
    regions: Vec<Part<'a>>,
    tensors: Vec<TensorEntry>,
    command_offset: Option<u32>,
    total_bytes: Option<u32>,
}

/// A tensor for the table. Its size follows from its shape and type.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorEntry {
    /// What the tensor is to the network.
    pub kind: TensorKind,
    /// Its name, any length.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions, outermost first.
    pub shape: Shape,
    /// How integers stand for reals, where they do.
    pub quantisation: Option<Quantisation>,
    /// Where its bytes are; None for an input that no command reads.
    pub place: Option<Place>,
    /// For a state: the tensor, by its index in the table, that it takes its next value from.
    pub fed_from: Option<u32>,
}

/// Why a blob can't be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// More regions than the hardware has slots, the tensor table counted.
    Regions {
        /// How many there are.
        found: usize,
    },
    /// The command stream is wrapped in Arm's payload framing; take it off with
    /// [`CommandStream::parse`](crate::CommandStream::parse).
    Wrapped,
    /// The command stream isn't a whole number of words.
    CommandBytes {
        /// Its length in bytes.
        found: usize,
    },
    /// The blob, or a part of it, is longer than 32 bits can tell.
    TooLong {
        /// Where it would end.
        end: u64,
    },
    /// A part was asked to start, or the blob to end, before the end of what precedes.
    Overlap {
        /// The offset that was asked for.
        found: u32,
        /// The least that is possible.
        expected: u64,
    },
    /// The command stream was asked to start at an offset that isn't a multiple of 16.
    Alignment {
        /// That offset.
        found: u32,
    },
    /// A tensor's shape and type make more bytes than 32 bits can tell.
    TensorSize {
        /// Its index.
        index: usize,
    },
    /// The reader refuses what the parts make: no commands, an alias of a slot that can't have one, a tensor outside
    /// its region.
    Invalid(Error),
}

#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    role: Role,
    content: Content<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Baked(&'a [u8]),
    Runtime(u32),
    Alias(usize),
}

impl<'a> BlobBuilder<'a> {
    /// A blob without commands or regions.
    pub fn new(accel: Accel) -> BlobBuilder<'a> {
        BlobBuilder { accel, ..BlobBuilder::default() }
    }

    /// Sets the command words.
    pub fn commands(&mut self, words: &[u32]) -> &mut Self {
        self.commands = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self
    }

    /// Sets the command words from their little-endian bytes.
    pub fn command_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.commands = bytes.to_vec();
        self
    }

    /// Adds a region whose bytes are in the blob. Returns its slot.
    pub fn baked(&mut self, role: Role, bytes: &'a [u8]) -> usize {
        self.part(role, Content::Baked(bytes))
    }

    /// Adds a region of this many bytes that the loader takes from the arena. Returns its slot.
    pub fn runtime(&mut self, role: Role, size: u32) -> usize {
        self.part(role, Content::Runtime(size))
    }

    /// Adds a region that has the base and the size of an earlier runtime region, by its slot. Returns its own.
    pub fn alias(&mut self, role: Role, of: usize) -> usize {
        self.part(role, Content::Alias(of))
    }

    /// Adds a tensor; with at least one, the blob gets a tensor table as its last region. Returns the tensor's index.
    pub fn tensor(&mut self, tensor: TensorEntry) -> usize {
        self.tensors.push(tensor);
        self.tensors.len() - 1
    }

    /// Starts the command stream at this offset instead of right behind the table.
    pub fn command_offset(&mut self, offset: u32) -> &mut Self {
        self.command_offset = Some(offset);
        self
    }

    /// Fills the blob with zeros up to this length.
    pub fn total_bytes(&mut self, bytes: u32) -> &mut Self {
        self.total_bytes = Some(bytes);
        self
    }

    /// Lays the parts out.
    ///
    /// # Errors
    /// A [`BuildError`]. What [`Blob::parse`] refuses is never returned as a blob.
    pub fn build(&self) -> Result<Vec<u8>, BuildError> {
        let table = self.tensor_table()?;
        let count = self.regions.len() + usize::from(table.is_some());
        if count > MAX_REGIONS {
            return Err(BuildError::Regions { found: count });
        }
        if !self.commands.len().is_multiple_of(4) {
            return Err(BuildError::CommandBytes { found: self.commands.len() });
        }
        if matches!(layout::word(&self.commands, 0), Some(cop::COP1 | cop::COP2)) {
            return Err(BuildError::Wrapped);
        }

        let mut payload =
            Payload { end: (layout::HEADER_BYTES + count * layout::REGION_BYTES) as u64, parts: Vec::new() };
        let cmd_offset = payload.place(&self.commands, self.command_offset)?;
        let mut regions: Vec<Region> = Vec::with_capacity(count);
        for Part { role, content } in &self.regions {
            let (flags, size, data_offset) = match *content {
                Content::Baked(bytes) => (flag::BAKED, length(bytes)?, payload.place(bytes, None)?),
                Content::Runtime(size) => (0, size, 0),
                Content::Alias(of) => {
                    let size = regions.get(of).map_or(0, |target| target.size);
                    (
                        flag::ALIAS,
                        size,
                        u32::try_from(of).map_err(|_| BuildError::TooLong { end: of as u64 })?,
                    )
                }
            };
            regions.push(Region { role: *role, flags: Flags::from_word(flags), size, data_offset });
        }
        if let Some(bytes) = &table {
            let flags = Flags::from_word(flag::BAKED | flag::TENSORS);
            let (size, data_offset) = (length(bytes)?, payload.place(bytes, None)?);
            regions.push(Region { role: Role::Other, flags, size, data_offset });
        }
        let total_bytes = match self.total_bytes {
            None => u32::try_from(payload.end).map_err(|_| BuildError::TooLong { end: payload.end })?,
            Some(found) if u64::from(found) < payload.end => {
                return Err(BuildError::Overlap { found, expected: payload.end });
            }
            Some(total) => total,
        };

        let mut blob = alloc::vec![0; total_bytes as usize];
        for (index, region) in regions.iter().enumerate() {
            put(&mut blob, layout::HEADER_BYTES + index * layout::REGION_BYTES, &region.to_bytes());
        }
        for (offset, bytes) in &payload.parts {
            put(&mut blob, *offset as usize, bytes);
        }
        let header = Header {
            total_bytes,
            region_count: count as u32,
            cmd_offset,
            cmd_bytes: length(&self.commands)?,
            accel: self.accel,
            checksum: checksum(&blob[layout::HEADER_BYTES..]),
        };
        put(&mut blob, 0, &header.to_bytes());
        // The rules of the format stand in the reader, once.
        Blob::parse(&blob).map_err(BuildError::Invalid)?;
        Ok(blob)
    }

    fn part(&mut self, role: Role, content: Content<'a>) -> usize {
        self.regions.push(Part { role, content });
        self.regions.len() - 1
    }

    /// The bytes of the tensor table; None without tensors.
    fn tensor_table(&self) -> Result<Option<Vec<u8>>, BuildError> {
        if self.tensors.is_empty() {
            return Ok(None);
        }
        let names_offset = table::HEADER_BYTES + self.tensors.len() * table::RECORD_BYTES;
        let mut records = alloc::vec![0; names_offset];
        let mut names = Vec::new();
        let short =
            |value: usize| u32::try_from(value).map_err(|_| BuildError::TooLong { end: value as u64 });
        for (index, tensor) in self.tensors.iter().enumerate() {
            let place = tensor.place.map(|place| (u32::from(place.region), place.offset));
            let (region, offset) = place.unwrap_or((table::NONE, 0));
            let scale = tensor.quantisation.map_or(0, |quantisation| quantisation.scale.to_bits());
            let zero_point = tensor.quantisation.map_or(0, |quantisation| quantisation.zero_point);
            let words = [
                (table::KIND, tensor.kind.word()),
                (table::DTYPE, tensor.dtype.word()),
                (table::NAME_OFFSET, short(names.len())?),
                (table::NAME_BYTES, short(tensor.name.len())?),
                (table::REGION, region),
                (table::OFFSET, offset),
                (table::SIZE, tensor.shape.bytes(tensor.dtype).ok_or(BuildError::TensorSize { index })?),
                (table::FLAGS, if tensor.quantisation.is_some() { table::QUANTISED } else { 0 }),
                (table::SCALE, scale),
                (table::ZERO_POINT, zero_point.cast_unsigned()),
                (table::FED_FROM, tensor.fed_from.unwrap_or(table::NONE)),
                (table::RANK, tensor.shape.len() as u32),
            ];
            let dims = (table::DIMS..).step_by(4).zip(tensor.shape.iter().copied());
            for (offset, word) in words.into_iter().chain(dims) {
                let at = table::HEADER_BYTES + index * table::RECORD_BYTES + offset;
                put(&mut records, at, &word.to_le_bytes());
            }
            names.extend_from_slice(tensor.name.as_bytes());
        }
        for (offset, value) in [
            (table::COUNT, self.tensors.len()),
            (table::RECORD_STRIDE, table::RECORD_BYTES),
            (table::NAMES_OFFSET, names_offset),
            (table::NAMES_BYTES, names.len()),
        ] {
            put(&mut records, offset, &short(value)?.to_le_bytes());
        }
        records.append(&mut names);
        Ok(Some(records))
    }
}

/// The parts behind the region table, each with its offset.
struct Payload<'a> {
    end: u64,
    parts: Vec<(u32, &'a [u8])>,
}

impl<'a> Payload<'a> {
    fn place(&mut self, bytes: &'a [u8], at: Option<u32>) -> Result<u32, BuildError> {
        let next = layout::align_up(self.end);
        let offset = match at {
            None => u32::try_from(next).map_err(|_| BuildError::TooLong { end: next })?,
            Some(found) if !found.is_multiple_of(ALIGN) => return Err(BuildError::Alignment { found }),
            Some(found) if u64::from(found) < next => {
                return Err(BuildError::Overlap { found, expected: next });
            }
            Some(found) => found,
        };
        self.end = u64::from(offset) + bytes.len() as u64;
        self.parts.push((offset, bytes));
        Ok(offset)
    }
}

fn length(bytes: &[u8]) -> Result<u32, BuildError> {
    u32::try_from(bytes.len()).map_err(|_| BuildError::TooLong { end: bytes.len() as u64 })
}

/// Copies `bytes` to a place that the layout has made room for.
fn put(blob: &mut [u8], at: usize, bytes: &[u8]) {
    blob[at..at + bytes.len()].copy_from_slice(bytes);
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BuildError::Regions { found } => {
                write!(f, "{found} regions, tensor table included; the hardware has {MAX_REGIONS} slots")
            }
            BuildError::Wrapped => f.write_str("the command stream is still in its COP1 or COP2 framing"),
            BuildError::CommandBytes { found } => {
                write!(f, "a command stream of {found} bytes isn't whole words")
            }
            BuildError::TooLong { end } => write!(f, "ends at {end:#x}, beyond what 32 bits can tell"),
            BuildError::Overlap { found, expected } => {
                write!(f, "{found:#x} was asked for, what precedes leaves {expected:#x} at the least")
            }
            BuildError::Alignment { found } => {
                write!(f, "a command stream at {found:#x} isn't aligned to {ALIGN} bytes")
            }
            BuildError::TensorSize { index } => write!(f, "tensor {index} is longer than 32 bits can tell"),
            BuildError::Invalid(ref cause) => write!(f, "the parts make no valid blob: {cause}"),
        }
    }
}

impl core::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            BuildError::Invalid(cause) => Some(cause),
            _ => None,
        }
    }
}
