//! The command line: runs the suite, prints what isn't explained, writes the table.

use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use npukit::{Accelerator, Toolchain};

use crate::judge::{self, Verdict};
use crate::record::{Product, Record};
use crate::shrink;
use crate::suite::{Request, Suite};
use crate::table;

/// Runs the conformance suite: generates networks, compiles them, runs them on both engines and compares with the reference
/// interpreters. Exit status: 0 every case is exact or explained; 1 one isn't; 2 it could not be done.
#[derive(Debug, Parser)]
#[command(name = "conformance", version, max_term_width = 110)]
struct Arguments {
    /// How many cases, over all products
    #[arg(long, default_value_t = 360)]
    count: usize,
    /// Where the random numbers start
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// u55, u65 or u85; may be repeated [default: all, in the proportion 2:1:2]
    #[arg(long)]
    product: Vec<Product>,
    /// Comma-separated OP or OP:dtype [default: all]
    #[arg(long)]
    ops: Option<String>,
    /// One case, OP:dtype:seed as a failure prints it; needs --product
    #[arg(long, value_name = "OP:DTYPE:SEED", requires = "product")]
    case: Option<String>,
    /// One case by its parameters, a JSON object; needs --product
    #[arg(long, value_name = "JSON", requires = "product", conflicts_with = "case")]
    params: Option<String>,
    /// Compile every case for this accelerator; may be repeated [default: they take turns]
    #[arg(long)]
    accel: Vec<Accelerator>,
    /// How many accelerators each case is compiled for
    #[arg(long, default_value_t = 1)]
    accels_per_case: usize,
    /// Sets of inputs for each case
    #[arg(long, default_value_t = 4)]
    samples: usize,
    /// Cases at a time [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
    /// Begin no more cases after so many minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// Write the table for the documentation
    #[arg(long, value_name = "FILE.md")]
    table: Option<PathBuf>,
    /// Write what was measured, one JSON object a line: the run's heading, then every record
    #[arg(long, value_name = "FILE.jsonl")]
    records: Option<PathBuf>,
    /// Judge the records of an earlier run instead of running anything
    #[arg(long, value_name = "FILE.jsonl")]
    from: Option<PathBuf>,
    /// Where shrunk failures go
    #[arg(long, value_name = "DIR", default_value = "target/conformance-failures")]
    failures: PathBuf,
    /// How many failures to shrink
    #[arg(long, default_value_t = 3)]
    shrink: usize,
}

impl Arguments {
    /// How many cases each product gets: of five, two for the U55, one for the U65, two for the U85.
    fn shares(&self) -> Vec<(Product, usize)> {
        let products = if self.product.is_empty() { Product::ALL.to_vec() } else { self.product.clone() };
        let weight = |product: Product| if product == Product::U65 { 1 } else { 2 };
        let total: usize = products.iter().map(|&product| weight(product)).sum();
        products
            .into_iter()
            .map(|product| (product, (self.count * weight(product)).div_ceil(total)))
            .collect()
    }
}

/// Runs the command line; returns the exit status.
pub fn main() -> u8 {
    match execute(&Arguments::parse()) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            eprintln!("error: {error}");
            2
        }
    }
}

