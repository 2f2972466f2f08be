//! The map of a file: what every byte is.

use serde::Serialize;

/// How well a stretch of bytes is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Understanding {
    /// Read field by field.
    Read,
    /// Known by its extent and purpose; the content is the hardware's (commands, programs, weights).
    Opaque,
    /// Zeros between two things.
    Padding,
    /// Not zero and not claimed by anything that is known.
    Unknown,
}

/// A stretch of bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// How well it is understood.
    pub understanding: Understanding,
    /// What it is.
    pub what: String,
}

/// The map: spans in order, without a gap, from the first byte to the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The spans.
    pub spans: Vec<Span>,
    /// Bytes read field by field.
    pub read: u64,
    /// Bytes known by their extent.
    pub opaque: u64,
    /// Zeros between things.
    pub padding: u64,
    /// Bytes not accounted for.
    pub unknown: u64,
}

impl Coverage {
    /// Makes the map of a file from the stretches that are claimed; what lies between becomes padding or unknown.
    ///
    /// Claims may come in any order. A claim that starts inside another loses the shared part, so that the map always
    /// tiles the file.
    pub(super) fn new(bytes: &[u8], mut claims: Vec<Span>) -> Coverage {
        claims.sort_by_key(|span| (span.start, span.end));
        let length = bytes.len() as u64;
        let mut coverage = Coverage::default();
        let mut at = 0;
        for mut claim in claims {
            claim.start = claim.start.max(at);
            claim.end = claim.end.min(length);
            if claim.start >= claim.end {
                continue;
            }
            coverage.gap(bytes, at, claim.start);
            at = claim.end;
            coverage.push(claim);
        }
        coverage.gap(bytes, at, length);
        coverage
    }

    fn gap(&mut self, bytes: &[u8], start: u64, end: u64) {
        if start >= end {
            return;
        }
        let zero =
            bytes.get(start as usize..end as usize).is_some_and(|gap| gap.iter().all(|byte| *byte == 0));
        let (understanding, what) = match zero {
            true => (Understanding::Padding, "zeros"),
            false => (Understanding::Unknown, "claimed by nothing"),
        };
        self.push(Span { start, end, understanding, what: what.to_owned() });
    }

    fn push(&mut self, span: Span) {
        let total = match span.understanding {
            Understanding::Read => &mut self.read,
            Understanding::Opaque => &mut self.opaque,
            Understanding::Padding => &mut self.padding,
            Understanding::Unknown => &mut self.unknown,
        };
        *total += span.end - span.start;
        match self.spans.last_mut() {
            // Hundreds of neighbouring pieces of one region are one line in the report.
            Some(last)
                if last.end == span.start
                    && last.what == span.what
                    && last.understanding == span.understanding =>
            {
                last.end = span.end;
            }
            _ => self.spans.push(span),
        }
    }

    /// Whether the spans tile a file of this length.
    pub fn is_whole(&self, length: u64) -> bool {
        let mut at = 0;
        self.spans.iter().all(|span| {
            let fits = span.start == at && span.end > at;
            at = span.end;
            fits
        }) && at == length
            && self.read + self.opaque + self.padding + self.unknown == length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_in_any_order_tile_the_file() {
        let bytes = [0, 0, 1, 2, 0, 0, 7, 0, 0, 0];
        let claim = |start, end| Span { start, end, understanding: Understanding::Read, what: "x".into() };
        let coverage = Coverage::new(&bytes, vec![claim(7, 40), claim(2, 4), claim(3, 4), claim(9, 9)]);
        assert!(coverage.is_whole(10));
        let kinds: Vec<_> =
            coverage.spans.iter().map(|span| (span.start, span.end, span.understanding)).collect();
        use Understanding as U;
        assert_eq!(kinds, [(0, 2, U::Padding), (2, 4, U::Read), (4, 7, U::Unknown), (7, 10, U::Read)]);
        assert!(Coverage::new(&[], vec![claim(0, 1)]).is_whole(0));
    }
}
