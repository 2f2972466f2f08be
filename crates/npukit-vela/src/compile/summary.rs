//! Vela's own figures about a compiled network: estimates of memory, cycles and traffic.

/// The one line of figures in the summary file Vela writes, by column name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    columns: Vec<(String, String)>,
}

impl Summary {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let names = fields(lines.next()?);
        let values = fields(lines.next()?);
        let columns = names.into_iter().zip(values).collect::<Vec<_>>();
        (!columns.is_empty()).then_some(Summary { columns })
    }

    /// All figures, in Vela's order.
    pub fn columns(&self) -> &[(String, String)] {
        &self.columns
    }

    /// A figure as text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A figure as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }
}

/// The fields of a line of comma-separated values, with quotes where a field has a comma.
pub(super) fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => {
                if let Some(field) = fields.last_mut() {
                    field.push(other);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name() {
        let summary = Summary::parse("a,\"b, c\",d\n1,x,2.5\n").unwrap();
        assert_eq!(summary.get("b, c"), Some("x"));
        assert_eq!(summary.number("d"), Some(2.5));
        assert_eq!(summary.get("e"), None);
        assert_eq!(Summary::parse("only a header\n"), None);
    }
}
