//! Merges several layers.
//!
//! Ranks are compared for each slot: a leaf of a field, the state of an entry, the policy of a
//! section, `watch`. Layers are added from the lowest to the highest, and the highest one that sets
//! a slot decides. Different values of equal rank are an error unless a higher layer decides.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::json;

use super::{
    rules::{Claim, FEW, Layers, ambiguous},
    slots::{Slot, change, changed, claim, insert, slots},
    text::{Words, has_template},
};
use crate::{
    address::Glob,
    desired::{Declared, PROJECTS, Unlisted},
    kind::{self, Shape, forms::CONDITION},
    manifest::{
        faults::{Faults, NO_REFERENCE, Spot},
        read::{
            document::{Body, Part, Section, Sound, State, identity},
            layers::BUILT_IN,
        },
        schema::refused,
    },
    origin::{Layer, Origin, Sourced},
    secret::{Reference, has_reference},
    text,
    value::{Json, Value},
};

/// The result of `layers` and the document `own`.
pub(super) fn merge(
    path: &Sourced<Arc<str>>,
    layers: &Layers<'_>,
    own: &Body,
    faults: &mut Faults,
) -> Body {
    let words = Words::new(path, layers);
    let mut merging = Merging {
        words,
        sections: BTreeMap::new(),
        unlisted: BTreeMap::new(),
        watch: BTreeMap::new(),
        faults,
    };
    for equal in layers.rules.chunk_by(|(a, _), (b, _)| a == b) {
        let bodies: Vec<_> = equal.iter().map(|(_, known)| &known.rule.body).collect();
        merging.take(equal[0].0, &bodies);
    }
    let highest = layers.rules.last().map_or(0, |(rank, _)| rank + 1);
    merging.take(highest, &[own]);
    merging.finish()
}

impl Body {
    /// Whether it sets anything of the section `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.sections.iter().any(|section| section.of.section == name)
    }

    /// Whether it contains no templates and no changes of lists.
    pub(super) fn is_closed(&self) -> bool {
        let mut parts = self.sections.iter().flat_map(|section| &section.parts);
        parts.all(|part| !part.is_open && part.state != State::Unmanaged)
    }
}

/// A group or project during merging.
struct Merging<'m> {
    words: Words<'m>,
    sections: BTreeMap<&'static str, Merged<'m>>,
    unlisted: BTreeMap<&'static str, Claim<Unlisted>>,
    /// One or none.
    watch: BTreeMap<(), Claim<bool>>,
    faults: &'m mut Faults,
}

/// A section during merging.
struct Merged<'m> {
    of: kind::Section,
    rank: usize,
    origin: Origin,
    entries: BTreeMap<String, Entry<'m>>,
    /// Duplicate entries of a document. They are an error that is reported later.
    twice: Vec<Part>,
}

/// The place of a layer among all.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    rank: usize,
    /// Its number within that rank.
    number: usize,
}

/// An entry during merging.
struct Entry<'m> {
    /// The highest layer that sets it.
    layer: Place,
    origin: Origin,
    state: State,
    /// The origin of a different state in a layer of the same rank.
    other: Option<Origin>,
    sound: Sound,
    fields: Fields<'m>,
}

/// The fields of an entry.
enum Fields<'m> {
    /// From one layer, and without templates.
    Whole(Cow<'m, Declared>),
    /// From several layers, or with templates.
    Slots(BTreeMap<String, Slot>),
}

