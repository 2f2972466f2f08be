//! Shows long work on standard error: a moving line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use npukit_vela::progress::Progress;

/// What a person sees of long work.
pub(super) struct Display {
    /// `None` where standard error is no terminal.
    bar: Option<ProgressBar>,
    step: String,
}

impl Display {
    pub(super) fn new() -> Display {
        let moving = stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Display { bar: moving.then(bar), step: String::new() }
    }

    /// Takes the moving line away, so that something else can be printed.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let template =
        if colours { "{spinner:.cyan} {wide_msg} {elapsed:.dim}" } else { "{spinner} {wide_msg} {elapsed}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

impl Progress for Display {
    fn step(&mut self, what: &str) {
        self.step = what.to_owned();
        match &self.bar {
            Some(bar) => {
                bar.set_message(self.step.clone());
                bar.enable_steady_tick(Duration::from_millis(120));
            }
            // Without a terminal one line a step, for the log; the details would flood it.
            None => super::stderr_line(&format!("npukit: {what}")),
        }
    }

    fn detail(&mut self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {}", self.step, what.trim()));
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.finish();
    }
}
