//! The output of `undrift check`.

use super::LoadedManifests;
use crate::{desired::Desired, diagnostic::TextStyle, field::Scope, text};

impl LoadedManifests {
    /// The output of `undrift check`, and its exit code: 3 if there are errors, otherwise 0.
    pub fn render_report(&self, style: TextStyle) -> (String, u8) {
        let mut report = self.diagnostics.render(style);
        let summary = self.diagnostics.summary();
        let (line, exit_code) = match &self.desired {
            Some(desired) => {
                let summary = summary.map(|summary| format!("no errors, {summary}"));
                let summary = summary.as_deref().unwrap_or("no problems found");
                let count_prefix =
                    self.root_name.as_ref().map(|_| format!("{} of ", self.named_file_count));
                let (prefix, all_files) = (count_prefix.unwrap_or_default(), self.describe_files());
                (format!("{} in {prefix}{all_files}: {summary}", describe_counts(desired)), 0)
            }
            None => (format!("{}: {}", self.describe_files(), summary.unwrap_or_default()), 3),
        };
        report.push_str(&line);
        report.push('\n');
        (report, exit_code)
    }

    /// The number of files that were read, as text such as `3 files`.
    fn describe_files(&self) -> String {
        let files = text::count(self.paths.len(), "file");
        match &self.root_name {
            Some(root) => format!("{files} below the root `{root}`"),
            None => files,
        }
    }
}

/// The number of declared groups and projects as text, such as `2 groups and 1 project`. A scope
/// without containers is left out. If there are no containers, the text is `0 projects`.
fn describe_counts(desired: &Desired) -> String {
    let scopes = [Scope::Group, Scope::Project];
    let [groups, projects] = scopes.map(|scope| text::count(desired.count(scope), scope.noun()));
    match scopes.map(|scope| desired.count(scope)) {
        [0, _] => projects,
        [_, 0] => groups,
        _ => format!("{groups} and {projects}"),
    }
}
