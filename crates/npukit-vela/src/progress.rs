//! How long work tells what it is doing.

/// Receives short lines about long work: what began, and what it is doing right now.
///
/// A command line shows them on a terminal, a test ignores them. Any `FnMut(&str)` is a `Progress` that takes
/// both kinds of lines alike.
pub trait Progress {
    /// A step began, such as "installing the toolchain". One line, no full stop.
    fn step(&mut self, what: &str);

    /// The current step reached this, such as "downloading numpy 2.4.6". May come often; the latest replaces
    /// the ones before it. Ignored unless a listener wants it.
    fn detail(&mut self, what: &str) {
        let _ = what;
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _what: &str) {}
}

impl<F: FnMut(&str)> Progress for F {
    fn step(&mut self, what: &str) {
        self(what);
    }

    fn detail(&mut self, what: &str) {
        self(what);
    }
}
