//! The command line of npukit: parses, calls the library, prints, and says by its exit status what came of it.
//!
//! Exit status 0: yes, or done. 1: the answer is no. 2: it could not be done.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
