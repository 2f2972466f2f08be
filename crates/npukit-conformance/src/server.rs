//! The suite's Python process, and what is said to it. `server.py` is the other side.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use npukit::{Array, Dtype};
use npukit_vela::toolchain::{ToolchainError, Vela};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::record::{Case, Product, Reference};

const PROGRAM: &str = include_str!("server.py");
/// The name of the link that makes this program a client; Vela is run by it.
pub const CLIENT: &str = "vela";
const SOCKET: &str = "socket";
/// The most an answer may have, in bytes.
const ANSWER_BYTES: u64 = 1 << 30;

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    child: Child,
}

/// Why the suite can't go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The Python process doesn't start.
    #[error("the suite's Python process doesn't start: {0}")]
    Start(#[source] io::Error),
    /// Its answer doesn't come or makes no sense.
    #[error("the suite's Python process doesn't answer: {0}")]
    Answer(#[source] io::Error),
    /// Vela can't be used.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    failure: Option<String>,
    printed: String,
    refused: Option<String>,
    outputs: Vec<Vec<Described>>,
    made: Option<Made>,
    simpler: Vec<Value>,
}

#[derive(Deserialize)]
struct Made {
    parameters: Value,
    input_ranges: Vec<(i64, i64)>,
}

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<usize>,
}

/// A set of outputs for each sample; the error is the interpreter's refusal.
pub type Voice = Result<Vec<Vec<Array>>, String>;

impl Server {
    /// Starts the process. `client` is the `conformance` program itself.
    ///
    /// # Errors
    /// [`ServerError::Start`].
    pub fn start(python: &Path, repository: &Path, client: &Path) -> Result<Server, ServerError> {
        let start = || -> io::Result<Server> {
            let folder = tempfile::Builder::new().prefix("npukit-conformance-").tempdir()?;
            let program = folder.path().join("server.py");
            std::fs::write(&program, PROGRAM)?;
            std::os::unix::fs::symlink(client, folder.path().join(CLIENT))?;
            let mut child = Command::new(python)
                .args(["-I", "-u"])
                .arg(&program)
                .arg(folder.path().join(SOCKET))
                .arg(repository)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let mut line = String::new();
            if let Some(output) = child.stdout.take() {
                BufReader::new(output).read_line(&mut line)?;
            }
            let server = Server { folder, child };
            if line.trim() == "ready" { Ok(server) } else { Err(io::Error::other("it ended at once")) }
        };
        start().map_err(ServerError::Start)
    }

    /// Vela, run by forks of this process.
    ///
    /// # Errors
    /// [`ServerError::Toolchain`].
    pub fn vela(&self) -> Result<Vela, ServerError> {
        Ok(Vela::own(&self.folder.path().join(CLIENT))?)
    }

    /// What an interpreter computes.
    ///
    /// # Errors
    /// [`ServerError::Answer`]. An interpreter that refuses or crashes is an answer.
    pub fn ask(
        &self,
        reference: Reference,
        model: &[u8],
        samples: &[Vec<Array>],
    ) -> Result<Voice, ServerError> {
        let mut body = model.to_vec();
        for array in samples.iter().flatten() {
            body.extend_from_slice(array.data());
        }
        let request = json!({"oracle": reference.name(), "model_bytes": model.len()});
        let (answer, data) = self.exchange(&request, &body)?;
        if let Some(reason) = answer.refused {
            return Ok(Err(reason));
        }
        let mut data = data.as_slice();
        let outputs = answer.outputs.into_iter();
        let sets = outputs.map(|set| set.into_iter().map(|one| array(one, &mut data)).collect());
        Ok(Ok(sets.collect::<io::Result<_>>().map_err(ServerError::Answer)?))
    }
}

impl Server {
    fn exchange(&self, request: &Value, body: &[u8]) -> Result<(Answer, Vec<u8>), ServerError> {
        exchange(&self.folder.path().join(SOCKET), request, body).map_err(ServerError::Answer)
    }

    /// Makes a case from its operator, type and seed.
    ///
    /// # Errors
    /// [`ServerError::Answer`], also where the generator has no such case.
    pub fn draw(
        &self,
        product: Product,
        op: &str,
        dtype: &str,
        seed: u64,
    ) -> Result<(Case, Vec<u8>), ServerError> {
        let request = json!({"make": {"product": product, "op": op, "dtype": dtype, "seed": seed}});
        let blank = Case {
            name: format!("{}_{dtype}_{seed:08x}", op.to_lowercase()),
            op: op.to_owned(),
            dtype: dtype.to_owned(),
            seed,
            input_ranges: Vec::new(),
            parameters: Value::Null,
        };
        self.make(&request, blank)
    }

