//! The parser.

use super::coverage::{Coverage, Span, Understanding};
use super::layout::{self, section};
use super::reader::Reader;
use super::{
    Depth, FeatureWords, Header, Memory, Nbg, NbgError, Operation, OperationRole, Section, UnknownWord,
    checksum,
};
use crate::chip::Engine;
use crate::tables::hex_sha256;
use crate::version::Certainty;

/// Layer number of records that belong to none.
pub(super) const NO_LAYER: u32 = 0xFFFF;
pub(super) const INIT_TYPE: u32 = 0xFFFF;
pub(super) const END_TYPE: u32 = 0xFFFE;

impl Nbg {
    /// Reads a file.
    ///
    /// # Errors
    /// Anything that leads outside of the file or of the table it points into; see [`NbgError`]. Files that parse but
    /// disagree with themselves say so in [`Nbg::findings`].
    pub fn parse(bytes: &[u8]) -> Result<Nbg, NbgError> {
        let reader = Reader::new(bytes);
        let header = header(&reader)?;
        match header.version >> 16 {
            1 => Parser { reader, bytes, version: header.version, claims: Vec::new() }.whole(header),
            2 => Ok(header_only(bytes, header)),
            _ => Err(NbgError::Version(header.version)),
        }
    }
}

fn header(reader: &Reader<'_>) -> Result<Header, NbgError> {
    let magic = reader.slice("the header", 0, 4)?;
    if magic != layout::MAGIC {
        let mut found = [0; 4];
        found.copy_from_slice(magic);
        return Err(NbgError::Magic { found });
    }
    reader.slice("the header", 0, u64::from(layout::HEADER_BYTES))?;
    let word = |offset| reader.u32("the header", offset);
    Ok(Header {
        version: word(4)?,
        target: word(8)?,
        name: reader.text("the network's name", 0xC, layout::NAME_BYTES)?,
        layer_count: word(0x4C)?,
        operation_count: word(0x50)?,
        input_count: word(0x54)?,
        output_count: word(0x58)?,
    })
}

fn header_only(bytes: &[u8], header: Header) -> Nbg {
    let end = u64::from(layout::HEADER_BYTES);
    let claim =
        |start, end, understanding, what: &str| Span { start, end, understanding, what: what.to_owned() };
    let claims = vec![
        claim(0, end, Understanding::Read, "header"),
        claim(end, bytes.len() as u64, Understanding::Unknown, "version 2: layout not known"),
    ];
    Nbg {
        header,
        depth: Depth::HeaderOnly,
        layout: Certainty::Unknown,
        features: None,
        memory: None,
        sections: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        layers: Vec::new(),
        operations: Vec::new(),
        software: Vec::new(),
        shaders: Vec::new(),
        patches: Vec::new(),
        checksum: checksum::Checksum::Absent,
        unknown_words: Vec::new(),
        findings: vec!["version 2: only the header is read; whether a checksum is in it isn't known".into()],
        coverage: Coverage::new(bytes, claims),
        trailer: None,
        sha256: hex_sha256(bytes),
    }
}

pub(super) struct Parser<'a> {
    pub(super) reader: Reader<'a>,
    bytes: &'a [u8],
    pub(super) version: u32,
    claims: Vec<Span>,
}

