//! Any bytes as a command stream: every command that is read can be shown and written back to the words it came from.
#![no_main]

use std::fmt::Write;

use ethosu_isa::{Decoder, Product};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, stream)) = data.split_first() else { return };
    let product = Product::ALL[usize::from(*first) % Product::ALL.len()];
    let mut end = 0;
    let mut line = String::new();
    for result in Decoder::new(stream, product) {
        match result {
            Ok(instruction) => {
                assert_eq!(instruction.offset, end);
                end += instruction.words.bytes();
                assert!(end <= stream.len());
                line.clear();
                write!(line, "{instruction} {}", instruction.command).expect("a string takes everything");
                let again = instruction.command.encode(product).expect("what was read can be written");
                assert_eq!(again.decode(product), Ok(instruction.command));
            }
            Err(error) => {
                assert!(error.offset() <= stream.len());
                line.clear();
                write!(line, "{error}").expect("a string takes everything");
            }
        }
    }
});
