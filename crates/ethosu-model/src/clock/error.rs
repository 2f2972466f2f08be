//! Why a clock can't tell.

use thiserror::Error;

use super::system::Port;

/// Why a clock can't tell how long a program takes.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ClockError {
    /// No command sets a register that decides it.
    #[error(
        "the command at byte {offset:#x} of the command stream needs {register}, which no command has set before"
    )]
    NeverSet {
        /// Where the command lies.
        offset: usize,
        /// The registers.
        register: &'static str,
    },
    /// A memory of the system that moves nothing.
    #[error("the memory behind {} moves {bytes_per_cycle} bytes a cycle; it has to be a positive number", name(*port))]
    Bandwidth {
        /// The port.
        port: Port,
        /// What its clock scale and number of ports make.
        bytes_per_cycle: f64,
    },
}

fn name(port: Port) -> &'static str {
    match port {
        Port::Axi0 => "AXI0",
        Port::Axi1 => "AXI1",
    }
}
