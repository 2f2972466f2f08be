//! The few pieces of the FlatBuffers wire format that a `.tflite` file is read with, every access checked.
//!
//! Tables and vectors may be shared, so a small file can describe a huge one. What is read out is therefore paid from a
//! budget that is a small multiple of the file's size.

use super::TfliteError;
use std::cell::Cell;

/// How many bytes may be read out for each byte of the file.
const BUDGET_PER_BYTE: u64 = 8;
/// So that tiny files have room for their own overhead.
const LEAST_BUDGET: u64 = 4096;

pub(super) struct Buffer<'a> {
    bytes: &'a [u8],
    budget: Cell<u64>,
}

#[derive(Clone, Copy)]
pub(super) struct Table {
    position: usize,
    vtable: usize,
    fields: usize,
}

/// A vector's first element and length.
#[derive(Clone, Copy, Default)]
pub(super) struct Vector {
    position: usize,
    pub length: usize,
}

impl<'a> Buffer<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let budget = (bytes.len() as u64).saturating_mul(BUDGET_PER_BYTE).saturating_add(LEAST_BUDGET);
        Buffer { bytes, budget: Cell::new(budget) }
    }

    fn spend(&self, bytes: usize) -> Result<(), TfliteError> {
        let left = self.budget.get().checked_sub(bytes as u64).ok_or(TfliteError::TooMuch)?;
        self.budget.set(left);
        Ok(())
    }

    pub(super) fn read<const N: usize>(&self, position: usize) -> Result<[u8; N], TfliteError> {
        let bytes = self.bytes.get(position..).and_then(|rest| rest.first_chunk::<N>());
        bytes.copied().ok_or(TfliteError::Short { offset: position, needed: N, length: self.bytes.len() })
    }

    fn follow(&self, position: usize) -> Result<usize, TfliteError> {
        let offset = u32::from_le_bytes(self.read(position)?) as usize;
        let target = position.checked_add(offset).filter(|target| offset != 0 && *target < self.bytes.len());
        target.ok_or(TfliteError::Offset { at: position, offset: offset as u64 })
    }

    pub(super) fn root(&self) -> Result<Table, TfliteError> {
        self.table_at(self.follow(0)?)
    }

    fn table_at(&self, position: usize) -> Result<Table, TfliteError> {
        self.spend(4)?;
        let back = i64::from(i32::from_le_bytes(self.read(position)?));
        let wrong = || TfliteError::Offset { at: position, offset: back as u64 };
        let vtable =
            (position as i64).checked_sub(back).and_then(|at| usize::try_from(at).ok()).ok_or_else(wrong)?;
        let size = usize::from(u16::from_le_bytes(self.read(vtable)?));
        if size < 4 || vtable.checked_add(size).is_none_or(|end| end > self.bytes.len()) {
            return Err(wrong());
        }
        Ok(Table { position, vtable, fields: (size - 4) / 2 })
    }

    /// Where a field lies; none where the table leaves it at its default.
    fn field(&self, table: Table, index: usize) -> Result<Option<usize>, TfliteError> {
        if index >= table.fields {
            return Ok(None);
        }
        let offset = u16::from_le_bytes(self.read(table.vtable + 4 + 2 * index)?);
        Ok((offset != 0).then_some(table.position + usize::from(offset)))
    }

    pub(super) fn u8(&self, table: Table, index: usize) -> Result<u8, TfliteError> {
        self.field(table, index)?.map_or(Ok(0), |at| self.read::<1>(at).map(|[byte]| byte))
    }

    pub(super) fn u32(&self, table: Table, index: usize) -> Result<u32, TfliteError> {
        self.field(table, index)?.map_or(Ok(0), |at| self.read(at).map(u32::from_le_bytes))
    }

    pub(super) fn u64(&self, table: Table, index: usize) -> Result<u64, TfliteError> {
        self.field(table, index)?.map_or(Ok(0), |at| self.read(at).map(u64::from_le_bytes))
    }

    pub(super) fn table(&self, table: Table, index: usize) -> Result<Option<Table>, TfliteError> {
        match self.field(table, index)? {
            Some(at) => self.table_at(self.follow(at)?).map(Some),
            None => Ok(None),
        }
    }

    /// A vector of elements of `size` bytes; empty where the field is absent.
    pub(super) fn vector(&self, table: Table, index: usize, size: usize) -> Result<Vector, TfliteError> {
        let Some(at) = self.field(table, index)? else { return Ok(Vector::default()) };
        let at = self.follow(at)?;
        let length = u32::from_le_bytes(self.read(at)?) as usize;
        let position = at + 4;
        let fits = length
            .checked_mul(size)
            .and_then(|bytes| position.checked_add(bytes))
            .is_some_and(|end| end <= self.bytes.len());
        if fits { Ok(Vector { position, length }) } else { Err(TfliteError::Vector { at, claimed: length }) }
    }

    pub(super) fn tables(&self, table: Table, index: usize) -> Result<Vec<Table>, TfliteError> {
        let vector = self.vector(table, index, 4)?;
        (0..vector.length).map(|i| self.table_at(self.follow(vector.position + 4 * i)?)).collect()
    }

    pub(super) fn i32s(&self, table: Table, index: usize) -> Result<Vec<i32>, TfliteError> {
        let vector = self.vector(table, index, 4)?;
        self.spend(4 * vector.length)?;
        (0..vector.length).map(|i| self.read(vector.position + 4 * i).map(i32::from_le_bytes)).collect()
    }

    /// The first element of a vector of 32-bit words, without reading the rest.
    pub(super) fn first<const N: usize>(&self, vector: Vector) -> Result<Option<[u8; N]>, TfliteError> {
        if vector.length == 0 { Ok(None) } else { self.read(vector.position).map(Some) }
    }

    pub(super) fn text(&self, table: Table, index: usize) -> Result<String, TfliteError> {
        let vector = self.vector(table, index, 1)?;
        self.spend(vector.length)?;
        let bytes = self.bytes.get(vector.position..vector.position + vector.length).unwrap_or(&[]);
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}
