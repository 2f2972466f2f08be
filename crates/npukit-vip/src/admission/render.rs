//! The admission report as text.

use super::{Admission, OperatorAdmission, Outcome, Verdict};
use std::fmt;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Refused { rule, detail, code, .. } => {
                write!(f, "refused: {rule}")?;
                if !detail.is_empty() {
                    write!(f, " [{detail}]")?;
                }
                match code {
                    Some(code) => write!(f, " (status {code})"),
                    None => Ok(()),
                }
            }
            Verdict::Confirmed { engine, by } => write!(f, "admitted, on {engine} ({by})"),
            Verdict::Conditional { engine, on, .. } => {
                f.write_str("admitted")?;
                if let Some(engine) = engine {
                    write!(f, " to {engine}")?;
                }
                f.write_str(if on.is_empty() { " conditionally" } else { " if " })?;
                list(f, on)
            }
            Verdict::Unknown { why, on } => {
                write!(f, "unknown: {why}")?;
                if !on.is_empty() {
                    f.write_str("; ")?;
                    list(f, on)?;
                }
                Ok(())
            }
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(" and ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for OperatorAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({}): {}", self.label, self.op, self.verdict)?;
        writeln!(
            f,
            "    {} -> {}",
            self.inputs.join(" "),
            if self.outputs.is_empty() { "not given".into() } else { self.outputs.join(" ") }
        )?;
        for step in &self.steps {
            let mark = match step.outcome {
                Outcome::Pass => "pass",
                Outcome::Refuse => "NO",
                Outcome::Skip => "skip",
                Outcome::Unknown => "?",
            };
            writeln!(f, "    {mark:<5}{} [{}]: {}", step.rule, step.certainty, step.detail)?;
        }
        for near in &self.nearest {
            write!(f, "    would pass: {} ({})", near.row, near.changes.join(", "))?;
            if let Some(label) = &near.hw_generation {
                write!(f, ", hardware {label} or newer")?;
            }
            if near.parameters_must_fit {
                f.write_str(", if the scales fit")?;
            }
            if !near.from_tim_vx {
                f.write_str(", not from TIM-VX")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ovxlib {}", self.source, self.ovxlib)?;
        match self.tables_of {
            Some(version) if version == self.ovxlib => {}
            Some(version) => write!(f, " (tables and checks of {version}, {})", self.checks_certainty)?,
            None => f.write_str(" (no tables)")?,
        }
        match self.target {
            Some(target) => {
                let name = crate::chip::by_target(target).map_or("not a known chip", |chip| chip.name);
                writeln!(f, ", target {target:#x} ({name})")?;
            }
            None => writeln!(f, ", no target given")?,
        }
        for rewrite in &self.rewrites {
            writeln!(f, "  {}: {} becomes {} ({})", rewrite.tensor, rewrite.from, rewrite.to, rewrite.rule)?;
        }
        for operator in &self.operators {
            write!(f, "  {}", operator.to_string().replace("\n    ", "\n      "))?;
        }
        let words = ["refused", "confirmed", "conditional", "unknown"];
        let counts: Vec<String> = words.iter().map(|word| format!("{} {word}", self.count(word))).collect();
        writeln!(f, "{} operators: {}", self.operators.len(), counts.join(", "))?;
        if self.operators.iter().any(|operator| operator.ovxlib == Outcome::Refuse) {
            writeln!(f, "ovxlib refuses the whole graph: one refused node fails all of it")?;
        }
        Ok(())
    }
}
