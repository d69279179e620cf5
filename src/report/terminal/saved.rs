//! Saved plans, and the changes since they were saved.

use super::{change, draw_heading, fold};
use crate::{
    plan::{
        Counts,
        saved::{ChangeSides, FieldDifference, PlanComparison, SealedPlan, StaleObject},
    },
    report::{
        Canvas, Line, Paint, ReportedRun, TextStyle,
        model::{fold_equal, step::object_prefix, summary::describe_counts},
    },
    secret::Secrets,
    text::count,
};

/// Renders a saved plan like a plan.
pub fn render_saved_plan(sealed: &SealedPlan, style: TextStyle) -> String {
    let no_secrets = Secrets::default();
    let mut canvas = Canvas::new(style, &no_secrets);
    let plan = &sealed.plan;
    let run = ReportedRun {
        target: plan.target.clone(),
        caller: plan.caller.clone(),
        sandbox: plan.sandbox,
        ..ReportedRun::default()
    };
    draw_heading(&mut canvas, "saved plan", &run);
    canvas.add_line(&Line::with_text(Paint::Dim, format!("made {}", plan.created_at)));
    canvas.add_line(&Line::with_text(Paint::Dim, format!("id {}", sealed.id)));
    let steps = plan.shown_steps();
    fold::draw_steps(&mut canvas, &steps);
    canvas.add_gap();
    let counts = Counts::from_steps(steps.iter());
    let counts_text = Some(describe_counts(&counts)).filter(|text| !text.is_empty());
    let counts_text = counts_text.as_deref().unwrap_or("no changes");
    let text = format!("{counts_text}; {}", count(counts.calls, "call"));
    canvas.add_line(&Line::with_text(Paint::Bold, "saved plan: ").text(text));
    canvas.add_line(&Line::with_text(
        Paint::Dim,
        "apply plans again, checks guards again, and carries out the steps that are still needed",
    ));
    canvas.finish()
}

/// Renders on an empty `canvas` the changes since a plan was saved, and the number of steps that
/// are not needed any more. The text is empty if there are neither.
pub fn stale_text(mut canvas: Canvas<'_>, comparison: &PlanComparison) -> String {
    if comparison.stale.is_empty() && comparison.already.is_empty() {
        return String::new();
    }
    if !comparison.stale.is_empty() {
        canvas.add_line(&Line::with_text(Paint::Error, "changed since the plan was saved:"));
    }
    let objects_by_path: Vec<_> =
        comparison.stale.chunk_by(|a, b| a.address.path == b.address.path).collect();
    let folded = fold_equal(&objects_by_path, canvas.style().is_full, |stale_objects| {
        let texts = stale_objects.iter().map(|StaleObject { address, reason, fields }| {
            format!("{} {reason} {fields:?}", object_prefix(address))
        });
        texts.collect::<Vec<_>>()
    });
    for (stale_objects, others) in folded {
        canvas.add_line(&Line::indented(2).put(Paint::Bold, &*stale_objects[0].address.path));
        for StaleObject { address, reason, fields } in *stale_objects {
            canvas.add_line(&Line::indented(4).text(object_prefix(address) + reason));
            fields.iter().for_each(|field| draw_difference(&mut canvas, field));
        }
        fold::draw_others(
            &mut canvas,
            "path",
            others.iter().map(|stale_objects| &stale_objects[0].address),
        );
    }
    if !comparison.already.is_empty() {
        let steps = count(comparison.already.len(), "step");
        let text = format!("not needed any more: {steps} of the saved plan");
        canvas.add_line(&Line::with_text(Paint::Note, text));
    }
    canvas.finish()
}

fn draw_difference(canvas: &mut Canvas, difference: &FieldDifference) {
    let FieldDifference { field, saved, now } = difference;
    for (title, sides) in [("saved", saved), ("now", now)] {
        let line = Line::indented(6).text(format!("{field}, {title}: ")).set_hanging_indent();
        canvas.add_line(&match sides {
            Some(ChangeSides { before, after }) => line
                .append(change::value_line(before))
                .put(Paint::Change, " → ")
                .append(change::value_line(after)),
            None => line.put(Paint::Dim, "(no change)"),
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::text::is_unsafe;

    /// A saved plan with `text` in every place for free text.
    fn sealed_plan(text: &str) -> SealedPlan {
        let origin = json!({"file": text, "line": 1, "column": 1, "layer": "project"});
        let json_side = |value: Json| json!({"is": "value", "value": value});
        let json_change = |after: Json| json!({"field": text, "before": json_side(json!([text])), "after": after, "origin": origin});
        let after_values = [
            json_side(json!({text: text})),
            json_side(json!(format!("one\n{text}\n"))),
            json!({"is": "secret", "value": text}),
            json!({"is": "file", "value": text}),
            json!({"is": "hidden"}),
        ];
        let json_step = |action: &str| {
            json!({
                "scope": "project", "path": text, "section": "variables", "entry": text,
                "action": action, "replaces": true, "possible": true, "origin": origin,
                "changes": after_values.clone().map(json_change),
                "calls": [{
                    "operation": "variable-create", "path": text, "restores": false, "awaits": false,
                    "body": {text: {"is": "value", "value": text}},
                }],
            })
        };
        let steps = ["create", "update", "delete"].map(json_step);
        serde_json::from_value(json!({
            "undrift": "saved_plan", "format_version": 0, "tool_version": text, "created_at": text,
            "target": text, "caller": text, "sandbox": false, "only": [], "exclude": [], "resend": [],
            "containers": [], "steps": steps, "id": text,
        }))
        .unwrap()
    }

    #[test]
    fn control_characters_are_escaped() {
        for full in [false, true] {
            let style = TextStyle { is_full: full, ..TextStyle::default() };
            let shown = render_saved_plan(&sealed_plan("a\u{9b}31m\u{202e}b\u{1b}[2Jc\rd"), style);
            assert!(!shown.contains(|c| is_unsafe(c) && c != '\n'), "{shown:?}");
        }
    }

    #[test]
    fn changes_are_shown_beside_the_saved_ones() {
        let shown_value = |json: Json| crate::diff::Shown::Value(json);
        let new_sides = |before: &str, after: &str| {
            Some(ChangeSides {
                before: shown_value(json!(before)),
                after: shown_value(json!(after)),
            })
        };
        let new_difference = |saved| FieldDifference {
            field: "description".into(),
            saved,
            now: new_sides("mine", "new"),
        };
        let project = crate::address::Address::container("acme/shop".into());
        let stale_object =
            |address, reason: &str, fields| StaleObject { address, reason: reason.into(), fields };
        let mut comparison = PlanComparison::default();
        comparison.already.push(project.with_section("archived"));
        comparison.stale.extend([
            stale_object(project.clone(), "its manifests have changed", Vec::new()),
            stale_object(
                project.with_section("settings"),
                "it changed since the plan was saved",
                vec![new_difference(new_sides("old", "new")), new_difference(None)],
            ),
        ]);
        let no_secrets = Secrets::default();
        let canvas = || Canvas::new(TextStyle::default(), &no_secrets);
        let text = super::stale_text(canvas(), &comparison);
        assert_eq!(
            text,
            "changed since the plan was saved:
  acme/shop
    its manifests have changed
    settings: it changed since the plan was saved
      description, saved: old → new
      description, now: mine → new
      description, saved: (no change)
      description, now: mine → new
not needed any more: 1 step of the saved plan
"
        );
        assert_eq!(super::stale_text(canvas(), &PlanComparison::default()), "");
    }
}
