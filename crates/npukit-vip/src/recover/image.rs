//! An ELF file as the loader sees it: segments by address, and reads that never leave the file.

use super::RecoverError;
use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Sym};
use std::collections::BTreeMap;

/// Symbols beyond this are a sign that the table lies; the largest libraries have some hundred thousand.
const MOST_SYMBOLS: usize = 4_000_000;

pub(super) struct Image<'a> {
    pub bytes: &'a [u8],
    pub is_64: bool,
    pub machine: u16,
    pub segments: Vec<Segment>,
    /// Dynamic entries by tag; where a tag stands twice the first counts, as in the loader.
    pub dynamic: BTreeMap<u64, u64>,
    /// Names by address, of both symbol tables.
    pub symbols: BTreeMap<u64, Vec<String>>,
    pub has_symbol_table: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub address: u64,
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    pub executable: bool,
}

impl<'a> Image<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Image<'a>, RecoverError> {
        let elf = |error: object::Error| RecoverError::Elf(error.to_string());
        match object::FileKind::parse(bytes).map_err(elf)? {
            object::FileKind::Elf32 => {
                Self::read(elf::FileHeader32::<Endianness>::parse(bytes).map_err(elf)?, bytes)
            }
            object::FileKind::Elf64 => {
                Self::read(elf::FileHeader64::<Endianness>::parse(bytes).map_err(elf)?, bytes)
            }
            other => Err(RecoverError::Elf(format!("{other:?}"))),
        }
    }

    fn read<H: FileHeader<Endian = Endianness>>(
        header: &H,
        bytes: &'a [u8],
    ) -> Result<Image<'a>, RecoverError> {
        let elf = |error: object::Error| RecoverError::Elf(error.to_string());
        let endian = header.endian().map_err(elf)?;
        if endian == Endianness::Big {
            // No host of a VIP is big-endian, and what isn't met isn't tested.
            return Err(RecoverError::Elf("big-endian".into()));
        }
        let programs = header.program_headers(endian, bytes).map_err(elf)?;
        let length = bytes.len() as u64;
        let mut segments = Vec::new();
        let mut dynamic = BTreeMap::new();
        for program in programs {
            if program.p_type(endian) == elf::PT_LOAD {
                let (offset, size) = (program.p_offset(endian).into(), program.p_filesz(endian).into());
                let address: u64 = program.p_vaddr(endian).into();
                if offset.checked_add(size).is_none_or(|end| end > length)
                    || address.checked_add(size).is_none()
                {
                    return Err(RecoverError::Segment { address, offset, size, length });
                }
                if size > 0 {
                    segments.push(Segment {
                        address,
                        offset,
                        size,
                        executable: program.p_flags(endian) & elf::PF_X != 0,
                    });
                }
            }
            if let Some(entries) = program.dynamic(endian, bytes).map_err(elf)? {
                for entry in entries {
                    let tag: u64 = entry.d_tag(endian).into();
                    if tag == u64::from(elf::DT_NULL) {
                        break;
                    }
                    dynamic.entry(tag).or_insert_with(|| entry.d_val(endian).into());
                }
            }
        }
        if segments.is_empty() {
            return Err(RecoverError::NotLinked);
        }
        segments.sort_by_key(|segment| segment.address);
        for pair in segments.windows(2) {
            if let [first, second] = pair
                && first.address + first.size > second.address
            {
                return Err(RecoverError::SegmentsOverlap { first: first.address, second: second.address });
            }
        }
        let mut image = Image {
            bytes,
            is_64: header.is_class_64(),
            machine: header.e_machine(endian),
            segments,
            dynamic,
            symbols: BTreeMap::new(),
            has_symbol_table: false,
        };
        image.read_symbols(header, endian);
        Ok(image)
    }

    /// Symbols are a help and not needed: a broken section table means that there are none.
    fn read_symbols<H: FileHeader<Endian = Endianness>>(&mut self, header: &H, endian: Endianness) {
        let Ok(sections) = header.sections(endian, self.bytes) else { return };
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            let Ok(table) = sections.symbols(endian, self.bytes, kind) else { continue };
            if table.is_empty() || table.len() > MOST_SYMBOLS {
                continue;
            }
            self.has_symbol_table |= kind == elf::SHT_SYMTAB;
            for symbol in table.iter().filter(|symbol| symbol.st_type() == elf::STT_OBJECT) {
                let address: u64 = symbol.st_value(endian).into();
                if let Ok(name) = symbol.name(endian, table.strings())
                    && !name.is_empty()
                    && name.len() <= 256
                {
                    self.symbols.entry(address).or_default().push(String::from_utf8_lossy(name).into_owned());
                }
            }
        }
    }

    pub(super) fn machine_name(&self) -> String {
        match self.machine {
            elf::EM_ARM => "arm".into(),
            elf::EM_AARCH64 => "aarch64".into(),
            elf::EM_X86_64 => "x86_64".into(),
            other => format!("machine {other}"),
        }
    }

    /// The width of a pointer in bytes.
    pub(super) fn word(&self) -> u64 {
        if self.is_64 { 8 } else { 4 }
    }

    /// The file offset of `size` bytes at an address, if one segment holds them all.
    pub(super) fn offset(&self, address: u64, size: u64) -> Option<u64> {
        let index = self.segments.partition_point(|segment| segment.address <= address);
        let segment = self.segments.get(index.checked_sub(1)?)?;
        let inside = address - segment.address;
        let end = inside.checked_add(size)?;
        (end <= segment.size).then(|| segment.offset + inside)
    }

    pub(super) fn slice(&self, address: u64, size: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(self.offset(address, size)?).ok()?;
        self.bytes.get(offset..offset.checked_add(usize::try_from(size).ok()?)?)
    }

    pub(super) fn u32(&self, address: u64) -> Option<u32> {
        self.slice(address, 4).map(Self::word32)
    }

    /// A pointer-sized word.
    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        let bytes = self.slice(address, self.word())?;
        Some(if self.is_64 { Self::word64(bytes) } else { u64::from(Self::word32(bytes)) })
    }

    pub(super) fn word32(bytes: &[u8]) -> u32 {
        let Some(array) = bytes.first_chunk::<4>() else { return 0 };
        u32::from_le_bytes(*array)
    }

    pub(super) fn word64(bytes: &[u8]) -> u64 {
        let Some(array) = bytes.first_chunk::<8>() else { return 0 };
        u64::from_le_bytes(*array)
    }

    /// A text that could be an operator's name: capitals, digits and underscores, ended by a NUL.
    pub(super) fn operator_name(&self, address: u64) -> Option<&'a str> {
        const LONGEST: u64 = 64;
        let available = (2..=LONGEST + 1).rev().find(|size| self.offset(address, *size).is_some())?;
        let bytes = self.slice(address, available)?;
        let end = bytes.iter().position(|byte| *byte == 0).filter(|end| *end >= 2)?;
        let text = std::str::from_utf8(bytes.get(..end)?).ok()?;
        let fits = text.starts_with(|c: char| c.is_ascii_uppercase())
            && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        fits.then_some(text)
    }
}
