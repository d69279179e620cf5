//! Groups and projects with their steps; equal changes are shown once.

use crate::{
    address::Address,
    diff::Step,
    report::{
        canvas::{Canvas, Line, Paint},
        model::fold::{Alike, alike},
    },
    text::count,
};

use super::change;

/// How many groups and projects with the same change are named.
const NAMED: usize = 5;

/// Every group and project with its steps, in the order of the plan.
pub(super) fn projects<'s>(canvas: &mut Canvas, steps: impl IntoIterator<Item = &'s Step>) {
    let steps: Vec<_> = steps.into_iter().collect();
    for Alike { steps, others } in alike(&steps, canvas.style().full, |step| (step, None)) {
        canvas.paragraph([Line::default().put(Paint::Bold, &*steps[0].address.path)]);
        change::steps(canvas, steps, true);
        the_same(canvas, "the same change in", "more project", &others);
    }
}

/// The other objects for which the last text also holds.
pub(super) fn also<'a>(canvas: &mut Canvas, noun: &str, others: impl Iterator<Item = &'a Address>) {
    let others: Vec<_> = others.map(ToString::to_string).collect();
    the_same(canvas, "the same for", &format!("more {noun}"), &others);
}

/// A line with the first of `others`, if there are any.
fn the_same(canvas: &mut Canvas, words: &str, noun: &str, others: &[impl AsRef<str>]) {
    if !others.is_empty() {
        let named: Vec<_> = others.iter().take(NAMED).map(AsRef::as_ref).collect();
        let rest = if others.len() > NAMED { ", …; --full shows each" } else { "" };
        let text = format!("{words} {}: {}{rest}", count(others.len(), noun), named.join(", "));
        canvas.line(&Line::indented(2).put(Paint::Note, text));
    }
}
