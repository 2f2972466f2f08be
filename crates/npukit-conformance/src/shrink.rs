//! Makes a failing case small.

use std::fs;
use std::path::Path;

use npukit::Accelerator;

use crate::judge::{self, Verdict};
use crate::record::{Case, Record};
use crate::suite::{Suite, SuiteError};

/// Candidates that are tried; each costs a compilation.
const ATTEMPTS: usize = 200;

/// The simplest case found that still fails.
#[derive(Clone, Debug)]
pub struct Smallest {
    /// Its parameters and name.
    pub case: Case,
    /// Its `.tflite`.
    pub model: Vec<u8>,
    /// How it fails.
    pub record: Record,
}

/// Moves to the first simpler case for which `fails` still holds, again and again.
///
/// # Errors
/// [`SuiteError`].
pub fn smallest(
    suite: &Suite<'_>,
    record: &Record,
    samples: usize,
    fails: &dyn Fn(&Record) -> bool,
) -> Result<Smallest, SuiteError> {
    let accelerator: Accelerator = record
        .accelerator
        .parse()
        .map_err(|error| SuiteError::Generator(format!("{}: {error}", record.accelerator)))?;
    let bench = suite.bench(samples)?;
    let server = suite.server();
    let (case, model) = server.rebuild(record.product, &record.case, &record.case.parameters)?;
    let mut smallest = Smallest { case, model, record: record.clone() };
    let mut attempts = 0;
    'smaller: loop {
        for parameters in server.simpler(&smallest.case.parameters)? {
            attempts += 1;
            if attempts > ATTEMPTS {
                break 'smaller;
            }
            let (case, model) = server.rebuild(record.product, &smallest.case, &parameters)?;
            let records = bench.measure(record.product, &case, &model, &[accelerator])?;
            if let Some(record) = records.into_iter().find(|one| fails(one)) {
                smallest = Smallest { case, model, record };
                continue 'smaller;
            }
        }
        break;
    }
    Ok(smallest)
}

/// Shrinks an unexplained case and writes it to `folder`, its parameters beside it; returns a line for people.
///
/// # Errors
/// [`SuiteError`].
pub fn shrink(
    suite: &Suite<'_>,
    record: &Record,
    samples: usize,
    folder: &Path,
) -> Result<String, SuiteError> {
    let unexplained = |record: &Record| matches!(judge::judge(record), Verdict::Failure(_));
    let Smallest { case, model, record } = smallest(suite, record, samples, &unexplained)?;
    let file = folder.join(format!("{}.tflite", case.name));
    let text = format!("{}\n", case.parameters);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, model))
        .and_then(|()| fs::write(file.with_extension("json"), text))
        .map_err(|source| SuiteError::File { path: file.clone(), source })?;
    let reason = match judge::judge(&record) {
        Verdict::Failure(reason) => reason,
        other => format!("{other:?}"),
    };
    Ok(format!("shrunk to {}: {reason}\n  {}", file.display(), case.parameters))
}
