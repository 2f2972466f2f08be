//! Any bytes as a weight stream: they end in weights or an error, and a longer decoding begins with a shorter one.
#![no_main]

use ethosu_model::weights::decode;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((needed, stream)) = data.split_first_chunk() else { return };
    let needed = usize::from(u16::from_le_bytes(*needed));
    let half = decode(stream, needed / 2);
    match decode(stream, needed) {
        Ok(weights) => {
            assert_eq!(weights.len(), needed);
            // Nine bits, sign and magnitude.
            assert!(weights.iter().all(|weight| (-255..=255).contains(weight)));
            assert_eq!(
                half.expect("a shorter decoding meets nothing more").as_slice(),
                &weights[..needed / 2]
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