fn execute(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    if let Some(path) = &arguments.from {
        let text = fs::read_to_string(path)?;
        let mut lines = text.lines();
        let heading: table::Heading = serde_json::from_str(lines.next().unwrap_or_default())?;
        let records = lines.map(serde_json::from_str).collect::<Result<Vec<Record>, _>>()?;
        let failures = report(&records);
        if let Some(path) = &arguments.table {
            fs::write(path, table::render(&records, &heading))?;
        }
        return Ok(failures == 0);
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let environment = Toolchain::from_environment()?.ensure(&mut |line: &str| eprintln!("{line}"))?;
    let suite = Suite::new(&environment, &repository, &std::env::current_exe()?)?;
    if arguments.case.is_some() || arguments.params.is_some() {
        return one(&suite, arguments);
    }
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let request = Request {
        shares: arguments.shares(),
        seed: arguments.seed,
        operators: arguments.ops.clone(),
        accelerators: arguments.accel.clone(),
        accelerators_per_case: arguments.accels_per_case,
        samples: arguments.samples,
        jobs: arguments.jobs.unwrap_or(cores),
        time_limit: arguments.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes.max(0.0))),
    };
    eprintln!("seed {}; {:?}", request.seed, request.shares);
    let heading =
        table::Heading { command: command(), seed: arguments.seed, packages: environment.packages().clone() };
    let mut file = arguments.records.as_ref().map(fs::File::create).transpose()?;
    if let Some(file) = &mut file {
        writeln!(file, "{}", serde_json::to_string(&heading)?)?;
    }
    let started = Instant::now();
    let mut records: Vec<Record> = Vec::new();
    let mut unexplained = 0;
    let mut trouble: Option<io::Error> = None;
    let (done, of) = suite.run(&request, &mut |record| {
        if let Some(file) = &mut file {
            let line = serde_json::to_string(&record).map_err(io::Error::from);
            if let Err(error) = line.and_then(|line| writeln!(file, "{line}")) {
                trouble.get_or_insert(error);
            }
        }
        if let Verdict::Failure(reason) = judge::judge(&record) {
            unexplained += 1;
            println!("{}", judge::describe(&record, &reason));
        }
        records.push(record);
        if records.len().is_multiple_of(100) {
            eprintln!(
                "{} programs, {unexplained} unexplained, {:.0} s",
                records.len(),
                started.elapsed().as_secs_f64()
            );
        }
    })?;
    if let Some(error) = trouble {
        return Err(error.into());
    }
    if done < of {
        println!("the time was up after {done} of {of} cases");
    }
    println!("{}", table::summary(&records));
    if let Some(path) = &arguments.table {
        fs::write(path, table::render(&records, &heading))?;
    }
    let failures: Vec<&Record> =
        records.iter().filter(|record| matches!(judge::judge(record), Verdict::Failure(_))).collect();
    for record in failures.iter().take(arguments.shrink) {
        match shrink::shrink(&suite, record, arguments.samples, &arguments.failures) {
            Ok(found) => println!("{found}"),
            Err(error) => println!("{}: not shrunk: {error}", record.case.name),
        }
    }
    Ok(failures.is_empty())
}

/// What was typed, as far as it matters for the results.
fn command() -> String {
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    let mut words = vec![format!("cargo run{profile} -p npukit-conformance --")];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if ["--records", "--failures", "--shrink", "--jobs"].contains(&argument.as_str()) {
            arguments.next();
        } else {
            words.push(argument);
        }
    }
    words.join(" ")
}

/// Measures one case on all accelerators of its product, or those that are named.
fn one(suite: &Suite<'_>, arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    let product = arguments.product[0];
    let (case, model) = match (&arguments.case, &arguments.params) {
        (Some(name), _) => {
            let parts: Vec<&str> = name.split(':').collect();
            let [op, dtype, seed] = parts[..] else {
                return Err(format!("{name:?} isn't OP:dtype:seed").into());
            };
            let seed = match seed.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16)?,
                None => seed.parse()?,
            };
            suite.server().draw(product, op, dtype, seed)?
        }
        (None, params) => {
            let parameters: serde_json::Value = serde_json::from_str(params.as_deref().unwrap_or_default())?;
            suite.server().from_parameters(product, &parameters)?
        }
    };
    let accelerators =
        if arguments.accel.is_empty() { product.accelerators() } else { arguments.accel.clone() };
    let records = suite.bench(arguments.samples)?.measure(product, &case, &model, &accelerators)?;
    println!("{}", case.parameters);
    for record in &records {
        println!("{} {}: {:?}", record.accelerator, record.variant, judge::judge(record));
    }
    let failure = records.iter().find(|record| matches!(judge::judge(record), Verdict::Failure(_)));
    if let Some(record) = failure.filter(|_| arguments.shrink > 0) {
        println!("{}", shrink::shrink(suite, record, arguments.samples, &arguments.failures)?);
    }
    Ok(failure.is_none())
}

/// Prints every unexplained record and the sum; returns how many there are.
fn report(records: &[Record]) -> usize {
    let mut failures = 0;
    for record in records {
        if let Verdict::Failure(reason) = judge::judge(record) {
            failures += 1;
            println!("{}", judge::describe(record, &reason));
        }
    }
    println!("{}", table::summary(records));
    failures
}
