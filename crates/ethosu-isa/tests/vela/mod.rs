//! Arm's compiler as a tool for the tests of this crate.

use std::path::Path;
use std::process::Command;

use ethosu_isa::Accelerator;
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::{self, Environment, Toolchain};

/// A way to run Vela 5.2.0.
pub(crate) struct Vela {
    vela: toolchain::Vela,
    /// Holds the environment where it is.
    _environment: Option<Environment>,
}

impl Vela {
    /// The executable that the environment variable `NPUKIT_VELA` names, else the one of the managed environment.
    pub(crate) fn find() -> Vela {
        let toolchain = Toolchain::from_environment().expect("the environment can be read");
        let (vela, environment) = toolchain.vela(&mut Silent).expect("Vela is there, or can be installed");
        Vela { vela, _environment: environment }
    }

    /// A run of it, without the arguments of a compilation.
    fn command(&self) -> Command {
        self.vela.command()
    }
}

/// What Vela made of a model.
pub(crate) struct Compiled {
    /// Its standard output, with the disassembly.
    pub(crate) text: String,
    /// The `_vela.tflite` file.
    pub(crate) file: Vec<u8>,
}

/// Compiles `model` into a folder of its own below `scratch`; an error says what Vela said last.
pub(crate) fn compile(
    vela: &Vela,
    model: &Path,
    accelerator: Accelerator,
    options: &[&str],
    scratch: &Path,
) -> Result<Compiled, String> {
    let stem = model.file_stem().expect("a model has a name").to_string_lossy().into_owned();
    let folder = scratch.join(format!("{stem}-{accelerator}{}", options.concat()));
    let output = vela
        .command()
        .args(["--verbose-register-command-stream", "--accelerator-config", accelerator.name()])
        .args(options)
        .arg("--output-dir")
        .arg(&folder)
        .arg(model)
        .output()
        .map_err(|error| format!("{}: {error}", vela.vela.program().display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let result = std::fs::read(folder.join(format!("{stem}_vela.tflite"))).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{}: {error}; {said}", output.status)
    });
    // Keep the scratch folder small: a run makes a hundred of these.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(Compiled { text, file: result? })
}
