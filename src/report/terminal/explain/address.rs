//! Explains an address: its declaration, the contribution of each layer, and the live state.

use std::sync::Arc;

use unicode_width::UnicodeWidthStr as _;

use super::draw_description;
use crate::{
    address::Address,
    desired::{Container, DeclaredFields},
    diff::{Findings, Shown, Step, show_declared, show_live},
    kind::{Section, Shape},
    live::LiveContainer,
    manifest::{ChainLink, LayerEffect, LayerValue, Trace, schema::NameDescription},
    origin::Origin,
    plan::Plan,
    report::{
        Canvas, Line, Paint, ReportedRun,
        terminal::{change, notes},
    },
    text::list_names,
    value::{Fields, Json, Value},
};

/// A declaration: a group or project, a section of it, an entry, or a field.
#[derive(Debug)]
pub struct Subject<'d> {
    /// The group or project.
    pub container: &'d Container,
    /// The section; `None` for all sections.
    pub section: Option<Section>,
    /// The entry, with its identity and fields; `None` for a list as a whole.
    pub entry: Option<(&'d str, &'d DeclaredFields)>,
    /// The name of the field, and the keys inside its value; empty for all fields.
    pub field: Vec<String>,
}

impl Subject<'_> {
    /// The address of the object, or of the object that contains it.
    pub fn address(&self) -> Address {
        let container = self.container.address();
        match (self.section, self.entry) {
            (None, _) => container,
            (Some(section), Some((key, _))) if section.shape == Shape::List => {
                container.with_section(section.section).with_entry(key)
            }
            // The fields of a creation belong to the container.
            (Some(section), _) if section.shape == Shape::Container => container,
            (Some(section), _) => container.with_section(section.section),
        }
    }

    /// The full address of the subject, including the field, as on the command line.
    fn title(&self) -> String {
        let address = self.address();
        let section = self.section.filter(|_| address.section.is_none());
        let section = section.map(|section| format!("#{}", section.section)).unwrap_or_default();
        let field = self.field.join(".");
        let slash = if field.is_empty() { "" } else { "/" };
        format!("{address}{section}{slash}{field}")
    }

    /// True if the object at `address` is the subject, or a part of the subject.
    fn includes(&self, address: &Address) -> bool {
        let subject = self.address();
        subject.path == address.path
            && (subject.section.is_none() || subject.section == address.section)
            && (subject.entry.is_none() || subject.entry == address.entry)
    }
}

/// The declaration, and the contribution of each layer. For a field, its description comes first.
pub fn explain_declaration(
    mut canvas: Canvas<'_>,
    subject: &Subject<'_>,
    trace: &Trace,
    documentation: Option<&NameDescription>,
) -> String {
    canvas.add_line(&Line::with_text(Paint::Bold, subject.title()));
    if let Some(documentation) = documentation {
        draw_description(&mut canvas, &documentation.field);
        canvas.add_gap();
    }
    match (subject.section, subject.entry) {
        (None, _) => draw_container(&mut canvas, subject.container, trace),
        (Some(section), None) => draw_entries(&mut canvas, subject.container, section, trace),
        (Some(section), Some((key, fields))) => {
            let values = fields.values();
            if let Some((name, inner_names)) = subject.field.split_first() {
                let declared_value = fields
                    .get(name)
                    .map(|field| show_declared(section.field(name), &field.value, &values));
                if let Some(shown) = declared_value.and_then(|value| value_at(value, inner_names)) {
                    let line = Line::indented(2).put(Paint::Dim, "declared  ").set_hanging_indent();
                    canvas.add_line(&line.append(change::value_line(&shown)));
                }
                let chain = trace.value_chain(section, key, &subject.field);
                draw_chain(&mut canvas, None, &chain, section, &values);
                return canvas.finish();
            }
            let entry_chain = trace.value_chain(section, key, &[]);
            let title = (section.shape == Shape::List).then_some(section.noun);
            // The fields of a mapping already show that the mapping is declared. The mapping only
            // gets lines of its own if it has no fields, or if a layer does more than declare it.
            let shows_declaration = fields.keys().next().is_none()
                || entry_chain.iter().any(|link| link.traced_value.value != LayerValue::Declared);
            if title.is_some() || shows_declaration {
                draw_chain(&mut canvas, title, &entry_chain, section, &values);
            }
            for name in fields.keys().filter(|name| !section.identity.contains(name)) {
                let chain = trace.value_chain(section, key, &[name.to_owned()]);
                draw_chain(&mut canvas, Some(name), &chain, section, &values);
            }
        }
    }
    canvas.finish()
}