impl<'m> Merging<'m> {
    /// Adds layers of equal rank. Earlier ones were lower.
    fn take(&mut self, rank: usize, bodies: &[&'m Body]) {
        for section in bodies.iter().flat_map(|body| &body.ignores) {
            self.sections.remove(section);
            self.unlisted.remove(section);
        }
        for (number, body) in bodies.iter().enumerate() {
            for section in &body.sections {
                self.section(Place { rank, number }, section);
            }
            for (name, policy) in &body.unlisted {
                Claim::add(self.unlisted.entry(name), rank, policy);
            }
            if let Some(watch) = &body.watch {
                Claim::add(self.watch.entry(()), rank, watch);
            }
        }
    }

    fn section(&mut self, layer: Place, section: &'m Section) {
        let (of, origin, rank) = (section.of, &section.origin, layer.rank);
        let merged = self.sections.entry(of.section).or_insert_with(|| Merged {
            of,
            rank,
            origin: origin.clone(),
            entries: BTreeMap::new(),
            twice: Vec::new(),
        });
        if merged.rank < rank || *origin < merged.origin {
            (merged.rank, merged.origin) = (rank, origin.clone());
        }
        if of.shape == Shape::List && section.parts.is_empty() && !merged.entries.is_empty() {
            let name = of.section;
            let entries = text::count(merged.entries.len(), "entry");
            let message = format!("`{name}: []` adds nothing to {entries} of lower layers");
            let idle = self.faults.warning("adds-nothing", message, Spot::key(origin));
            idle.help(format!("for none write `ignore_layers: [{name}]`"));
        }
        for part in &section.parts {
            if let Some((key, fields)) = filled(of, part, &self.words, self.faults) {
                merged.entry(layer, key, part, fields);
            }
        }
    }

    /// The result of all layers.
    fn finish(mut self) -> Body {
        let mut body = Body::default();
        for (name, claim) in std::mem::take(&mut self.unlisted) {
            // A rule may set it for containers that have the section; in a document, it is checked
            // later.
            let is_known = name == PROJECTS || self.sections.contains_key(name);
            if is_known || claim.value.origin.layer > Layer::Profile {
                let what = format!("unlisted.{name}");
                body.unlisted.insert(name, claim.settle(&what, self.words.path(), self.faults));
            }
        }
        let watch = std::mem::take(&mut self.watch).into_values().next();
        body.watch = watch.map(|claim| claim.settle("watch", self.words.path(), self.faults));
        for merged in std::mem::take(&mut self.sections).into_values() {
            let Merged { of, origin, entries, twice, .. } = merged;
            let mut parts: Vec<_> =
                entries.into_iter().map(|(key, entry)| self.part(of, key, entry)).collect();
            parts.extend(twice);
            body.sections.push(Section { of, origin, parts });
        }
        self.words.add_to(&mut body);
        body
    }

    /// Reports that two layers of equal rank set `what` differently.
    fn differs(&mut self, what: &str, first: &Origin, other: Option<&Origin>) {
        if let Some(other) = other {
            ambiguous(what, self.words.path(), first, other, self.faults);
        }
    }

    fn part(&mut self, of: kind::Section, key: String, entry: Entry<'_>) -> Part {
        let Entry { origin, state, other, mut sound, fields, .. } = entry;
        self.differs(of.section, &origin, other.as_ref());
        let fields = match fields {
            Fields::Whole(fields) => fields.into_owned(),
            Fields::Slots(slots) => self.values(of, slots, &mut sound),
        };
        let key = OnceLock::from(key);
        Part { origin, state, sound, is_open: false, fields, key }
    }

    /// The fields of `slots`, with every template filled in.
    fn values(
        &mut self,
        of: kind::Section,
        slots: BTreeMap<String, Slot>,
        sound: &mut Sound,
    ) -> Declared {
        let mut fields: BTreeMap<String, (usize, Sourced<Value>)> = BTreeMap::new();
        for slot in slots.into_values() {
            self.differs(&slot.names.join("."), &slot.origin, slot.other.as_ref());
            let Slot { rank, names, value, below, origin, .. } = slot;
            if origin.layer > Layer::Profile {
                self.removes_nothing(of, &names[0], &value, below.as_ref(), &origin);
            }
            let value = changed(of, &names[0], value, below);
            let Some((first, within)) = names.split_first() else { continue };
            let new = || (rank, Sourced { value: Json::Null.into(), origin: origin.clone() });
            let (highest, field) = fields.entry(first.clone()).or_insert_with(new);
            insert(&mut field.value, within, value);
            if *highest < rank || (*highest == rank && origin < field.origin) {
                (*highest, field.origin) = (rank, origin);
            }
        }
        let fill = |(name, (_, mut field)): (String, (usize, Sourced<Value>))| {
            if !fill(of, &name, &mut field, &self.words, self.faults) {
                *sound = Sound::Not;
            }
            (name, field)
        };
        fields.into_iter().map(fill).collect()
    }

    /// Reports what a document takes out of a list that lower layers do not put there.
    fn removes_nothing(
        &mut self,
        of: kind::Section,
        name: &str,
        value: &Value,
        below: Option<&Value>,
        origin: &Origin,
    ) {
        let Some([_, removed]) = change(of, name, value) else { return };
        let below = match below.map(Value::plain) {
            None => &[][..],
            Some(Some(Json::Array(list))) => list,
            Some(_) => return,
        };
        for text in removed.iter().filter(|item| !below.contains(item)).filter_map(Json::as_str) {
            let message = format!("`{name}` has nothing of this to remove");
            let known = below.iter().filter_map(Json::as_str);
            let known: Vec<_> = known.take(FEW).collect();
            let idle = self.faults.warning("no-effect", message, Spot::item(origin, text));
            idle.help(match known.is_empty() {
                true => format!("take it out: no lower layer sets `{name}`"),
                false => format!("write it as lower layers do: {}", text::listed(&known)),
            });
        }
    }
}

impl<'m> Merged<'m> {
    /// Adds the entry `key` of a layer.
    fn entry(&mut self, layer: Place, key: String, part: &'m Part, fields: Cow<'m, Declared>) {
        let (of, rank) = (self.of, layer.rank);
        if part.state == State::Unmanaged
            && let Ok(glob) = Glob::over_names(&key)
        {
            let from = self.entries.range(glob.start().to_owned()..);
            let like = from.take_while(|(key, _)| key.starts_with(glob.start()));
            let lower = like.filter(|(key, entry)| entry.layer.rank < rank && glob.matches(key));
            for key in lower.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
                self.entries.remove(&key);
            }
        }
        let new = |fields: Cow<'m, Declared>| Entry {
            layer,
            origin: part.origin.clone(),
            state: part.state,
            other: None,
            sound: part.sound,
            fields: match part.is_open {
                true => Fields::Slots(slots(of, &fields, rank)),
                false => Fields::Whole(fields),
            },
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            self.entries.insert(key, new(fields));
            return;
        };
        if entry.layer == layer {
            self.twice.push(part.clone());
        } else if part.state == State::Present && entry.state == State::Present {
            entry.combine(of, layer, part, &fields);
        } else if entry.layer.rank < rank {
            *entry = new(fields);
        } else if part.state != entry.state {
            // With either of the two, it is an error.
            entry.other = Some(part.origin.clone());
        }
    }
}

