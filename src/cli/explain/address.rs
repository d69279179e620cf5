//! `undrift explain ADDRESS`: the declaration, its layers, and the live state.

use std::collections::BTreeSet;

use super::Args;
use crate::{
    address::{Glob, Selector},
    catalogue,
    cli::{
        CommandError, CommandResult, Exit, Result, RunContext, SessionArgs, SessionBuilder,
        near_address::suggest_address,
    },
    desired::{Container, DeclaredFields, Desired},
    kind::{Section, Shape},
    manifest::{self, LoadOptions, schema},
    report::{
        Canvas,
        terminal::explain::{self, Subject},
    },
    text::{did_you_mean, list_names},
};

/// Explains an address.
pub(super) async fn run(args: &Args, cx: &RunContext) -> CommandResult {
    let (path, inner_address) = args
        .subject
        .split_once('#')
        .map_or((&*args.subject, None), |(path, inner)| (path, Some(inner)));
    let glob = Glob::for_paths(path).map_err(CommandError::usage)?;
    let loaded = manifest::load_with_options(
        &args.dir,
        &cx.make_load_environment(&args.access.allow_env)?,
        &LoadOptions { traced_globs: &[glob], ..LoadOptions::default() },
    );
    let Some(desired) = &loaded.desired else {
        return Err(cx.report_unusable("the manifests", loaded.diagnostics));
    };
    let subject = find_subject(desired, path, inner_address)?;
    let trace = loaded.traces.iter().find(|trace| trace.path() == &subject.container.path);
    let trace = trace.ok_or_else(|| undeclared_failure(path, desired))?;
    let (style, secrets) = (cx.output.style, cx.output.secrets());
    let documentation = describe_field(&subject);
    let canvas = Canvas::new(style, &secrets);
    let text = explain::explain_declaration(canvas, &subject, trace, documentation.as_ref());
    if !args.access.connect.has_address(&cx.env) {
        cx.output.print(&text)?;
        return Ok(Exit::Success);
    }
    let address = subject.address();
    let section = address.section.map(|section| format!("#{section}")).unwrap_or_default();
    let selector =
        Selector::parse(&format!("{}{section}", address.path)).map_err(CommandError::usage)?;
    let session_args = SessionArgs::with_selection(&args.dir, &args.access, vec![selector]);
    let session = SessionBuilder::new(&session_args).open(cx).await?;
    let (plan, live) = session.inspect().await?;
    let canvas = Canvas::new(style, &session.settings.secrets);
    let live_text = explain::explain_live_state(canvas, &subject, &plan, &live, &session.run);
    cx.output.print(&format!("{text}\n{live_text}"))?;
    Ok(Exit::first_of([
        Exit::Usage.only_if(!plan.problems.is_empty()),
        Exit::Incomplete.only_if(!plan.incomplete.is_empty()),
    ]))
}

/// The documentation of the field in `subject`; `None` if `subject` has no field.
fn describe_field(subject: &Subject<'_>) -> Option<schema::NameDescription> {
    let kind = subject.container.scope.document_kind();
    let field = (!subject.field.is_empty()).then(|| subject.field.join("."))?;
    schema::describe_name(&format!("{kind} {}.{field}", subject.section?.section))
        .into_iter()
        .next()
}

/// The declaration at `path`, or its part at `inner_address`, the text after the `#`.
fn find_subject<'d>(
    desired: &'d Desired,
    path: &str,
    inner_address: Option<&str>,
) -> Result<Subject<'d>> {
    let container = desired.container(path).ok_or_else(|| undeclared_failure(path, desired))?;
    let Some(section_address) = inner_address else {
        return Ok(Subject { container, section: None, entry: None, field: Vec::new() });
    };
    let (name, address_in_section) = section_address
        .split_once('/')
        .map_or((section_address, None), |(name, inner)| (name, Some(inner)));
    let section = catalogue::find_section(container.scope, name);
    let Some(section) = section.filter(|section| is_declared(container, *section)) else {
        let section_names: Vec<_> = container.section_names().collect();
        let noun = container.scope.noun();
        let message = format!("the {noun} `{}` declares no `{name}`", container.path);
        let failure = suggest_similar(CommandError::usage(message), name, section_names);
        let full_address = format!("{path}#{section_address}");
        let help = suggest_address(&full_address, desired, true).or(failure.help);
        return Err(CommandError { help, ..failure });
    };
    let (entry, field) = match (section.shape, address_in_section) {
        (Shape::List, None) => (None, None),
        (Shape::List, Some(entry_address)) => {
            let (key, fields, field) = find_entry(container, section, entry_address)?;
            (Some((key, fields)), field)
        }
        (Shape::Container, field_address) => {
            (container.creation_policy.create_fields().map(|f| ("", f)), field_address)
        }
        (Shape::Mapping | Shape::Switch, field_address) => {
            let declared_section = container.section(section.section);
            let entry = declared_section.and_then(|declared| declared.entries.first());
            (entry.map(|entry| ("", &entry.fields)), field_address)
        }
    };
    let field = match (field, entry) {
        (Some(field), Some((_, fields))) => find_field(section, fields, field)?,
        _ => Vec::new(),
    };
    Ok(Subject { container, section: Some(section), entry, field })
}