/// Draws the layers of a container, and the sections that it declares.
fn draw_container(canvas: &mut Canvas<'_>, container: &Container, trace: &Trace) {
    canvas.add_line(&Line::indented(2).text("layers, the highest first:"));
    for layer in trace.layers.iter().rev() {
        canvas.add_line_with_origin(Line::indented(4).text(&layer.name), &layer.origin);
    }
    let sections = container.sections.iter().map(|declared| match declared.kind.shape {
        Shape::List => format!("{} ({})", declared.kind.section, declared.entries.len()),
        _ => declared.kind.section.to_owned(),
    });
    let sections: Vec<_> = sections.collect();
    if !sections.is_empty() {
        canvas.add_line(
            &Line::indented(2).text("declares ").set_hanging_indent().text(sections.join(", ")),
        );
    }
    let hint = format!("`undrift show --effective {}` prints all of it", container.path);
    canvas.add_line(&Line::indented(2).put(Paint::Dim, hint));
}

/// Draws the entries of a list, and the policy for unlisted entries.
fn draw_entries(canvas: &mut Canvas<'_>, container: &Container, section: Section, trace: &Trace) {
    let Some(declared) = container.section(section.section) else { return };
    for entry in &declared.entries {
        draw_with_origin(canvas, Line::indented(2).text(&entry.key), trace, &entry.origin);
    }
    let policy = declared.unlisted.value.word();
    let line = Line::indented(2).put(Paint::Dim, "unlisted ").text(policy);
    draw_with_origin(canvas, line, trace, &declared.unlisted.origin);
}

