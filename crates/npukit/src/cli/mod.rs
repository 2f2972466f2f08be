//! The commands and what they have in common.

mod bench;
mod build;
mod compilation;
mod completions;
mod describe;
mod destination;
mod disasm;
mod failure;
mod inspect;
mod interrupt;
mod placement;
mod profile;
mod progress;
mod report;
mod run;
mod samples;
mod toolchain;
mod verify;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use npukit_vip::cli::{AdmitArgs, Exit, NbgArgs, TablesArgs};

use failure::{Failure, Outcome};
use report::Answer;

/// Compiles quantised .tflite networks for Arm Ethos-U NPUs, packs them into .npub files, and proves on this machine
/// that the compiled program computes bit for bit what the reference kernels compute. For VeriSilicon VIP NPUs it says
/// what their stack accepts and what is in their files.
#[derive(Debug, Parser)]
#[command(
    name = "npukit",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(after_help = "Exit status: 0 yes or done; 1 the answer is no; 2 it could not be done.")]
struct CommandLine {
    /// Print one JSON object on standard output; what is for people goes to standard error
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(build::Arguments),
    Verify(verify::Arguments),
    Run(run::Arguments),
    Inspect(inspect::Arguments),
    Disasm(disasm::Arguments),
    Bench(bench::Arguments),
    Profile(profile::Arguments),
    Admit(AdmitArgs),
    Tables(TablesArgs),
    Nbg(NbgArgs),
    Toolchain(toolchain::Arguments),
    Completions(completions::Arguments),
}

/// Parses the command line, runs the command, prints what came of it.
pub(crate) fn main() -> ExitCode {
    interrupt::watch();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let line = match CommandLine::try_parse_from(&arguments) {
        Ok(line) => line,
        Err(error) => return refused(&error, &arguments),
    };
    let status = match execute(&line) {
        Ok(Done::Answered(answer)) => print(&answer, line.json),
        Ok(Done::Printed(exit)) => exit.code(),
        Err(failure) => {
            stderr_line(&format!("{}: {}", report::bad("error"), failure.text()));
            if line.json {
                status_of(report::print_json(&failure.json()), failure.status)
            } else {
                failure.status
            }
        }
    };
    ExitCode::from(status)
}

/// How a command ends that doesn't fail.
enum Done {
    /// With an answer to print.
    Answered(Answer),
    /// It has printed its answer itself.
    Printed(Exit),
}

fn execute(line: &CommandLine) -> Outcome<Done> {
    let answer = match &line.command {
        Command::Build(arguments) => build::execute(arguments),
        Command::Verify(arguments) => verify::execute(arguments),
        Command::Run(arguments) => run::execute(arguments),
        Command::Inspect(arguments) => inspect::execute(arguments),
        Command::Disasm(arguments) => disasm::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
        Command::Profile(arguments) => profile::execute(arguments),
        Command::Admit(arguments) => return Ok(Done::Printed(arguments.run(line.json))),
        Command::Tables(arguments) => return Ok(Done::Printed(arguments.run(line.json))),
        Command::Nbg(arguments) => return Ok(Done::Printed(arguments.run(line.json))),
        Command::Toolchain(arguments) => toolchain::execute(arguments),
        Command::Completions(arguments) => completions::execute(arguments, CommandLine::command()),
    };
    answer.map(Done::Answered)
}

fn print(answer: &Answer, json: bool) -> u8 {
    let printed = if json { report::print_json(&answer.json()) } else { report::print_text(&answer.text()) };
    status_of(printed, u8::from(!answer.yes))
}

/// What a command line that can't be parsed ends with. Help and version are answers.
fn refused(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let printed = error.print();
    if !error.use_stderr() {
        return ExitCode::from(status_of(printed, 0));
    }
    // Nothing is parsed, but a script that asked for an object gets one.
    if arguments.iter().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        let _ = report::print_json(&Failure::new("usage", message).json());
    }
    ExitCode::from(2)
}

/// The exit status after printing. A reader that has seen enough and closed the pipe is no failure; a full disk is.
fn status_of(printed: std::io::Result<()>, status: u8) -> u8 {
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            stderr_line(&format!("{}: standard output can't be written: {error}", report::bad("error")));
            2
        }
        _ => status,
    }
}

/// A line for people. Nobody listening is no reason to stop.
fn stderr_line(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// A line about something that deserves attention but stops nothing.
fn warn(text: &str) {
    stderr_line(&format!("{}: {text}", report::caution("warning")));
}
