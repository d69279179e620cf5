//! The output of `undrift check`.

use super::Loaded;
use crate::{desired::Desired, diagnostic::Style, field::Scope, text};

impl Loaded {
    /// The output of `undrift check`, and its exit code: 3 if there are errors, otherwise 0.
    pub fn report(&self, style: Style) -> (String, u8) {
        let mut report = self.diagnostics.render(style);
        let summary = self.diagnostics.summary();
        let (line, code) = match &self.desired {
            Some(desired) => {
                let summary = summary.map_or_else(
                    || "no problems found".to_owned(),
                    |summary| format!("no errors, {summary}"),
                );
                (format!("{} in {}: {summary}", counted(desired), self.selected()), 0)
            }
            None => (format!("{}: {}", self.all(), summary.unwrap_or_default()), 3),
        };
        report.push_str(&line);
        report.push('\n');
        (report, code)
    }

    /// The number of selected files, of all files.
    fn selected(&self) -> String {
        match &self.root_name {
            Some(_) => format!("{} of {}", self.named, self.all()),
            None => self.all(),
        }
    }

    /// The number of all files that were read.
    fn all(&self) -> String {
        let files = text::count(self.files.len(), "file");
        match &self.root_name {
            Some(root) => format!("{files} below the root `{root}`"),
            None => files,
        }
    }
}

/// The number of declared containers in words: at least projects, and other scopes that have some.
pub fn counted(desired: &Desired) -> String {
    let count = |scope: Scope| text::count(desired.count(scope), scope.noun());
    match desired.count(Scope::Group) {
        0 => count(Scope::Project),
        _ if desired.count(Scope::Project) == 0 => count(Scope::Group),
        _ => format!("{} and {}", count(Scope::Group), count(Scope::Project)),
    }
}
