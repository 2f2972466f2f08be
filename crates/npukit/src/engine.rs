//! Which implementation of the NPU runs a program.

use std::fmt;
use std::str::FromStr;

use ethosu_model::fast::{Plan, Workspace};
use ethosu_model::{Memory, Program, Stop, reference};

/// An implementation of the NPU in software. All of them compute the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// Plans the program once, then runs it with vector code.
    #[default]
    Fast,
    /// Element by element, each operation read whole and written whole: plain enough to check by eye.
    Reference,
}

impl Engine {
    /// Every engine there is.
    pub const ALL: [Engine; 2] = [Engine::Fast, Engine::Reference];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Fast => "fast",
            Engine::Reference => "reference",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        Engine::ALL
            .into_iter()
            .find(|engine| engine.name() == name)
            .ok_or_else(|| format!("{name:?} is no engine: it's \"fast\" or \"reference\""))
    }
}

/// An engine with what it needs to run one program again and again.
#[derive(Clone, Debug)]
pub(crate) enum Runner<'n> {
    Fast { plan: &'n Plan, workspace: Box<Workspace> },
    Reference { program: &'n Program },
}

impl Runner<'_> {
    pub(crate) fn run(&mut self, memory: &mut Memory) -> Result<(), Stop> {
        match self {
            Runner::Fast { plan, workspace } => plan.run(memory, workspace),
            Runner::Reference { program } => reference::run(program, memory),
        }
    }
}
