//! Runs a program to its end: output captured line by line, a time limit, and a plain word for how it ended.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt::Process;

/// The most output kept of one stream, in bytes. A disassembly of the largest stream Vela writes stays below it.
const KEPT_BYTES: usize = 256 << 20;
/// The longest line that is kept whole, in bytes.
const LINE_BYTES: u64 = 1 << 20;
/// How many lines of a program's output are its last words.
const LAST_WORDS: usize = 12;

/// What a finished program left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Why a program could not be run to its end.
#[derive(Debug)]
pub(crate) enum RunError {
    /// It could not be started.
    Start(io::Error),
    /// It was stopped after this long.
    TimedOut { after: Duration, last_words: String },
    /// Its end could not be awaited.
    Wait(io::Error),
}

impl Finished {
    /// The last lines the program wrote: standard error where it has any, else standard output.
    pub(crate) fn last_words(&self) -> String {
        last_words(&self.stdout, &self.stderr)
    }
}

/// The last lines of a program's output: standard error where there is any, else standard output.
pub(crate) fn last_words(stdout: &str, stderr: &str) -> String {
    let text = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}

/// What a program said last, as the end of a sentence about it.
pub(crate) fn said(last_words: &str) -> String {
    if last_words.trim().is_empty() {
        " and said nothing".to_owned()
    } else {
        format!("; its last words:\n{last_words}")
    }
}

/// How a process ended, in words: "exit status 1", "killed by signal 11 (SIGSEGV)".
pub(crate) fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            return match signal_name(signal) {
                Some(name) => format!("killed by signal {signal} ({name})"),
                None => format!("killed by signal {signal}"),
            };
        }
    }
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => status.to_string(),
    }
}

/// The names of the signals a crashing or killed program ends by. The numbers are the ones Linux and macOS share,
/// apart from SIGBUS.
#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 if cfg!(target_os = "linux") => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL, which the system also sends when memory runs out",
        10 if cfg!(target_os = "macos") => "SIGBUS",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

enum Line {
    Out(String),
    Err(String),
}

/// Runs `command` with no standard input and calls `on_line` with each line of its output as it comes.
///
/// The child is killed when `limit` has passed.
pub(crate) fn run(
    mut command: Command,
    limit: Option<Duration>,
    on_line: &mut dyn FnMut(&str),
) -> Result<Finished, RunError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pipes = |child: &mut Child| (child.stdout.take(), child.stderr.take());
    let (child, (output, errors)) = Process::start(&mut command, pipes).map_err(RunError::Start)?;
    let (sender, lines) = mpsc::channel();
    if let Some(stream) = output {
        let sender = sender.clone();
        thread::spawn(move || forward(stream, |line| sender.send(Line::Out(line)).is_ok()));
    }
    if let Some(stream) = errors {
        thread::spawn(move || forward(stream, |line| sender.send(Line::Err(line)).is_ok()));
    }

    let started = Instant::now();
    let mut stdout = String::new();
    let mut stderr = String::new();
    // The readers are left behind after a kill rather than joined: a grandchild may hold the pipes open.
    let timed_out = |stdout: &str, stderr: &str, after| {
        child.kill();
        RunError::TimedOut { after, last_words: last_words(stdout, stderr) }
    };
    loop {
        let next = match limit {
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => lines.recv_timeout(limit.saturating_sub(started.elapsed())),
        };
        match next {
            Ok(Line::Out(line)) => {
                on_line(line.trim_end());
                keep(&mut stdout, &line);
            }
            Ok(Line::Err(line)) => {
                on_line(line.trim_end());
                keep(&mut stderr, &line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                return Err(timed_out(&stdout, &stderr, started.elapsed()));
            }
        }
    }
    let status = loop {
        // A program may close its output long before it ends.
        if let Some(status) = child.try_wait().map_err(RunError::Wait)? {
            break status;
        }
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            return Err(timed_out(&stdout, &stderr, started.elapsed()));
        }
        thread::sleep(Duration::from_millis(5));
    };
    Ok(Finished { status, stdout, stderr })
}

fn keep(text: &mut String, line: &str) {
    if text.len() + line.len() <= KEPT_BYTES {
        text.push_str(line);
    }
}

/// Sends a stream's lines on until it ends or nobody listens any more. Bytes that aren't UTF-8 are replaced.
fn forward(stream: impl Read, mut send: impl FnMut(String) -> bool) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                if !send(String::from_utf8_lossy(&line).into_owned()) {
                    return;
                }
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_are_kept() {
        let mut seen = Vec::new();
        let done = run(shell("echo one; echo two >&2; exit 3"), None, &mut |line| seen.push(line.to_owned()))
            .unwrap();
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("one\n", "two\n"));
        assert_eq!(ending(done.status), "exit status 3");
        seen.sort();
        assert_eq!(seen, ["one", "two"]);
    }

    #[test]
    fn a_signal_has_its_name() {
        let done = run(shell("echo dying >&2; kill -SEGV $$"), None, &mut |_| {}).unwrap();
        assert_eq!(ending(done.status), "killed by signal 11 (SIGSEGV)");
        assert_eq!(done.last_words(), "dying");
    }

    #[test]
    fn a_hanging_program_is_stopped() {
        let limit = Duration::from_millis(200);
        let error = run(shell("echo waiting; exec sleep 60"), Some(limit), &mut |_| {}).unwrap_err();
        match error {
            RunError::TimedOut { after, last_words } => {
                assert!(after >= limit && after < Duration::from_secs(30), "{after:?}");
                assert_eq!(last_words, "waiting");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_that_closes_its_output_is_stopped_too() {
        let limit = Duration::from_millis(200);
        let error = run(shell("exec >&- 2>&-; exec sleep 60"), Some(limit), &mut |_| {}).unwrap_err();
        assert!(matches!(error, RunError::TimedOut { .. }), "{error:?}");
    }
}