impl Parser<'_> {
    fn whole(mut self, header: Header) -> Result<Nbg, NbgError> {
        let fixed = layout::fixed(self.version);
        let mut unknown_words = Vec::new();
        let mut findings = Vec::new();
        self.claim(0, u64::from(layout::HEADER_BYTES), Understanding::Read, "header");
        let features = match fixed.features {
            Some(offset) => Some(self.features(offset, &mut unknown_words)?),
            None => None,
        };
        let word = |offset: u32| self.reader.u32("the fixed part", u64::from(offset));
        let memory = Memory {
            pool_bytes: word(fixed.pool)?,
            pool_alignment: word(fixed.pool + 4)?,
            pool_base: word(fixed.pool + 8)?,
            axi_sram_base: word(fixed.axi_sram)?,
            axi_sram_bytes: word(fixed.axi_sram + 4)?,
            vip_sram_base: fixed.vip_sram.map(word).transpose()?,
            vip_sram_bytes: fixed.vip_sram.map(|offset| word(offset + 4)).transpose()?,
        };
        self.claim(u64::from(fixed.pool), u64::from(fixed.sections), Understanding::Read, "memory needs");
        let sections = self.sections(fixed.sections)?;
        for entry in
            sections.iter().filter(|entry| entry.size == 0 && u64::from(entry.offset) > self.reader.len())
        {
            findings
                .push(format!("empty section {} lies behind the file, at {:#x}", entry.name, entry.offset));
        }

        let inputs = self.io(&sections[section::INPUT], header.input_count, &mut findings)?;
        let outputs = self.io(&sections[section::OUTPUT], header.output_count, &mut findings)?;
        let layers = self.layers(&sections[section::LAYER], header.layer_count)?;
        let counts = self.counts(&sections, features)?;
        let operations =
            self.operations(&sections[section::OPERATION], header.operation_count, &mut unknown_words)?;
        check_references(&operations, &header, &counts)?;
        self.hardware_init(sections.get(section::HW_INIT), &counts)?;
        let shaders = self.shader_operations(&sections, &counts)?;
        let patches = self.patches(&sections[section::PATCH], &counts, &mut unknown_words)?;
        let software = self.software(&sections[section::SW])?;
        self.divide(&sections, &mut findings)?;
        self.claim_opaque(&sections);

        for layer in &layers {
            let there = operations.iter().filter(|operation| operation.layer == Some(layer.id)).count();
            if there != layer.operation_count as usize {
                findings.push(format!(
                    "layer {} `{}` counts {} operations, {there} name it",
                    layer.id, layer.name, layer.operation_count
                ));
            }
        }
        let trailer = self.trailer(&sections);
        let checksum = checksum::judge(self.bytes, self.version);
        let layout = if layout::MET.contains(&self.version) { Certainty::Known } else { Certainty::Assumed };
        if layout == Certainty::Assumed {
            findings.push(format!(
                "version {:#x} wasn't met in a real file: its layout is taken from its neighbours",
                self.version
            ));
        }
        Ok(Nbg {
            header,
            depth: Depth::Whole,
            layout,
            features,
            memory: Some(memory),
            sections,
            inputs,
            outputs,
            layers,
            operations,
            software,
            shaders,
            patches,
            checksum,
            unknown_words,
            findings,
            coverage: Coverage::new(self.bytes, self.claims),
            trailer,
            sha256: hex_sha256(self.bytes),
        })
    }

    fn claim(&mut self, start: u64, end: u64, understanding: Understanding, what: &str) {
        if end > start {
            self.claims.push(Span { start, end, understanding, what: what.to_owned() });
        }
    }

    pub(super) fn claim_section(&mut self, section: &Section, understanding: Understanding) {
        let start = u64::from(section.offset);
        self.claim(start, start + u64::from(section.size), understanding, &section.name);
    }

    fn features(&mut self, offset: u32, unknown: &mut Vec<UnknownWord>) -> Result<FeatureWords, NbgError> {
        let start = u64::from(offset);
        let bytes = self.reader.slice("the feature words", start, u64::from(layout::FEATURE_BYTES))?;
        let mut words = bytes.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_le_bytes));
        let (flags, pixel_pipes, cores) =
            (words.next().unwrap_or(0), words.next().unwrap_or(0), words.next().unwrap_or(0));
        let mut note = |index: u32, value: u32, place: &str| {
            if value != 0 {
                unknown.push(UnknownWord { offset: offset + 4 * index, value, place: place.to_owned() });
            }
        };
        note(0, flags & !0x1F, "feature flags, reserved bits");
        note(2, cores & !0xFF, "beside the core count");
        for (index, value) in (3..).zip(words) {
            if offset + 4 * index != layout::CHECKSUM_OFFSET {
                note(index, value, "feature words");
            }
        }
        self.claim(start, start + u64::from(layout::FEATURE_BYTES), Understanding::Read, "feature words");
        Ok(FeatureWords {
            hi_reorder_fix: flags & 1 != 0,
            ocb_counter: flags & 2 != 0,
            nn_command_bytes: match flags >> 2 & 3 {
                0 => Some(128),
                1 => Some(192),
                _ => None,
            },
            change_ppu_param: flags & 0x10 != 0,
            pixel_pipes,
            cores: (cores & 0xFF) as u8,
        })
    }

    /// The list of sections: it ends where the first of them starts.
    fn sections(&mut self, start: u32) -> Result<Vec<Section>, NbgError> {
        let end = self.reader.u32("the section list", u64::from(start))?;
        let bytes = end.wrapping_sub(start);
        let fits = (8 * layout::FEWEST_SECTIONS..=8 * layout::MOST_SECTIONS).contains(&bytes)
            && bytes.is_multiple_of(8);
        if end < start || !fits {
            return Err(NbgError::SectionList { offset: end, start });
        }
        let list = self.reader.slice("the section list", u64::from(start), u64::from(bytes))?;
        let mut sections = Vec::new();
        for (index, entry) in list.chunks_exact(8).enumerate() {
            let word = |at: usize| {
                entry.get(at..at + 4).and_then(|w| w.try_into().ok()).map_or(0, u32::from_le_bytes)
            };
            let section =
                Section { index, name: layout::section_name(index), offset: word(0), size: word(4) };
            if section.size > 0 {
                let length = self.reader.len();
                if u64::from(section.offset) + u64::from(section.size) > length {
                    let Section { name, offset, size, .. } = section;
                    return Err(NbgError::Section { name, offset, size, length });
                }
                if section.offset < end {
                    return Err(NbgError::InFixedPart { name: section.name, offset: section.offset, end });
                }
            }
            sections.push(section);
        }
        let mut order: Vec<&Section> = sections.iter().filter(|section| section.size > 0).collect();
        order.sort_by_key(|section| (section.offset, section.size));
        for pair in order.windows(2) {
            if let [first, second] = pair
                && second.offset < first.offset.saturating_add(first.size)
            {
                return Err(NbgError::Overlap {
                    first: first.name.clone(),
                    second: second.name.clone(),
                    at: second.offset,
                });
            }
        }
        self.claim(u64::from(start), u64::from(end), Understanding::Read, "section list");
        Ok(sections)
    }

    /// Whether a table is as long as the header's count says. Compared in 64 bits: counts may lie.
    pub(super) fn counted(&self, section: &Section, count: u32, record: u32) -> Result<(), NbgError> {
        if u64::from(count) * u64::from(record) == u64::from(section.size) {
            Ok(())
        } else {
            Err(NbgError::Count { name: section.name.clone(), size: section.size, count, record })
        }
    }

    pub(super) fn records(&self, section: &Section, record: u32) -> Result<u64, NbgError> {
        if section.size.is_multiple_of(record) {
            Ok(u64::from(section.size / record))
        } else {
            Err(NbgError::Records { name: section.name.clone(), size: section.size, record })
        }
    }

    fn counts(&mut self, sections: &[Section], features: Option<FeatureWords>) -> Result<Counts, NbgError> {
        // The flags name the size of an NN command, the version that of a TP command; a table that isn't whole commands of
        // that size may be of the other one.
        let whole = |index: usize, named: u32| match sections[index].size {
            size if size.is_multiple_of(named) => named,
            size => {
                *layout::COMMAND_BYTES.iter().find(|bytes| size.is_multiple_of(**bytes)).unwrap_or(&named)
            }
        };
        let nn_record =
            whole(section::NN, features.and_then(|features| features.nn_command_bytes).unwrap_or(128));
        let tp_record = whole(section::TP, layout::tp_record(self.version));
        let tp = &sections[section::TP];
        let optional = |index: usize, record: u32| match sections.get(index) {
            Some(section) => self.records(section, record),
            None => Ok(0),
        };
        let states = match self.version >= layout::REGIONS_FROM && sections.len() > section::STATES_TABLE {
            true => section::STATES_TABLE,
            false => section::LCD_TABLE,
        };
        let counts = Counts {
            nn: self.records(&sections[section::NN], nn_record)?,
            tp: self.records(tp, tp_record)?,
            sh: self.records(&sections[section::SH], layout::shader_record(self.version))?,
            sw: self.records(&sections[section::SW], layout::SW_RECORD)?,
            patches: self.records(&sections[section::PATCH], layout::patch_record(self.version))?,
            states: optional(states, layout::PAIR_RECORD)?,
            states_name: layout::section_name(states),
            lcd: self.records(&sections[section::LCD_TABLE], layout::PAIR_RECORD)?,
            hw_init: optional(section::HW_INIT, layout::HW_INIT_RECORD)?,
        };
        self.records(&sections[section::LAYER_PARAM], layout::LAYER_PARAM_RECORD)?;
        optional(section::PPU_PARAM, layout::PPU_PARAM_RECORD)?;
        Ok(counts)
    }

    /// The tables of {offset, size} pairs divide their regions.
    fn divide(&mut self, sections: &[Section], findings: &mut Vec<String>) -> Result<(), NbgError> {
        for (table, region) in layout::DIVIDED {
            if table > section::ICD_TABLE && self.version < layout::REGIONS_FROM {
                continue;
            }
            let (Some(table), Some(region)) = (sections.get(table), sections.get(region)) else { continue };
            let count = self.records(table, layout::PAIR_RECORD)?;
            self.claim_section(table, Understanding::Read);
            let mut pieces = Vec::new();
            for index in 0..count {
                let start = u64::from(table.offset) + index * u64::from(layout::PAIR_RECORD);
                let what = format!("{} entry {index}", table.name);
                let (offset, size) = (self.reader.u32(&what, start)?, self.reader.u32(&what, start + 4)?);
                let end = u64::from(offset) + u64::from(size);
                if size > 0 {
                    in_range(&what, "end", end, &region.name, u64::from(region.size) + 1)?;
                    pieces.push((offset, end));
                    let at = u64::from(region.offset);
                    self.claim(at + u64::from(offset), at + end, Understanding::Opaque, &region.name);
                }
            }
            pieces.sort_unstable();
            let overlaps =
                pieces.windows(2).filter(|pair| matches!(pair, [a, b] if u64::from(b.0) < a.1)).count();
            if overlaps > 0 {
                findings.push(format!("{}: {overlaps} entries share bytes of {}", table.name, region.name));
            }
            if region.size > 0 && table.size == 0 {
                findings.push(format!("{} has no table that divides it", region.name));
            }
        }
        Ok(())
    }

    /// Sections that are commands, and those of unknown purpose.
    fn claim_opaque(&mut self, sections: &[Section]) {
        for entry in sections {
            let known_purpose =
                [section::NN, section::TP, section::LAYER_PARAM, section::PPU_PARAM].contains(&entry.index);
            let divided =
                layout::DIVIDED.iter().any(|(table, region)| [*table, *region].contains(&entry.index));
            if known_purpose {
                self.claim_section(entry, Understanding::Opaque);
            } else if entry.index > section::PPU_PARAM && (!divided || self.version < layout::REGIONS_FROM) {
                self.claim_section(entry, Understanding::Unknown);
            }
        }
    }

    /// Some compilers leave a line of text behind the last section, with tensor names and uids.
    fn trailer(&mut self, sections: &[Section]) -> Option<String> {
        let end = sections.iter().map(|section| u64::from(section.offset) + u64::from(section.size)).max()?;
        let rest = self.bytes.get(usize::try_from(end).ok()?..)?;
        let text = rest.strip_suffix(&[0]).unwrap_or(rest);
        let printable =
            text.len() >= 4 && text.iter().all(|byte| (0x20..0x7F).contains(byte) || *byte == b'\n');
        if !printable {
            return None;
        }
        self.claim(end, end + rest.len() as u64, Understanding::Read, "trailing text");
        Some(String::from_utf8_lossy(text).into_owned())
    }
}

