//! A checked reader for FlatBuffers tables: every access is bounds-checked, nothing is trusted, nothing is copied.
//!
//! The wire format is that of the FlatBuffers internals document: a table begins with a signed offset back to
//! its vtable; the vtable holds its own length, the table's length and one 16-bit offset a field; references are
//! unsigned 32-bit offsets from their own position; vectors and strings begin with a 32-bit count.

use std::fmt;
use std::marker::PhantomData;

/// A position or length in the file points outside it, or means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What was being read.
    pub(super) what: &'static str,
    /// Where, in bytes from the start of the file.
    pub(super) offset: usize,
    /// Where that would have ended.
    pub(super) end: u64,
}

/// Field positions inside a table are 16-bit.
const VTABLE_HEADER: usize = 4;

/// Numbers a vector can hold.
pub trait Scalar: Copy {
    /// Width in bytes.
    const BYTES: usize;
    /// Decodes one value from exactly [`Scalar::BYTES`] little-endian bytes.
    fn decode(bytes: &[u8]) -> Self;
}

macro_rules! scalar {
    ($($kind:ty),*) => {$(
        impl Scalar for $kind {
            const BYTES: usize = size_of::<$kind>();
            fn decode(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$kind>()];
                array.copy_from_slice(bytes);
                <$kind>::from_le_bytes(array)
            }
        }
    )*};
}
scalar!(u8, i8, u16, i32, u32, i64, u64, f32);

/// A vector of numbers in the file, decoded as it is read.
#[derive(Clone, Copy)]
pub struct Numbers<'a, T> {
    bytes: &'a [u8],
    kind: PhantomData<T>,
}

impl<'a, T: Scalar + 'a> Numbers<'a, T> {
    /// No numbers.
    pub const EMPTY: Numbers<'static, T> = Numbers { bytes: &[], kind: PhantomData };

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number at `index`.
    pub fn get(&self, index: usize) -> Option<T> {
        let start = index.checked_mul(T::BYTES)?;
        self.bytes.get(start..start.checked_add(T::BYTES)?).map(T::decode)
    }

    /// All numbers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = T> + 'a {
        self.bytes.chunks_exact(T::BYTES).map(T::decode)
    }

    /// The numbers as they lie in the file, little-endian.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<T: Scalar + fmt::Debug> fmt::Debug for Numbers<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Scalar + PartialEq> PartialEq for Numbers<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// A table whose vtable has been found inside the file.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    data: &'a [u8],
    at: usize,
    vtable: usize,
    vtable_bytes: usize,
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Table at 0x{:x}", self.at)
    }
}

fn slice<'a>(data: &'a [u8], what: &'static str, offset: usize, bytes: usize) -> Result<&'a [u8], Fault> {
    let end = offset as u64 + bytes as u64;
    usize::try_from(end).ok().and_then(|end| data.get(offset..end)).ok_or(Fault { what, offset, end })
}

fn scalar<T: Scalar>(data: &[u8], what: &'static str, offset: usize) -> Result<T, Fault> {
    slice(data, what, offset, T::BYTES).map(T::decode)
}

/// Follows the reference at `offset` and returns what it points at.
fn follow(data: &[u8], what: &'static str, offset: usize) -> Result<usize, Fault> {
    let distance = scalar::<u32>(data, what, offset)?;
    let target = offset as u64 + u64::from(distance);
    match usize::try_from(target) {
        Ok(target) if target < data.len() && distance != 0 => Ok(target),
        _ => Err(Fault { what, offset, end: target }),
    }
}

impl<'a> Table<'a> {
    /// The table the file begins with.
    pub(super) fn root(data: &'a [u8], what: &'static str) -> Result<Self, Fault> {
        Table::at(data, what, follow(data, what, 0)?)
    }

