//! The three forms of a value, and the way from one to another.
//!
//! | form | where | a level | a user | a rule's rows |
//! |---|---|---|---|---|
//! | declared | manifests | `maintainer`, `40` | `alice` | `[{user: alice}]` |
//! | comparable | both sides of a comparison | `maintainer` | `alice` | `[{user_id: 5}]`, live ones with their `id` |
//! | sent | requests | `40` | `user_id: 5` | the rows to add, and the ids of those to remove |

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use sha2::{Digest as _, Sha256};

use super::{Id, Identity, LiveEntry, Names, Section, Spec, Unable, is_list, limits::is_on, needs};
use crate::{
    cause::Cause,
    field::{Codec, Compare, Field, Named, Readback, Route, Secrecy, Tier},
    level::Level,
    operation::created_at,
    planted::Bug,
    text,
    value::{Fields, Json, Object, Value},
};

/// What `declared` names, in each of its fields and in the rows of its lists: by which field, what
/// sort of thing, and its name.
pub fn named_by(section: Section, declared: &Fields) -> Vec<(String, Named, String)> {
    let mut names = Vec::new();
    for (name, value) in declared {
        let Some(spec) = section.table().get(name) else { continue };
        let text = |value: &Json| value.as_str().map(str::to_owned);
        if let Some(named) = spec.field.names {
            let one_or_more = |value: &Json| match value {
                Json::Array(items) => items.iter().filter_map(text).collect(),
                one => Vec::from_iter(text(one)),
            };
            let texts: Vec<_> = value.plain().map(one_or_more).unwrap_or_default();
            names.extend(texts.into_iter().map(|text| (name.clone(), named, text)));
        }
        let rows = value.plain().filter(|_| spec.field.compare == Compare::Rows);
        for row in rows.and_then(Json::as_array).into_iter().flatten() {
            names.extend(spec.parts.iter().filter_map(|(part, field)| {
                Some((name.clone(), field.names?, text(row.get(part)?)?))
            }));
        }
    }
    names
}

/// What tells an entry from others: its identity, in which names are the same in any case, and each
/// other text is as it is compared. What may hold a credential is shown without it.
pub fn identify(section: Section, fields: &Object) -> Identity {
    let part = |name: &&str| {
        let (field, text) = (section.field(name), plain_text(fields.get(*name)?));
        let key = match field.names {
            Some(_) => text.to_lowercase(),
            None => normal(field.compare, &text).into_owned(),
        };
        let shown = match field.secrecy {
            _ if field.names.is_some() || field.compare == Compare::Location => key.clone(),
            Secrecy::Address => text::mask_url(&text).into_owned(),
            _ if field.compare == Compare::PublicKey => fingerprint(&key),
            _ => text,
        };
        Some((shown, key))
    };
    let (shown, keys): (Vec<_>, Vec<_>) = section.identity.iter().filter_map(part).unzip();
    Identity { keys: vec![keys.join("@")], name: shown.join("@"), ..Identity::default() }
}

/// Text in the one form of all texts that `compare` takes for the same.
fn normal(compare: Compare, text: &str) -> Cow<'_, str> {
    match compare {
        Compare::Url => text::normal_url(text).into(),
        Compare::Location => text::location(text).into(),
        Compare::AnyCase => text.to_lowercase().into(),
        Compare::Ref => short_ref(text).into(),
        Compare::PublicKey => public_key(text).into(),
        Compare::Exact | Compare::Set | Compare::Topics | Compare::Rows => text.into(),
    }
}

/// Declared to declared: what the manifest wrote, in the one spelling that is compared and shown.
/// Done once, when a manifest is read.
pub fn normalise(spec: &Spec, declared: &mut Value) {
    let Value::Plain(value) = declared else { return };
    if spec.field.codec == Codec::Level {
        *value = Level::word_of(value);
    }
    if spec.field.compare == Compare::Rows {
        for row in value.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            for (name, _) in spec.parts.iter().filter(|(_, field)| field.codec == Codec::Level) {
                if let Some(level) = row.get_mut(name) {
                    *level = Level::word_of(level);
                }
            }
        }
    }
}