/// True if `container` declares something in `section`.
fn is_declared(container: &Container, section: Section) -> bool {
    match section.shape {
        Shape::Container => container.creation_policy.create_fields().is_some(),
        _ => container.section(section.section).is_some(),
    }
}

/// Finds the list entry at the given address, `KEY` or `KEY/FIELD`. Returns the key of the entry, its
/// declared fields, and the name of the field, if the address has one.
fn find_entry<'d, 'w>(
    container: &'d Container,
    section: Section,
    entry_address: &'w str,
) -> Result<(&'d str, &'d DeclaredFields, Option<&'w str>)> {
    let declared_section = container.section(section.section);
    let entries = declared_section.map_or(&[][..], |declared| &declared.entries);
    let address = container.address().with_section(section.section);
    let prefix_length = format!("{address}/").len();
    // The user may write the plain key, or the escaped form that a plan shows.
    let find_by_text = |text: &str| {
        entries.iter().find(|entry| {
            entry.key == text
                || address.with_entry(&*entry.key).to_string()[prefix_length..] == *text
        })
    };
    let entry_and_field = find_by_text(entry_address).map(|entry| (entry, None)).or_else(|| {
        let (text, field) = entry_address.rsplit_once('/')?;
        Some((find_by_text(text)?, Some(field)))
    });
    entry_and_field.map(|(entry, field)| (entry.key.as_str(), &entry.fields, field)).ok_or_else(
        || {
            let message = format!("`{address}` declares no {} `{entry_address}`", section.noun);
            suggest_similar(
                CommandError::usage(message),
                entry_address,
                entries.iter().map(|entry| entry.key.as_str()),
            )
        },
    )
}

/// Splits a field path such as `settings.cadence` into its names: the declared field, then the keys
/// inside its value. Returns an error if the field is not declared.
fn find_field(section: Section, fields: &DeclaredFields, field_path: &str) -> Result<Vec<String>> {
    // The names of flattened fields contain dots.
    let name = fields.keys().find(|name| match field_path.strip_prefix(name) {
        Some("") => true,
        Some(suffix) if suffix.starts_with('.') => {
            let pointer = suffix.replace('.', "/");
            fields.get(name).is_some_and(|field| {
                field.value.plain_json().is_some_and(|json| json.pointer(&pointer).is_some())
            })
        }
        _ => false,
    });
    let Some(name) = name else {
        let message = format!("`{field_path}` of `{}` is not declared there", section.section);
        return Err(suggest_similar(CommandError::usage(message), field_path, fields.keys()));
    };
    let nested_names = field_path[name.len()..].split('.').filter(|name| !name.is_empty());
    Ok(std::iter::once(name).chain(nested_names).map(str::to_owned).collect())
}

/// The error for a path that no manifest declares.
fn undeclared_failure(path: &str, desired: &Desired) -> CommandError {
    let failure = CommandError::usage(format!("no manifest declares a group or project `{path}`"));
    let mut paths = desired.containers.iter().map(|container| &*container.path);
    match suggest_address(path, desired, true).filter(|_| did_you_mean(path, &mut paths).is_none())
    {
        Some(help) => failure.help(help),
        None => suggest_similar(
            failure,
            path,
            desired.containers.iter().map(|container| &*container.path),
        ),
    }
}

/// Adds help: the most similar name, or the first few `names` if none is similar.
fn suggest_similar<'n>(
    failure: CommandError,
    wrong_name: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> CommandError {
    let names: BTreeSet<_> = names.into_iter().collect();
    let help = did_you_mean(wrong_name, names.iter().copied()).or_else(|| {
        let first_names: Vec<_> = names.iter().copied().take(8).collect();
        (!first_names.is_empty())
            .then(|| format!("declared, among others: {}", list_names(&first_names)))
    });
    CommandError { help, ..failure }
}
