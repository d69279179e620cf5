//! Copies a document with several paths for one of them.

use std::cmp::Reverse;

use super::{NoEdit, YamlText, written_entry};
use crate::{
    value::Json,
    yaml::Node,
    yaml::write::{self as writer, Item},
};

/// A document of its own for one of the several paths of `document`, which is part of `text`, with the
/// line that starts it.
///
/// # Errors
/// If it is not written line by line.
pub(in crate::absorb) fn copy_document(
    text: &str,
    document: &Node,
    path: usize,
) -> Result<String, NoEdit> {
    let yaml = YamlText(text);
    let range = yaml.line_start(document.span.start)..yaml.node_end(document);
    let lost = yaml.misplaced_error(range.start);
    if yaml.is_flow(document) || range.start != document.span.start {
        return Err(YamlText::no_edit(
            "it is written in one line with others",
            document.span.start,
        ));
    }
    let (paths_key, paths) = written_entry(document, "paths").ok_or(lost)?;
    let mut head = Vec::new();
    if let Some(item) = paths.items().get(path) {
        head.push(Item::value("path", item.to_json()));
    } else if let Some((key, at_path)) = paths.entries().get(path) {
        let mut params = document["params"].to_json().as_object().cloned().unwrap_or_default();
        let has_params = at_path.entries().iter().any(|(key, _)| key.name != "previously");
        params.extend(at_path.to_json().as_object().cloned().unwrap_or_default());
        let previously = params.shift_remove("previously");
        head.push(Item::value("path", &*key.name));
        head.extend(previously.map(|former| Item::value("previously", former)));
        head.extend(has_params.then(|| Item::value("params", Json::Object(params))));
    }
    let with_params = head.iter().any(|item| item.key == "params");
    let head: String = head.iter().map(|item| writer::item(item, 0)).collect();
    let mut changes =
        vec![(paths_key.span.start..yaml.entry_end(paths_key, paths), head.trim_end())];
    if let Some((key, params)) = written_entry(document, "params").filter(|_| with_params) {
        let end = yaml.line_end(yaml.entry_end(key, params));
        changes.push((key.span.start..(end + 1).min(range.end), ""));
    }
    changes.sort_by_key(|(range, _)| Reverse(range.start));
    let mut copy = text[range.clone()].to_owned();
    for (changed, new) in changes {
        copy.replace_range(changed.start - range.start..changed.end - range.start, new);
    }
    Ok(format!("---\n{}\n", copy.trim_end()))
}
