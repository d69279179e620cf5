//! Checks of single fields and of pairs of fields.

use std::collections::BTreeSet;

use jiff::civil::Date;

use super::{Check, is_below, path};
use crate::{
    desired::Declared,
    field::{Field, Named, Required, Secrecy, Tier, is_on},
    kind::{Section, Spec, needs, several},
    manifest::{
        config,
        faults::{Part, Spot},
    },
    origin::{Origin, Sourced},
    release::Release,
    secret::{RESERVED, Reference, is_reserved},
    text::alternatives,
    value::{Json, Value},
};

impl Check<'_> {
    /// Checks the fields that the table of the kind has.
    pub(super) fn fields(&mut self, of: Section, fields: &Declared) {
        for (name, field) in fields.iter() {
            let field = &field;
            let sources = field.value.sources();
            sources.iter().for_each(|of| self.source(name, of, Spot::key(&field.origin)));
            let Some(spec) = of.table().get(name) else { continue };
            self.tier(of, spec, field);
            self.release(of, spec, field);
            let modern = spec.field.replaced_by();
            match modern.and_then(|modern| Some((modern, fields.origin(modern)?))) {
                Some((modern, twin)) => self.both_spellings(spec, field, modern, &twin),
                None => self.deprecated(of, spec, field),
            }
            self.within(spec, field);
            self.beside(spec, field, fields);
            self.ascii(spec, field);
            self.dollar(spec, field);
            self.day(spec, field);
            self.named(spec, field);
        }
    }

    /// The field must exist in the declared tier.
    fn tier(&mut self, of: Section, spec: &'static Spec, field: &Sourced<Value>) {
        let is_default = |value| Some(value) == spec.schema.get("default");
        if spec.has_default && field.value.plain().is_some_and(is_default) {
            return;
        }
        // A section that the tier lacks is reported once.
        if spec.field.available.tier > of.tier() {
            self.lacks(spec.name, spec.field.available.tier, Spot::key(&field.origin));
            return;
        }
        for (part, needed) in spec.tiers_of_rows(&field.value) {
            if needed > of.tier() {
                self.lacks(part, needed, spot(field, Part::Within(part)));
            }
        }
    }

    /// `name` must exist in the declared tier.
    pub(super) fn lacks(&mut self, name: &str, needed: Tier, at: Spot) {
        let Some(tier) = self.context.tier.filter(|tier| *tier < needed) else { return };
        let message = format!("`{name}` needs the {needed} tier; `service.tier` is `{tier}`");
        let fault = self.faults.error("tier", message, at);
        fault.help(format!("leave it out, or correct `service.tier` in {}", config::FILE));
    }

    /// The field must exist in the declared release.
    fn release(&mut self, of: Section, spec: &Spec, field: &Sourced<Value>) {
        let Some(release) = self.context.release else { return };
        // A section that the release lacks is reported once.
        let lacks_section = || of.since().is_some_and(|since| since > release);
        let unfit = of.table().unfit(spec, &field.value, release);
        if let Some(unfit) = unfit.filter(|_| !lacks_section()) {
            self.unfit(&unfit.message, &unfit.help, release, Spot::key(&field.origin));
        }
    }

    /// Reports what `release` does not have.
    pub(super) fn unfit(&mut self, message: &str, help: &str, release: Release, at: Spot) {
        let message = format!("{message}; `service.release` is `{release}`");
        let fault = self.faults.error("release", message, at);
        fault.help(format!("{help}, or correct `service.release` in {}", config::FILE));
    }

    /// A field must not be declared together with its deprecated form, whose `twin` it is.
    fn both_spellings(&mut self, spec: &Spec, field: &Sourced<Value>, modern: &str, twin: &Origin) {
        let name = spec.name;
        let (how, help) = match spec.field.is_opposite() {
            true => (" with opposite values", format!("; `{modern}` has the value that counts")),
            false => ("", String::new()),
        };
        let message = format!("`{name}` and `{modern}` are two names of one thing{how}");
        let both = self.faults.error("both-spellings", message, Spot::key(&field.origin));
        both.related(Spot::key(twin), "the one to keep")
            .help(format!("leave out `{name}`, the deprecated one{help}"));
    }

    /// The field that another one needs must be on, and a level must not exceed its limit.
    fn beside(&mut self, spec: &Spec, field: &Sourced<Value>, fields: &Declared) {
        let name = spec.name;
        let Some(value) = field.value.plain() else { return };
        let switch = spec.field.relations.switch();
        if let Some(switch) = switch.filter(|_| !needs::is_off(value))
            && let Some(off) = fields.get(switch)
            && off.value.plain().is_some_and(needs::is_off)
        {
            let message = format!("`{name}` has no effect as long as `{switch}` is off");
            let idle = self.faults.warning("no-effect", message, Spot::key(&field.origin));
            idle.related(Spot::key(&off.origin), "what it needs")
                .help(format!("turn on `{switch}`, or leave out `{name}`"));
        }
        if let Some(most) = spec.field.relations.at_most
            && let Some(limit) = fields.get(most)
            && limit.value.plain().is_some_and(|limit| needs::exceeds(value, limit))
        {
            let message = format!("`{name}` may not show more than `{most}`");
            let above = self.faults.error("too-visible", message, Spot::value(&field.origin));
            above.related(Spot::value(&limit.origin), "as much as that");
            let says = limit.value.plain().and_then(Json::as_str);
            above.help_if(says.map(|says| format!("write `{says}` or less, or raise `{most}`")));
        }
    }

    /// Text that later releases only accept as ASCII.
    fn ascii(&mut self, spec: &Spec, field: &Sourced<Value>) {
        let Some(from) = spec.field.valid.ascii_from else { return };
        let texts = field.value.plain().and_then(Json::as_array).into_iter().flatten();
        if !texts.filter_map(Json::as_str).any(|text| !text.is_ascii()) {
            return;
        }
        let message = format!(
            "`{}` has letters that are not ASCII: release {from} of the service answers that with \
             success, and saves nothing of the request",
            spec.name
        );
        let at = Spot::value(&field.origin);
        let fault = match self.context.release {
            Some(release) if release >= from => self.faults.error("ascii", message, at),
            _ => self.faults.warning("ascii", message, at),
        };
        fault.help("write it with the letters a to z");
    }

    /// The keys of a mapping must not repeat each other, and a switch needs its required limit.
    fn within(&mut self, spec: &Spec, field: &Sourced<Value>) {
        let Some(object) = field.value.plain().and_then(Json::as_object) else { return };
        let at = |key: &str| spot(field, Part::Inner(vec![key.to_owned()]));
        let old = |modern: &str| {
            let old = spec.parts.iter().find(|part| part.replaced_by() == Some(modern));
            old.map(|old| old.name).filter(|old| object.contains_key(*old))
        };
        for part in spec.parts {
            let key = part.name;
            if let Some(old) = old(key).filter(|_| object.contains_key(key)) {
                let message = format!("`{old}` and `{key}` are two names of one thing");
                let both = self.faults.error("both-spellings", message, at(old));
                both.related(at(key), "the one to keep").help(format!("leave out `{old}`"));
            }
            let limits = part.relations.limits;
            let Some(switch) = limits.filter(|_| part.required == Required::WithLimited) else {
                continue;
            };
            let value = object.get(key).or_else(|| object.get(old(key)?));
            let is_unlimited = object.get(switch).is_some_and(is_on);
            if is_unlimited && !value.is_some_and(is_on) {
                let name = spec.name;
                let message = format!(
                    "`{name}` is on without `{key}`, in the place of which the service takes everything"
                );
                let fault = self.faults.error("unlimited", message, at(switch));
                fault.help(format!("add `{key}`; write `.*` if everything is meant"));
            }
        }
    }

    /// Warns of a deprecated field, also within a value. The field that replaces it must exist.
    fn deprecated(&mut self, of: Section, spec: &Spec, field: &Sourced<Value>) {
        let (release, until) = (self.context.release, spec.field.available.until);
        if release.zip(until).is_some_and(|(release, until)| release >= until) {
            // An error already says so.
            return;
        }
        let modern = spec.field.replaced_by().and_then(|name| of.table().get(name));
        let since =
            modern.and_then(|modern| modern.field.available.since).filter(|since| since.is_late());
        if let (Some(modern), Some(since)) = (modern, since) {
            if release.is_none_or(|release| release >= since) {
                let message = format!("`{}` is deprecated from release {since} on", spec.name);
                let warning = self.faults.warning("deprecated", message, Spot::key(&field.origin));
                let set =
                    format!("; for an older service, set `service.release` in {}", config::FILE);
                let older = if release.is_none() { &*set } else { "" };
                warning.help(format!("{}{older}", spec.field.instead(modern.name)));
            }
            return;
        }
        let mut found = Vec::new();
        deprecated_in(spec.name, &spec.schema, field.value.plain(), &mut Vec::new(), &mut found);
        for (name, modern, inner) in found {
            let part = if inner.is_empty() { Part::Key } else { Part::Inner(inner) };
            let (at, message) = (spot(field, part), format!("`{name}` is deprecated"));
            self.faults.warning("deprecated", message, at).help_if(modern);
        }
    }

    /// Checks of a secret or a file that need no access to it.
    fn source(&mut self, name: &str, source: &Reference, at: Spot) {
        match source {
            // Why its name is not filled in is reported where that is tried.
            _ if source.is_template() => {}
            Reference::Env(variable) if !is_variable(variable) => {
                let message = format!("`{name}` names no environment variable");
                let wrong = self.faults.error("reference", message, at);
                wrong.help(match variable.chars().next() {
                    Some('$' | '%') => "write only the name, without `$`, `%` and braces, as in `{env: NAME}`",
                    Some(' ') => "write the name directly after the colon, as in `{env:NAME}`: in a text, a blank is a part of the name",
                    _ => "write the name of a variable, which has letters, digits and `_` and starts with no digit; never write the secret itself here",
                });
            }
            Reference::Env(variable) if is_reserved(variable) => {
                let message = format!(
                    "`{variable}` belongs to the CI system or to undrift and must not be a value"
                );
                let reserved = self.faults.error("reserved-variable", message, at);
                reserved.help(format!(
                    "give the secret another name: these are the names that start with {}",
                    alternatives(&RESERVED)
                ));
            }
            Reference::File(path) if path.contains(char::is_control) => {
                let message = format!("the path of `{name}` has a control character in it");
                let wrong = self.faults.error("reference", message, at);
                wrong.help("write `/` between folders, and the path without double quotes: in them, `\\t` is a tab");
            }
            Reference::File(path) if !is_below(path) => {
                let message = format!("`{name}` names no file inside the manifest folder");
                let wrong = self.faults.error("reference", message, at);
                wrong.help("write a path within it, without `..`; a secret from elsewhere comes as `{env: NAME}`");
            }
            Reference::Env(_) | Reference::File(_) | Reference::Text(_) | Reference::Data(_) => {}
        }
    }

    /// Warns of a text that looks like a reference to a secret in another syntax.
    fn dollar(&mut self, spec: &Spec, field: &Sourced<Value>) {
        let takes_text = matches!(spec.field.secrecy(), Secrecy::Sensitive | Secrecy::Address);
        if let Some(sign) = field.value.text().filter(|_| takes_text).and_then(foreign_reference) {
            // The name is not quoted, because it may be a password.
            let message = format!(
                "`{}` is sent as written: `{sign}` does not refer to an environment variable of undrift",
                spec.name
            );
            let at = Spot::key(&field.origin);
            // Jobs expand no such text.
            match sign {
                "{env:" | "{file:" => self.faults.warning("reference", message, at).help(
                    "take the quotes away: in them it is text",
                ),
                "ENC[" => self.faults.warning("reference", message, at).help(
                    "undrift decrypts nothing: let the job put the secret there, and write `{env: NAME}` or `{file: PATH}`",
                ),
                "env:" | "env(" | "vault:" => self.faults.error("reference", message, at).help(
                    "write `{env: NAME}` to take it from the environment; if this very text is meant, write it into a file, and `{file: PATH}`",
                ),
                _ => self.faults.warning("reference", message, at).help(
                    "write `{env: NAME}` to take it from the environment; leave it if jobs are to expand it",
                ),
            };
        }
    }

    /// A group or project must be named by its path.
    fn named(&mut self, spec: &Spec, field: &Sourced<Value>) {
        let names = spec.field.names;
        let wrong = field.value.plain().and_then(|value| wrong_path(names, &spec.schema, value));
        if let Some(path) = wrong {
            let message = format!("`{}` must be a full path, as in `acme/team`", spec.name);
            let wrong = self.faults.error("path", message, Spot::value(&field.origin));
            let usual = "write the path as in its URL, without the service before it: no display name, and no `@`";
            wrong.help(path::help(path).unwrap_or_else(|| usual.to_owned()));
        }
        let lists_names = matches!(spec.field.names, Some(Named::User | Named::Group));
        let items = field.value.plain().and_then(Json::as_array).filter(|_| lists_names);
        let mut names = BTreeSet::new();
        let mut texts = items.into_iter().flatten().filter_map(Json::as_str);
        if !texts.all(|name| names.insert(name.to_lowercase())) {
            let message = format!("`{}` lists something twice", spec.name);
            let twice = self.faults.error("value", message, Spot::value(&field.origin));
            twice.help("write each name once: upper and lower case are the same");
        }
    }

    /// The end of an access should not be in the past: the service refuses to create such an entry.
    fn day(&mut self, spec: &Spec, field: &Sourced<Value>) {
        let is_end = spec.format == "date" && spec.name.ends_with("expires_at");
        let text = field.value.text().filter(|_| is_end);
        let day = text.and_then(|day| day.parse::<Date>().ok());
        if day.is_some_and(|day| day < self.context.today) {
            // A warning only: a date that has passed must not block all other projects.
            let message = format!("`{}` is in the past", spec.name);
            let past = self.faults.warning("date", message, Spot::key(&field.origin));
            past.help("write a later day or `null`; write `state: absent` if the access has ended");
        }
    }
}

