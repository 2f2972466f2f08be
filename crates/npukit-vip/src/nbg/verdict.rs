//! Whether a device would load a file, as far as a host can tell.

use super::{Checksum, Depth, Nbg};
use crate::chip;
use crate::version::Certainty;
use serde::Serialize;

/// The device that is to load the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Its target number.
    pub target: u32,
    /// Its SRAM on the AXI bus in bytes, where known.
    pub axi_sram_bytes: Option<u32>,
    /// The VIP's own SRAM in bytes, where known.
    pub vip_sram_bytes: Option<u32>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Nothing known speaks against it.
    Yes,
    /// It would refuse.
    No,
    /// It can't be told.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What.
    pub what: &'static str,
    /// What it says.
    pub answer: Answer,
    /// How sure that is.
    pub certainty: Certainty,
    /// The values.
    pub detail: String,
}

/// The verdict and its reasons.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadVerdict {
    /// The answer: no if any reason says no, else unknown if any can't be told.
    pub answer: Answer,
    /// The reasons.
    pub reasons: Vec<Reason>,
}

/// Versions that a runtime was reported to load or refuse, on a chip of their target.
const REPORTS: [(u32, Answer, &str); 4] = [
    (0x1_001E, Answer::Yes, "VIPLite 2.0.3 was reported to load this version"),
    (0x1_0020, Answer::Yes, "VIPLite 2.0.3 was reported to load this version"),
    (0x2_0000, Answer::Yes, "VIPLite 2.0.3 was reported to load this version"),
    (
        0x2_0005,
        Answer::Unknown,
        "VIPLite 2.0.3 was reported to refuse a file of this version, which was for another target too",
    ),
];

/// Judges whether the device would load the file.
pub fn check(nbg: &Nbg, device: &Device) -> LoadVerdict {
    let mut reasons = Vec::new();
    let mut say = |what, answer, certainty, detail| reasons.push(Reason { what, answer, certainty, detail });

    let (file, wanted) = (nbg.header.target, device.target);
    let name = |target| chip::by_target(target).map_or("not a known chip", |chip| chip.name);
    if file == wanted {
        say("target", Answer::Yes, Certainty::Known, format!("{file:#x} ({})", name(file)));
    } else {
        let text = format!(
            "the file is for {file:#x} ({}), the device is {wanted:#x} ({}). The loader says `binary target={file:#x}, actually target={wanted:#x}` and `fail to create network status=-4`; a patched header doesn't help, the commands inside are for the other chip",
            name(file),
            name(wanted)
        );
        say("target", Answer::No, Certainty::Known, text);
    }

    match REPORTS.iter().find(|(version, ..)| *version == nbg.header.version) {
        Some((version, answer, report)) => {
            say("version", *answer, Certainty::Assumed, format!("{version:#x}: {report}"))
        }
        None => {
            let text = format!("{:#x}: no report of which runtimes load it", nbg.header.version);
            say("version", Answer::Unknown, Certainty::Unknown, text);
        }
    }

    match nbg.checksum {
        Checksum::Absent => say("checksum", Answer::Yes, Certainty::Known, "none to check".into()),
        Checksum::Match { stored } => {
            say("checksum", Answer::Yes, Certainty::Known, format!("{stored:#010x} is right"))
        }
        Checksum::Mismatch { stored, computed } => {
            let text = format!(
                "the file says {stored:#010x}, its bytes give {computed:#010x}: it was changed after it was compiled"
            );
            say("checksum", Answer::No, Certainty::Assumed, text);
        }
        Checksum::Unknown { stored, .. } => {
            let text = format!("{stored:#010x}: what this version's checksum covers isn't known");
            say("checksum", Answer::Unknown, Certainty::Unknown, text);
        }
    }

    match (nbg.depth, nbg.memory) {
        (Depth::Whole, Some(memory)) => {
            let pairs = [
                ("AXI SRAM", Some(memory.axi_sram_bytes), device.axi_sram_bytes),
                ("VIP SRAM", memory.vip_sram_bytes, device.vip_sram_bytes),
            ];
            for (what, needed, has) in pairs {
                let Some(needed) = needed else { continue };
                match has {
                    _ if needed == 0 => say(what, Answer::Yes, Certainty::Known, "the file uses none".into()),
                    Some(has) if needed <= has => {
                        say(what, Answer::Yes, Certainty::Known, format!("{needed} of {has} bytes"));
                    }
                    Some(has) => say(
                        what,
                        Answer::No,
                        Certainty::Known,
                        format!("the file wants {needed} bytes, the device has {has}"),
                    ),
                    None => say(
                        what,
                        Answer::Unknown,
                        Certainty::Unknown,
                        format!("the file wants {needed} bytes; the device's size isn't given"),
                    ),
                }
            }
        }
        _ => say("layout", Answer::Unknown, Certainty::Unknown, "version 2: only the header is read".into()),
    }

    let any = |wanted| reasons.iter().any(|reason: &Reason| reason.answer == wanted);
    let answer = match (any(Answer::No), any(Answer::Unknown)) {
        (true, _) => Answer::No,
        (false, true) => Answer::Unknown,
        (false, false) => Answer::Yes,
    };
    LoadVerdict { answer, reasons }
}
