//! Drives Arm's Ethos-U55, U65 and U85 NPUs: no allocator, no operating system, no `static` that it asks for.
//!
//! ```
//! # use core::cell::Cell;
//! # /// An NPU whose jobs end at once.
//! # struct Registers(Cell<u32>, Cell<u32>);
//! # impl ethosu_driver::Bus for Registers {
//! #     fn read(&self, offset: u32) -> u32 {
//! #         match offset {
//! #             0x28 => 0x3008, 0x24 => 1, 0x04 => self.0.get(), 0x20 => 4, 0x10 => self.1.get(), 0x3C => 0x5553, _ => 0
//! #         }
//! #     }
//! #     fn write(&self, offset: u32, value: u32) {
//! #         match offset {
//! #             0x08 if value & 1 != 0 => self.0.set(1 << 5),
//! #             0x0C => self.0.set(0),
//! #             0x10 => { self.0.set(0); self.1.set(value) }
//! #             _ => {}
//! #         }
//! #     }
//! # }
//! # let registers = Registers(Cell::new(0), Cell::new(0));
//! # let blob = { let mut b = npub::BlobBuilder::new(npub::Accel::u55(256)); b.commands(&[0xFFFF_0000]);
//! #     b.build().unwrap() };
//! # let loaded = npub::load(&blob, 0x1000_0000, npub::Arena::default(), None)?;
//! use ethosu_driver::{Config, Device, Job, target};
//!
//! // On a chip `registers` is `unsafe { Mmio::new(0x4810_2000) }`. The device usually lies in a `static`, so that the handler
//! // of the NPU's interrupt can call `device.on_interrupt()`; without a handler the driver asks the NPU.
//! let device: Device<_, target::U55> = Device::new(registers, Config::new());
//! let mut npu = device.init()?;
//!
//! // On a chip: `Job::load(&blob, &mut arena)`.
//! let mut job = Job::from_npub(&loaded, &blob);
//! npu.invoke(&mut job)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From the outside in:
//!
//! * [`Device`] is an NPU as the interrupt handler and the rest of the program share it: a [`Bus`] to the registers
//!   ([`Mmio`] on a chip), a [`Config`], [`Hooks`] of the platform, for one product or for [any](target).
//! * [`Npu`] is its one owner, from [`Device::init`]. It starts jobs, resets, and keeps the power on; [`Pmu`] counts.
//! * [`Job`] is a `.npub` file or a Vela payload with its memory. It is checked against the hardware before it runs.
//! * [`Running`] is a job under way: wait, wait for a time, poll, `await`, or drop to stop it.
//! * [`Pool`] shares several NPUs between threads and tasks.
//! * [`placement`] says how Vela's memory modes fit [`Config`].
//!
//! Nothing that is done in the wrong order compiles, with one exception that the contract of [`Mmio::new`] names: memory given
//! by address rather than borrowed. A guard that is forgotten rather than dropped doesn't stop the next job.
//!
//! # Features
//! * `log`: messages through the `log` crate.
//! * `defmt`: messages through the `defmt` crate.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

#[macro_use]
mod macros;

mod bus;
mod check;
mod config;
mod device;
mod error;
mod fault;
mod hooks;
mod job;
mod latch;
mod mmio;
mod npu;
pub mod placement;
mod pmu;
mod pool;
mod ports;
mod reach;
mod running;
mod scan;
mod sync;
pub mod target;

pub use bus::Bus;
pub use config::{Config, FAST_MEMORY_REGION, FastMemory};
pub use device::{Device, HardwareInfo, Interrupt};
pub use error::{ConfigError, InitError, InvokeError, JobError, PayloadJobError, ResetError, SubmitError};
pub use ethosu_isa::registers::{Channel, Configuration, Identity, Privilege, Protection, Security, Status};
pub use ethosu_isa::{Accelerator, PmuEvent, Product};
pub use fault::{Fault, FaultKind};
pub use hooks::{Clock, Hooks, NoHooks, Place, Span, Spin, Waiting};
pub use job::{Job, Region};
pub use mmio::Mmio;
pub use npu::{Npu, Powered};
pub use pmu::{CounterMask, Counters, Pmu, PmuError, Watch};
pub use pool::{Pool, PoolError, PoolInvokeError, Reserve, ReserveError, Reserved, Want, WantError};
pub use ports::{
    AccessProfile, AccessProfiles, AnyPorts, AxiPort, Burst, Domain, MemoryAttribute, MemoryAttributes,
    MemoryType, PortLimits, PortSetup, Selector,
};
pub use running::{Completion, Progress, Running, Within};

/// This driver's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
