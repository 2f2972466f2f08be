//! NumPy's array files: `.npy` for one array, `.npz` for several with names.
//!
//! A strict reader and writer of the format that `numpy.lib.format` documents, for the element types networks use.
//! Arrays are little-endian and in C order in memory; a Fortran-ordered file is turned over as it is read, and a
//! big-endian one is refused.

mod header;
mod npz;

use std::fmt;

pub use npz::{Npz, write_npz};

/// What every `.npy` file begins with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The data of a `.npy` file that NumPy writes begins at a multiple of this.
const ALIGNMENT: usize = 64;
/// NumPy's own limit on axes.
const MAXIMUM_RANK: usize = 64;

/// Why an array file can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It doesn't begin as a `.npy` file does.
    #[error("not a .npy file: {}", beginning(found))]
    Magic {
        /// What it begins with.
        found: Vec<u8>,
    },
    /// A format version this reader doesn't know.
    #[error(".npy format version {major}.{minor} is unknown (1.0, 2.0 and 3.0 are known)")]
    Version {
        /// Major number.
        major: u8,
        /// Minor number.
        minor: u8,
    },
    /// The file is cut off before its data.
    #[error("the file ends {place}")]
    CutOff {
        /// Before or inside what.
        place: &'static str,
    },
    /// The header isn't the dictionary the format asks for.
    #[error("malformed .npy header: {problem} at byte {offset} of {header:?}")]
    Header {
        /// What is wrong.
        problem: &'static str,
        /// Where in the header.
        offset: usize,
        /// The header text.
        header: String,
    },
    /// Big-endian elements.
    #[error(
        "big-endian elements ({dtype:?}); save the array as little-endian, e.g. a.astype(a.dtype.newbyteorder('<'))"
    )]
    BigEndian {
        /// The type found.
        dtype: String,
    },
    /// An element type this reader doesn't know: objects, strings, records, complex numbers.
    #[error("elements of type {dtype:?} can't be read (known are bool and 8 to 64-bit integers and floats)")]
    Dtype {
        /// The type found.
        dtype: String,
    },
    /// The data isn't as long as shape and type say.
    #[error("shape {shape:?} of {dtype} takes {expected} bytes of data, found {found}")]
    Length {
        /// The shape.
        shape: Vec<usize>,
        /// The element type.
        dtype: String,
        /// Bytes the shape takes; `u64::MAX` when that can't be counted.
        expected: u64,
        /// Bytes there are.
        found: usize,
    },
    /// The archive itself can't be read.
    #[error("not a readable .npz archive: {reason}")]
    Zip {
        /// The archive reader's words.
        reason: String,
    },
    /// The archive has no such array.
    #[error("no array '{name}' in the archive (it has: {})", .present.join(", "))]
    NoMember {
        /// The name looked for.
        name: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// An array of an archive can't be read.
    #[error("array '{name}': {source}")]
    Member {
        /// Its name.
        name: String,
        /// What is wrong with it.
        #[source]
        source: Box<NpyError>,
    },
}

/// "it begins with [50, 4b], not ...", or that there is no beginning.
fn beginning(found: &[u8]) -> String {
    if found.is_empty() {
        "it is empty".to_owned()
    } else {
        format!("it begins with {found:02x?}, not \"\\x93NUMPY\"")
    }
}

/// The type of an array's elements. Always little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Dtype {
    Bool,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
    /// Byte strings of a fixed length, NumPy's `S`. The length counts trailing zeros, which NumPy hides.
    Bytes(usize),
}

impl Dtype {
    /// Bytes an element takes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Int64 | Self::Uint64 | Self::Float64 => 8,
            Self::Bytes(length) => length,
        }
    }

    fn descr(self) -> String {
        match self {
            Self::Bool => "|b1".into(),
            Self::Int8 => "|i1".into(),
            Self::Uint8 => "|u1".into(),
            Self::Int16 => "<i2".into(),
            Self::Uint16 => "<u2".into(),
            Self::Int32 => "<i4".into(),
            Self::Uint32 => "<u4".into(),
            Self::Int64 => "<i8".into(),
            Self::Uint64 => "<u8".into(),
            Self::Float32 => "<f4".into(),
            Self::Float64 => "<f8".into(),
            Self::Bytes(length) => format!("|S{length}"),
        }
    }

    fn from_descr(descr: &str) -> Result<Self, NpyError> {
        let unknown = || NpyError::Dtype { dtype: descr.to_owned() };
        let (order, kind) = match descr.strip_prefix(['<', '>', '|', '=']) {
            Some(kind) => (descr.as_bytes()[0], kind),
            None => (b'|', descr),
        };
        if let Some(length) = kind.strip_prefix('S') {
            return length.parse().map(Self::Bytes).map_err(|_| unknown());
        }
        let dtype = match kind {
            "b1" | "?" => Self::Bool,
            "i1" => Self::Int8,
            "u1" => Self::Uint8,
            "i2" => Self::Int16,
            "u2" => Self::Uint16,
            "i4" => Self::Int32,
            "u4" => Self::Uint32,
            "i8" => Self::Int64,
            "u8" => Self::Uint64,
            "f4" => Self::Float32,
            "f8" => Self::Float64,
            _ => return Err(unknown()),
        };
        match order {
            b'>' if dtype.bytes() > 1 => Err(NpyError::BigEndian { dtype: descr.to_owned() }),
            // "=" is "native", which a file can't mean; "|" has no meaning for more than one byte.
            b'=' | b'|' if dtype.bytes() > 1 => Err(unknown()),
            _ => Ok(dtype),
        }
    }
}

