//! NBG reports as text.

use super::{
    Answer, Checksum, Code, Comparison, Depth, IoQuant, IoTensor, LoadVerdict, Nbg, OperationRole, Span,
    Understanding,
};
use crate::chip::{self, Engine};
use std::fmt;

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.number),
        }
    }
}

impl fmt::Display for IoTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(u32::to_string).collect();
        write!(f, "`{}` {} {} [{}]", self.name, self.kind, self.format, dims.join("x"))?;
        match self.quant {
            IoQuant::None => Ok(()),
            IoQuant::Dfp { fl } => write!(f, " fixed point, fl {fl}"),
            IoQuant::Affine { scale, zero_point } => {
                write!(f, " affine, scale {scale}, zero point {zero_point}")
            }
            IoQuant::Other { number } => write!(f, " quantisation {number:#x}"),
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checksum::Absent => f.write_str("none"),
            Checksum::Match { stored } => write!(f, "{stored:#010x}, right"),
            Checksum::Mismatch { stored, computed } => {
                write!(f, "WRONG: the file says {stored:#010x}, its bytes give {computed:#010x}")
            }
            Checksum::Unknown { stored, whole_file } => {
                write!(
                    f,
                    "{stored:#010x}; what it covers isn't known (the whole file gives {whole_file:#010x})"
                )
            }
        }
    }
}

impl fmt::Display for Understanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Understanding::Read => "read",
            Understanding::Opaque => "opaque",
            Understanding::Padding => "padding",
            Understanding::Unknown => "UNKNOWN",
        })
    }
}

impl fmt::Display for Nbg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = &self.header;
        let chip = chip::by_target(header.target).map_or("not a known chip", |chip| chip.name);
        writeln!(f, "NBG `{}`", header.name)?;
        writeln!(f, "  version   {:#x} (layout {})", header.version, self.layout)?;
        writeln!(f, "  target    {:#x} ({chip})", header.target)?;
        writeln!(
            f,
            "  counts    {} layers, {} operations, {} inputs, {} outputs",
            header.layer_count, header.operation_count, header.input_count, header.output_count
        )?;
        writeln!(f, "  sha256    {}", self.sha256)?;
        if self.depth == Depth::Whole {
            writeln!(f, "  checksum  {}", self.checksum)?;
        }
        if let Some(features) = self.features {
            writeln!(f, "  features  {features:?}")?;
        }
        if let Some(memory) = self.memory {
            write!(
                f,
                "  memory    pool {} bytes aligned to {}, AXI SRAM {} bytes",
                memory.pool_bytes, memory.pool_alignment, memory.axi_sram_bytes
            )?;
            match memory.vip_sram_bytes {
                Some(bytes) => writeln!(f, ", VIP SRAM {bytes} bytes")?,
                None => writeln!(f)?,
            }
        }
        for (what, tensors) in [("input", &self.inputs), ("output", &self.outputs)] {
            for (index, tensor) in tensors.iter().enumerate() {
                writeln!(f, "  {what} {index}: {tensor}")?;
            }
        }
        if self.depth == Depth::Whole {
            let engines = [Engine::NeuralNetwork, Engine::TensorProcessor, Engine::Shader, Engine::Software];
            let counts: Vec<String> =
                engines.iter().map(|engine| format!("{} {engine}", self.count(*engine))).collect();
            writeln!(f, "  operations by engine: {}; {} patches", counts.join(", "), self.patches.len())?;
        }
        for layer in &self.layers {
            let engines: Vec<&str> = self.engines_of(layer.id).into_iter().map(Engine::name).collect();
            write!(f, "    layer {:<3} {:<32} {}", layer.id, layer.name, engines.join("+"))?;
            match layer.uid {
                Some(uid) => writeln!(f, "  uid {uid}")?,
                None => writeln!(f)?,
            }
        }
        for operation in &self.operations {
            if let OperationRole::Unknown(number) = operation.role {
                writeln!(f, "    an operation of unknown type {number:#x}, layer {:?}", operation.layer)?;
            }
        }
        for operation in &self.software {
            writeln!(f, "    software operation {:#x} `{}`", operation.kind, operation.name)?;
        }
        writeln!(
            f,
            "  coverage: {} bytes read, {} known by extent, {} padding, {} unknown",
            self.coverage.read, self.coverage.opaque, self.coverage.padding, self.coverage.unknown
        )?;
        for line in folded(&self.coverage.spans) {
            writeln!(f, "    {line}")?;
        }
        for word in &self.unknown_words {
            writeln!(f, "  unknown word at {:#x}: {:#010x} ({})", word.offset, word.value, word.place)?;
        }
        if let Some(trailer) = &self.trailer {
            writeln!(f, "  trailing text: {trailer}")?;
        }
        for finding in &self.findings {
            writeln!(f, "  note: {finding}")?;
        }
        Ok(())
    }
}

/// The map's lines: pieces of one region with nothing but zeros between them are one line.
fn folded(spans: &[Span]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = spans;
    while let Some((first, _)) = rest.split_first() {
        let mut pieces = 1;
        let mut last = 0;
        while let [padding, next, ..] = rest.get(last + 1..).unwrap_or(&[])
            && padding.understanding == Understanding::Padding
            && (&next.what, next.understanding) == (&first.what, first.understanding)
        {
            pieces += 1;
            last += 2;
        }
        let end = rest.get(last).map_or(first.end, |span| span.end);
        let mut line =
            format!("{:#08x}..{end:#08x} {:<8} {}", first.start, first.understanding.to_string(), first.what);
        if pieces > 1 {
            let zeros: u64 =
                rest.iter().take(last).skip(1).step_by(2).map(|span| span.end - span.start).sum();
            line += &format!(", {pieces} pieces with {zeros} bytes of zeros between");
        }
        lines.push(line);
        rest = rest.get(last + 1..).unwrap_or(&[]);
    }
    lines
}

impl fmt::Display for LoadVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headline = match self.answer {
            Answer::Yes => "nothing known speaks against loading it",
            Answer::No => "the device would refuse it",
            Answer::Unknown => "it can't be told whether the device would load it",
        };
        writeln!(f, "{headline}")?;
        for reason in &self.reasons {
            let mark = match reason.answer {
                Answer::Yes => "ok",
                Answer::No => "NO",
                Answer::Unknown => "?",
            };
            writeln!(f, "  {mark:<3} {} [{}]: {}", reason.what, reason.certainty, reason.detail)?;
        }
        Ok(())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.identical {
            return writeln!(f, "identical");
        }
        writeln!(f, "{} differences", self.differences.len())?;
        for difference in &self.differences {
            writeln!(f, "  {}: {} | {}", difference.what, difference.first, difference.second)?;
        }
        Ok(())
    }
}