/// Declared to declared: a mapping with its keys under the names that the service has for them. Done
/// once deprecated ones were reported.
pub fn modern(spec: &Spec, declared: &mut Value) {
    let Value::Plain(Json::Object(object)) = declared else { return };
    for (old, field) in &spec.parts {
        if let Some(modern) = &field.replaced_by
            && let Some(value) = object.remove(old)
        {
            object.entry(&**modern).or_insert(value);
        }
    }
}

/// The keys of a condition on a list: what has to be in it, and what must not.
pub const CONDITION: [&str; 2] = ["at_least", "none_of"];

/// Declared to declared: conditions on lists as the lists that come nearest to what is `live` and
/// meet them; nothing if there are no conditions. A list that is not known is taken for empty.
pub fn met(section: Section, declared: &Fields, live: &Object) -> Option<Fields> {
    let met = |(name, value): (&String, &Value)| {
        let condition = value.plain()?.as_object().filter(|object| {
            object.keys().all(|key| CONDITION.contains(&key.as_str())) && !object.is_empty()
        })?;
        section.table().get(name).filter(|spec| is_list(&spec.schema))?;
        let list = |list: Option<&Json>| list.and_then(Json::as_array).cloned().unwrap_or_default();
        let [at_least, none_of] = CONDITION.map(|key| list(condition.get(key)));
        let mut items = list(live.get(name));
        let none_of: HashSet<_> = none_of.iter().collect();
        items.retain(|item| !none_of.contains(item));
        let known: HashSet<_> = items.iter().cloned().collect();
        items.extend(at_least.into_iter().filter(|item| !known.contains(item)));
        Some((name.clone(), Value::Plain(Json::Array(items))))
    };
    let met: Vec<_> = declared.iter().filter_map(met).collect();
    (!met.is_empty()).then(|| {
        let mut fields = declared.clone();
        fields.extend(met);
        fields
    })
}

/// Live to comparable; `None` if the object does not say.
pub fn decode(spec: &Spec, raw: &Object) -> Option<Json> {
    let live = raw.get(spec.field.live_name(&spec.name)?)?;
    Some(match (spec.field.codec, spec.field.compare, live) {
        (Codec::Level, ..) => Level::word_of(live),
        (_, Compare::Rows, Json::Array(rows)) => {
            rows.iter().map(|row| live_row(spec, row)).collect()
        }
        (_, _, Json::Array(named)) if spec.field.names_entries.is_some() => {
            named.iter().filter_map(|thing| thing.get("name").cloned()).collect()
        }
        (_, _, Json::Array(named)) if spec.field.names.is_some() => {
            named.iter().filter_map(|thing| thing.get("id").cloned()).collect()
        }
        _ => live.clone(),
    })
}

/// A live row: what it names, by id, and only without that its level, which the service also gives
/// to rows of users and groups.
fn live_row(spec: &Spec, row: &Json) -> Json {
    let mut found = Object::new();
    if let Some(id) = row.get("id") {
        found.insert("id".into(), id.clone());
    }
    let mut fields: Vec<_> = spec.parts.iter().collect();
    fields.sort_by_key(|(_, field)| field.names.is_none());
    for (name, field) in fields {
        let Some(value) = row.get(field.sent_name(name)).filter(|value| !value.is_null()) else {
            continue;
        };
        let value = if field.codec == Codec::Level { Level::word_of(value) } else { value.clone() };
        found.insert(field.sent_name(name).to_owned(), value);
        break;
    }
    Json::Object(found)
}

