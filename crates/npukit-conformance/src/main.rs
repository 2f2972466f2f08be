//! The program `conformance`.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(status) = npukit_conformance::server::act_as_vela() {
        return ExitCode::from(status);
    }
    ExitCode::from(npukit_conformance::cli::main())
}