/// How many records each table has.
pub(super) struct Counts {
    pub(super) nn: u64,
    pub(super) tp: u64,
    pub(super) sh: u64,
    pub(super) sw: u64,
    pub(super) patches: u64,
    pub(super) states: u64,
    states_name: String,
    pub(super) lcd: u64,
    pub(super) hw_init: u64,
}

pub(super) fn in_range(what: &str, field: &str, value: u64, into: &str, count: u64) -> Result<(), NbgError> {
    if value < count {
        Ok(())
    } else {
        Err(NbgError::Reference { what: format!("{what}: {field}"), value, into: into.to_owned(), count })
    }
}

fn check_references(operations: &[Operation], header: &Header, counts: &Counts) -> Result<(), NbgError> {
    for (number, operation) in operations.iter().enumerate() {
        let what = format!("operation {number}");
        let table = match operation.role {
            OperationRole::Work(Engine::NeuralNetwork) => Some((section::NN, counts.nn)),
            OperationRole::Work(Engine::TensorProcessor) => Some((section::TP, counts.tp)),
            OperationRole::Work(Engine::Shader) => Some((section::SH, counts.sh)),
            OperationRole::Work(Engine::Software) => Some((section::SW, counts.sw)),
            _ => None,
        };
        if let Some((index, count)) = table {
            in_range(&what, "index", u64::from(operation.index), &layout::section_name(index), count)?;
        }
        let works = matches!(operation.role, OperationRole::Work(_));
        if let Some(layer) = operation.layer {
            in_range(
                &what,
                "layer",
                u64::from(layer),
                &layout::section_name(section::LAYER),
                u64::from(header.layer_count),
            )?;
        }
        if works && !matches!(operation.role, OperationRole::Work(Engine::Software)) {
            in_range(&what, "state", u64::from(operation.state), &counts.states_name, counts.states)?;
        }
        if operation.patch_count > 0 {
            let end = u64::from(operation.patch_index) + u64::from(operation.patch_count);
            in_range(&what, "patches' end", end, &layout::section_name(section::PATCH), counts.patches + 1)?;
        }
    }
    Ok(())
}
