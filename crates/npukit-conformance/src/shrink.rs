//! Makes a failing case small.

use std::fs;
use std::path::Path;

use npukit::Accelerator;

use crate::judge::{self, Verdict};
use crate::record::{Case, Record};
use crate::suite::{Suite, SuiteError};

/// Candidates that are tried; each costs a compilation.
const ATTEMPTS: usize = 200;

/// Moves to the first simpler case that still fails, again and again. Writes the smallest one to `folder`, and its parameters
/// beside it; returns a line for people.
///
/// # Errors
/// [`SuiteError`].
pub fn shrink(suite: &Suite<'_>, record: &Record, samples: usize, folder: &Path) -> Result<String, SuiteError> {
    let accelerator: Accelerator = record
        .accelerator
        .parse()
        .map_err(|error| SuiteError::Generator(format!("{}: {error}", record.accelerator)))?;
    let bench = suite.bench(samples)?;
    let server = suite.server();
    let (mut smallest, mut model) = server.rebuild(record.product, &record.case, &record.case.parameters)?;
    let mut last = record.clone();
    let mut attempts = 0;
    'smaller: loop {
        for parameters in server.simpler(&smallest.parameters)? {
            attempts += 1;
            if attempts > ATTEMPTS {
                break 'smaller;
            }
            let (case, trial) = server.rebuild(record.product, &smallest, &parameters)?;
            let records = bench.measure(record.product, &case, &trial, &[accelerator])?;
            if let Some(found) = records.into_iter().find(|one| matches!(judge::judge(one), Verdict::Failure(_))) {
                (smallest, model, last) = (case, trial, found);
                continue 'smaller;
            }
        }
        break;
    }
    write(&smallest, &model, &last, folder)
}

fn write(case: &Case, model: &[u8], record: &Record, folder: &Path) -> Result<String, SuiteError> {
    let file = folder.join(format!("{}.tflite", case.name));
    let text = format!("{}\n", case.parameters);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&file, model))
        .and_then(|()| fs::write(file.with_extension("json"), text))
        .map_err(|source| SuiteError::File { path: file.clone(), source })?;
    let reason = match judge::judge(record) {
        Verdict::Failure(reason) => reason,
        other => format!("{other:?}"),
    };
    Ok(format!("shrunk to {}: {reason}\n  {}", file.display(), case.parameters))
}