/// Declared to comparable: names in rows become ids where they are known.
pub fn comparable(spec: Option<&Spec>, declared: &Json, names: &Names) -> Json {
    match (spec, declared) {
        (Some(spec), Json::Array(rows)) if spec.field.compare == Compare::Rows => {
            rows.iter().map(|row| comparable_row(spec, row, names)).collect()
        }
        (Some(Spec { field: Field { names: Some(named), .. }, .. }), Json::Array(items)) => {
            items.iter().map(|item| comparable_name(*named, item, names)).collect()
        }
        _ => declared.clone(),
    }
}

/// The id of what is named, if it is known.
fn comparable_name(named: Named, name: &Json, names: &Names) -> Json {
    let id = name.as_str().and_then(|name| names.id(named, name));
    id.map_or_else(|| name.clone(), |id| id.sent())
}

fn comparable_row(spec: &Spec, row: &Json, names: &Names) -> Json {
    let fields = spec.parts.iter().filter_map(|(name, field)| {
        let value = row.get(name)?;
        let value =
            field.names.map_or_else(|| value.clone(), |named| comparable_name(named, value, names));
        Some((field.sent_name(name).to_owned(), value))
    });
    Json::Object(fields.collect())
}

/// Comparable to what people read: names where they are known, and no ids of rows.
pub fn shown(spec: Option<&Spec>, comparable: &Json, names: &Names) -> Json {
    let (Some(spec), Json::Array(rows)) = (spec, comparable) else { return comparable.clone() };
    let called = |named, value: &Json| {
        let called = match created_at(value) {
            Some(path) => Some(path),
            None => names.name(named, value.as_u64()?),
        };
        called.map(|name| Json::from(name.to_owned()))
    };
    if let Some(named) = spec.field.names {
        return rows.iter().map(|id| called(named, id).unwrap_or_else(|| id.clone())).collect();
    }
    if spec.field.compare != Compare::Rows {
        return comparable.clone();
    }
    let row = |row: &Json| {
        let fields = spec.parts.iter().filter_map(|(name, field)| {
            let value = row.get(field.sent_name(name))?;
            let known = field.names.filter(|_| !value.is_string());
            let known = known.map(|named| called(named, value));
            Some(match known {
                Some(Some(known)) => (name.to_owned(), known),
                Some(None) => (field.sent_name(name).to_owned(), value.clone()),
                None => (name.to_owned(), value.clone()),
            })
        });
        Json::Object(fields.collect())
    };
    rows.iter().map(row).collect()
}

/// The ids by which `comparable` fields name users and groups, in their lists and in the rows of
/// their lists: what [`shown`] needs the names of.
pub fn ids_in(section: Section, comparable: &Object) -> Vec<(Named, u64)> {
    let mut ids = Vec::new();
    for (name, value) in comparable {
        let (Some(spec), Json::Array(items)) = (section.table().get(name), value) else { continue };
        if let Some(named) = spec.field.names {
            ids.extend(items.iter().filter_map(|id| Some((named, id.as_u64()?))));
        }
        for row in items.iter().filter(|_| spec.field.compare == Compare::Rows) {
            ids.extend(spec.parts.iter().filter_map(|(part, field)| {
                Some((field.names?, row.get(field.sent_name(part))?.as_u64()?))
            }));
        }
    }
    ids
}

/// Declared to sent: the fields that `route` accepts, under the names and in the form that requests
/// use.
///
/// # Errors
/// If one names something that the service does not know.
pub fn body(
    section: Section,
    declared: &Fields,
    route: Route,
    names: &Names,
) -> Result<Fields, Unable> {
    let accepted = declared.iter().filter(|(name, _)| section.field(name).accepted.on(route));
    let accepted = without_unset_twins(section, accepted.collect());
    accepted.into_iter().map(|(name, value)| sent(section, name, value, names)).collect()
}

