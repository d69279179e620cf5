//! The rules that the sandbox follows, and their sources.
//!
//! `facts.md` has one line per rule: a name, the source, a statement. The contract tests refer to
//! rules by name, and a test checks that each rule is tested. A rule may be inferred, or the
//! reference and the real service may disagree. Then the line names the dialect switch for the
//! opposite behaviour, which is a field of [`Profile`](super::Profile).

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The name of the rule in tests.
    pub name: &'static str,
    /// The source of the rule: `reference` with chapter and section, or `service` for observations
    /// of the real service. `code of 18.9` is the code of that release, and `inferred` means that
    /// no source exists. If the code contradicts the reference, the statement names the first
    /// release to which the rule applies.
    pub source: &'static str,
    /// The rule, in one line.
    pub statement: &'static str,
    /// The dialect switch for the opposite behaviour.
    pub dialect: Option<&'static str>,
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.name, self.source, self.statement)
    }
}

impl Fact {
    /// Parses a line such as "- `name` (reference 1, 8): text [dialect name]"; `None` for other lines.
    fn parse(line: &'static str) -> Option<Self> {
        let (name, source_and_statement) = line.strip_prefix("- `")?.split_once("` (")?;
        let (source, statement) = source_and_statement.split_once("): ")?;
        let split_statement =
            statement.strip_suffix(']').and_then(|statement| statement.split_once(" [dialect "));
        let (statement, dialect) = split_statement
            .map_or((statement, None), |(statement, dialect)| (statement, Some(dialect)));
        Some(Self { name, source, statement, dialect })
    }
}

/// Formats all rules for `undrift sandbox --facts`: one line per rule, then the counts by source.
pub fn format_table() -> String {
    let name_width = FACTS.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    let source_width = FACTS.iter().map(|fact| fact.source.len()).max().unwrap_or(0);
    let mut text = String::new();
    for fact in FACTS.iter() {
        let dialect_text =
            fact.dialect.map(|dialect| format!(" [dialect {dialect}]")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:name_width$}  {:source_width$}  {}{dialect_text}",
            fact.name, fact.source, fact.statement
        );
    }
    let dialect_count = FACTS.iter().filter(|fact| fact.dialect.is_some()).count();
    let [reference, service, code, inferred] = ["reference ", "service", "code", "inferred"]
        .map(|source| FACTS.iter().filter(|fact| fact.source.starts_with(source)).count());
    let _ = writeln!(
        text,
        "\n{} rules: {reference} from the reference, {service} from the real service, {code} from its code at 18.9, {inferred} inferred; {dialect_count} have a dialect switch",
        FACTS.len(),
    );
    text
}

/// All rules, grouped by subject.
pub static FACTS: LazyLock<Vec<Fact>> =
    LazyLock::new(|| include_str!("facts.md").lines().filter_map(Fact::parse).collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_totals() {
        let text = format_table();
        assert_eq!(text.lines().count(), FACTS.len() + 2);
        let counts = text.lines().last().unwrap_or_default();
        assert!(counts.starts_with(&format!("{} rules: ", FACTS.len())), "{counts}");
    }
}
