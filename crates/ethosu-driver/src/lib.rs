//! Drives Arm's Ethos-U55, U65 and U85 NPUs: no allocator, no operating system, no `static` that it asks for.
//!
//! ```
//! # use core::cell::Cell;
//! # /// An NPU whose jobs end at once.
//! # struct Registers([Cell<u32>; 0x400]);
//! # impl ethosu_driver::Bus for Registers {
//! #     fn read(&self, offset: u32) -> u32 {
//! #         match offset { 0x28 => 0x3008, 0x24 => 1, 0x20 => 4, _ => self.0[offset as usize / 4].get() }
//! #     }
//! #     fn write(&self, offset: u32, value: u32) {
//! #         match offset {
//! #             0x08 => self.0[1].set(if value & 1 != 0 { 1 << 5 } else { self.0[1].get() }),
//! #             0x0C => self.0[1].set(0),
//! #             _ => self.0[offset as usize / 4].set(value),
//! #         }
//! #     }
//! # }
//! # let registers = Registers([const { Cell::new(0) }; 0x400]);
//! # let blob = { let mut b = npub::BlobBuilder::new(npub::Accel::u55(256)); b.commands(&[0xFFFF_0000]);
//! #     b.build().unwrap() };
//! # let loaded = npub::load(&blob, 0x1000_0000, npub::Arena::default(), None)?;
//! use ethosu_driver::{Config, Device, Job, target};
//!
//! // On a chip `registers` is `unsafe { Mmio::new(0x4810_2000) }`. The device usually lies in a `static`, so that the handler
//! // of the NPU's interrupt can call `device.on_interrupt()`. Without a handler waiting spins and asks the NPU; hooks that
//! // block until `Waiting::notify`, and futures, need the handler.
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
//! # What the types see to, and what they don't
//!
//! A job can't be started twice, be touched or lose its memory while it runs, and an NPU has one owner: other orders don't compile.
//! Two things are left to the caller, and the contract of [`Mmio::new`] names both: memory that is given by address rather than
//! borrowed, and guards that are forgotten ([`core::mem::forget`], a cycle of `Rc`) rather than dropped. What is forgotten does
//! this:
//!
//! * [`Running`]: **the job runs on**, and its memory is free to be used or given away meanwhile. It is stopped by whatever is done
//!   with the NPU next but [`Npu::check`], [`Npu::info`], [`Npu::power_requests`] and [`Npu::take_counter_overflow`]: a job, a
//!   reset, a guard's start or end, or dropping the [`Npu`]. [`Hooks::end`] is then called without the argument, which is gone. No
//!   cache is invalidated, because the memory may be another's.
//! * [`Powered`], [`Pmu`]: the NPU stays on until the [`Npu`] is dropped. Until then [`Npu::pmu`] says
//!   [`PmuError::InUse`] after a forgotten [`Pmu`].
//! * [`Npu`], [`Reserved`]: nobody gets that NPU again, and it stays as it was, running and switched on if it was that. Others in
//!   a pool are still to be had; who waits for just this one waits for ever, or for a time limit.
//! * [`Reserve`]: keeps its seat in the pool. Whoever finds no seat asks again and again.
//! * [`Pool`]: its devices stay [`Pooled`](InitError::Pooled).
//!
//! What commands do to memory is checked as far as their registers tell: see [`Mmio::new`].
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
