//! The process an interpreter runs in, and the frames that go to and fro. `worker.py` is the other side.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{OracleError, Reference};
use crate::interrupt::Process;
use crate::process;
use crate::toolchain::isolated;

/// The program on the other side.
const PROGRAM: &str = include_str!("worker.py");
/// The most an answer may have, in bytes.
const ANSWER_BYTES: u64 = 1 << 31;
/// Lines of standard error that are kept.
const KEPT_LINES: usize = 40;
/// Standard error comes through another pipe than the answer and may be a little late.
const WORDS_LIMIT: Duration = Duration::from_secs(2);
/// How long a process may take to die after it closed its output.
const DEATH_LIMIT: Duration = Duration::from_secs(10);

/// An answer.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) header: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// What the process printed since the last answer.
#[derive(Debug, Default)]
struct Words {
    lines: Vec<String>,
    /// Marks the process has written, one before each answer.
    marks: usize,
    ended: bool,
}

/// A running interpreter process. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    child: Process,
    requests: Option<ChildStdin>,
    answers: Receiver<io::Result<Frame>>,
    words: Arc<(Mutex<Words>, Condvar)>,
    asked: usize,
}

impl Worker {
    pub(super) fn start(python: &Path) -> io::Result<Worker> {
        let mut command = isolated(python);
        command.args(["-u", "-c", PROGRAM]);
        // LiteRT's chatter about its delegates would drown what matters.
        command.env("TF_CPP_MIN_LOG_LEVEL", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let pipes = |child: &mut Child| (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (child, (requests, output, errors)) = Process::start(&mut command, pipes)?;
        let (sender, answers) = mpsc::channel();
        if let Some(mut output) = output {
            thread::spawn(move || {
                loop {
                    let frame = read_frame(&mut output);
                    let ended = frame.is_err();
                    if sender.send(frame).is_err() || ended {
                        return;
                    }
                }
            });
        }
        let words = Arc::new((Mutex::new(Words::default()), Condvar::new()));
        if let Some(errors) = errors {
            let words = Arc::clone(&words);
            thread::spawn(move || listen(errors, &words));
        }
        Ok(Worker { child, requests, answers, words, asked: 0 })
    }

    /// Sends a request and waits for its answer.
    pub(super) fn ask(
        &mut self,
        reference: Reference,
        header: Vec<u8>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Frame, OracleError> {
        self.words.0.lock().unwrap_or_else(PoisonError::into_inner).lines.clear();
        self.asked += 1;
        // A process that is gone can't be written to; the answer that doesn't come says how it ended.
        if let Some(requests) = &mut self.requests {
            let _ = write_frame(requests, &header, &body);
        }
        match self.answers.recv_timeout(limit) {
            Ok(Ok(frame)) => {
                self.wait_for_words();
                Ok(frame)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.child.kill();
                Err(OracleError::TimedOut { reference, after: limit })
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let ending = self.ending();
                self.wait_for_words();
                Err(OracleError::Crashed { reference, ending, last_words: self.last_words() })
            }
        }
    }

    /// What the process has printed since it was last asked something.
    pub(super) fn last_words(&self) -> String {
        let words = self.words.0.lock().unwrap_or_else(PoisonError::into_inner);
        process::last_words("", &words.lines.join("\n"))
    }

    /// Waits until everything the process printed before its answer is here.
    fn wait_for_words(&self) {
        let words = self.words.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |words: &mut Words| words.marks < self.asked && !words.ended;
        drop(self.words.1.wait_timeout_while(words, WORDS_LIMIT, missing));
    }

    fn ending(&mut self) -> String {
        let started = Instant::now();
        while started.elapsed() < DEATH_LIMIT {
            match self.child.try_wait() {
                Ok(Some(status)) => return process::ending(status),
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Err(error) => return error.to_string(),
            }
        }
        "it closed its output".to_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The process ends when its input does; one that is busy or stuck is not waited for.
        self.requests = None;
        self.child.kill();
    }
}

fn listen(errors: impl Read, shared: &(Mutex<Words>, Condvar)) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        let more = matches!(reader.read_until(b'\n', &mut line), Ok(bytes) if bytes > 0);
        let mut words = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !more {
            words.ended = true;
        } else {
            // A mark may come behind a line that has no end of its own.
            let text = line.strip_suffix(b"\0\n");
            words.marks += usize::from(text.is_some());
            let text = String::from_utf8_lossy(text.unwrap_or(&line)).trim_end().to_owned();
            if !text.is_empty() {
                if words.lines.len() == KEPT_LINES {
                    words.lines.remove(0);
                }
                words.lines.push(text);
            }
        }
        shared.1.notify_all();
        if !more {
            return;
        }
    }
}

fn write_frame(to: &mut impl Write, header: &[u8], body: &[u8]) -> io::Result<()> {
    let header_bytes = u32::try_from(header.len()).map_err(io::Error::other)?;
    to.write_all(&header_bytes.to_le_bytes())?;
    to.write_all(&(body.len() as u64).to_le_bytes())?;
    to.write_all(header)?;
    to.write_all(body)?;
    to.flush()
}

fn read_frame(from: &mut impl Read) -> io::Result<Frame> {
    let mut lengths = [0; 12];
    from.read_exact(&mut lengths)?;
    let [a, b, c, d, rest @ ..] = lengths;
    let header = read_exactly(from, u64::from(u32::from_le_bytes([a, b, c, d])))?;
    let body = read_exactly(from, u64::from_le_bytes(rest))?;
    Ok(Frame { header, body })
}

fn read_exactly(from: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    if bytes > ANSWER_BYTES {
        return Err(io::Error::other(format!("a frame of {bytes} bytes")));
    }
    let mut read = Vec::new();
    from.take(bytes).read_to_end(&mut read)?;
    if read.len() as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(read)
}