/// The `part` of a field.
fn spot(field: &Sourced<Value>, part: Part) -> Spot {
    Spot { origin: field.origin.clone(), part }
}

/// A deprecated field: its name, what to use instead, and the names that lead to it.
type Deprecated = (String, Option<String>, Vec<String>);

/// Adds the field `name` of `schema` if it is deprecated, and deprecated fields within `value`.
fn deprecated_in(
    name: &str,
    schema: &Json,
    value: Option<&Json>,
    way: &mut Vec<String>,
    found: &mut Vec<Deprecated>,
) {
    if schema["deprecated"] == true {
        let modern = Field::of(schema).replaced_by().map(|modern| format!("use `{modern}`"));
        let modern = modern.or_else(|| several(schema));
        found.push((name.to_owned(), modern, way.clone()));
    }
    for (name, value) in value.and_then(Json::as_object).into_iter().flatten() {
        if let Some(schema) = schema["properties"].get(name) {
            way.push(name.clone());
            deprecated_in(name, schema, Some(value), way, found);
            way.pop();
        }
    }
}

/// What names a group or project by something else than its full path in a `value` of `schema`, whose
/// field has `names`. They are passed because it takes long to read them out of a schema.
fn wrong_path<'v>(names: Option<Named>, schema: &Json, value: &'v Json) -> Option<&'v str> {
    let of = |schema: &Json| Field::of(schema).names;
    let is_path = matches!(names, Some(Named::Group | Named::Project));
    match value {
        Json::String(path) => {
            let is_wrong = path.contains([' ', ':', '@']) || path.starts_with('/');
            let has_group = path.is_empty() || path.contains('/') || names != Some(Named::Project);
            Some(path.as_str()).filter(|_| is_path && (is_wrong || !has_group))
        }
        Json::Array(items) => {
            let schema = if is_path { schema } else { &schema["items"] };
            let names = if is_path { names } else { of(schema) };
            items.iter().find_map(|item| wrong_path(names, schema, item))
        }
        Json::Object(fields) => fields.iter().find_map(|(name, value)| {
            let schema = &schema["properties"][name];
            wrong_path(of(schema), schema, value)
        }),
        _ => None,
    }
}

/// Whether `name` is a valid name of an environment variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// How `text` begins, if it consists only of a reference in quotes, or of one as other tools write it:
/// `$NAME`, `${NAME}`, `env:NAME`, `env(NAME)`, an expression in double braces or an encrypted value.
fn foreign_reference(text: &str) -> Option<&'static str> {
    let unbraced = |name: &str| name.strip_prefix('{')?.strip_suffix('}').map(str::to_owned);
    let is_name = |name: &str| is_variable(&unbraced(name).unwrap_or_else(|| name.to_owned()));
    let has_name = |sign: &&str| text.strip_prefix(*sign).is_some_and(is_name);
    let is_expression = text.trim_start_matches('$').starts_with("{{") && text.ends_with("}}");
    let encloses = |(start, end): &(&str, char)| text.starts_with(start) && text.ends_with(*end);
    let enclosed = || [("env(", ')'), ("ENC[", ']')].into_iter().find(encloses);
    let signs = ["$", "env:", "env.", "file:", "vault:"];
    (signs.into_iter().find(has_name))
        .or_else(|| Reference::in_quotes(text))
        .or_else(|| enclosed().map(|(start, _)| start))
        .or(is_expression.then_some("{{"))
}
