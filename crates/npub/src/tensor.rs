//! The tensor table: the network's inputs, outputs and states, so that a caller finds "the input" without an index.

use core::fmt;
use core::ops::Deref;

use crate::layout::{table, word};
use crate::region::{Region, Storage};
use crate::{ErrorKind, TensorError, TensorFault};

/// A checked tensor table, borrowed from the blob.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorTable<'a> {
    bytes: &'a [u8],
    count: u32,
    stride: u32,
    names: &'a [u8],
}

/// One tensor of the table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tensor<'a> {
    /// What the tensor is to the network.
    pub kind: TensorKind,
    /// Its name in the network, any length; may be empty, needn't be unique.
    pub name: &'a str,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions, outermost first; none for a scalar.
    pub shape: Shape,
    /// How integers stand for reals, where they do.
    pub quantisation: Option<Quantisation>,
    /// Where its bytes are; None for an input that no command reads.
    pub place: Option<Place>,
    /// Its length in bytes: elements times the element's size.
    pub size: u32,
    /// For a state: the tensor, by its index in the table, whose bytes become the state's before the next inference.
    /// None for a state that the commands update in place.
    pub fed_from: Option<u32>,
}

/// What a tensor is to the network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TensorKind {
    /// The caller writes it before an inference.
    Input,
    /// The caller reads it after an inference.
    Output,
    /// Lives from one inference to the next. At the start of a sequence its value is zero, which is the zero point
    /// where it is quantised.
    State,
    /// The new value of a state, not an output of the network; some state is fed from it.
    NextState,
}

/// The type of a tensor's elements, with the numbers of the TFLite schema's `TensorType`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum DType {
    Float32 = 0,
    Float16 = 1,
    Int32 = 2,
    UInt8 = 3,
    Int64 = 4,
    Bool = 6,
    Int16 = 7,
    Int8 = 9,
    Float64 = 10,
    UInt64 = 12,
    UInt32 = 15,
    UInt16 = 16,
}

/// `real = scale * (integer - zero_point)`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quantisation {
    /// Finite and above zero.
    pub scale: f32,
    /// The integer that stands for zero.
    pub zero_point: i32,
}

/// Where a tensor's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The region's slot.
    pub region: u8,
    /// Bytes from the region's base.
    pub offset: u32,
}

/// Up to eight dimensions, outermost first; a slice by dereference.
#[derive(Clone, Copy)]
pub struct Shape {
    dims: [u32; table::MAX_RANK],
    rank: u8,
}

impl<'a> TensorTable<'a> {
    /// Reads and checks the table in `bytes`, the region `own` of `regions`.
    pub(crate) fn parse(
        bytes: &'a [u8],
        regions: &[Region],
        own: usize,
    ) -> Result<TensorTable<'a>, TensorError> {
        let short = |end| TensorError::Table { end, bytes: bytes.len() };
        let field = |offset| word(bytes, offset).ok_or(short(table::HEADER_BYTES as u64));
        let count = field(table::COUNT)?;
        let stride = field(table::RECORD_STRIDE)?;
        if (stride as usize) < table::RECORD_BYTES || stride % 4 != 0 {
            return Err(TensorError::Stride { found: stride });
        }
        let records_end = table::HEADER_BYTES as u64 + u64::from(count) * u64::from(stride);
        if records_end > bytes.len() as u64 {
            return Err(short(records_end));
        }
        let names_offset = field(table::NAMES_OFFSET)?;
        let names_end = u64::from(names_offset) + u64::from(field(table::NAMES_BYTES)?);
        let names = bytes.get(names_offset as usize..names_end as usize).ok_or(short(names_end))?;