impl<'m> Entry<'m> {
    /// Adds fields.
    fn combine(&mut self, of: kind::Section, layer: Place, part: &Part, fields: &Declared) {
        let lower = std::mem::replace(&mut self.fields, Fields::Slots(BTreeMap::new()));
        let mut all = match lower {
            Fields::Whole(fields) => slots(of, &fields, self.layer.rank),
            Fields::Slots(slots) => slots,
        };
        for (key, slot) in slots(of, fields, layer.rank) {
            claim(of, &mut all, key, slot);
        }
        self.fields = Fields::Slots(all);
        if self.layer.rank < layer.rank || part.origin < self.origin {
            self.origin = part.origin.clone();
        }
        self.layer = layer;
        self.sound = self.sound.min(part.sound);
    }
}

/// The identity of `part`, and its fields with the templates of the identity filled in; `None` if
/// that is a fault.
pub(super) fn filled<'p>(
    of: kind::Section,
    part: &'p Part,
    words: &Words<'_>,
    faults: &mut Faults,
) -> Option<(String, Cow<'p, Declared>)> {
    if !part.is_open || of.identity.is_empty() {
        return Some((part.key(of).to_owned(), Cow::Borrowed(&part.fields)));
    }
    let mut fields: BTreeMap<&str, _> = part.fields.iter().collect();
    let mut is_sound = true;
    for name in of.identity {
        if let Some(field) = fields.get_mut(name) {
            is_sound &= fill(of, name, field, words, faults);
        }
    }
    let key = identity(of, &|name| fields.get(name).map(|field| field.value.clone())).name;
    is_sound.then(|| (key, Cow::Owned(fields.into_iter().collect())))
}

