//! Tests of places and of how they look.

use super::*;

fn shown(text: &str, meant: &str, hidden: &[&str]) -> String {
    let at = |part: &str| text.find(part).map(|at| at..at + part.len()).unwrap();
    let mut source = Source::new("a.yaml", text);
    source.hide(hidden.iter().map(|part| at(part)));
    let diagnostic = Diagnostic::error("type", "wrong").at(source.place(&at(meant))).label("here").help("do better");
    Diagnostics::from_iter([diagnostic]).render(Style::default())
}

#[test]
fn a_diagnostic_looks_like_cargos() {
    insta::assert_snapshot!(shown("a: 1\nb: [x, y]\n", "[x", &[]), @"");
}

#[test]
fn secrets_are_hidden() {
    insta::assert_snapshot!(shown("a: {v: canary canary, w: 1}\n", "w", &["canary canary"]), @"");
}