/// NumPy's name of the type: `int8`, `float32`.
impl fmt::Display for Dtype {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => formatter.pad("bool"),
            Self::Int8 => formatter.pad("int8"),
            Self::Uint8 => formatter.pad("uint8"),
            Self::Int16 => formatter.pad("int16"),
            Self::Uint16 => formatter.pad("uint16"),
            Self::Int32 => formatter.pad("int32"),
            Self::Uint32 => formatter.pad("uint32"),
            Self::Int64 => formatter.pad("int64"),
            Self::Uint64 => formatter.pad("uint64"),
            Self::Float32 => formatter.pad("float32"),
            Self::Float64 => formatter.pad("float64"),
            Self::Bytes(length) => write!(formatter, "{length}-byte strings"),
        }
    }
}

/// An array: little-endian elements in C order (the last axis runs fastest).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

impl Array {
    /// An array of the given elements.
    ///
    /// # Errors
    ///
    /// [`NpyError::Length`] when `data` isn't as long as the shape asks.
    pub fn new(dtype: Dtype, shape: Vec<usize>, data: Vec<u8>) -> Result<Self, NpyError> {
        check_length(dtype, &shape, data.len())?;
        Ok(Array { dtype, shape, data })
    }

    /// The type of its elements.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its axes, outermost first. Empty for a single value.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its elements as little-endian bytes in C order.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The elements, taken out.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// How many elements it has.
    pub fn elements(&self) -> usize {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().fold(1, |product: usize, &axis| product.saturating_mul(axis))
    }

    /// Reads a `.npy` file.
    ///
    /// # Errors
    ///
    /// [`NpyError`] says what is wrong or not understood.
    pub fn parse(file: &[u8]) -> Result<Self, NpyError> {
        let header::Header { dtype, fortran_order, shape, data } = header::parse(file)?;
        check_length(dtype, &shape, data.len())?;
        let data = if fortran_order { to_c_order(data, dtype.bytes(), &shape) } else { data.to_vec() };
        Ok(Array { dtype, shape, data })
    }

    /// Writes a `.npy` file as NumPy does, format version 1.0.
    pub fn to_npy(&self) -> Vec<u8> {
        header::write(self)
    }

    /// The elements as 64-bit floats, whatever number type they have; `None` for byte strings.
    pub fn to_f64(&self) -> Option<Vec<f64>> {
        fn all<const N: usize>(data: &[u8], convert: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            data.as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)).collect()
        }
        // A 64-bit integer beyond 2^53 is rounded, as NumPy would.
        Some(match self.dtype {
            Dtype::Bool | Dtype::Uint8 => all::<1>(&self.data, |b| f64::from(b[0])),
            Dtype::Int8 => all::<1>(&self.data, |b| f64::from(i8::from_le_bytes(b))),
            Dtype::Int16 => all::<2>(&self.data, |b| f64::from(i16::from_le_bytes(b))),
            Dtype::Uint16 => all::<2>(&self.data, |b| f64::from(u16::from_le_bytes(b))),
            Dtype::Int32 => all::<4>(&self.data, |b| f64::from(i32::from_le_bytes(b))),
            Dtype::Uint32 => all::<4>(&self.data, |b| f64::from(u32::from_le_bytes(b))),
            Dtype::Int64 => all::<8>(&self.data, |b| i64::from_le_bytes(b) as f64),
            Dtype::Uint64 => all::<8>(&self.data, |b| u64::from_le_bytes(b) as f64),
            Dtype::Float32 => all::<4>(&self.data, |b| f64::from(f32::from_le_bytes(b))),
            Dtype::Float64 => all::<8>(&self.data, f64::from_le_bytes),
            Dtype::Bytes(_) => return None,
        })
    }
}

/// Bytes an array takes; `None` when that can't be counted.
fn length(dtype: Dtype, shape: &[usize]) -> Option<usize> {
    // An axis of zero makes the product zero however large the others are.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(dtype.bytes(), |product, &axis| product.checked_mul(axis))
}

fn check_length(dtype: Dtype, shape: &[usize], found: usize) -> Result<(), NpyError> {
    let expected = length(dtype, shape);
    if expected == Some(found) {
        return Ok(());
    }
    let expected = expected.map_or(u64::MAX, |bytes| bytes as u64);
    Err(NpyError::Length { shape: shape.to_vec(), dtype: dtype.to_string(), expected, found })
}

/// Turns elements whose first axis runs fastest into elements whose last axis does.
fn to_c_order(data: &[u8], element: usize, shape: &[usize]) -> Vec<u8> {
    if element == 0 || data.is_empty() {
        return Vec::new();
    }
    let mut strides = vec![0; shape.len()];
    let mut stride = element;
    for (axis, extent) in shape.iter().enumerate() {
        strides[axis] = stride;
        stride *= extent;
    }
    let mut turned = Vec::with_capacity(data.len());
    let mut at = vec![0; shape.len()];
    let mut offset = 0;
    for _ in 0..data.len() / element {
        turned.extend_from_slice(&data[offset..offset + element]);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            offset += strides[axis];
            if at[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            at[axis] = 0;
        }
    }
    turned
}
