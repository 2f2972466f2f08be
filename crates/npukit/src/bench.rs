//! How long an inference takes, measured alternately with other runtimes' so that a machine's changing load touches all alike.
//!
//! ```no_run
//! use npukit::bench::{self, Contender, EngineContender, Pace};
//! use npukit::{Engine, Network, draw};
//!
//! let network = Network::from_npub(&std::fs::read("kws.npub")?)?;
//! let sample = draw::sample(network.inputs(), 0, 1);
//! let mut engine = EngineContender::new(&network, Engine::Fast, 1, sample);
//! let figures = bench::alternate(&mut [&mut engine], &Pace::default())?;
//! println!("{} ns", figures[0].median());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::thread;
use std::time::{Duration, Instant};

use npukit_vela::npy::Array;
use npukit_vela::oracle::{Oracle, OracleError};

use crate::{Engine, Network, RunError, Session};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Turns of each contender.
    pub rounds: usize,
    /// About how long a turn takes.
    pub turn: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { rounds: 15, turn: Duration::from_millis(60) }
    }
}

/// Why a measurement ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The model of the NPU stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Another runtime failed.
    #[error(transparent)]
    Oracle(#[from] OracleError),
}

/// Something that is timed.
pub trait Contender {
    /// Runs so many inferences; nanoseconds of each, or of a share of them where several run at a time.
    ///
    /// # Errors
    /// [`BenchError`].
    fn run(&mut self, inferences: usize) -> Result<Vec<u64>, BenchError>;
}

/// Nanoseconds of inferences, by turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    turns: Vec<Vec<u64>>,
    inferences: usize,
}

impl Figures {
    /// Nanoseconds of an inference: the median over all.
    pub fn median(&self) -> u64 {
        median(self.turns.iter().flatten().copied().collect())
    }

    /// Inferences that were timed.
    pub fn inferences(&self) -> usize {
        self.inferences
    }

    /// How many times as long these take as others that were measured in turn with them: the median over the turns, each
    /// compared with the other's next to it.
    pub fn ratio(&self, other: &Figures) -> f64 {
        let pairs = self.turns.iter().zip(&other.turns);
        let mut ratios: Vec<f64> = pairs
            .map(|(one, other)| median(one.clone()) as f64 / median(other.clone()).max(1) as f64)
            .collect();
        ratios.sort_by(f64::total_cmp);
        match ratios.len() {
            0 => f64::NAN,
            count => (ratios[(count - 1) / 2] + ratios[count / 2]) / 2.0,
        }
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Measures contenders in turn. What each runs before its first turn, to find out how many inferences make one, isn't counted.
///
/// # Errors
/// [`BenchError`] of the first contender that has one.
pub fn alternate(contenders: &mut [&mut dyn Contender], pace: &Pace) -> Result<Vec<Figures>, BenchError> {
    let counts = contenders
        .iter_mut()
        .map(|contender| inferences_in(*contender, pace.turn))
        .collect::<Result<Vec<_>, _>>()?;
    let mut figures = vec![Figures::default(); contenders.len()];
    for _ in 0..pace.rounds {
        for ((contender, &count), figures) in contenders.iter_mut().zip(&counts).zip(&mut figures) {
            figures.turns.push(contender.run(count)?);
            figures.inferences += count;
        }
    }
    Ok(figures)
}

/// The most inferences of one turn.
const MOST_INFERENCES: usize = 1 << 16;

/// How many inferences take about so long. Short runs are no measure where threads have to start, so they grow.
fn inferences_in(contender: &mut dyn Contender, turn: Duration) -> Result<usize, BenchError> {
    contender.run(1)?;
    let mut count = 1;
    loop {
        let figures = contender.run(count)?;
        let each = (figures.iter().sum::<u64>() / figures.len().max(1) as u64).max(1);
        let fitting = usize::try_from(turn.as_nanos() / u128::from(each)).unwrap_or(MOST_INFERENCES);
        if count >= fitting / 4 || count >= MOST_INFERENCES {
            return Ok(fitting.clamp(1, MOST_INFERENCES));
        }
        count *= 4;
    }
}

/// An engine of the model with one set of inputs, on one or more threads. Each inference includes writing its inputs and reading
/// its outputs.
#[derive(Debug)]
pub struct EngineContender<'n> {
    sessions: Vec<Session<'n>>,
    sample: Vec<Array>,
}

impl<'n> EngineContender<'n> {
    /// An engine on `threads` threads, at least one.
    pub fn new(
        network: &'n Network,
        engine: Engine,
        threads: usize,
        sample: Vec<Array>,
    ) -> EngineContender<'n> {
        let sessions = (0..threads.max(1)).map(|_| network.session_on(engine)).collect();
        EngineContender { sessions, sample }
    }
}

