//! Links between pages are valid, and the table of contents has every page.

use std::{collections::BTreeSet, path::Path};

use crate::{file, pages, root};

/// The targets of the Markdown links in `text`, without code.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        if !fenced {
            prose += line;
            prose.push('\n');
        }
    }
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// The anchors of the headings of `text`, as forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &str| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    text.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}

/// The broken links of the page `name` with this `text`.
fn broken_links(name: &str, text: &str) -> Vec<String> {
    let folder = Path::new(name).parent().unwrap();
    let leads_somewhere = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { root().join(name) } else { root().join(folder).join(path) };
        let has_anchor =
            || std::fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor));
        path.exists() && (anchor.is_empty() || has_anchor())
    };
    links(text)
        .into_iter()
        .filter(|target| !target.starts_with("https://") && !leads_somewhere(target))
        .map(|target| format!("{name}: {target}"))
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let other_pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/SUMMARY.md"];
    let all = pages().into_iter().chain(other_pages.map(str::to_owned));
    let broken: Vec<_> = all.flat_map(|page| broken_links(&page, &file(&page))).collect();
    assert_eq!(broken, [] as [&str; 0]);
    let text = "[a](gone.md) [b](README.md#nothing) `[c](x)`\n```\n[d](y)\n```\n";
    assert_eq!(
        broken_in(text),
        ["README.md: gone.md", "README.md: README.md#nothing", "README.md: x"]
    );
}

fn broken_in(text: &str) -> Vec<String> {
    broken_links("README.md", text)
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let mut listed: Vec<_> =
        links(&file("docs/SUMMARY.md")).iter().map(|page| format!("docs/{page}")).collect();
    listed.sort();
    assert_eq!(listed, pages());
}
