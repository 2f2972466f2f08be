//! Any bytes as a compiled network: read, and where it is one, run on both engines, which agree. Where the needs of a driver
//! show no problem, no access is refused. The clocks tell something or say why not.
//!
//! Version, length and checksum are made right, so that the fuzzer gets to what is behind them. A program that asks for
//! much work or memory is left alone: the limits against those are the model's and have targets of their own.
#![no_main]

use ethosu_model::Cause;
use ethosu_model::clock::System;
use libfuzzer_sys::fuzz_target;
use npub::layout::{self, header};
use npukit::driver::DriverNeeds;
use npukit::profile::{Clock, Profile};
use npukit::{Engine, Network, RunError, draw};

/// Multiply-accumulates, elements and bytes of one run.
const WORK: u64 = 1 << 20;
/// Bytes of arena and of inputs.
const BYTES: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    if data.len() < layout::HEADER_BYTES {
        let _ = Network::from_npub(data);
        return;
    }
    let mut blob = data.to_vec();
    let checksum = npub::checksum(&blob[layout::HEADER_BYTES..]);
    for (offset, word) in [
        (header::MAGIC, layout::MAGIC),
        (header::VERSION, layout::VERSION),
        (header::TOTAL_BYTES, data.len() as u32),
        (header::CHECKSUM, checksum),
    ] {
        blob[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
    }
    let Ok(parsed) = npub::Blob::parse(&blob) else { return };
    if parsed.arena_bytes() > BYTES {
        return;
    }
    let network = match Network::from_npub(&blob) {
        Ok(network) => network,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let needs = DriverNeeds::of_blob(&parsed).expect("a network says what it is for, and has commands");
    needs.routings(None, None);
    if network.program().work() > WORK || network.inputs().iter().any(|input| input.bytes() as u64 > BYTES) {
        return;
    }
    for clock in Clock::ALL {
        let system = System::usual(network.accelerator());
        if let Ok(profile) = Profile::new(network.program(), &system, clock, None) {
            assert!(profile.milliseconds.is_finite() && !profile.trace("any").is_null());
        }
    }
    let sequence = draw::inputs(network.inputs(), 2, 1);
    let results = Engine::ALL.map(|engine| {
        let mut session = network.session_on(engine);
        session.scramble(7);
        let end = |error: RunError| {
            let refused = matches!(&error, RunError::Stop(stop) if matches!(stop.cause, Cause::Bus { .. }));
            assert!(!refused || !needs.problems.is_empty(), "{error}, but nothing is said against it");
            error.to_string()
        };
        sequence.iter().map(|inputs| session.run(inputs).map_err(end)).collect::<Vec<_>>()
    });
    assert_eq!(results[0], results[1], "the engines agree");
});
