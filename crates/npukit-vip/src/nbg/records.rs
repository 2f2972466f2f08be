//! The records of the file's tables.

use super::layout::{self, section};
use super::parse::{Counts, END_TYPE, INIT_TYPE, NO_LAYER, Parser, in_range};
use super::{
    Code, IoQuant, IoTensor, Layer, NbgError, Operation, OperationRole, Patch, Section, ShaderOperation,
    SoftwareOperation, Understanding, UnknownWord,
};
use crate::chip::Engine;

impl Parser<'_> {
    pub(super) fn io(
        &mut self,
        section: &Section,
        count: u32,
        findings: &mut Vec<String>,
    ) -> Result<Vec<IoTensor>, NbgError> {
        let (record, limit, named) = layout::io_record(self.version);
        self.counted(section, count, record)?;
        self.claim_section(section, Understanding::Read);
        let mut tensors = Vec::new();
        for index in 0..count {
            let start = u64::from(section.offset) + u64::from(index) * u64::from(record);
            let what = format!("{} {index}", section.name);
            let word = |at: u32| self.reader.u32(&what, start + 4 * u64::from(at));
            let dim_count = word(0)?;
            if dim_count > limit {
                return Err(NbgError::Dimensions { what, value: dim_count, limit });
            }
            let dims = (1..=dim_count).map(word).collect::<Result<Vec<_>, _>>()?;
            let after = 1 + limit;
            let (format, kind, quant) = (word(after)?, word(after + 1)?, word(after + 2)?);
            let quant = match quant {
                0 => IoQuant::None,
                1 => IoQuant::Dfp { fl: word(after + 3)? as i32 },
                2 => IoQuant::Affine {
                    scale: f32::from_bits(word(after + 4)?),
                    zero_point: word(after + 5)? as i32,
                },
                number => IoQuant::Other { number },
            };
            let name = match named {
                true => self.reader.text(&what, start + 4 * u64::from(after + 6), layout::NAME_BYTES)?,
                false => String::new(),
            };
            if dims.contains(&0) {
                findings.push(format!("{what} `{name}` has a dimension of 0"));
            }
            let code = |number, name| Code { number, name };
            tensors.push(IoTensor {
                name,
                dims,
                format: code(format, layout::format_name(format)),
                kind: code(kind, layout::kind_name(kind)),
                quant,
            });
        }
        Ok(tensors)
    }

    pub(super) fn layers(&mut self, section: &Section, count: u32) -> Result<Vec<Layer>, NbgError> {
        let record = layout::layer_record(self.version);
        self.counted(section, count, record)?;
        self.claim_section(section, Understanding::Read);
        let mut layers = Vec::new();
        for index in 0..count {
            let start = u64::from(section.offset) + u64::from(index) * u64::from(record);
            let what = format!("layer {index}");
            layers.push(Layer {
                name: self.reader.text(&what, start, layout::NAME_BYTES)?,
                id: self.reader.u32(&what, start + 64)?,
                operation_count: self.reader.u32(&what, start + 68)?,
                uid: (record > 72).then(|| self.reader.u32(&what, start + 72)).transpose()?,
            });
        }
        Ok(layers)
    }

    pub(super) fn operations(
        &mut self,
        section: &Section,
        count: u32,
        unknown: &mut Vec<UnknownWord>,
    ) -> Result<Vec<Operation>, NbgError> {
        let record = match section.size.checked_div(count) {
            Some(record) if layout::OPERATION_RECORDS.contains(&record) => record,
            _ => layout::OPERATION_RECORDS[usize::from(self.version >= layout::REGIONS_FROM)],
        };
        self.counted(section, count, record)?;
        self.claim_section(section, Understanding::Read);
        let mut operations = Vec::new();
        for index in 0..count {
            let start = u64::from(section.offset) + u64::from(index) * u64::from(record);
            let what = format!("operation {index}");
            let word = |at: u64| self.reader.u32(&what, start + 4 * at);
            let (kind, layer) = (word(0)?, word(2)?);
            let role = match kind {
                INIT_TYPE => OperationRole::Init,
                END_TYPE => OperationRole::End,
                number => {
                    Engine::from_number(number).map_or(OperationRole::Unknown(number), OperationRole::Work)
                }
            };
            let long = record > 24;
            if long && word(6)? != 0 {
                unknown.push(UnknownWord {
                    offset: (start + 24) as u32,
                    value: word(6)?,
                    place: what.clone(),
                });
            }
            operations.push(Operation {
                role,
                index: word(1)?,
                layer: (layer != NO_LAYER).then_some(layer),
                state: word(3)?,
                patch_index: word(4)?,
                patch_count: word(5)?,
                ordinal: long.then(|| word(7)).transpose()?.map(|ordinal| ordinal as i32),
            });
        }
        Ok(operations)
    }

    pub(super) fn hardware_init(
        &mut self,
        section: Option<&Section>,
        counts: &Counts,
    ) -> Result<(), NbgError> {
        let Some(section) = section else { return Ok(()) };
        self.claim_section(section, Understanding::Read);
        for index in 0..counts.hw_init {
            let start = u64::from(section.offset) + index * u64::from(layout::HW_INIT_RECORD);
            let what = format!("hardware init operation {index}");
            let word = |at: u64| self.reader.u32(&what, start + 4 * at);
            in_range(
                &what,
                "patches",
                u64::from(word(1)?) + u64::from(word(2)?),
                &layout::section_name(section::PATCH),
                counts.patches + 1,
            )?;
        }
        Ok(())
    }

    pub(super) fn shader_operations(
        &mut self,
        sections: &[Section],
        counts: &Counts,
    ) -> Result<Vec<ShaderOperation>, NbgError> {
        let section = &sections[section::SH];
        self.claim_section(section, Understanding::Read);
        let record = layout::shader_record(self.version);
        // From 0x1001E on the programs have a table of their own; before, they are entries of the LCD table.
        let (into, limit) = match sections.get(section::PROGRAMS_TABLE) {
            Some(table) if self.version >= layout::REGIONS_FROM => {
                (table.name.clone(), self.records(table, layout::PAIR_RECORD)?)
            }
            _ => (layout::section_name(section::LCD_TABLE), counts.lcd),
        };
        (0..counts.sh)
            .map(|index| {
                let start = u64::from(section.offset) + index * u64::from(record);
                let what = format!("shader operation {index}");
                let program = self.reader.u32(&what, start)?;
                in_range(&what, "program", u64::from(program), &into, limit)?;
                let parameters = (record > 4).then(|| self.reader.u32(&what, start + 4)).transpose()?;
                Ok(ShaderOperation { program, parameters })
            })
            .collect()
    }

    pub(super) fn patches(
        &mut self,
        section: &Section,
        counts: &Counts,
        unknown: &mut Vec<UnknownWord>,
    ) -> Result<Vec<Patch>, NbgError> {
        self.claim_section(section, Understanding::Read);
        let record = layout::patch_record(self.version);
        let mut patches = Vec::new();
        for index in 0..counts.patches {
            let start = u64::from(section.offset) + index * u64::from(record);
            let what = format!("patch {index}");
            let word = |at: u64| self.reader.u32(&what, start + 4 * at);
            patches.push(Patch {
                kind: word(0)?,
                offset: word(1)?,
                source: word(2)?,
                index: word(3)? as i32,
                base: word(4)? as i32,
                transformed: word(5)?,
                name: word(6)?,
            });
            for at in 7..u64::from(record / 4) {
                let value = word(at)?;
                if value != 0 {
                    unknown.push(UnknownWord { offset: (start + 4 * at) as u32, value, place: what.clone() });
                }
            }
        }
        Ok(patches)
    }

    pub(super) fn software(&mut self, section: &Section) -> Result<Vec<SoftwareOperation>, NbgError> {
        self.claim_section(section, Understanding::Read);
        (0..self.records(section, layout::SW_RECORD)?)
            .map(|index| {
                let start = u64::from(section.offset) + index * u64::from(layout::SW_RECORD);
                let what = format!("software operation {index}");
                let name = self.reader.text(&what, start + 4, layout::NAME_BYTES)?;
                Ok(SoftwareOperation { kind: self.reader.u32(&what, start)?, name })
            })
            .collect()
    }
}
