//! The table for the documentation.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::{Deserialize, Serialize};

use crate::judge::{self, Verdict};
use crate::record::{Outcome, Product, Record, Reference, WeightForm};

/// What stands above the table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heading {
    /// The command that made it.
    pub command: String,
    /// The run's seed.
    pub seed: u64,
    /// Versions of what was compared with.
    pub packages: BTreeMap<String, String>,
}

/// Why programs aren't exact: how many, and the largest difference.
type Rest = BTreeMap<String, (usize, Option<f64>)>;

#[derive(Debug, Default)]
struct Row {
    programs: usize,
    exact: usize,
    equal: BTreeMap<Reference, usize>,
    runs: BTreeMap<Reference, usize>,
    failures: usize,
    rest: Rest,
}

/// One line about everything.
pub fn summary(records: &[Record]) -> String {
    let row = total(records.iter());
    format!(
        "{} programs: {} exact, {} explained, {} unexplained",
        row.programs,
        row.exact,
        row.explained(),
        row.failures
    )
}

fn total<'r>(records: impl Iterator<Item = &'r Record>) -> Row {
    let mut row = Row::default();
    records.for_each(|record| row.add(record));
    row
}

/// How many programs have weights in a form, and how many of those are exact.
fn weight_forms<'r>(records: impl Iterator<Item = &'r Record>) -> BTreeMap<WeightForm, [usize; 2]> {
    let mut forms: BTreeMap<WeightForm, [usize; 2]> = BTreeMap::new();
    for record in records {
        let exact = matches!(judge::judge(record), Verdict::Exact(_));
        for form in &record.weights {
            let [programs, exact_ones] = forms.entry(*form).or_default();
            *programs += 1;
            *exact_ones += usize::from(exact);
        }
    }
    forms
}

/// The whole document.
pub fn render(records: &[Record], heading: &Heading) -> String {
    let mut text = Heading::text(heading, records);
    for (title, products) in
        [("Ethos-U55 and U65", &[Product::U55, Product::U65][..]), ("Ethos-U85", &[Product::U85][..])]
    {
        let mut rows: BTreeMap<(&str, &str), Row> = BTreeMap::new();
        let mut reasons: Vec<String> = Vec::new();
        for record in records.iter().filter(|record| products.contains(&record.product)) {
            rows.entry((&record.case.op, &record.case.dtype)).or_default().add(record);
        }
        if rows.is_empty() {
            continue;
        }
        for row in rows.values() {
            for reason in
                row.rest.keys().filter(|reason| !reasons.contains(reason)).cloned().collect::<Vec<_>>()
            {
                reasons.push(reason);
            }
        }
        let _ = writeln!(text, "\n## {title}\n");
        let _ = writeln!(
            text,
            "| operator | dtype | programs | exact | = TFLM | = REF | largest difference and reason of the rest |"
        );
        let _ = writeln!(text, "|---|---|--:|--:|--:|--:|---|");
        for ((op, dtype), row) in &rows {
            let equal = [Reference::Tflm, Reference::LitertRef].map(|reference| row.share(reference));
            let rest: Vec<String> = row
                .rest
                .iter()
                .map(|(reason, (count, most))| {
                    let number = reasons.iter().position(|known| known == reason).unwrap_or_default() + 1;
                    let most = most.map_or_else(|| "stopped".to_owned(), |most| format!("max {most}"));
                    format!("{count}: {most} [{number}]")
                })
                .collect();
            let _ = writeln!(
                text,
                "| {op} | {dtype} | {} | {} | {} | {} | {} |",
                row.programs,
                row.exact,
                equal[0],
                equal[1],
                rest.join("; ")
            );
        }
        let all = total(records.iter().filter(|record| products.contains(&record.product)));
        let equal = [Reference::Tflm, Reference::LitertRef].map(|reference| all.share(reference));
        let _ = writeln!(
            text,
            "| **all** | | {} | {} | {} | {} | {} |",
            all.programs,
            all.exact,
            equal[0],
            equal[1],
            all.explained()
        );
        let forms = weight_forms(records.iter().filter(|record| products.contains(&record.product)));
        if !forms.is_empty() {
            let forms: Vec<String> = forms
                .iter()
                .map(|(form, [programs, exact])| format!("{form} {exact} of {programs}"))
                .collect();
            let _ = writeln!(
                text,
                "\nWeight formats, and how many of the programs with them are exact: {}. *Sparse* is 2:4.",
                forms.join(", ")
            );
        }
        if !reasons.is_empty() {
            let _ = writeln!(text, "\nReasons:\n");
            for (number, reason) in (1..).zip(&reasons) {
                let _ = writeln!(text, "{number}. {reason}");
            }
        }
    }
    text
}

