//! Checks that the files that manifests name can be read.

use std::path::{Component, Path};

use super::{ContainerCheck, place_fault};
use crate::{
    desired::Container,
    diagnostic::Severity,
    manifest::faults::{LocatedFault, NodePosition, placeholders, suggest_for_text, texts},
    secret::{Reference, strip_newline},
    value::Value,
};

impl ContainerCheck<'_> {
    /// Reports files that cannot be read. For a file to upload, this is an error: such a file is in
    /// Git next to the manifests, and `apply` must not fail halfway. For a secret file, this is a
    /// warning: the job that applies may create the file.
    pub(super) fn check_files(&mut self, container: &Container) {
        let Some(reader) = &self.context.file_reader else { return };
        for (address, origin, value) in container.secrets_and_files() {
            let is_secret = matches!(value, Value::Secret(_));
            for source in value.sources() {
                let Reference::File(path) = source else { continue };
                // `check_reference` reports paths outside the folder.
                let why = reader.read_file(&path).err().filter(|_| is_inside_folder(&path));
                let (Some(why), position) = (why, NodePosition::key(&origin)) else { continue };
                let sibling_path = Path::new(&*origin.file).with_file_name(&path);
                let problem_texts = match (is_secret, sibling_path.is_file()) {
                    (true, true) => texts::MISPLACED_SECRET_FILE,
                    (true, false) => texts::MISSING_SECRET_FILE,
                    (false, true) => texts::MISPLACED_FILE,
                    (false, false) => texts::MISSING_FILE,
                };
                let fault = self.faults.report(problem_texts, position, placeholders![why]);
                fault.set_label(address.to_string());
                if let Some(help) = suggest_for_text("file", &path) {
                    fault.set_help(help);
                }
            }
        }
        self.check_masked_files(container);
    }

    /// Warns about masked variables whose files contain a value that cannot be masked, for example
    /// several lines. This is not an error, because the job that applies may replace the file.
    fn check_masked_files(&mut self, container: &Container) {
        let Some(reader) = &self.context.file_reader else { return };
        let sections = container.sections.iter();
        let variables = sections.filter(|section| section.kind.spec("masked").is_some());
        for (kind, entry) in
            variables.flat_map(|section| section.entries.iter().map(|entry| (section.kind, entry)))
        {
            let is_masked = ["masked", "masked_and_hidden"].iter().any(|name| {
                entry.fields.get(name).is_some_and(|field| field.value.flag() == Some(true))
            });
            let Some(value_field) = entry.fields.get("value").filter(|_| is_masked) else {
                continue;
            };
            let Value::Secret(Reference::File(path)) = &value_field.value else { continue };
            let Some(text) =
                reader.read_file(path).ok().and_then(|bytes| String::from_utf8(bytes).ok())
            else {
                continue;
            };
            let mut values = entry.values();
            values.insert("value".to_owned(), strip_newline(&text).into());
            kind.check(&values, false, &mut |fault| {
                if fault.code == "masked-value" {
                    let fault = place_fault(fault, NodePosition::key(&value_field.origin));
                    let (severity, code) = (Severity::Warning, "reference");
                    self.faults
                        .push(LocatedFault { severity, code, ..fault })
                        .set_label("with the present content of the file");
                }
            });
        }
    }
}

/// True if `path` is relative, does not leave its folder, is not a URL, and has no control
/// characters.
pub(in crate::manifest) fn is_inside_folder(path: &str) -> bool {
    let mut components = Path::new(path).components();
    !path.is_empty()
        && !path.contains("://")
        && !path.contains(char::is_control)
        && components.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
