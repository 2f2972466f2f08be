//! Any bytes as a custom operator payload: what is accepted lies inside the bytes and is rebuilt from its parts.
#![no_main]

use ethosu_isa::{Payload, PayloadKind, cop1_header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let payload = match Payload::parse(data) {
        Ok(payload) => payload,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    assert!(Payload::is_payload(data));
    let end = payload.stream_offset() + payload.stream().len();
    assert_eq!(&data[payload.stream_offset()..end], payload.stream());
    assert_eq!(payload.stream().len() % 4, 0);
    assert_eq!(payload.metadata().is_some(), payload.kind() == PayloadKind::Cop2);
    let _ = payload.arch_version().to_string();
    let Ok(accelerator) = payload.accelerator() else { return };
    if let Ok(header) = cop1_header(accelerator, payload.stream().len() / 4) {
        let rebuilt = [&header[..], payload.stream()].concat();
        let again = Payload::parse(&rebuilt).expect("what was built can be read");
        assert_eq!((again.stream(), again.accelerator()), (payload.stream(), Ok(accelerator)));
    }
});
