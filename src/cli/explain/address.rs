//! `undrift explain ADDRESS`: the declaration, its layers, and the live state.

use std::collections::BTreeSet;

use super::Args;
use crate::{
    address::{Glob, Selector},
    catalogue,
    cli::{CommandError, CommandResult, Exit, RunContext, SessionArgs, SessionBuilder},
    desired::{Container, Declared, Desired},
    kind::{Section, Shape},
    manifest::{self, Options, schema},
    report::terminal::explain::{self, Subject},
    text::{did_you_mean, list_names},
};

/// Explains an address.
pub(super) async fn run(args: &Args, cx: &RunContext) -> CommandResult {
    let (path, inner_address) = args
        .subject
        .split_once('#')
        .map_or((&*args.subject, None), |(path, rest)| (path, Some(rest)));
    let glob = Glob::for_paths(path).map_err(CommandError::usage)?;
    let loaded = manifest::load_with(
        &args.dir,
        &cx.surroundings(&args.access.allow_env)?,
        &Options { traced_globs: &[glob], ..Options::default() },
    );
    let Some(desired) = &loaded.desired else {
        return Err(cx.report_unusable("the manifests", loaded.diagnostics));
    };
    let subject = find_subject(desired, path, inner_address)?;
    let trace = loaded.traces.iter().find(|trace| trace.path() == &subject.container.path);
    let trace = trace.ok_or_else(|| undeclared_failure(path, desired))?;
    let (style, secrets) = (cx.output.style, cx.output.secrets());
    let documentation = describe_field(&subject);
    let text = explain::declared(&subject, trace, documentation.as_ref(), style, &secrets);
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
    let session_secrets = &session.settings.secrets;
    let live = explain::live(&subject, &plan, &live, &session.run, style, session_secrets);
    cx.output.print(&format!("{text}\n{live}"))?;
    Ok(Exit::first_of([
        Exit::Usage.only_if(!plan.problems.is_empty()),
        Exit::Incomplete.only_if(!plan.incomplete.is_empty()),
    ]))
}

/// The documentation of the field that `subject` names; `None` if it names none.
fn describe_field(subject: &Subject<'_>) -> Option<schema::NameDescription> {
    let kind = subject.container.scope.document();
    let field = (!subject.field.is_empty()).then(|| subject.field.join("."))?;
    schema::describe_name(&format!("{kind} {}.{field}", subject.section?.section))
        .into_iter()
        .next()
}

/// The declaration at `path`, narrowed to `inner_address` (the text after the `#`) if there is one.
fn find_subject<'d>(
    desired: &'d Desired,
    path: &str,
    inner_address: Option<&str>,
) -> Result<Subject<'d>, CommandError> {
    let container = desired.container(path).ok_or_else(|| undeclared_failure(path, desired))?;
    let Some(rest) = inner_address else {
        return Ok(Subject { container, section: None, entry: None, field: Vec::new() });
    };
    let (name, address_in_section) =
        rest.split_once('/').map_or((rest, None), |(name, within)| (name, Some(within)));
    let section = catalogue::section(container.scope, name);
    let Some(section) = section.filter(|section| is_declared(container, *section)) else {
        let declared: Vec<_> = container.section_names().collect();
        let noun = container.scope.noun();
        let message = format!("the {noun} `{}` declares no `{name}`", container.path);
        let failure = suggest_similar(CommandError::usage(message), name, declared);
        let known = catalogue::sections(container.scope).map(|section| section.section);
        let help = failure.help.or_else(|| did_you_mean(name, known));
        return Err(CommandError { help, ..failure });
    };
    let (entry, field) = match (section.shape, address_in_section) {
        (Shape::List, None) => (None, None),
        (Shape::List, Some(entry_address)) => {
            let (key, fields, field) = find_entry(container, section, entry_address)?;
            (Some((key, fields)), field)
        }
        (Shape::Container, within) => (container.create.all_fields().map(|f| ("", f)), within),
        (Shape::Mapping | Shape::Switch, within) => {
            let declared = container.section(section.section);
            let entry = declared.and_then(|declared| declared.entries.first());
            (entry.map(|entry| ("", &entry.fields)), within)
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
        Shape::Container => container.create.all_fields().is_some(),
        _ => container.section(section.section).is_some(),
    }
}

/// Finds the list entry at the given address. The address may end with the name of a field; returns
/// the key, the fields, and that name.
fn find_entry<'d, 'w>(
    container: &'d Container,
    section: Section,
    within: &'w str,
) -> Result<(&'d str, &'d Declared, Option<&'w str>), CommandError> {
    let declared = container.section(section.section);
    let entries = declared.map_or(&[][..], |declared| &declared.entries);
    let address = container.address().section(section.section);
    let prefix_length = format!("{address}/").len();
    // The user may write the plain key, or the escaped form that a plan shows.
    let find = |text: &str| {
        entries.iter().find(|entry| {
            entry.key == text || address.entry(&*entry.key).to_string()[prefix_length..] == *text
        })
    };
    let entry_and_field = find(within).map(|entry| (entry, None)).or_else(|| {
        let (text, field) = within.rsplit_once('/')?;
        Some((find(text)?, Some(field)))
    });
    entry_and_field.map(|(entry, field)| (entry.key.as_str(), &entry.fields, field)).ok_or_else(
        || {
            let message = format!("`{address}` declares no {} `{within}`", section.noun);
            suggest_similar(
                CommandError::usage(message),
                within,
                entries.iter().map(|entry| entry.key.as_str()),
            )
        },
    )
}

/// Splits `written` into the names that lead to a declared field. Returns an error if the field is not
/// declared.
fn find_field(
    section: Section,
    fields: &Declared,
    written: &str,
) -> Result<Vec<String>, CommandError> {
    // The names of flattened fields contain dots.
    let name = fields.keys().find(|name| match written.strip_prefix(name) {
        Some("") => true,
        Some(rest) if rest.starts_with('.') => {
            let pointer = rest.replace('.', "/");
            fields.get(name).is_some_and(|field| {
                field.value.plain().is_some_and(|json| json.pointer(&pointer).is_some())
            })
        }
        _ => false,
    });
    let Some(name) = name else {
        let message = format!("`{written}` of `{}` is not declared there", section.section);
        return Err(suggest_similar(CommandError::usage(message), written, fields.keys()));
    };
    let nested_names = written[name.len()..].split('.').filter(|name| !name.is_empty());
    Ok(std::iter::once(name).chain(nested_names).map(str::to_owned).collect())
}

/// The error for a path that no manifest declares.
fn undeclared_failure(path: &str, desired: &Desired) -> CommandError {
    let failure = CommandError::usage(format!("no manifest declares a group or project `{path}`"));
    suggest_similar(failure, path, desired.containers.iter().map(|container| &*container.path))
}

/// Adds a hint: the name that is most similar to `written`, else some of `names`.
fn suggest_similar<'n>(
    failure: CommandError,
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> CommandError {
    let names: BTreeSet<_> = names.into_iter().collect();
    let help = did_you_mean(written, names.iter().copied()).or_else(|| {
        let first_names: Vec<_> = names.iter().copied().take(8).collect();
        (!first_names.is_empty())
            .then(|| format!("declared, among others: {}", list_names(&first_names)))
    });
    CommandError { help, ..failure }
}
