//! `npukit disasm`: the commands of a compiled network, one on each line.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use ethosu_isa::{Accelerator, Decoder, FieldValue, Instruction};
use npub::Blob;
use npukit_vela::distil;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::failure::{Failure, Outcome};
use super::inspect::Kind;
use super::report::Answer;

/// Show the commands of an .npub or of a _vela.tflite, one on each line
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The compiled network
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The NPU, for a blob that doesn't say which one it is for; refuses a blob for another
    #[arg(long, value_name = "NPU")]
    accel: Option<Accelerator>,
}

#[derive(Serialize)]
struct Report {
    file: String,
    accel: String,
    command_bytes: usize,
    #[serde(serialize_with = "objects")]
    instructions: Vec<Instruction>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| Failure::reading(path, &error))?;
    let (stated, stream) = match Kind::of(&bytes) {
        Some(Kind::Tflite) => {
            let program = distil::from_vela_tflite(&bytes).map_err(|error| {
                Failure::of_file("not_compiled", path, error)
                    .advise("Give an .npub, or a .tflite that Vela wrote.")
            })?;
            (Some(program.accelerator), program.commands)
        }
        _ => {
            let blob = Blob::parse(&bytes).map_err(|error| Failure::network(path, error.into()))?;
            (npukit::accelerator_of(&blob), blob.command_stream().bytes().to_vec())
        }
    };
    if let (Some(asked), Some(stated)) = (arguments.accel, stated)
        && asked != stated
    {
        let found = format_args!("it was compiled for {stated}, not for {asked}");
        return Err(Failure::of_file("other_accelerator", path, found).advise("Leave --accel out."));
    }
    let accelerator = arguments
        .accel
        .or(stated)
        .ok_or_else(|| Failure::network(path, npukit::NetworkError::UnknownAccelerator))?;
    let mut instructions = Vec::new();
    for instruction in Decoder::new(&stream, accelerator.product()) {
        instructions.push(instruction.map_err(|error| {
            Failure::of_file("not_a_command_stream", path, error)
                .advise(format!("{} commands before it can be read.", instructions.len()))
        })?);
    }
    Ok(Answer::yes(Report {
        file: path.display().to_string(),
        accel: accelerator.to_string(),
        command_bytes: stream.len(),
        instructions,
    }))
}

fn objects<S: serde::Serializer>(instructions: &[Instruction], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(instructions.iter().map(|instruction| {
        let mut fields = Map::new();
        instruction.command.for_each_field(|name, value| {
            let value = match value {
                FieldValue::Unsigned(value) | FieldValue::Address(value) => json!(value),
                FieldValue::Signed(value) => json!(value),
                FieldValue::Either(value) => json!(value),
                FieldValue::Flag(value) => json!(value),
                other => json!(other.to_string()),
            };
            fields.insert(name.to_owned(), value);
        });
        json!({
            "offset": instruction.offset,
            "words": instruction.words.iter().map(|word| format!("{word:#010x}")).collect::<Vec<_>>(),
            "command": instruction.command.name(),
            "fields": Value::Object(fields),
        })
    }))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.instructions.iter().try_for_each(|instruction| writeln!(f, "{instruction}"))
    }
}