    /// Makes a case from its parameters alone.
    ///
    /// # Errors
    /// [`ServerError::Answer`], also where the parameters contradict each other.
    pub fn from_parameters(
        &self,
        product: Product,
        parameters: &Value,
    ) -> Result<(Case, Vec<u8>), ServerError> {
        let text = |key: &str| parameters[key].as_str().unwrap_or_default().to_owned();
        let case = Case {
            name: "case".to_owned(),
            op: text("op"),
            dtype: text("dtype"),
            seed: 1,
            input_ranges: Vec::new(),
            parameters: Value::Null,
        };
        self.rebuild(product, &case, parameters)
    }

    /// Makes a case of the same name from other parameters.
    ///
    /// # Errors
    /// [`ServerError::Answer`], also where the parameters contradict each other.
    pub fn rebuild(
        &self,
        product: Product,
        case: &Case,
        parameters: &Value,
    ) -> Result<(Case, Vec<u8>), ServerError> {
        self.make(&json!({"make": {"product": product, "parameters": parameters}}), case.clone())
    }

    fn make(&self, request: &Value, case: Case) -> Result<(Case, Vec<u8>), ServerError> {
        let (answer, model) = self.exchange(request, &[])?;
        let failure = answer.failure.unwrap_or_else(|| "no model".to_owned());
        let Made { parameters, input_ranges } =
            answer.made.ok_or_else(|| ServerError::Answer(io::Error::other(failure)))?;
        Ok((Case { parameters, input_ranges, ..case }, model))
    }

    /// Parameters of simpler cases, the boldest cuts first.
    ///
    /// # Errors
    /// [`ServerError::Answer`].
    pub fn simpler(&self, parameters: &Value) -> Result<Vec<Value>, ServerError> {
        Ok(self.exchange(&json!({"simpler": parameters}), &[])?.0.simpler)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Cuts a described array off the front of the data.
fn array(described: Described, data: &mut &[u8]) -> io::Result<Array> {
    let dtype = match described.dtype.as_str() {
        "bool" => Dtype::Bool,
        "int8" => Dtype::Int8,
        "uint8" => Dtype::Uint8,
        "int16" => Dtype::Int16,
        "int32" => Dtype::Int32,
        "int64" => Dtype::Int64,
        "float32" => Dtype::Float32,
        other => return Err(io::Error::other(format!("elements of type {other}"))),
    };
    let bytes = described.shape.iter().fold(dtype.bytes(), |product, &axis| product.saturating_mul(axis));
    let (front, rest) =
        data.split_at_checked(bytes).ok_or_else(|| io::Error::other("its data is shorter than it says"))?;
    *data = rest;
    Array::new(dtype, described.shape, front.to_vec()).map_err(io::Error::other)
}

fn exchange(socket: &Path, request: &Value, body: &[u8]) -> io::Result<(Answer, Vec<u8>)> {
    let mut stream = UnixStream::connect(socket)?;
    let header = request.to_string();
    let header_bytes = u32::try_from(header.len()).map_err(io::Error::other)?;
    stream.write_all(&header_bytes.to_le_bytes())?;
    stream.write_all(&(body.len() as u64).to_le_bytes())?;
    stream.write_all(header.as_bytes())?;
    stream.write_all(body)?;
    let mut lengths = [0; 12];
    stream.read_exact(&mut lengths)?;
    let [a, b, c, d, rest @ ..] = lengths;
    let header = exactly(&mut stream, u64::from(u32::from_le_bytes([a, b, c, d])))?;
    let data = exactly(&mut stream, u64::from_le_bytes(rest))?;
    Ok((serde_json::from_slice(&header)?, data))
}

fn exactly(stream: &mut UnixStream, bytes: u64) -> io::Result<Vec<u8>> {
    if bytes > ANSWER_BYTES {
        return Err(io::Error::other(format!("a frame of {bytes} bytes")));
    }
    let mut read = Vec::new();
    stream.take(bytes).read_to_end(&mut read)?;
    if read.len() as u64 == bytes { Ok(read) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Acts as Vela where this program was called by the name [`CLIENT`]: has the server beside the link run it. Returns the exit
/// status; `None` where the program goes by its own name.
pub fn act_as_vela() -> Option<u8> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    if name.file_name()? != CLIENT {
        return None;
    }
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    match exchange(&name.with_file_name(SOCKET), &json!({"vela": arguments}), &[]) {
        Ok((Answer { failure: None, printed, .. }, _)) => {
            print!("{printed}");
            Some(0)
        }
        Ok((Answer { failure: Some(failure), printed, .. }, _)) => {
            eprintln!("{printed}\n{failure}");
            Some(1)
        }
        Err(error) => {
            eprintln!("{error}");
            Some(2)
        }
    }
}