/// `fields` without those that say nothing and whose request the service would refuse for what
/// stands beside them ([`Field::not_with`]).
fn without_unset_twins<'d>(
    section: Section,
    fields: Vec<(&'d String, &'d Value)>,
) -> Vec<(&'d String, &'d Value)> {
    let excludes = |one: &str, other: &str| section.field(one).not_with.as_deref() == Some(other);
    let twins =
        |name: &str| fields.iter().any(|(other, _)| excludes(name, other) || excludes(other, name));
    let is_kept = |(name, value): &(&String, &Value)| is_on(value) || !twins(name);
    fields.iter().copied().filter(is_kept).collect()
}

/// The body of an edit: what changes, what is declared of what the service would reset, and what it
/// would forget.
///
/// # Errors
/// As [`body`].
pub fn edit_body(
    section: Section,
    declared: &Fields,
    live: &LiveEntry,
    changed: &[&str],
    names: &Names,
) -> Result<Fields, Unable> {
    let sent_fields = declared.iter().filter(|(name, _)| {
        let field = section.field(name);
        // What cannot be compared is not changed along with something else.
        field.accepted.on(Route::Edit)
            && (changed.contains(&name.as_str())
                || (field.with_every_edit && !is_hidden(field, live))
                || is_forgotten(field, changed)
                || (goes_along(field, declared, changed)
                    && !section.identity.contains(&name.as_str())))
    });
    let mut body = Fields::new();
    for (name, value) in without_unset_twins(section, sent_fields.collect()) {
        let (sent_name, mut value) = sent(section, name, value, names)?;
        if section.field(name).compare == Compare::Rows
            && let Value::Plain(rows) = &value
        {
            value = Value::Plain(delta(section.table().get(name), rows, live.fields.get(name)));
        }
        body.insert(sent_name, value);
    }
    let known = |name: &str| {
        let found = || live.fields.get(name).map(|value| Value::Plain(value.clone()));
        declared.get(name).cloned().or_else(found)
    };
    add_needed(section, &mut body, known, names)?;
    Ok(body)
}

/// Adds to the body of an edit what its fields are refused without, as far as it is `known`.
pub fn add_needed(
    section: Section,
    body: &mut Fields,
    known: impl Fn(&str) -> Option<Value>,
    names: &Names,
) -> Result<(), Unable> {
    for spec in section.table().specs() {
        let is_carried = body.contains_key(spec.field.sent_name(&spec.name));
        let switch = needs::beside(&spec.field).filter(|_| is_carried);
        let Some(switch) = switch.and_then(|name| section.table().get(name)) else { continue };
        if body.contains_key(switch.field.sent_name(&switch.name)) {
            continue;
        }
        if let Some(value) = known(&switch.name) {
            body.extend([sent(section, &switch.name, &value, names)?]);
        }
    }
    Ok(())
}

/// Whether a change of `changed` makes the service forget a field.
pub fn is_forgotten(field: &Field, changed: &[&str]) -> bool {
    field.forgotten_with.as_deref().is_some_and(|other| changed.contains(&other))
        && !Bug::ForgetToken.is_planted()
}

/// Whether an edit that changes `changed` switches on what a field limits.
pub fn goes_along(field: &Field, declared: &Fields, changed: &[&str]) -> bool {
    let Some(limits) = &field.limits else { return false };
    changed.contains(&&*limits.switch) && declared.get(&*limits.switch).is_some_and(is_on)
}

/// Whether the service shows `null` in the place of the value that a field of `live` has.
pub fn is_hidden(field: &Field, live: &LiveEntry) -> bool {
    let hides = |flag| live.fields.get(flag) == Some(&Json::Bool(true));
    field.hidden_by.as_deref().is_some_and(hides)
}

/// Whether a literal value of `field`, declared along with `values`, is not shown although it is in
/// Git: whoever wants it masked in job logs does not want it in undrift's output either.
pub fn is_kept_back(field: &Field, values: &Fields) -> bool {
    let is_on = |flag: &str| values.get(flag).and_then(Value::plain) == Some(&Json::Bool(true));
    field.secrecy == Secrecy::Sensitive
        && (is_on("masked") || field.hidden_by.as_deref().is_some_and(is_on))
}

