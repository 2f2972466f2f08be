//! Copies.

/// Where a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A region.
    Region(u8),
    /// The NPU's own memory, where tables lie.
    Internal,
}

/// Rows that are picked or placed by an array of 32-bit indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexed {
    /// Whether the index counts rows of the source, else of the destination.
    pub source: bool,
    /// The region of the array.
    pub region: u8,
    /// Its first byte.
    pub base: u64,
    /// The largest index allowed.
    pub max: u32,
    /// Bytes left out of the array after each plane.
    pub skip: i64,
}

/// A copy of rows, in planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dma {
    /// The region read.
    pub source_region: u8,
    /// First byte read.
    pub source: u64,
    /// Where it goes.
    pub target: Target,
    /// First byte written.
    pub destination: u64,
    /// Bytes of a row.
    pub length: u64,
    /// Rows of a plane.
    pub rows: usize,
    /// Planes.
    pub planes: usize,
    /// Bytes from a row of the source to the next, and of the destination.
    pub row_strides: (i64, i64),
    /// Bytes from a plane of the source to the next, and of the destination.
    pub plane_strides: (i64, i64),
    /// Set if rows are picked or placed by index.
    pub indexed: Option<Indexed>,
}

impl Dma {
    /// A copy of one row.
    pub(crate) fn straight(
        source_region: u8,
        source: u64,
        target: Target,
        destination: u64,
        length: u64,
    ) -> Self {
        Self {
            source_region,
            source,
            target,
            destination,
            length,
            rows: 1,
            planes: 1,
            row_strides: (0, 0),
            plane_strides: (0, 0),
            indexed: None,
        }
    }

    /// Whether it copies one row of fixed place.
    pub(crate) fn is_straight(&self) -> bool {
        self.rows == 1 && self.planes == 1 && self.indexed.is_none()
    }

    /// Bytes moved, and a little for each row.
    pub(crate) fn work(&self) -> u64 {
        let rows = (self.rows as u64).saturating_mul(self.planes as u64);
        self.length.saturating_add(8).saturating_mul(rows)
    }
}