impl Contender for EngineContender<'_> {
    fn run(&mut self, inferences: usize) -> Result<Vec<u64>, BenchError> {
        let sample = &self.sample;
        if let [session] = self.sessions.as_mut_slice() {
            return timed(session, sample, inferences);
        }
        let threads = self.sessions.len();
        // The first threads run one more where they don't share them evenly.
        let share = |number: usize| inferences / threads + usize::from(number < inferences % threads);
        let started = Instant::now();
        thread::scope(|scope| {
            let running: Vec<_> = self
                .sessions
                .iter_mut()
                .enumerate()
                .map(|(number, session)| scope.spawn(move || timed(session, sample, share(number))))
                .collect();
            running.into_iter().try_for_each(|thread| match thread.join() {
                Ok(done) => done.map(drop),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
        // One figure for the turn: what an inference takes of the time that passed.
        Ok(vec![nanoseconds(started.elapsed()) / inferences.max(1) as u64])
    }
}

fn timed(session: &mut Session<'_>, sample: &[Array], inferences: usize) -> Result<Vec<u64>, BenchError> {
    (0..inferences)
        .map(|_| {
            let started = Instant::now();
            session.run(sample)?;
            Ok(nanoseconds(started.elapsed()))
        })
        .collect()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Another runtime with one set of inputs, single-threaded. Its inferences don't include writing inputs and reading outputs.
#[derive(Debug)]
pub struct OracleContender {
    /// The runtime, with the network loaded.
    pub oracle: Oracle,
    /// The inputs.
    pub sample: Vec<Array>,
}

impl Contender for OracleContender {
    fn run(&mut self, inferences: usize) -> Result<Vec<u64>, BenchError> {
        Ok(self.oracle.bench(&self.sample, inferences)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes turns of made-up lengths, all of them slower in the second half.
    struct Made {
        nanoseconds: u64,
        asked: Vec<usize>,
    }

    impl Contender for Made {
        fn run(&mut self, inferences: usize) -> Result<Vec<u64>, BenchError> {
            self.asked.push(inferences);
            let load = if self.asked.len() > 7 { 3 } else { 1 };
            Ok(vec![self.nanoseconds * load; inferences])
        }
    }

    #[test]
    fn load_that_touches_all_alike_leaves_the_ratio() {
        let mut one = Made { nanoseconds: 1_000, asked: Vec::new() };
        let mut other = Made { nanoseconds: 4_000, asked: Vec::new() };
        let pace = Pace { rounds: 6, turn: Duration::from_micros(40) };
        let figures = alternate(&mut [&mut one, &mut other], &pace).unwrap();
        assert_eq!(figures[0].ratio(&figures[1]), 0.25);
        assert_eq!(
            (one.asked.as_slice(), other.asked.as_slice()),
            (&[1, 1, 4, 16, 40, 40, 40, 40, 40, 40][..], &[1, 1, 4, 10, 10, 10, 10, 10, 10][..])
        );
        assert_eq!(figures[0].inferences(), 240);
        assert_eq!((figures[0].turns[0][0], figures[0].turns[5][0]), (1_000, 3_000));
    }

    #[test]
    fn nothing_measured_is_no_number() {
        assert!(Figures::default().ratio(&Figures::default()).is_nan());
        assert_eq!(Figures::default().median(), 0);
    }
}