/// What an edit has to repeat of `live`, because the service would reset it.
///
/// # Errors
/// If the answer lacks some of that, and nobody declares it.
pub fn repeated(
    section: Section,
    declared: &Fields,
    live: &LiveEntry,
    names: &Names,
) -> Result<Object, Unable> {
    if Bug::RepeatNothing.is_planted() {
        return Ok(Object::new());
    }
    let is_repeated = |spec: &&Spec| spec.field.with_every_edit;
    let open = |spec: &&Spec| is_repeated(spec) && !declared.contains_key(&spec.name);
    if let Some(lacking) = lacking(section, live, open) {
        let cause = Cause::new(format!("{lacking}, which this edit would reset"));
        return Err(Unable::Unseen(cause.help("declare it, and the edit sends what is declared")));
    }
    let repeated = section.table().specs().iter().filter(is_repeated).filter_map(|spec| {
        let value = live.fields.get(&spec.name).filter(|value| !value.is_null())?;
        let (name, sent) = sent(section, &spec.name, &value.clone().into(), names).ok()?;
        Some((name, sent.plain()?.clone()))
    });
    Ok(repeated.collect())
}

/// Which of the fields that `has_to_be_known` the service has and the answer lacks all the same, if
/// there are any. What may be null is null where it is left out; what came after the reference's
/// release is not there where it is left out. See also [`LiveEntry::tier`].
pub fn lacking(
    section: Section,
    live: &LiveEntry,
    has_to_be_known: impl Fn(&&'static Spec) -> bool,
) -> Option<String> {
    let is_shown = |spec: &&Spec| {
        matches!(spec.field.read, Readback::Same | Readback::As(_))
            && !spec.field.nullable
            && !spec.field.is_late()
            && spec.field.tier <= live.tier
    };
    let specs = section.table().specs().iter().filter(is_shown).filter(has_to_be_known);
    let lacking = specs.filter(|spec| !live.fields.contains_key(&spec.name));
    let lacking: Vec<_> = lacking.map(|spec| spec.name.as_str()).collect();
    (!lacking.is_empty()).then(|| format!("the service's answer lacks {}", text::listed(&lacking)))
}

/// The highest tier that whom a live row names tells of: of a field of rows that only this tier has.
pub fn tier_of_rows(spec: &Spec, raw: &Object) -> Option<Tier> {
    let rows = spec.field.live_name(&spec.name).and_then(|name| raw.get(name)?.as_array());
    let rows = rows.filter(|_| spec.field.compare == Compare::Rows)?;
    let is_set = |name: &str| rows.iter().any(|row| row.get(name).is_some_and(|it| !it.is_null()));
    let parts = spec.parts.iter().filter(|(name, field)| is_set(field.sent_name(name)));
    parts.map(|(_, field)| field.tier).max()
}

/// One field as requests carry it.
pub fn sent(
    section: Section,
    name: &str,
    value: &Value,
    names: &Names,
) -> Result<(String, Value), Unable> {
    let field = section.field(name);
    let sent_name = field.sent_name(name).to_owned();
    let Value::Plain(plain) = value else { return Ok((sent_name, value.clone())) };
    let sent = match (field.names, plain) {
        (Some(named), Json::String(text)) => known(named, text, names, name)?,
        (Some(named), Json::Array(items)) => items
            .iter()
            .map(|item| match item {
                Json::String(text) => known(named, text, names, name),
                id => Ok(id.clone()),
            })
            .collect::<Result<_, _>>()?,
        (None, Json::Array(items)) if field.names_entries.is_some() => {
            let section = field.names_entries.as_deref().unwrap_or_default();
            entries_sent(section, items, names, name)?
        }
        _ if field.compare == Compare::Rows => rows_sent(section, name, plain, names)?,
        _ if field.codec == Codec::Level => Level::number_of(plain),
        _ => cleared(plain),
    };
    Ok((sent_name, Value::Plain(sent)))
}

fn known(named: Named, name: &str, names: &Names, field: &str) -> Result<Json, Unable> {
    names.id(named, name).map(|id| id.sent()).ok_or_else(|| Unable::unknown(named, name, field))
}

/// The ids of entries of another section.
fn entries_sent(section: &str, named: &[Json], names: &Names, field: &str) -> Result<Json, Unable> {
    let known = match names.entries(section) {
        None => return Err(Unable::DependsOnEntries(section.to_owned())),
        Some(Err(cause)) => return Err(Unable::Unseen(cause.clone())),
        Some(Ok(known)) => known,
    };
    let id = |name: &Json| {
        let name = plain_text(name);
        known.get(&name).map(Id::sent).ok_or_else(|| Unable::no_entry(section, &name, field))
    };
    named.iter().map(id).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

fn rows_sent(section: Section, name: &str, rows: &Json, names: &Names) -> Result<Json, Unable> {
    let (Some(spec), Some(rows)) = (section.table().get(name), rows.as_array()) else {
        return Ok(rows.clone());
    };
    let row = |row: &Json| {
        let mut fields = Object::new();
        for (part, field) in &spec.parts {
            let sent_name = field.sent_name(part);
            let Some(value) = row.get(part).or_else(|| row.get(sent_name)) else { continue };
            let value = match (field.names, value) {
                (Some(named), Json::String(text)) => known(named, text, names, name)?,
                _ if field.codec == Codec::Level => Level::number_of(value),
                _ => value.clone(),
            };
            fields.insert(sent_name.to_owned(), value);
        }
        Ok(Json::Object(fields))
    };
    rows.iter().map(row).collect::<Result<Vec<_>, _>>().map(Json::Array)
}

/// What turns the live rows into `wanted`: those to add, and those to remove by their id. A row
/// that is not mentioned stays.
fn delta(spec: Option<&Spec>, wanted: &Json, live: Option<&Json>) -> Json {
    let live: Vec<_> = live.and_then(Json::as_array).into_iter().flatten().collect();
    let wanted: Vec<_> = wanted.as_array().into_iter().flatten().collect();
    let levels = spec.into_iter().flat_map(|spec| &spec.parts);
    let levels: Vec<_> = levels.filter(|(_, field)| field.codec == Codec::Level).collect();
    let numbered = |row: &Json| {
        let mut row = without_id(row);
        for (name, field) in &levels {
            if let Some(level) = row.get_mut(field.sent_name(name)) {
                *level = Level::number_of(level);
            }
        }
        Json::Object(row)
    };
    let added = wanted.iter().filter(|row| !live.iter().any(|live| numbered(live) == ***row));
    let removed = live.iter().filter(|live| !wanted.iter().any(|row| numbered(live) == **row));
    let removed =
        removed.filter_map(|row| Some(serde_json::json!({"id": row.get("id")?, "_destroy": true})));
    removed.chain(added.map(|row| (*row).clone())).collect()
}

fn without_id(row: &Json) -> Object {
    let mut row = row.as_object().cloned().unwrap_or_default();
    row.remove("id");
    row
}

/// A comparable value without the rows that name one of `ids`.
pub fn without_rows_of(spec: &Spec, comparable: &mut Json, named: Named, ids: &[u64]) {
    if spec.field.compare != Compare::Rows {
        return;
    }
    let names: Vec<_> = spec
        .parts
        .iter()
        .filter(|(_, field)| field.names == Some(named))
        .map(|(name, field)| field.sent_name(name).to_owned())
        .collect();
    let names_one = |row: &Json| {
        let id = names.iter().find_map(|name| row.get(name)?.as_u64());
        id.is_some_and(|id| ids.contains(&id))
    };
    if let Some(rows) = comparable.as_array_mut() {
        rows.retain(|row| !names_one(row));
    }
}

/// `null` is sent as empty text: both clear a text, and clients of the service that send `null`
/// mean "not set" by it. So it is within a mapping.
fn cleared(value: &Json) -> Json {
    match value {
        Json::Null => "".into(),
        Json::Object(object) => {
            object.iter().map(|(name, value)| (name.clone(), cleared(value))).collect()
        }
        _ => value.clone(),
    }
}

/// The fields of a body whose values no text may quote.
pub fn sensitive(section: Section) -> Vec<String> {
    let specs = section.table().specs().iter();
    let secret = specs.filter(|spec| spec.field.secrecy != Secrecy::Open);
    secret.map(|spec| spec.field.sent_name(&spec.name).to_owned()).collect()
}

/// The fields of a body that name things by their id.
pub fn naming(section: Section) -> Vec<String> {
    let specs = section.table().specs().iter();
    let naming = specs.filter(|Spec { field, .. }| {
        field.names.is_some() || field.names_entries.is_some() || field.compare == Compare::Rows
    });
    naming.map(|spec| spec.field.sent_name(&spec.name).to_owned()).collect()
}

/// Whether a declared and a live value, both comparable, are the same: mappings by the keys that
/// are declared; `null` is what is not set, so it equals empty text, and a live one equals `false`.
pub fn same(compare: Compare, declared: &Json, live: &Json) -> bool {
    match (declared, live) {
        (Json::Null, Json::String(text)) | (Json::String(text), Json::Null) => text.is_empty(),
        (Json::Bool(declared), Json::Null) => !declared,
        (Json::Object(declared), Json::Object(live)) => declared
            .iter()
            .all(|(name, value)| same(compare, value, live.get(name).unwrap_or(&Json::Null))),
        (Json::Array(declared), Json::Array(live)) if compare == Compare::Set => {
            let known: HashSet<_> = live.iter().collect();
            declared.len() == live.len() && declared.iter().all(|value| known.contains(value))
        }
        (Json::Array(declared), Json::Array(live)) if compare == Compare::Topics => {
            topics(declared) == topics(live)
        }
        (Json::Array(declared), Json::Array(live)) if compare == Compare::Rows => {
            let is_in = |row: &Json, rows: &[Json]| {
                rows.iter().any(|other| without_id(other) == without_id(row))
            };
            declared.iter().all(|row| is_in(row, live))
                && live.iter().all(|row| is_in(row, declared))
        }
        (Json::Array(declared), Json::Array(live)) => {
            declared.len() == live.len()
                && declared.iter().zip(live).all(|(declared, live)| same(compare, declared, live))
        }
        (Json::Number(declared), Json::Number(live)) => declared.as_f64() == live.as_f64(),
        (Json::String(declared), Json::String(live)) => {
            normal(compare, declared) == normal(compare, live)
        }
        _ => declared == live,
    }
}

/// Topics as the service tells them apart.
fn topics(list: &[Json]) -> BTreeSet<String> {
    let texts = list.iter().filter_map(Json::as_str).flat_map(|text| text.split(','));
    texts.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty()).collect()
}

/// The name of a branch alone; anything else as it is.
fn short_ref(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// An SSH key without its comment.
fn public_key(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// What tools for SSH call a key; the key itself, if it is none.
fn fingerprint(key: &str) -> String {
    let material = key.split_once(' ').and_then(|(_, material)| STANDARD.decode(material).ok());
    let digest =
        |bytes: Vec<u8>| format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(bytes)));
    material.map_or_else(|| key.to_owned(), digest)
}

/// A scalar as plain text.
pub fn plain_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The twin of a deprecated boolean: `issues_enabled` is `issues_access_level` other than
/// `disabled`.
pub fn enabled(level: &Json) -> Option<bool> {
    level.as_str().map(|level| level != "disabled")
}

/// The plain fields among `fields`.
pub fn plain(fields: &Fields) -> Object {
    let plain = |(name, value): (&String, &Value)| Some((name.clone(), value.plain()?.clone()));
    fields.iter().filter_map(plain).collect()
}