/// The value as a schema sees it, with a reference in the place of each secret within. A secret as a
/// whole needs no check.
fn as_written(value: &Value) -> Option<Cow<'_, Json>> {
    match value {
        Value::Plain(json) => Some(Cow::Borrowed(json)),
        Value::Secret(Reference::Data(data)) => {
            data.to_json(&mut |_| Ok::<_, ()>(json!({"env": "NAME"}))).ok().map(Cow::Owned)
        }
        Value::Secret(_) | Value::File(_) => None,
    }
}

/// The value, or the lists of the conditions in place of a list.
fn lists(value: &Json) -> impl Iterator<Item = &Json> {
    let (one, conditions) = match value {
        Json::Object(object) if object.keys().all(|key| CONDITION.contains(&&**key)) => {
            (None, Some(object.values()))
        }
        json => (Some(json), None),
    };
    one.into_iter().chain(conditions.into_iter().flatten())
}

/// Whether a parameter of `template` has a `$` in front, as other tools write it.
fn keeps_dollar(template: &str) -> bool {
    let mut signs = template.match_indices("${").chain(template.match_indices("%{"));
    signs.any(|(at, sign)| !template[at + sign.len()..].starts_with('{'))
}

/// Whether `template` has a name in double braces, which fill in nothing.
fn keeps_braces(template: &str) -> bool {
    template.match_indices("{{").any(|(at, braces)| {
        let inner = template[at + braces.len()..].split("}}").next().unwrap_or_default();
        let is_expression = inner.strip_prefix(' ').is_some_and(|name| text::is_name(name.trim()));
        let is_meant = is_expression || BUILT_IN.contains(&inner);
        is_meant && !template[..at].ends_with(['$', '%', '{'])
    })
}

/// Fills in every template in the field `name`. Returns whether the result is valid.
fn fill(
    of: kind::Section,
    name: &str,
    field: &mut Sourced<Value>,
    words: &Words<'_>,
    faults: &mut Faults,
) -> bool {
    let (json, spec) = (field.value.plain(), of.table().get(name));
    let is_named = field.value.sources().iter().any(Reference::is_template);
    let is_open = json.is_some_and(|json| match spec {
        Some(spec) if !spec.has_secret_rows() => has_template(&spec.schema, json),
        _ => has_reference(json),
    });
    if !is_open && !is_named {
        return true;
    }
    let template = json.map(ToString::to_string).unwrap_or_default();
    let (code, message, help) = match words.fill_field(of, name, field) {
        Err(unfilled) if words.is_missed(&unfilled) => return false,
        Err(unfilled) => ("template", unfilled.message, Some(unfilled.help)),
        Ok(()) if is_named || spec.is_none() => return true,
        Ok(()) => {
            let written = as_written(&field.value);
            let is_list = spec.is_some_and(|spec| kind::is_list(&spec.schema));
            if is_list && written.as_ref().is_some_and(|json| lists(json).any(Json::is_object)) {
                // It is reported where it is read.
                return false;
            }
            let wrong =
                written.and_then(|json| lists(&json).find_map(|json| refused(of, name, json)));
            let Some(why) = wrong else {
                if keeps_braces(&template) {
                    let message = "`{{` and `}}` are braces, which fill in nothing";
                    let help = "write one brace on each side of the name to fill it in";
                    faults.warning("template", message, Spot::key(&field.origin)).help(help);
                } else if keeps_dollar(&template) {
                    let message = "a `$` or `%` stays in front of what `{...}` fills in";
                    let help = "take it away; write `${{NAME}}` for a variable that jobs expand";
                    faults.warning("template", message, Spot::key(&field.origin)).help(help);
                }
                return true;
            };
            let is_secret = field.value.plain().is_some_and(has_reference);
            let help = if is_secret { NO_REFERENCE } else { "correct the text or its parameters" };
            let message = format!("`{name}` is wrong once it is filled in: {why}");
            ("value", message, Some(help.to_owned()))
        }
    };
    let wrong = faults.error(code, message, Spot::key(&field.origin));
    wrong.help_if(help).label(format!("for `{}`", words.path()));
    false
}
