//! What a command answers: text for people, an object for scripts.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::Value;

/// A command's answer.
pub(super) struct Answer {
    /// Exit status 0 or 1.
    pub(super) yes: bool,
    report: Box<dyn Report>,
}

trait Report {
    fn text(&self) -> String;
    fn json(&self) -> Value;
}

impl<T: Serialize + Display> Report for T {
    fn text(&self) -> String {
        self.to_string()
    }

    fn json(&self) -> Value {
        serde_json::to_value(self).expect("reports have text keys and no fallible parts")
    }
}

impl Answer {
    /// Done, or yes.
    pub(super) fn yes(report: impl Serialize + Display + 'static) -> Answer {
        Answer::new(true, report)
    }

    pub(super) fn new(yes: bool, report: impl Serialize + Display + 'static) -> Answer {
        Answer { yes, report: Box::new(report) }
    }

    pub(super) fn text(&self) -> String {
        self.report.text()
    }

    pub(super) fn json(&self) -> Value {
        self.report.json()
    }
}

/// One object, one line.
pub(super) fn print_json(object: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{object}")?;
    out.flush()
}

/// Text with its styles where the terminal takes them.
pub(super) fn print_text(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.is_empty() && !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

pub(super) fn good(text: impl Display) -> String {
    styled(AnsiColor::Green.on_default().bold(), text)
}

pub(super) fn bad(text: impl Display) -> String {
    styled(AnsiColor::Red.on_default().bold(), text)
}

pub(super) fn caution(text: impl Display) -> String {
    styled(AnsiColor::Yellow.on_default().bold(), text)
}

pub(super) fn heading(text: impl Display) -> String {
    styled(Style::new().bold(), text)
}

fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// "1 input", "2 inputs".
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Rows of cells as columns two spaces apart, each row indented. The last cell of a row isn't padded.
pub(super) fn table(rows: &[Vec<String>], indent: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| column + 1 < row.len()).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let padding = if last { 0 } else { widths[column].saturating_sub(cell.chars().count()) + 2 };
            // Numbers stand right, words left.
            if cell.starts_with(|first: char| first.is_ascii_digit())
                && !last
                && !cell.contains(['x', ' ', '['])
            {
                line.push_str(&" ".repeat(padding - 2));
                line.push_str(cell);
                line.push_str("  ");
            } else {
                line.push_str(cell);
                line.push_str(&" ".repeat(padding));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
