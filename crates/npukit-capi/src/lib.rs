//! The C interface of npukit: `ra8_npu_load` turns a `.npub` blob into a job for the NPU, on the target, without
//! parsing a model and without allocating.
//!
//! Types, names, values and checks are those of bsikar/ra8-firmware's ra8_npu_loader.h. The header is
//! `include/npukit.h`, generated from this crate; the shortest use is in README.md.
//!
//! The code is `no_std`. `abi` is the only module with `unsafe` in it: it turns C's pointers into slices and references;
//! all checks are the [`npub`] crate's.
//!
//! # Features
//! * `std` (default): takes the panic handler from the standard library, for programs on an operating system.
//! * `panic-handler`: brings one that stops in a loop, for firmware; without effect beside `std`.
#![no_std]
#![deny(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod abi;
pub mod types;

/// The linker wants a handler, though nothing in the loader panics (a test looks at the linked program).
#[cfg(all(feature = "panic-handler", not(feature = "std"), not(test)))]
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
