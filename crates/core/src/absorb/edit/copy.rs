//! Makes a separate document for one path of a document with several paths.

use std::cmp::Reverse;

use super::{EditFailure, YamlText, written_entry};
use crate::{
    value::Json,
    yaml::Node,
    yaml::write::{self as writer, MapItem},
};

/// Copies `document`, which is part of `text`, for its path at `path_index`. The copy starts with
/// the line `---`.
///
/// # Errors
/// If the document is in flow style, or starts in the middle of a line.
pub(in crate::absorb) fn copy_document(
    text: &str,
    document: &Node,
    path_index: usize,
) -> Result<String, EditFailure> {
    let yaml = YamlText(text);
    let range = yaml.line_start(document.span.start)..yaml.node_end(document);
    let failure = yaml.misplaced_failure(range.start);
    if yaml.is_flow(document) || range.start != document.span.start {
        let reason = "it is in flow style, or shares a line with other text";
        return Err(YamlText::new_failure(reason, document.span.start));
    }
    let (paths_key, paths) = written_entry(document, "paths").ok_or(failure)?;
    let mut replacement_items = Vec::new();
    if let Some(item) = paths.items().get(path_index) {
        replacement_items.push(MapItem::value("path", item.to_json()));
    } else if let Some((key, path_value)) = paths.entries().get(path_index) {
        let mut params = document["params"].to_json().as_object().cloned().unwrap_or_default();
        let has_params = path_value.entries().iter().any(|(key, _)| key.name != "previously");
        params.extend(path_value.to_json().as_object().cloned().unwrap_or_default());
        let former_paths = params.shift_remove("previously");
        replacement_items.push(MapItem::value("path", &*key.name));
        replacement_items.extend(former_paths.map(|former| MapItem::value("previously", former)));
        replacement_items
            .extend(has_params.then(|| MapItem::value("params", Json::Object(params))));
    }
    let sets_params = replacement_items.iter().any(|item| item.key == "params");
    let replacement_text: String =
        replacement_items.iter().map(|item| writer::render_item(item, 0)).collect();
    let mut changes =
        vec![(paths_key.span.start..yaml.entry_end(paths_key, paths), replacement_text.trim_end())];
    if let Some((key, params)) = written_entry(document, "params").filter(|_| sets_params) {
        let end = yaml.line_end(yaml.entry_end(key, params));
        changes.push((key.span.start..(end + 1).min(range.end), ""));
    }
    changes.sort_by_key(|(range, _)| Reverse(range.start));
    let mut copy = text[range.clone()].to_owned();
    for (changed_range, replacement) in changes {
        copy.replace_range(
            changed_range.start - range.start..changed_range.end - range.start,
            replacement,
        );
    }
    Ok(format!("---\n{}\n", copy.trim_end()))
}
