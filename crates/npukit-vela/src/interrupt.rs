//! What a program that is interrupted would leave behind: compilers and interpreters that still run, and the folders they
//! work in.
//!
//! A signal ends a program without its destructors. A program that catches the signal calls [`clean_up`] before it ends.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tempfile::TempDir;

/// What there is now.
static PRESENT: Mutex<Present> =
    Mutex::new(Present { ending: false, children: Vec::new(), folders: Vec::new() });

struct Present {
    ending: bool,
    children: Vec<Arc<Mutex<Child>>>,
    folders: Vec<PathBuf>,
}

/// Kills the processes that this crate has started, waits for their ends and removes the temporary folders. The program has to
/// end then: threads that use this crate wait for ever.
pub fn clean_up() {
    let mut present = lock(&PRESENT);
    present.ending = true;
    for child in present.children.drain(..) {
        let mut child = lock(&child);
        let _ = child.kill();
        let _ = child.wait();
    }
    for folder in present.folders.drain(..) {
        let _ = fs::remove_dir_all(folder);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What there is now, in a program that isn't about to end: in another one nothing is started or made, and nobody is told how
/// a process that was killed has ended.
fn present() -> MutexGuard<'static, Present> {
    let present = lock(&PRESENT);
    if present.ending {
        drop(present);
        loop {
            thread::park();
        }
    }
    present
}

/// A process that doesn't outlive an interrupted program.
#[derive(Debug)]
pub(crate) struct Process(Arc<Mutex<Child>>);

impl Process {
    /// Starts it; `take` gets its pipes.
    pub(crate) fn start<T>(
        command: &mut Command,
        take: impl FnOnce(&mut Child) -> T,
    ) -> io::Result<(Process, T)> {
        let mut present = present();
        let mut child = command.spawn()?;
        let taken = take(&mut child);
        let child = Arc::new(Mutex::new(child));
        present.children.push(Arc::clone(&child));
        Ok((Process(child), taken))
    }

    /// How it has ended, if it has.
    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        let status = lock(&self.0).try_wait();
        drop(present());
        status
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&self) {
        let mut child = lock(&self.0);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        present().children.retain(|child| !Arc::ptr_eq(child, &self.0));
    }
}

/// A temporary folder that an interrupted program doesn't leave behind.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(prefix: &str) -> io::Result<Folder> {
        let mut present = present();
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        present.folders.push(folder.path().to_owned());
        Ok(Folder(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        present().folders.retain(|folder| folder != self.0.path());
    }
}