        let tables = TensorTable { bytes, count, stride, names };
        for index in 0..count {
            let tensor = tables.read(index).map_err(|cause| TensorError::Tensor { index, cause })?;
            tables.check(&tensor, regions, own).map_err(|cause| TensorError::Tensor { index, cause })?;
        }
        Ok(tables)
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The tensor with this index.
    pub fn get(&self, index: usize) -> Option<Tensor<'a>> {
        let index = u32::try_from(index).ok().filter(|index| *index < self.count)?;
        self.read(index).ok()
    }

    /// All tensors in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = Tensor<'a>> + Clone + use<'a> {
        let table = *self;
        (0..self.len()).filter_map(move |index| table.get(index))
    }

    /// The tensors of one kind, in the table's order, which for inputs and outputs is the network's.
    pub fn of_kind(&self, kind: TensorKind) -> impl Iterator<Item = Tensor<'a>> + Clone + use<'a> {
        self.iter().filter(move |tensor| tensor.kind == kind)
    }

    /// The network's inputs in its order.
    pub fn inputs(&self) -> impl Iterator<Item = Tensor<'a>> + Clone + use<'a> {
        self.of_kind(TensorKind::Input)
    }

    /// The network's outputs in its order.
    pub fn outputs(&self) -> impl Iterator<Item = Tensor<'a>> + Clone + use<'a> {
        self.of_kind(TensorKind::Output)
    }

    /// The states.
    pub fn states(&self) -> impl Iterator<Item = Tensor<'a>> + Clone + use<'a> {
        self.of_kind(TensorKind::State)
    }

    /// The first tensor with this name.
    pub fn find(&self, name: &str) -> Option<Tensor<'a>> {
        self.iter().find(|tensor| tensor.name == name)
    }

    /// Decodes one record; `index` is below the count.
    fn read(&self, index: u32) -> Result<Tensor<'a>, TensorFault> {
        let at = table::HEADER_BYTES + index as usize * self.stride as usize;
        // `parse` has seen that the records lie inside the bytes; a word that isn't there reads as 0.
        let field = |offset| word(self.bytes, at + offset).unwrap_or(0);

        let kind = field(table::KIND);
        let kind = TensorKind::from_word(kind).ok_or(TensorFault::Kind { found: kind })?;
        let dtype = field(table::DTYPE);
        let dtype = DType::from_word(dtype).ok_or(TensorFault::DType { found: dtype })?;
        let rank = field(table::RANK);
        let mut dims = [0; table::MAX_RANK];
        let used = dims.get_mut(..rank as usize).ok_or(TensorFault::Rank { found: rank })?;
        for (axis, dim) in used.iter_mut().enumerate() {
            *dim = field(table::DIMS + 4 * axis);
        }
        let place = match field(table::REGION) {
            table::NONE => None,
            region => {
                let region = u8::try_from(region).map_err(|_| TensorFault::Region { found: region })?;
                Some(Place { region, offset: field(table::OFFSET) })
            }
        };
        let quantised = field(table::FLAGS) & table::QUANTISED != 0;
        Ok(Tensor {
            kind,
            name: self.name(field(table::NAME_OFFSET), field(table::NAME_BYTES))?,
            dtype,
            shape: Shape { dims, rank: rank as u8 },
            quantisation: quantised.then(|| Quantisation {
                scale: f32::from_bits(field(table::SCALE)),
                zero_point: field(table::ZERO_POINT).cast_signed(),
            }),
            place,
            size: field(table::SIZE),
            fed_from: Some(field(table::FED_FROM)).filter(|source| *source != table::NONE),
        })
    }

    fn name(&self, offset: u32, bytes: u32) -> Result<&'a str, TensorFault> {
        let end = u64::from(offset) + u64::from(bytes);
        let outside = TensorFault::Name { offset, end, names_bytes: self.names.len() };
        let end = usize::try_from(end).map_err(|_| outside)?;
        let name = self.names.get(offset as usize..end).ok_or(outside)?;
        core::str::from_utf8(name).map_err(|error| TensorFault::Utf8 { offset, valid: error.valid_up_to() })
    }

    /// Whether a decoded record makes sense among the blob's regions and the other records.
    fn check(&self, tensor: &Tensor<'_>, regions: &[Region], own: usize) -> Result<(), TensorFault> {
        match tensor.shape.bytes(tensor.dtype) {
            Some(expected) if expected == tensor.size => {}
            expected => return Err(TensorFault::Size { found: tensor.size, expected }),
        }
        if let Some(Quantisation { scale, .. }) = tensor.quantisation
            && !(scale.is_finite() && scale > 0.0)
        {
            return Err(TensorFault::Scale { bits: scale.to_bits() });
        }
        match tensor.place {
            Some(place) => {
                let slot = usize::from(place.region);
                let region = regions.get(slot).filter(|_| slot != own);
                let region = region.ok_or(TensorFault::Region { found: place.region.into() })?;
                if u64::from(place.offset) + u64::from(tensor.size) > u64::from(region.size) {
                    let (size, region_size) = (tensor.size, region.size);
                    return Err(TensorFault::Outside {
                        region: place.region,
                        offset: place.offset,
                        size,
                        region_size,
                    });
                }
                let written = tensor.kind != TensorKind::Output;
                if written && matches!(region.storage(), Storage::Baked { .. }) {
                    return Err(TensorFault::ReadOnly { region: place.region });
                }
            }
            None if tensor.kind == TensorKind::Input => {}
            None => return Err(TensorFault::Region { found: table::NONE }),
        }
        let Some(found) = tensor.fed_from else { return Ok(()) };
        let source = self.get(found as usize).filter(|source| {
            tensor.kind == TensorKind::State
                && matches!(source.kind, TensorKind::Output | TensorKind::NextState)
                && (source.dtype, source.size) == (tensor.dtype, tensor.size)
        });
        source.map(|_| ()).ok_or(TensorFault::FedFrom { found })
    }
}

