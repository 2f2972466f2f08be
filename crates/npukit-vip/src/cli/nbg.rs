//! `nbg check`, `nbg compare`, and what `inspect` does with an NBG.

use super::{Answer, Exit, finish, in_file, print, read};
use crate::chip;
use crate::nbg::{self, Answer as Loads, Device, Nbg};
use std::path::{Path, PathBuf};

/// Whether a device would load a compiled network, and what differs between two.
#[derive(clap::Args, Clone, Debug)]
pub struct NbgArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: NbgCommand,
}

/// The subcommands of `nbg`.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum NbgCommand {
    /// Say what is in a file: target, tensors, layers, engines, memory, and what every byte is.
    Inspect {
        /// The file.
        file: PathBuf,
    },
    /// Say whether a device would load a file, and why not. Status 1: it would refuse; 0: nothing known speaks against it,
    /// or it can't be told.
    Check {
        /// The file.
        file: PathBuf,
        /// The device: its target number, or a chip's name.
        #[arg(long, visible_alias = "chip", value_name = "ID", value_parser = chip::parse_target)]
        target: u32,
        /// The device's SRAM on the AXI bus, in bytes.
        #[arg(long, value_name = "BYTES")]
        axi_sram: Option<u32>,
        /// The VIP's own SRAM, in bytes.
        #[arg(long, value_name = "BYTES")]
        vip_sram: Option<u32>,
    },
    /// Say what differs between two files. Status 1: they differ.
    Compare {
        /// The first file.
        first: PathBuf,
        /// The second file.
        second: PathBuf,
    },
}

impl NbgArgs {
    /// Runs the command.
    pub fn run(&self, json: bool) -> Exit {
        let answer = match &self.command {
            NbgCommand::Inspect { file } => return inspect(file, json),
            NbgCommand::Check { file, target, axi_sram, vip_sram } => check(
                file,
                &Device { target: *target, axi_sram_bytes: *axi_sram, vip_sram_bytes: *vip_sram },
                json,
            ),
            NbgCommand::Compare { first, second } => compare(first, second, json),
        };
        finish(answer, json)
    }
}

/// Prints what is in an NBG file.
pub fn inspect(file: &Path, json: bool) -> Exit {
    let answer = || {
        let bytes = read(file)?;
        let nbg = Nbg::parse(&bytes).map_err(in_file(file))?;
        print(&nbg, json)?;
        Ok(Exit::Yes)
    };
    finish(answer(), json)
}

fn check(file: &Path, device: &Device, json: bool) -> Answer {
    let bytes = read(file)?;
    let nbg = Nbg::parse(&bytes).map_err(in_file(file))?;
    let verdict = nbg::check(&nbg, device);
    print(&verdict, json)?;
    Ok(Exit::yes_if(verdict.answer != Loads::No))
}

fn compare(first: &Path, second: &Path, json: bool) -> Answer {
    let (a, b) = (read(first)?, read(second)?);
    let parsed = (Nbg::parse(&a).map_err(in_file(first))?, Nbg::parse(&b).map_err(in_file(second))?);
    let comparison = nbg::compare((&parsed.0, &a), (&parsed.1, &b));
    print(&comparison, json)?;
    Ok(Exit::yes_if(comparison.identical))
}