/// Draws the contributions of the layers to one value, the highest first.
fn draw_chain(
    canvas: &mut Canvas<'_>,
    title: Option<&str>,
    chain: &[ChainLink<'_>],
    section: Section,
    other_fields: &Fields,
) {
    title.iter().for_each(|title| canvas.add_line(&Line::indented(2).text(title)));
    let lines = chain.iter().map(|link| {
        let (effect_word, paint) = match link.effect {
            LayerEffect::Decides => ("decides", Paint::Plain),
            LayerEffect::Extended => ("changed", Paint::Plain),
            LayerEffect::Outranked => ("outranked", Paint::Dim),
        };
        let line = Line::indented(4).put(paint, effect_word).pad_to(15).set_hanging_indent();
        let value_or_word = match &link.traced_value.value {
            LayerValue::Value(value) => {
                let field = link.traced_value.written_names.first().map_or("", String::as_str);
                // The value may also be a template, or a change of a list.
                Ok(show_declared(section.field(field), value, other_fields))
            }
            LayerValue::Declared => Err("declared"),
            LayerValue::Absent => Err("absent"),
            LayerValue::Unmanaged => Err("unmanaged"),
            LayerValue::Ignores => Err("takes nothing from lower layers"),
        };
        let line = match value_or_word {
            Ok(shown) => line.append(change::value_line(&shown)),
            Err(description) => line.put(Paint::Dim, description),
        };
        match link.traced_value.written_names.get(1..).unwrap_or_default() {
            [] => line,
            inner_names => line.put(Paint::Dim, format!("  for {}", inner_names.join("."))),
        }
    });
    let lines: Vec<_> = lines.collect();
    let column = lines.iter().map(Line::width).filter(|len| *len <= MAX_COLUMN).max().unwrap_or(0);
    let layer_widths = chain.iter().map(|link| link.layer.name.width());
    let origin_column =
        column + 2 + layer_widths.filter(|width| *width <= MAX_COLUMN).max().unwrap_or(0);
    for (line, link) in lines.into_iter().zip(chain) {
        let line = line.pad_to(column).put(Paint::Dim, format!("  {}", link.layer.name));
        canvas.add_line_with_origin(line.pad_to(origin_column), &link.traced_value.origin);
    }
}

/// The maximum width to which values and names are aligned.
const MAX_COLUMN: usize = 40;

/// Draws a line with its layer and origin.
fn draw_with_origin(canvas: &mut Canvas<'_>, line: Line, trace: &Trace, origin: &Origin) {
    let line = match trace.rule_at(origin) {
        Some(layer) => line.put(Paint::Dim, format!("  {}", layer.name)),
        None => line,
    };
    canvas.add_line_with_origin(line, origin);
}

/// The live state, and what `apply` would do.
pub fn explain_live_state(
    mut canvas: Canvas<'_>,
    subject: &Subject<'_>,
    plan: &Plan,
    live: &LiveContainer,
    run: &ReportedRun,
) -> String {
    let findings = restrict_findings(subject, plan);
    canvas.add_gap();
    let target = if run.sandbox { "the sandbox" } else { &run.target };
    canvas.add_line(&Line::with_text(Paint::Bold, target).text(" as ").text(&run.caller));
    let steps: Vec<&Step> = findings.steps.iter().chain(&findings.watched).collect();
    let has_blockers = !(findings.problems.is_empty() && findings.incomplete.is_empty());
    if steps.is_empty() && !has_blockers {
        if let Some(shown) = live_value(subject, live) {
            let line = Line::indented(2).put(Paint::Dim, "live  ").set_hanging_indent();
            canvas.add_line(&line.append(change::value_line(&shown)));
        }
        let verdict = if findings.notes.is_empty() { "matches its manifest" } else { "no changes" };
        canvas.add_line(&Line::indented(2).text(verdict));
    }
    for step in &steps {
        change::draw_step(&mut canvas, step, &step.changes, false);
    }
    for step in &steps {
        for call in step.calls.iter().filter(|call| !call.is_fallback()) {
            let fields: Vec<_> = call.fields.iter().map(String::as_str).collect();
            let line = Line::indented(6).put(Paint::Dim, "sends ").set_hanging_indent();
            let mut text = format!("{} {}", call.method, call.path);
            if !fields.is_empty() {
                text += &format!(" with {}", list_names(&fields));
            }
            canvas.add_line(&line.text(text));
        }
    }
    if let Some(step) = findings.watched.first() {
        let day = plan.held_until(&step.address);
        let reason = day.map_or_else(|| "watched".to_owned(), |day| format!("held until {day}"));
        canvas.add_line(&Line::indented(2).text(format!("{reason}: `apply` writes nothing there")));
    }
    notes::draw_notes(&mut canvas, &findings.notes);
    notes::draw_incomplete(&mut canvas, &findings.incomplete);
    notes::draw_problems(&mut canvas, &findings.problems);
    notes::draw_refusals(&mut canvas, &findings.refusals);
    canvas.finish()
}

/// The part of a plan that concerns `subject`. A problem of the container concerns its parts too.
fn restrict_findings(subject: &Subject<'_>, plan: &Plan) -> Findings {
    let mut findings = plan.findings.clone();
    for steps in [&mut findings.steps, &mut findings.watched] {
        steps.retain_mut(|step| subject.includes(&step.address) && restrict_step(step, subject));
    }
    findings.held.retain(|held| subject.includes(&held.address));
    findings.notes.retain(|note| {
        let concerns_field = note.fields.is_empty()
            || subject.field.first().is_none_or(|field| note.fields.iter().any(|n| **n == **field));
        subject.includes(&note.address) && concerns_field
    });
    findings.refusals.retain(|refusal| subject.includes(&refusal.address));
    findings
}

/// Removes the changes of other fields from `step`; returns true if it still concerns `subject`.
fn restrict_step(step: &mut Step, subject: &Subject<'_>) -> bool {
    let Some((name, inner_names)) = subject.field.split_first() else { return true };
    step.changes.retain(|change| *change.field == **name);
    if !inner_names.is_empty() {
        for change in &mut step.changes {
            change.field = format!("{name}.{}", inner_names.join(".")).into();
            for side in [&mut change.before, &mut change.after] {
                *side =
                    Arc::new(value_at(Shown::clone(side), inner_names).unwrap_or(Shown::Unknown));
            }
        }
        step.changes.retain(|change| change.before != change.after);
    }
    !step.changes.is_empty()
}

/// The live value of the field in `subject`.
fn live_value(subject: &Subject<'_>, live: &LiveContainer) -> Option<Shown> {
    let (section, (key, fields)) = (subject.section?, subject.entry?);
    let (name, inner_names) = subject.field.split_first()?;
    let entries = live.sections.get(section.section)?.entries().ok()?;
    let entry = entries.iter().find(|live| {
        section.shape != Shape::List || section.entry_name(live.fields.raw()) == key
    })?;
    let shown = show_live(section.spec(name), entry.fields.raw().get(name), &live.names);
    // A value that is declared as a secret is secret on the service too.
    let is_secret = fields.get(name).is_some_and(|field| matches!(field.value, Value::Secret(_)));
    match shown {
        Shown::Value(_) if is_secret => Some(Shown::Hidden),
        shown => value_at(shown, inner_names),
    }
}

/// The part of a value at the keys `inner_names`.
fn value_at(shown: Shown, inner_names: &[String]) -> Option<Shown> {
    let Shown::Value(json) = shown else { return Some(shown) };
    let inner_value = inner_names.iter().try_fold(&json, |json: &Json, name| json.get(name));
    inner_value.map(|part| Shown::Value(part.clone()))
}
