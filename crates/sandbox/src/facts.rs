//! The rules that the sandbox follows, and their sources.
//!
//! `facts.md` has one line per rule: a name, the source, a statement. The contract tests refer to
//! rules by name, and a test checks that each rule is tested. If a rule is inferred, or the
//! reference and the real service disagree, the row names the dialect switch that makes the sandbox
//! answer the other way: a field of [`Profile`](super::Profile), see
//! [`Profile::dialects`](super::Profile::dialects).

use std::fmt;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// The source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactSource {
    /// The reference: chapter and section.
    Reference(&'static str),
    /// The real service; the reference is silent.
    Service,
    /// The service's own code at release 18.9. It outranks the reference for that release; if they
    /// contradict each other, the rule names the release from which it holds.
    Code,
    /// Neither; the sandbox chose.
    Inferred,
}

impl fmt::Display for FactSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference(section) => write!(formatter, "reference {section}"),
            Self::Service => formatter.write_str("service"),
            Self::Code => formatter.write_str("code of 18.9"),
            Self::Inferred => formatter.write_str("inferred"),
        }
    }
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Its name in tests.
    pub name: &'static str,
    /// Its source.
    pub source: FactSource,
    /// The rule, in one line.
    pub says: &'static str,
    /// The dialect that answers the other way.
    pub switch: Option<&'static str>,
}

impl fmt::Display for Fact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.name, self.source, self.says)
    }
}

impl Fact {
    /// The rule in a line such as "- `name` (reference 1, 8): text [dialect name]"; `None` for
    /// other lines.
    fn read(line: &'static str) -> Option<Self> {
        let (name, rest) = line.strip_prefix("- `")?.split_once("` (")?;
        let (source, says) = rest.split_once("): ")?;
        let source = match source {
            "service" => FactSource::Service,
            "code of 18.9" => FactSource::Code,
            "inferred" => FactSource::Inferred,
            other => FactSource::Reference(other.strip_prefix("reference ")?),
        };
        let switched = says.strip_suffix(']').and_then(|says| says.split_once(" [dialect "));
        let (says, switch) = switched.map_or((says, None), |(says, switch)| (says, Some(switch)));
        Some(Self { name, source, says, switch })
    }
}

/// All rules, as in `undrift sandbox --facts`: a line each, then the counts by source.
#[must_use]
pub fn table() -> String {
    let name_width = FACTS.iter().map(|fact| fact.name.len()).max().unwrap_or(0);
    let source_width = FACTS.iter().map(|fact| fact.source.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut counts = [0; 4];
    for fact in FACTS.iter() {
        counts[match fact.source {
            FactSource::Reference(_) => 0,
            FactSource::Service => 1,
            FactSource::Code => 2,
            FactSource::Inferred => 3,
        }] += 1;
        let switch = fact.switch.map(|switch| format!(" [dialect {switch}]")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:name_width$}  {:source_width$}  {}{switch}",
            fact.name,
            fact.source.to_string(),
            fact.says
        );
    }
    let disputed = FACTS.iter().filter(|fact| fact.switch.is_some()).count();
    let [reference, service, code, inferred] = counts;
    let _ = writeln!(
        text,
        "\n{} rules: {reference} from the reference, {service} from the real service, {code} from its code at 18.9, {inferred} inferred; {disputed} have a dialect switch",
        FACTS.len()
    );
    text
}

/// All rules, grouped by subject.
pub static FACTS: LazyLock<Vec<Fact>> =
    LazyLock::new(|| include_str!("facts.md").lines().filter_map(Fact::read).collect());

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Profile;

    #[test]
    fn names_are_unique_and_switches_are_those_of_the_profile() {
        let names: BTreeSet<_> = FACTS.iter().map(|fact| fact.name).collect();
        assert_eq!(names.len(), FACTS.len());
        let items = include_str!("facts.md").lines().filter(|line| line.starts_with('-'));
        assert_eq!(items.count(), FACTS.len(), "an item that cannot be read");
        let named: BTreeSet<_> = FACTS.iter().filter_map(|fact| fact.switch).collect();
        let switches: BTreeSet<_> = Profile::dialects().into_iter().map(|(name, _)| name).collect();
        assert_eq!(named, switches);
        for fact in FACTS.iter() {
            assert!(
                fact.source != FactSource::Inferred || fact.switch.is_some(),
                "{fact} has no other way"
            );
        }
    }

    #[test]
    fn the_table_ends_with_its_counts() {
        let text = table();
        assert_eq!(text.lines().count(), FACTS.len() + 2);
        let counts = text.lines().last().unwrap_or_default();
        assert!(counts.starts_with(&format!("{} rules: ", FACTS.len())), "{counts}");
    }
}
