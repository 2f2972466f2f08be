//! A checked blob, borrowed from its buffer.

use crate::layout;
use crate::packing::Packing;
use crate::region::{Region, Storage};
use crate::{Accel, CommandStream, Error, Header, TensorTable, checksum, header};

/// A checked blob. [`parse`](Blob::parse) is the panic barrier: what it lets through, no accessor of this crate panics
/// on or reads outside of.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'a> {
    bytes: &'a [u8],
    header: Header,
    regions: [Region; layout::MAX_REGIONS],
    commands: CommandStream<'a>,
    tensors: Option<TensorTable<'a>>,
}

impl<'a> Blob<'a> {
    /// Checks a whole blob, which must fill `bytes` exactly.
    ///
    /// The checks and their order are those of the NPU1 format document, section 4.2, with more than eight regions
    /// refused before the table is looked for; then the framing of the command stream, if any, and the tensor table,
    /// if any. Whatever order hostile bytes are in, the first failing check names the error.
    ///
    /// Legal are: regions that overlap, unknown roles and flag bits, offsets that aren't aligned
    /// ([`Job::misaligned`](crate::Job::misaligned) reports those).
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Arena`] and [`Error::Address`].
    pub fn parse(bytes: &'a [u8]) -> Result<Blob<'a>, Error> {
        Blob::parse_with(bytes, |_, _| Ok(()))
    }

    /// [`parse`](Blob::parse), where `bind` has a say on each region right after the region's own checks: the place
    /// that section 4.2 gives to the arena check.
    pub(crate) fn parse_with(
        bytes: &'a [u8],
        mut bind: impl FnMut(u8, &Region) -> Result<(), Error>,
    ) -> Result<Blob<'a>, Error> {
        // 1 to 3: length, magic, version.
        let header = header::read(bytes)?;
        let total_bytes = header.total_bytes;
        // 4: the whole blob, nothing but the blob.
        if total_bytes as usize != bytes.len() {
            return Err(Error::TotalBytes { found: total_bytes, expected: bytes.len() });
        }
        // 5: the region table.
        let count = header.region_count as usize;
        let mut regions = [Region::NONE; layout::MAX_REGIONS];
        let used = regions.get_mut(..count).ok_or(Error::RegionCount { found: header.region_count })?;
        let end = layout::HEADER_BYTES + count * layout::REGION_BYTES;
        let outside = Error::RegionTable { regions: header.region_count, end, total_bytes };
        for (index, region) in used.iter_mut().enumerate() {
            let at = layout::HEADER_BYTES + index * layout::REGION_BYTES;
            *region = Region::read(bytes, at).ok_or(outside)?;
        }
        let used = &*used;
        // 6: the command stream.
        if header.cmd_bytes == 0 {
            return Err(Error::NoCommands);
        }
        let stream = span(bytes, header.cmd_offset, header.cmd_bytes).ok_or(Error::Commands {
            offset: header.cmd_offset,
            bytes: header.cmd_bytes,
            total_bytes,
        })?;
        // 7: the payload.
        let found = checksum(bytes.get(layout::HEADER_BYTES..).unwrap_or_default());
        if found != header.checksum {
            return Err(Error::Checksum { found, expected: header.checksum });
        }
        // 8: the regions.
        let mut table = None;
        for (slot, region) in (0u8..).zip(used) {
            check_region(bytes, used, slot, region)?;
            bind(slot, region)?;
            if let Storage::Tensors { offset } = region.storage() {
                table = Some((slot, span(bytes, offset, region.size).unwrap_or_default()));
            }
        }

        let commands = CommandStream::parse(stream)
            .map_err(|cause| Error::Framing { offset: header.cmd_offset, cause })?
            .moved(header.cmd_offset as usize);
        let tensors = match table {
            None => None,
            Some((region, bytes)) => {
                let table = TensorTable::parse(bytes, used, usize::from(region));
                Some(table.map_err(|cause| Error::Tensors { region, cause })?)
            }
        };
        Ok(Blob { bytes, header, regions, commands, tensors })
    }

    /// The whole blob.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The accelerator that the commands were compiled for: the header's word, or where that says nothing, what the
    /// framing around the commands says.
    pub fn accel(&self) -> Accel {
        match self.header.accel {
            Accel::UNKNOWN => self.commands.framing().accel().unwrap_or_default(),
            stated => stated,
        }
    }

    /// The regions, at most eight; the index is the BASEP slot.
    pub fn regions(&self) -> &[Region] {
        self.regions.get(..self.header.region_count as usize).unwrap_or(&self.regions)
    }

    /// The bytes of a baked region, the tensor table included; None for a runtime region and beyond the last slot.
    pub fn region_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let region = self.regions().get(index)?;
        match region.storage() {
            Storage::Baked { offset } | Storage::Tensors { offset } => span(self.bytes, offset, region.size),
            Storage::Runtime | Storage::Alias { .. } => None,
        }
    }

    /// The commands, bare.
    pub fn command_stream(&self) -> CommandStream<'a> {
        self.commands
    }

    /// The tensor table, if the blob has one.
    pub fn tensors(&self) -> Option<TensorTable<'a>> {
        self.tensors
    }

    /// How many bytes of arena loading takes: the runtime regions in their order, each at a multiple of 16. Exact: with
    /// one byte less [`load`](crate::load()) refuses.
    pub fn arena_bytes(&self) -> u64 {
        self.arena_bytes_with(Packing::new())
    }

    /// As [`arena_bytes`](Blob::arena_bytes), for regions that are packed in another way.
    pub fn arena_bytes_with(&self, packing: Packing) -> u64 {
        let mut cursor = ArenaCursor::new(packing);
        for (slot, region) in (0u8..).zip(self.regions()) {
            if region.storage() == Storage::Runtime && packing.deals(slot) {
                cursor.advance(region.size);
            }
        }
        cursor.end
    }
}

/// Deals out an arena: each runtime region at the next multiple of the alignment.
pub(crate) struct ArenaCursor {
    packing: Packing,
    end: u64,
}

impl ArenaCursor {
    pub(crate) fn new(packing: Packing) -> ArenaCursor {
        ArenaCursor { packing, end: 0 }
    }

    /// Where the runtime region starts in an arena of `arena_bytes`; `None` if its memory comes from elsewhere.
    pub(crate) fn take(&mut self, slot: u8, region: &Region, arena_bytes: u64) -> Result<Option<u64>, Error> {
        if !self.packing.deals(slot) {
            return Ok(None);
        }
        let offset = self.advance(region.size);
        if self.end > arena_bytes {
            let size = u32::try_from(self.packing.room(region.size)).unwrap_or(u32::MAX);
            return Err(Error::Arena { region: slot, offset, size, arena_bytes });
        }
        Ok(Some(offset))
    }

    /// What has been dealt out so far.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    fn advance(&mut self, size: u32) -> u64 {
        let start = self.packing.align_up(self.end);
        self.end = start + self.packing.room(size);
        start
    }
}

/// What a region's own words can be told wrong by.
fn check_region(bytes: &[u8], regions: &[Region], slot: u8, region: &Region) -> Result<(), Error> {
    let index = usize::from(slot);
    let flags = region.flags;
    if flags.baked() && flags.alias() || flags.tensors() && !flags.baked() {
        return Err(Error::Flags { region: slot, found: flags });
    }
    match region.storage() {
        Storage::Baked { offset } | Storage::Tensors { offset } => {
            let (size, total_bytes) = (region.size, bytes.len() as u32);
            span(bytes, offset, size).ok_or(Error::Baked { region: slot, offset, size, total_bytes })?;
        }
        Storage::Alias { of } => {
            let earlier = regions.get(of as usize).filter(|_| (of as usize) < index);
            let target = earlier
                .filter(|target| matches!(target.storage(), Storage::Runtime | Storage::Alias { .. }))
                .ok_or(Error::AliasTarget { region: slot, found: of })?;
            if target.size != region.size {
                let (found, expected) = (region.size, target.size);
                return Err(Error::AliasSize { region: slot, target: of as u8, found, expected });
            }
        }
        Storage::Runtime => {}
    }
    if flags.tensors() && index + 1 != regions.len() {
        return Err(Error::TensorsNotLast { region: slot, expected: (regions.len() - 1) as u8 });
    }
    Ok(())
}

/// `size` bytes from `offset` on, if they are there.
fn span(bytes: &[u8], offset: u32, size: u32) -> Option<&[u8]> {
    let start = offset as usize;
    bytes.get(start..start.checked_add(size as usize)?)
}
