//! Checks of an entry, and of the entries of a list together.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use super::{Check, found, repeats};
use crate::{
    address::Glob,
    desired::{self, Declared, Entry},
    field::{Accepted, Among, Compare},
    kind::{AddressKey, AddressKeyIn, Identity, Section, Shape, Spec, forms},
    manifest::{
        faults::{Part as Inner, Spot, missing},
        read::document::{Part, Sound, State, identity},
    },
    origin::Origin,
    text::{alternatives, plural, with_article},
    value::{Fields, Json},
};

impl Check<'_> {
    /// The entry and its identity. Its kind checks it only if its schema accepts it and nothing is
    /// missing.
    pub(super) fn entry(&mut self, of: Section, part: Part) -> (Entry, Identity) {
        self.fields(of, &part.fields);
        let is_complete = self.required(of, &part);
        let values = part.fields.values();
        let state = match part.state {
            State::Absent | State::Unmanaged => {
                // That it cannot be absent is reported.
                if !of.only_edits() {
                    self.identity_only(of, &part, "absent");
                }
                desired::State::Absent
            }
            State::Present => {
                if is_complete && part.sound != Sound::Not {
                    self.rules(of, &part, &values);
                }
                desired::State::Present
            }
        };
        let identity = match of.shape {
            Shape::List => identity(of, &|name| values.get(name).cloned()),
            Shape::Container | Shape::Mapping | Shape::Switch => Identity::default(),
        };
        let Part { origin, fields, .. } = part;
        let fields = modern(of, fields);
        (Entry { key: identity.name.clone(), origin, state, fields }, identity)
    }

    /// Whether two entries are the fields of one, each with a `- ` in front; that is reported.
    pub(super) fn is_split(&mut self, of: Section, parts: &[Part]) -> bool {
        let schema = &of.table().schema;
        let only = |part: &Part| {
            let mut names = part.fields.keys().filter(|name| !has_default(of, name));
            names.next().filter(|_| names.next().is_none()).map(str::to_owned)
        };
        let is_needed = |name: &&str| {
            let required = schema["required"].as_array().into_iter().flatten();
            of.identity.contains(name) || required.filter_map(Json::as_str).any(|own| own == *name)
        };
        let is_split = |pair: &&[Part]| {
            let names = [only(&pair[0]), only(&pair[1])];
            let [Some(first), Some(second)] = &names else { return false };
            first != second && [&**first, second].iter().any(is_needed)
        };
        let pairs = parts.windows(2).filter(|_| of.shape == Shape::List);
        let Some(pair) = pairs.into_iter().find(is_split) else { return false };
        let message = format!("each of these entries has one field of a {}", of.noun);
        let split = self.faults.error("missing", message, Spot::key(&pair[1].origin));
        split.related(Spot::key(&pair[0].origin), "the other one");
        split.help("write one `- `, or one pair of braces, for all fields of an entry");
        true
    }

    /// Whether all required fields are declared. An absent entry only needs its identity.
    fn required(&mut self, of: Section, part: &Part) -> bool {
        if of.shape != Shape::List && part.state == State::Absent {
            return true;
        }
        // Its fields are those of something else, which is reported.
        if part.sound == Sound::Not && part.fields.keys().all(|name| has_default(of, name)) {
            return false;
        }
        let schema = &of.table().schema;
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let missed: Vec<_> = names
            .filter(|name| part.state == State::Present || of.identity.contains(name))
            .filter(|name| !part.fields.contains_key(name))
            .collect();
        for name in &missed {
            let fault = missing(name, schema, Spot::key(&part.origin));
            let fault = self.faults.push(fault);
            if of.shape == Shape::List {
                fault.label("in this entry");
            }
        }
        missed.is_empty()
    }

    /// Reports the faults that its kind finds. If its schema refuses a value, only those that depend on
    /// no other value are certain.
    fn rules(&mut self, of: Section, part: &Part, values: &Fields) {
        self.dots(of, part, values);
        of.check(values, true, &mut |fault| {
            let of_one = ["expression", "missing", "time-zone", "unknown-field"];
            if part.sound != Sound::Whole && !of_one.contains(&fault.code) {
                return;
            }
            let at = match part.fields.origin(fault.field) {
                // A value that should not be in the manifest is not marked.
                Some(field) if fault.code == "literal-secret" => Spot::key(&field),
                Some(field) => match fault.within {
                    Some(name) => Spot { origin: field, part: Inner::Within(name) },
                    None => Spot::value(&field),
                },
                None => Spot::key(&part.origin),
            };
            let line = |origin: &Origin| (origin.file.clone(), origin.line);
            let other = fault.other.and_then(|name| part.fields.origin(name));
            let other = other.filter(|other| line(other) != line(&at.origin));
            let fault = self.faults.push(found(fault, at));
            if let Some(other) = other {
                fault.related(Spot::value(&other), "the other one");
            }
        });
    }

    /// No URL can contain `.` or `..` as a segment of its path, so such an entry could be created, but
    /// neither be changed nor removed.
    fn dots(&mut self, of: Section, part: &Part, values: &Fields) {
        let in_path = |handle: &AddressKey| matches!(handle.place, AddressKeyIn::Path(_));
        let handles = of.home.handle.iter().filter(|handle| in_path(handle));
        for handle in handles {
            let specs = of.table().specs().iter();
            let mut specs = specs.filter(|spec| spec.field.live_name() == Some(handle.field));
            let Some((name, text)) =
                specs.find_map(|spec| Some((spec.name, values.get(spec.name)?.text()?)))
            else {
                continue;
            };
            if [".", ".."].contains(&text) {
                let at =
                    part.fields.origin(name).map_or(Spot::key(&part.origin), |at| Spot::value(&at));
                let message = format!("`{text}` cannot be part of the address of a request");
                self.faults.error("value", message, at).help("write another name");
            }
        }
    }

    /// The names of entries that others manage.
    pub(super) fn unmanaged(&mut self, of: Section, part: &Part) -> Option<Glob> {
        self.identity_only(of, part, "unmanaged");
        if !self.required(of, part) {
            return None;
        }
        let field = |name: &str| part.fields.get(name).map(|field| field.value);
        let glob = Glob::over_names(&identity(of, &field).name);
        if let Err(why) = &glob {
            let message = format!("what tells it from others is no glob: {why}");
            self.faults.error("glob", message, Spot::key(&part.origin));
        }
        glob.ok()
    }

    /// An entry with this `state` only declares its identity.
    fn identity_only(&mut self, of: Section, part: &Part, state: &str) {
        let has_meaning = |name: &str| match of.table().get(name) {
            // Fields that are never sent also belong to the identity, such as former URLs of a
            // hook.
            Some(spec) => of.identity.contains(&name) || spec.field.accepted == Accepted::Never,
            None => false,
        };
        for (name, field) in part.fields.iter().filter(|(name, _)| !has_meaning(name)) {
            // Keys below `extra:` may be anything and are not quoted.
            let name = if of.table().get(name).is_some() { name } else { "extra" };
            let message = format!("`{name}` has no meaning for an {state} {}", of.noun);
            let idle = self.faults.error("absent", message, Spot::key(&field.origin));
            idle.help(format!("take the field away, or `state: {state}`"));
        }
    }

    /// Reports values that the service takes for one entry only, at both places.
    fn same_values(&mut self, of: Section, entries: &[Entry]) {
        for spec in of.table().specs().iter().filter(|spec| spec.field.among == Among::Unique) {
            let values = entries.iter().filter_map(|entry| {
                let field = entry.fields.get(spec.name)?;
                Some((field.value.plain()?.to_string(), field.origin))
            });
            for (first, at) in repeats(values) {
                let message = format!("two {} with one `{}`", plural(of.noun), spec.name);
                let twice = self.faults.error("duplicate-entry", message, Spot::value(&at));
                twice.related(Spot::value(&first), "the first one");
                twice.help("the service refuses that: change one of them, or take it away");
            }
        }
    }

    /// Reports entries of which the service takes only one, at both places.
    fn only_one(&mut self, of: Section, entries: &[Entry]) {
        let present = entries.iter().filter(|entry| entry.state == desired::State::Present);
        let single =
            present.filter_map(|entry| of.only_one(&entry.key).map(|what| (what, (what, entry))));
        for ((what, first), (_, entry)) in repeats(single) {
            if first.key != entry.key {
                let message = format!("a {} can have only one {what}", self.scope.noun());
                let second = self.faults.error("exclusive", message, spot(entry, of.identity[0]));
                second
                    .related(spot(first, of.identity[0]), "the other one")
                    .help("keep one, and write `state: absent` in the entry of one that goes");
            }
        }
    }

    /// Warns of URLs that differ only in a `/` at the end, at both places.
    fn nearly_the_same(&mut self, of: Section, entries: &[Entry], identities: &[Identity]) {
        if of.identity.last().is_none_or(|name| of.field(name).compare != Compare::Url) {
            return;
        }
        let mut seen = HashSet::new();
        let urls = entries.iter().zip(identities).filter_map(|(entry, identity)| {
            let url = identity.keys.first().filter(|_| !entry.key.is_empty())?;
            Some((url.trim_end_matches('/'), (entry, seen.insert(url))))
        });
        for ((first, _), (entry, is_new)) in repeats(urls) {
            if is_new {
                let message =
                    format!("two {} that differ only in a `/` at the end", plural(of.noun));
                let both =
                    self.faults.warning("nearly-the-same", message, Spot::key(&entry.origin));
                both.related(Spot::key(&first.origin), "the other one")
                    .help("keep one: the service calls both, and mostly one receiver is meant");
            }
        }
    }

    /// Reports former identities that are those of other entries, which keep them.
    fn former_of_others(&mut self, of: Section, entries: &[Entry], identities: &[Identity]) {
        if identities.iter().all(|identity| identity.keys.len() < 2) {
            return;
        }
        let all = || entries.iter().zip(identities);
        let current: HashMap<_, _> = all()
            .filter(|(entry, own)| entry.state == desired::State::Present && own.keys.len() == 1)
            .map(|(entry, own)| (&own.keys[0], entry))
            .collect();
        for (entry, own) in all() {
            let mut former = own.keys.iter().skip(1);
            let Some(other) = former.find_map(|former| current.get(former)) else { continue };
            let message = format!("`previously` names a {} that is declared as it is", of.noun);
            let twice = self.faults.error("previously", message, spot(entry, "previously"));
            twice.related(Spot::key(&other.origin), "declared here").help(format!(
                "take that one away if this {} takes its place, or `previously` if both are to exist",
                of.noun
            ));
        }
    }

    /// Reports two entries with one identity, at both places.
    pub(super) fn twice(&mut self, of: Section, entries: &[Entry], identities: Vec<Identity>) {
        if entries.len() < 2 {
            return;
        }
        self.same_values(of, entries);
        self.only_one(of, entries);
        self.former_of_others(of, entries, &identities);
        self.nearly_the_same(of, entries, &identities);
        // By the name in manifests, and by the identity on the service.
        let mut seen: [HashMap<Cow<'_, str>, &Entry>; 2] = Default::default();
        let all = entries.iter().zip(identities).filter(|(entry, _)| !entry.key.is_empty());
        for (entry, identity) in all {
            let on_service = identity.keys.into_iter().next().unwrap_or_default();
            // If manifests may name an entry themselves, its identity on the service is another
            // one.
            let is_named = on_service != entry.key;
            let keys = [(Cow::Borrowed(&*entry.key), false), (Cow::Owned(on_service), is_named)];
            let twice = seen.iter_mut().zip(keys).find_map(|(seen, (key, on_service))| {
                let first = *seen.entry(key).or_insert(entry);
                (!std::ptr::eq(first, entry)).then_some((first, on_service))
            });
            if let Some((first, on_service)) = twice {
                let skipped = if on_service { of.identity.len().saturating_sub(1) } else { 0 };
                let names = &of.identity[skipped..];
                self.declared_twice(of, names, [first, entry], is_named && !on_service);
            }
        }
    }

    /// Reports two entries with one identity, the fields `names`. If manifests name them, they may have
    /// different URLs.
    fn declared_twice(&mut self, of: Section, names: &[&str], pair: [&Entry; 2], is_named: bool) {
        let [first, entry] = pair;
        let standard = names.iter().find_map(|name| {
            let value = of.table().get(name)?.schema.get("default")?.as_str()?;
            let own = entry.fields.get(name);
            let is_standard = own.is_none_or(|own| own.value.text() == Some(value));
            is_standard.then(|| format!(": without `{name}` it is `{value}`"))
        });
        let url = |entry: &Entry| entry.fields.get("url").map(|url| url.value);
        let is_other = is_named && url(entry) != url(first);
        let spelled = |entry: &Entry| {
            let fields = names.iter().filter_map(|name| entry.fields.get(name));
            let texts = fields.filter_map(|field| field.value.text().map(str::to_owned));
            let texts: Vec<_> = texts.collect();
            (texts.join("/").to_lowercase() == entry.key.to_lowercase()).then_some(texts)
        };
        let help = match names {
            _ if entry.state != first.state => {
                "keep one of them: one must be there, and the other must not".to_owned()
            }
            _ if spelled(entry) != spelled(first) => {
                "keep one of them: upper and lower case make no difference here".to_owned()
            }
            [name, ..] if is_other => format!("give one of them another `{name}`"),
            [name] if of.field(name).compare == Compare::PublicKey => {
                "keep one of them: the comment behind a key does not tell it from another"
                    .to_owned()
            }
            names => format!(
                "write the fields of both in one entry, unless they are to differ by {}{}",
                alternatives(names).replace(" or ", " and "),
                standard.unwrap_or_default()
            ),
        };
        let name = names.first().copied().unwrap_or_default();
        let mut places = [spot(entry, name), spot(first, name)];
        if places[0] == places[1] {
            // What is merged into both.
            places = [entry, first].map(|entry| Spot::key(&entry.origin));
        }
        let [at, other] = places;
        let message = format!("{} that is declared twice", with_article(of.noun));
        let twice = self.faults.error("duplicate-entry", message, at);
        twice.related(other, "first declared here").help(help);
    }
}

/// Whether the field `name` has a value that nobody has to write.
fn has_default(of: Section, name: &str) -> bool {
    of.table().get(name).is_some_and(Spec::has_default)
}

/// The place of the field `name` of an entry, or else of its start.
fn spot(entry: &Entry, name: &str) -> Spot {
    let field = entry.fields.origin(name);
    field.map_or_else(|| Spot::key(&entry.origin), |field| Spot::value(&field))
}

/// Fields with the current names of nested keys. Deprecated names were reported before.
fn modern(of: Section, fields: Declared) -> Declared {
    let is_mapping = |name: &str| of.table().get(name).filter(|spec| spec.is_mapping());
    if !fields.keys().any(|name| is_mapping(name).is_some()) {
        return fields;
    }
    let renamed = fields.iter().map(|(name, mut field)| {
        if let Some(spec) = is_mapping(name) {
            forms::modern(spec, &mut field.value);
        }
        (name.to_owned(), field)
    });
    renamed.collect()
}