impl Heading {
    fn text(&self, records: &[Record]) -> String {
        let cases: std::collections::BTreeSet<(Product, &str)> =
            records.iter().map(|record| (record.product, record.case.name.as_str())).collect();
        let mut accelerators: Vec<&str> = records.iter().map(|record| record.accelerator.as_str()).collect();
        accelerators.sort_unstable();
        accelerators.dedup();
        let version = |package: &str| self.packages.get(package).map_or("", String::as_str);
        format!(
            "# Conformance

Generated networks of one operator and chains of several (`conformance/`), compiled by Vela, run on both engines of the model of the NPU,
which agree on every bit of every output, and compared with TensorFlow Lite Micro and LiteRT. Made by

    {command}

with seed {seed}, Vela {vela}, tflite-micro {tflm} and LiteRT {litert}: {cases} networks, {summary}.

A *program* is a network compiled for one accelerator; they take turns: {accelerators}. Memory modes, I/O modes, `--optimise Size` and
small caches take turns, too. Each program runs four sets of inputs: full range, extremes mixed in, a narrow band around the zero point,
and operands that nearly cancel. *Exact* is equal to the bit to TFLM or to LiteRT's reference kernels (REF); for SUM and ELU also to
LiteRT's optimised kernels, because its reference kernel for SUM is wrong and it has none for ELU. *= TFLM* and *= REF* count the programs
equal to that one, of those that it runs. The last column has, for the programs that are equal to none, their number, the largest
difference from the reference that comes nearest, and the reason, each of which was established by predicting what is computed. CHAIN,
CHAIN_LARGE and BIG_WEIGHTS are networks of several layers.

    cargo run --release -p npukit-conformance -- --case OP:dtype:SEED --product u55

measures a single case; the names of the files that `python -m conformance.generate` writes end with their seeds.
",
            command = self.command,
            seed = self.seed,
            vela = version("ethos-u-vela"),
            tflm = version("tflite-micro"),
            litert = version("ai-edge-litert"),
            cases = cases.len(),
            summary = summary(records),
            accelerators = accelerators.join(", "),
        )
    }
}

/// "12/13", or "no kernel".
struct Share(usize, usize);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 == 0 { f.write_str("no kernel") } else { write!(f, "{}/{}", self.0, self.1) }
    }
}

impl Row {
    fn share(&self, reference: Reference) -> Share {
        let count = |of: &BTreeMap<Reference, usize>| of.get(&reference).copied().unwrap_or_default();
        Share(count(&self.equal), count(&self.runs))
    }

    fn explained(&self) -> usize {
        self.programs - self.exact - self.failures
    }

    fn add(&mut self, record: &Record) {
        self.programs += 1;
        if let Outcome::Compared(comparisons) = &record.outcome {
            for one in &comparisons.with {
                *self.runs.entry(one.reference).or_default() += 1;
                *self.equal.entry(one.reference).or_default() += usize::from(one.mismatches == 0);
            }
        }
        let (reason, difference) = match judge::judge(record) {
            Verdict::Exact(_) => {
                self.exact += 1;
                return;
            }
            Verdict::Explained { max_abs_diff, reason } => (reason, max_abs_diff),
            Verdict::NotCompiled(reason) => (format!("not compiled: {reason}"), None),
            Verdict::NotModelled(field) => (format!("refused by the model: {field}"), None),
            Verdict::Failure(reason) => {
                self.failures += 1;
                (format!("UNEXPLAINED: {reason}"), None)
            }
        };
        let entry = self.rest.entry(reason).or_insert((0, None));
        entry.0 += 1;
        entry.1 = match (entry.1, difference) {
            (Some(one), Some(other)) => Some(f64::max(one, other)),
            (one, other) => one.or(other),
        };
    }
}