impl fmt::Debug for TensorTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl TensorKind {
    /// The kind of a record's word.
    pub const fn from_word(word: u32) -> Option<TensorKind> {
        match word {
            0 => Some(TensorKind::Input),
            1 => Some(TensorKind::Output),
            2 => Some(TensorKind::State),
            3 => Some(TensorKind::NextState),
            _ => None,
        }
    }

    /// The word as it stands in a record.
    pub const fn word(self) -> u32 {
        match self {
            TensorKind::Input => 0,
            TensorKind::Output => 1,
            TensorKind::State => 2,
            TensorKind::NextState => 3,
        }
    }
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TensorKind::Input => "input",
            TensorKind::Output => "output",
            TensorKind::State => "state",
            TensorKind::NextState => "next state",
        })
    }
}

impl DType {
    const ALL: [DType; 12] = [
        DType::Float32,
        DType::Float16,
        DType::Int32,
        DType::UInt8,
        DType::Int64,
        DType::Bool,
        DType::Int16,
        DType::Int8,
        DType::Float64,
        DType::UInt64,
        DType::UInt32,
        DType::UInt16,
    ];

    /// The type with this number; None for strings, complex numbers, sub-byte integers and numbers not in use.
    pub fn from_word(word: u32) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.word() == word)
    }

    /// The number as it stands in a record.
    pub const fn word(self) -> u32 {
        self as u32
    }

    /// Bytes of one element.
    pub const fn size(self) -> u32 {
        match self {
            DType::UInt8 | DType::Int8 | DType::Bool => 1,
            DType::Float16 | DType::Int16 | DType::UInt16 => 2,
            DType::Float32 | DType::Int32 | DType::UInt32 => 4,
            DType::Int64 | DType::Float64 | DType::UInt64 => 8,
        }
    }
}

impl fmt::Display for DType {
    /// NumPy's name of the type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::Float32 => "float32",
            DType::Float16 => "float16",
            DType::Int32 => "int32",
            DType::UInt8 => "uint8",
            DType::Int64 => "int64",
            DType::Bool => "bool",
            DType::Int16 => "int16",
            DType::Int8 => "int8",
            DType::Float64 => "float64",
            DType::UInt64 => "uint64",
            DType::UInt32 => "uint32",
            DType::UInt16 => "uint16",
        })
    }
}

impl Shape {
    /// A shape of these dimensions, outermost first; None for more than eight.
    pub fn new(dimensions: &[u32]) -> Option<Shape> {
        let mut dims = [0; table::MAX_RANK];
        dims.get_mut(..dimensions.len())?.copy_from_slice(dimensions);
        Some(Shape { dims, rank: dimensions.len() as u8 })
    }

    /// How many bytes that many elements of `dtype` take; None beyond 32 bits.
    pub fn bytes(&self, dtype: DType) -> Option<u32> {
        if self.contains(&0) {
            return Some(0);
        }
        self.iter().try_fold(dtype.size(), |bytes, dim| bytes.checked_mul(*dim))
    }
}

impl Deref for Shape {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        self.dims.get(..usize::from(self.rank)).unwrap_or(&self.dims)
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        **self == **other
    }
}

impl Eq for Shape {}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Shape {
    /// `1x96x96x3`; `scalar` without dimensions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("scalar");
        }
        for (axis, dim) in self.iter().enumerate() {
            write!(f, "{}{dim}", if axis == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

impl TensorError {
    /// The class the error belongs to.
    pub fn kind(&self) -> ErrorKind {
        match self {
            TensorError::Table { .. }
            | TensorError::Tensor { cause: TensorFault::Outside { .. } | TensorFault::Name { .. }, .. } => {
                ErrorKind::OutOfRange
            }
            TensorError::Stride { .. } | TensorError::Tensor { .. } => ErrorKind::InvalidArg,
        }
    }
}
