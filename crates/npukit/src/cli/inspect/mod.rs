//! `npukit inspect`: what is in a file.

pub(super) mod compiled;
mod driver;
mod npub;
mod tflite;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use npukit_vip::nbg::Nbg;

use super::failure::{Failure, Outcome};
use super::report::Answer;

/// Show what is in an .npub, a .tflite (before or after Vela) or a VIP's .nb: tensors, operators, memory, driver settings
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    driver: driver::Options,
}

/// Kinds of files, by how they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Npub,
    Tflite,
    Nbg,
}

impl Kind {
    /// `None` for a file of another kind.
    pub(super) fn of(bytes: &[u8]) -> Option<Kind> {
        if bytes.starts_with(b"NPU1") {
            Some(Kind::Npub)
        } else if bytes.get(4..8) == Some(b"TFL3") {
            Some(Kind::Tflite)
        } else if bytes.starts_with(b"VPMN") {
            Some(Kind::Nbg)
        } else {
            None
        }
    }
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let options = &arguments.driver;
    let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| Failure::reading(path, &error))?;
    match Kind::of(&bytes) {
        Some(Kind::Npub) => {
            let report = npub::report(path, &bytes, options)?;
            Ok(Answer::new(report.is_yes(), report))
        }
        Some(Kind::Tflite) => {
            let model =
                npukit_vela::tflite::Model::parse(&bytes).map_err(|error| Failure::tflite(path, &error))?;
            if model.is_compiled() {
                let report = compiled::report(path, &bytes, &model, options)?;
                Ok(Answer::new(report.is_yes(), report))
            } else {
                options.only_for_compiled(path)?;
                Ok(Answer::yes(tflite::report(path, &bytes, &model)))
            }
        }
        Some(Kind::Nbg) => {
            options.only_for_compiled(path)?;
            match Nbg::parse(&bytes) {
                Ok(nbg) => Ok(Answer::yes(nbg)),
                Err(error) => Err(Failure::of_file("damaged_nb", path, error)),
            }
        }
        None => {
            let start: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let found = if start.is_empty() {
                "it is empty".to_owned()
            } else {
                format!("it begins with {}", start.join(" "))
            };
            Err(Failure::of_file(
                "unknown_kind",
                path,
                format_args!("neither an .npub, a .tflite nor an .nb: {found}"),
            )
            .advise(
                "Give an .npub that npukit build wrote, a .tflite before or after Vela, or an .nb for a VIP.",
            ))
        }
    }
}
