//! The whole suite: generates cases, shares them out among the machine's cores, gives every record to the caller.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use npukit::Accelerator;
use npukit_vela::toolchain::Environment;

use crate::measure::Bench;
use crate::record::{Case, Manifest, Outcome, Product, Record};
use crate::server::{Server, ServerError};

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// Each product and how many cases for it.
    pub shares: Vec<(Product, usize)>,
    /// The first product's seed; the others get the following ones, so that no two have the same cases.
    pub seed: u64,
    /// `OP` or `OP:dtype`, comma-separated; all if `None`.
    pub operators: Option<String>,
    /// Accelerators in the place of those whose turn it is.
    pub accelerators: Vec<Accelerator>,
    /// How many accelerators a case is compiled for.
    pub accelerators_per_case: usize,
    /// Sets of inputs for each case.
    pub samples: usize,
    /// Cases at a time.
    pub jobs: usize,
    /// After this long no more cases are begun.
    pub time_limit: Option<Duration>,
}

/// Why the suite can't run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// The generator fails.
    #[error("the generator fails: {0}")]
    Generator(String),
    /// A folder or file can't be used.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The Python process.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// A case that waits for its turn.
#[derive(Clone, Debug)]
struct Job {
    product: Product,
    case: Case,
    file: PathBuf,
    accelerators: Vec<Accelerator>,
}

/// What there is to work with.
#[derive(Debug)]
pub struct Suite<'e> {
    environment: &'e Environment,
    repository: PathBuf,
    server: Server,
    folder: tempfile::TempDir,
}

impl<'e> Suite<'e> {
    /// Starts the suite's Python process. `client` is the `conformance` program; `repository` holds the generator.
    ///
    /// # Errors
    /// [`SuiteError`].
    pub fn new(
        environment: &'e Environment,
        repository: &Path,
        client: &Path,
    ) -> Result<Suite<'e>, SuiteError> {
        let server = Server::start(&environment.python(), repository, client)?;
        let folder = tempfile::Builder::new()
            .prefix("npukit-conformance-")
            .tempdir()
            .map_err(|source| SuiteError::File { path: std::env::temp_dir(), source })?;
        Ok(Suite { environment, repository: repository.to_owned(), server, folder })
    }

    /// The Python process.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A bench to measure single cases on.
    ///
    /// # Errors
    /// [`SuiteError::Server`].
    pub fn bench(&self, samples: usize) -> Result<Bench<'_>, SuiteError> {
        Ok(Bench { vela: self.server.vela()?, server: &self.server, samples })
    }

    /// Runs the generator.
    ///
    /// # Errors
    /// [`SuiteError::Generator`] with its words.
    pub fn generator(&self, arguments: &[&str]) -> Result<String, SuiteError> {
        let mut command = Command::new(self.environment.python());
        command.args(["-m", "conformance.generate"]).args(arguments).current_dir(&self.repository);
        let done = command.output().map_err(|error| SuiteError::Generator(error.to_string()))?;
        if !done.status.success() {
            return Err(SuiteError::Generator(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Generates the cases and runs them; gives every record to `each` as it comes. Returns how many cases were run, of how many.
    ///
    /// # Errors
    /// [`SuiteError`].
    pub fn run(&self, request: &Request, each: &mut dyn FnMut(Record)) -> Result<(usize, usize), SuiteError> {
        let started = Instant::now();
        let jobs = self.jobs(request)?;
        let bench = self.bench(request.samples)?;
        let next = AtomicUsize::new(0);
        let (sender, results) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..request.jobs.max(1) {
                let (sender, jobs, next, bench) = (sender.clone(), &jobs, &next, &bench);
                scope.spawn(move || {
                    while request.time_limit.is_none_or(|limit| started.elapsed() < limit)
                        && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        if sender.send(job.run(bench)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let mut done = 0;
            for records in results {
                records?.into_iter().for_each(&mut *each);
                done += 1;
            }
            Ok((done, jobs.len()))
        })
    }

    /// All products' cases, mixed so that a run that is cut short has its share of each.
    fn jobs(&self, request: &Request) -> Result<Vec<Job>, SuiteError> {
        let mut all: Vec<(f64, Job)> = Vec::new();
        for (offset, &(product, count)) in (0..).zip(&request.shares) {
            let folder = self.folder.path().join(product.name());
            let (folder_text, count_text) = (folder.to_string_lossy(), count.to_string());
            let seed = (request.seed + offset).to_string();
            let mut arguments = vec![
                "--out",
                &folder_text,
                "--seed",
                &seed,
                "--count",
                &count_text,
                "--product",
                product.name(),
            ];
            if let Some(operators) = &request.operators {
                arguments.extend(["--ops", operators]);
            }
            self.generator(&arguments)?;
            let path = folder.join("manifest.json");
            let read = || -> io::Result<Manifest> { Ok(serde_json::from_slice(&fs::read(&path)?)?) };
            let manifest = read().map_err(|source| SuiteError::File { path: path.clone(), source })?;
            for (index, case) in manifest.cases.into_iter().enumerate() {
                let file = folder.join(format!("{}.tflite", case.name));
                let accelerators = turn(product, request, index, case.seed);
                let place = index as f64 / count.max(1) as f64;
                all.push((place, Job { product, case, file, accelerators }));
            }
        }
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        Ok(all.into_iter().map(|(_, job)| job).collect())
    }
}

/// The accelerators of a case. The seed takes part, because cases of one operator come at equal distances.
fn turn(product: Product, request: &Request, index: usize, seed: u64) -> Vec<Accelerator> {
    if !request.accelerators.is_empty() {
        return request.accelerators.clone();
    }
    let all = product.accelerators();
    let start = index.wrapping_add((seed >> 16) as usize);
    let count = request.accelerators_per_case.clamp(1, all.len());
    (0..count).map(|step| all[(start + step) % all.len()]).collect()
}

impl Job {
    fn run(&self, bench: &Bench<'_>) -> Result<Vec<Record>, SuiteError> {
        let model =
            fs::read(&self.file).map_err(|source| SuiteError::File { path: self.file.clone(), source })?;
        // A panic is a finding about its case, not the end of the run.
        let measured = panic::catch_unwind(AssertUnwindSafe(|| {
            bench.measure(self.product, &self.case, &model, &self.accelerators)
        }));
        match measured {
            Ok(records) => Ok(records?),
            Err(_) => Ok(vec![Record {
                product: self.product,
                case: self.case.clone(),
                accelerator: self.accelerators.first().map_or("", |one| one.name()).to_owned(),
                variant: String::new(),
                weights: BTreeSet::new(),
                defects: Vec::new(),
                scales: (0.0, 0.0),
                scale_error: 0.0,
                outcome: Outcome::Panicked,
            }]),
        }
    }
}
