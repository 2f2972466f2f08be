//! Anything at all done to the register-level NPU and the driver on top of it. What bytes mean and what has to hold is in the
//! module `adversary` of the driver's tests, which runs on random bytes there too.
#![no_main]

#[path = "../../crates/ethosu-driver/tests/adversary/mod.rs"]
mod adversary;
#[path = "../../crates/ethosu-driver/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| adversary::run(data));
