//! Projects with their steps; where many projects change in the same way, that is shown once.

use std::collections::BTreeMap;

use crate::{
    diff::Step,
    report::{
        Style,
        canvas::{Canvas, Line, Paint},
    },
    secret::Secrets,
    text::count,
};

use super::change;

/// Up to this many changed projects, each is shown by itself.
const FOLD_FROM: usize = 50;
/// How many projects with the same change are named.
const NAMED: usize = 5;

/// Every project with its steps, in the order of the plan.
pub(super) fn projects<'s>(canvas: &mut Canvas, steps: impl IntoIterator<Item = &'s Step>) {
    let mut projects: Vec<(&str, Vec<&Step>)> = Vec::new();
    for step in steps {
        match projects.last_mut() {
            Some((path, of_project)) if **path == *step.address.path => of_project.push(step),
            _ => projects.push((&step.address.path, vec![step])),
        }
    }
    if canvas.style().full || projects.len() <= FOLD_FROM {
        for (path, steps) in projects {
            project(canvas, path, &steps);
        }
    } else {
        folded(canvas, projects);
    }
}

fn project(canvas: &mut Canvas, path: &str, steps: &[&Step]) {
    canvas.gap();
    canvas.line(&Line::default().put(Paint::Bold, path));
    change::steps(canvas, steps, true);
}

fn folded(canvas: &mut Canvas, projects: Vec<(&str, Vec<&Step>)>) {
    // Projects change in the same way if the uncut text says the same. It is not shown; struck,
    // different secrets would look the same.
    let nothing = Secrets::default();
    let mut positions: BTreeMap<String, usize> = BTreeMap::new();
    let mut groups: Vec<(&str, Vec<&Step>, Vec<&str>)> = Vec::new();
    for (path, steps) in projects {
        let mut text = Canvas::new(Style { full: true, ..Style::default() }, &nothing);
        change::steps(&mut text, &steps, false);
        let next = groups.len();
        match *positions.entry(text.finish()).or_insert(next) {
            position if position == next => groups.push((path, steps, Vec::new())),
            position => groups[position].2.push(path),
        }
    }
    for (path, steps, same) in groups {
        project(canvas, path, &steps);
        if !same.is_empty() {
            let named = same[..same.len().min(NAMED)].join(", ");
            let rest = if same.len() > NAMED { ", …; --full shows each" } else { "" };
            let text =
                format!("the same change in {}: {named}{rest}", count(same.len(), "more project"));
            canvas.line(&Line::indented(2).put(Paint::Note, text));
        }
    }
}
