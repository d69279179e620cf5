//! Faults of entries that are found without the service. Their texts are data, in `faults.yaml`.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{diagnostic::Severity, yaml};

/// The severity, the code, the message and the help of each fault, by its name.
type Texts = BTreeMap<&'static str, (Severity, &'static str, &'static str, &'static str)>;

static TEXTS: LazyLock<Texts> = LazyLock::new(|| yaml::built_in!("kind/faults"));

/// A fault of an entry that is found without the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How bad it is.
    pub severity: Severity,
    /// The code of the message, for example `masked-value`.
    pub code: &'static str,
    /// The field that has the fault.
    pub field: &'static str,
    /// The key within the field, if only that has it.
    pub within: Option<&'static str>,
    /// The other field that the fault concerns.
    pub other: Option<&'static str>,
    /// What is wrong: a lower-case fragment. It never quotes a value that may be secret.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Fault {
    /// The fault of `field` that is called `name` in the file.
    pub fn of(name: &str, field: &'static str) -> Self {
        Self { field, ..Self::of_entry(name) }.fill("field", field)
    }

    /// The fault of an entry as a whole that is called `name` in the file.
    pub fn of_entry(name: &str) -> Self {
        let (severity, code, message, help) = TEXTS[name];
        let (message, help) = (message.to_owned(), help.to_owned());
        Self { severity, code, field: "", within: None, other: None, message, help }
    }

    /// The fault with the other field that it concerns.
    pub fn with(self, other: &'static str) -> Self {
        Self { other: Some(other), ..self.fill("other", other) }
    }

    /// The fault with `text` for this name in braces.
    pub fn fill(self, name: &str, text: &str) -> Self {
        let place = format!("{{{name}}}");
        let [message, help] = [self.message, self.help].map(|of| of.replace(&place, text));
        Self { message, help, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::codes;

    #[test]
    fn each_code_is_explained() {
        let unexplained = TEXTS.values().find(|(_, code, ..)| codes::of(code).is_none());
        assert_eq!(unexplained, None);
    }

    /// The texts of faults are found by their names.
    #[test]
    fn each_text_is_used() {
        let code = [
            include_str!("calls.rs"),
            include_str!("checks.rs"),
            include_str!("../kinds/approval_rule.rs"),
            include_str!("../kinds/approvals.rs"),
            include_str!("../kinds/described/rules.rs"),
            include_str!("../kinds/hook.rs"),
            include_str!("../kinds/integration.rs"),
            include_str!("../kinds/member.rs"),
            include_str!("../kinds/project.rs"),
            include_str!("../kinds/protected_branch.rs"),
            include_str!("../kinds/schedule.rs"),
            include_str!("../kinds/settings.rs"),
            include_str!("../kinds/source.rs"),
            include_str!("../kinds/variable.rs"),
        ];
        let is_named = |name: &&&str| {
            let name = format!("\"{name}\"");
            code.iter().any(|code| code.contains(&name))
        };
        assert_eq!(TEXTS.keys().find(|name| !is_named(name)), None);
    }
}