    fn at(data: &'a [u8], what: &'static str, at: usize) -> Result<Self, Fault> {
        let back = scalar::<i32>(data, what, at)?;
        let vtable = at as i64 - i64::from(back);
        let vtable = usize::try_from(vtable).map_err(|_| Fault { what, offset: at, end: 0 })?;
        let vtable_bytes = usize::from(scalar::<u16>(data, what, vtable)?);
        slice(data, what, vtable, vtable_bytes.max(VTABLE_HEADER))?;
        let table_bytes = usize::from(scalar::<u16>(data, what, vtable + 2)?);
        slice(data, what, at, table_bytes.max(4))?;
        Ok(Table { data, at, vtable, vtable_bytes })
    }

    /// Where field `slot` lies in the file, if the table has it.
    fn field(&self, what: &'static str, slot: usize) -> Result<Option<usize>, Fault> {
        let entry = VTABLE_HEADER + 2 * slot;
        if entry + 2 > self.vtable_bytes {
            return Ok(None);
        }
        let offset = scalar::<u16>(self.data, what, self.vtable + entry)?;
        Ok((offset != 0).then(|| self.at + usize::from(offset)))
    }

    /// A number, or `default` where the table doesn't have it.
    pub(super) fn number<T: Scalar>(&self, what: &'static str, slot: usize, default: T) -> Result<T, Fault> {
        match self.field(what, slot)? {
            Some(at) => scalar(self.data, what, at),
            None => Ok(default),
        }
    }

    /// Where the reference field `slot` points.
    fn reference(&self, what: &'static str, slot: usize) -> Result<Option<usize>, Fault> {
        self.field(what, slot)?.map(|at| follow(self.data, what, at)).transpose()
    }

    /// A nested table.
    pub(super) fn table(&self, what: &'static str, slot: usize) -> Result<Option<Table<'a>>, Fault> {
        self.reference(what, slot)?.map(|at| Table::at(self.data, what, at)).transpose()
    }

    /// A vector of numbers.
    pub(super) fn numbers<T: Scalar>(
        &self,
        what: &'static str,
        slot: usize,
    ) -> Result<Option<Numbers<'a, T>>, Fault> {
        let Some(at) = self.reference(what, slot)? else { return Ok(None) };
        let count = scalar::<u32>(self.data, what, at)? as usize;
        let bytes = slice(self.data, what, at + 4, count.saturating_mul(T::BYTES))?;
        Ok(Some(Numbers { bytes, kind: PhantomData }))
    }

    /// A string's bytes.
    pub(super) fn string(&self, what: &'static str, slot: usize) -> Result<Option<&'a [u8]>, Fault> {
        Ok(self.numbers::<u8>(what, slot)?.map(|numbers| numbers.bytes))
    }

    /// A vector of tables.
    pub(super) fn tables(&self, what: &'static str, slot: usize) -> Result<Option<Tables<'a>>, Fault> {
        let Some(at) = self.reference(what, slot)? else { return Ok(None) };
        let count = scalar::<u32>(self.data, what, at)? as usize;
        slice(self.data, what, at + 4, count.saturating_mul(4))?;
        Ok(Some(Tables { data: self.data, what, first: at + 4, count }))
    }

    /// Where the first of the numbers in field `slot` lies in the file.
    pub(super) fn numbers_position(&self, what: &'static str, slot: usize) -> Result<Option<usize>, Fault> {
        Ok(self.reference(what, slot)?.map(|at| at + 4))
    }

    /// Where field `slot` lies in the file: for a vector, the position of the reference to it.
    pub(super) fn reference_position(&self, what: &'static str, slot: usize) -> Result<Option<usize>, Fault> {
        self.field(what, slot)
    }
}

/// A vector of tables whose references lie inside the file.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    data: &'a [u8],
    what: &'static str,
    first: usize,
    count: usize,
}

impl<'a> Tables<'a> {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Result<Table<'a>, Fault>> {
        (0..self.count).map(move |index| {
            let at = follow(self.data, self.what, self.first + 4 * index)?;
            Table::at(self.data, self.what, at)
        })
    }
}
