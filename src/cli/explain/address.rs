//! `undrift explain ADDRESS`: the declaration, its layers, and the live state.

use std::collections::BTreeSet;

use super::Args;
use crate::{
    address::{Glob, Selector},
    catalogue,
    cli::{Context, Exit, Failure, Opening, Outcome, SessionArgs},
    desired::{Container, Declared, Desired},
    kind::{Section, Shape},
    manifest::{self, Options, Surroundings, schema},
    report::terminal::explain::{self, Subject},
    text::did_you_mean,
};

/// Explains an address.
pub(super) async fn run(args: &Args, cx: &Context) -> Outcome {
    let (path, rest) =
        args.what.split_once('#').map_or((&*args.what, None), |(path, rest)| (path, Some(rest)));
    let glob = Glob::over_paths(path).map_err(Failure::usage)?;
    let loaded = manifest::load_with(
        &args.dir,
        &Surroundings::of_process(),
        &Options { traced: &[glob], ..Options::default() },
    );
    let Some(desired) = &loaded.desired else {
        return Err(cx.unusable("the manifests", loaded.diagnostics));
    };
    let subject = find(desired, path, rest)?;
    let is_it = |trace: &&manifest::Trace| trace.path() == &subject.container.path;
    let trace = loaded.traces.iter().find(is_it).ok_or_else(|| undeclared(path, desired))?;
    let (style, secrets) = (cx.output.style, cx.output.secrets());
    let known = documented(&subject);
    let text = explain::declared(&subject, trace, known.as_ref(), style, &secrets);
    if !args.connect.is_given(&cx.env) {
        cx.output.print(&text)?;
        return Ok(Exit::Success);
    }
    let address = subject.address();
    let section = address.section.map(|section| format!("#{section}")).unwrap_or_default();
    let only = Selector::parse(&format!("{}{section}", address.path)).map_err(Failure::usage)?;
    let session = SessionArgs::choosing(&args.dir, &args.allow_env, &args.connect, vec![only]);
    let session = Opening::of(&session).open(cx).await?;
    let (plan, live) = session.look().await?;
    let secrets = &session.settings.secrets;
    let live = explain::live(&subject, &plan, &live, &session.run, style, secrets);
    cx.output.print(&format!("{text}\n{live}"))?;
    Ok(Exit::first_of([
        Exit::Usage.when(!plan.problems.is_empty()),
        Exit::Incomplete.when(!plan.incomplete.is_empty()),
    ]))
}

/// The documentation of the field in `subject`.
fn documented(subject: &Subject<'_>) -> Option<schema::Known> {
    let kind = subject.container.scope.document();
    let field = (!subject.field.is_empty()).then(|| subject.field.join("."))?;
    schema::known(&format!("{kind} {}.{field}", subject.of?.section)).into_iter().next()
}

/// The declaration at `path` and, after the `#`, at `rest`.
fn find<'d>(desired: &'d Desired, path: &str, rest: Option<&str>) -> Result<Subject<'d>, Failure> {
    let is_it = |container: &&Container| container.path.to_lowercase() == path.to_lowercase();
    let container =
        desired.containers.iter().find(is_it).ok_or_else(|| undeclared(path, desired))?;
    let Some(rest) = rest else {
        return Ok(Subject { container, of: None, entry: None, field: Vec::new() });
    };
    let (name, within) =
        rest.split_once('/').map_or((rest, None), |(name, within)| (name, Some(within)));
    let of = catalogue::section(container.scope, name).filter(|of| is_declared(container, *of));
    let Some(of) = of else {
        let declared: Vec<_> = container.section_names().collect();
        let noun = container.scope.noun();
        let message = format!("the {noun} `{}` declares no `{name}`", container.path);
        return Err(nearly(Failure::usage(message), name, declared));
    };
    let (entry, field) = match (of.shape, within) {
        (Shape::List, None) => (None, None),
        (Shape::List, Some(within)) => {
            let (key, fields, field) = in_list(container, of, within)?;
            (Some((key, fields)), field)
        }
        (Shape::Container, within) => (container.create.fields().map(|f| ("", f)), within),
        (Shape::Mapping | Shape::Switch, within) => {
            let section = container.section(of.section);
            let entry = section.and_then(|section| section.entries.first());
            (entry.map(|entry| ("", &entry.fields)), within)
        }
    };
    let field = match (field, entry) {
        (Some(field), Some((_, fields))) => field_of(of, fields, field)?,
        _ => Vec::new(),
    };
    Ok(Subject { container, of: Some(of), entry, field })
}

/// Whether `container` declares something in `of`.
fn is_declared(container: &Container, of: Section) -> bool {
    match of.shape {
        Shape::Container => container.create.fields().is_some(),
        _ => container.section(of.section).is_some(),
    }
}

/// The entry of a list that is written as `within`, which may also name a field.
fn in_list<'d, 'w>(
    container: &'d Container,
    of: Section,
    within: &'w str,
) -> Result<(&'d str, &'d Declared, Option<&'w str>), Failure> {
    let section = container.section(of.section);
    let entries = || section.into_iter().flat_map(|section| &section.entries);
    let own = container.address().section(of.section);
    let prefix = format!("{own}/").len();
    let find = |text: &str| {
        entries().find(|entry| {
            // The text of an address, or the one shown in a plan.
            entry.key == text || own.entry(entry.key.as_str()).to_string()[prefix..] == *text
        })
    };
    let whole = find(within).map(|entry| (entry, None));
    let in_entry = || {
        let (text, field) = within.rsplit_once('/')?;
        Some((find(text)?, Some(field)))
    };
    let found = whole.or_else(in_entry);
    found.map(|(entry, field)| (entry.key.as_str(), &entry.fields, field)).ok_or_else(|| {
        let message = format!("`{own}` declares no {} `{within}`", of.noun);
        nearly(Failure::usage(message), within, entries().map(|entry| entry.key.as_str()))
    })
}

/// The names that lead to the field `written`, if it is declared.
fn field_of(of: Section, fields: &Declared, written: &str) -> Result<Vec<String>, Failure> {
    // In flattened fields, dots are part of the name.
    let is_declared = |name: &str| match written.strip_prefix(name) {
        Some("") => true,
        Some(rest) if rest.starts_with('.') => fields.get(name).is_some_and(|field| {
            let value = field.value.plain();
            value.is_some_and(|json| json.pointer(&rest.replace('.', "/")).is_some())
        }),
        _ => false,
    };
    let whole = fields.keys().find(|name| is_declared(name));
    let Some(name) = whole else {
        let message = format!("`{written}` of `{}` is not declared there", of.section);
        return Err(nearly(Failure::usage(message), written, fields.keys()));
    };
    let within = written[name.len()..].split('.').filter(|name| !name.is_empty());
    Ok(std::iter::once(name).chain(within).map(str::to_owned).collect())
}

/// The failure if no manifest declares `path`.
fn undeclared(path: &str, desired: &Desired) -> Failure {
    let failure = Failure::usage(format!("no manifest declares a group or project `{path}`"));
    nearly(failure, path, desired.containers.iter().map(|container| &*container.path))
}

/// Adds similar names.
fn nearly<'n>(
    failure: Failure,
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Failure {
    let names: BTreeSet<_> = names.into_iter().collect();
    let some: Vec<_> = names.iter().copied().take(8).collect();
    let others = || format!("declared are, among others: {}", crate::text::listed(&some));
    let near = did_you_mean(written, names.iter().copied());
    Failure { help: near.or_else(|| (!names.is_empty()).then(others)), ..failure }
}
