//! The VIP commands by themselves: `tables`, `admit`, `nbg`, `inspect`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use npukit_vip::cli::{AdmitArgs, NbgArgs, TablesArgs, inspect};
use std::path::PathBuf;
use std::process::ExitCode;

/// VeriSilicon VIP NPUs: what the stack accepts, what is in a compiled file, which tables a library holds.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// One JSON object on standard output.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Tables(TablesArgs),
    Admit(AdmitArgs),
    Nbg(NbgArgs),
    /// Say what is in a compiled file.
    Inspect {
        /// The file, an NBG.
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let exit = match &cli.command {
        Command::Tables(args) => args.run(cli.json),
        Command::Admit(args) => args.run(cli.json),
        Command::Nbg(args) => args.run(cli.json),
        Command::Inspect { file } => inspect(file, cli.json),
    };
    exit.into()
}
