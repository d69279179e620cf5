//! Groups and projects with their steps; equal changes of several are shown once.

use crate::{
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
    for Alike { steps, others } in alike(&steps, canvas.style().full) {
        canvas.gap();
        canvas.line(&Line::default().put(Paint::Bold, &*steps[0].address.path));
        change::steps(canvas, steps, true);
        if !others.is_empty() {
            let named = others[..others.len().min(NAMED)].join(", ");
            let rest = if others.len() > NAMED { ", …; --full shows each" } else { "" };
            let more = count(others.len(), "more project");
            let text = format!("the same change in {more}: {named}{rest}");
            canvas.line(&Line::indented(2).put(Paint::Note, text));
        }
    }
}
