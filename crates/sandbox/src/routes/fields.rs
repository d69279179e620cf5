//! The fields of entries of collections: their types, and their values in calls.

use super::prelude::*;

/// The type of object to which an id refers.
#[derive(Clone, Copy, Debug)]
pub enum ReferencedRow {
    /// A user.
    User,
    /// A group.
    Group,
    /// A project.
    Project,
}

impl ReferencedRow {
    /// Its name; null if it no longer exists.
    pub(super) fn shown_name(self, call: &Call<'_>, id: &Value) -> Result<Value> {
        let id = id.as_i64().unwrap_or_default();
        Ok(match self {
            Self::User => User::by_id(call.db, id)?.map(|user| user.username),
            Self::Group => Namespace::by_id(call.db, id)?.map(|group| group.full_path),
            Self::Project => Project::by_id(call.db, id)?.map(|project| project.full_path),
        }
        .into())
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Form {
    /// Text.
    Text,
    /// An integer.
    Integer,
    /// A boolean.
    Flag,
    /// A day.
    Day,
    /// A time, or the beginning of a day.
    Time,
    /// A day; another text counts as null.
    LooseDay,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A list of some of these words.
    Words(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of ids.
    Ids,
    /// The id of an object that answers show by its username or full path.
    Named(ReferencedRow),
    /// A list of objects (rows), each with one of these keys. In answers each row has an id. An edit
    /// contains new rows without `id`, changed rows with `id`, and removed rows with `id` and
    /// `_destroy`. A create may send a single row with the first key under another name.
    Rows(&'static [&'static str], &'static str),
}

/// A field of an entry.
#[derive(Clone, Copy, Debug)]
pub struct RowField {
    /// Its name in requests.
    pub name: &'static str,
    /// Its name in answers; empty if they omit it.
    pub answer_name: &'static str,
    /// Its type.
    pub form: Form,
    /// Its value in a new entry that omits it, as JSON.
    pub preset: &'static str,
    /// True if an edit ignores it.
    pub is_create_only: bool,
    /// True if an edit that omits it resets it to its preset.
    pub is_reset_by_edit: bool,
    /// True if spaces around it are removed.
    pub is_trimmed: bool,
    /// The lowest licence with this field.
    pub tier: AttributeTier,
    /// The first release with this field.
    pub since: Option<Release>,
    /// The first release without it again.
    pub until: Option<Release>,
}

impl RowField {
    /// A field with the same name in requests and answers, null by default, and unchanged by an
    /// edit that omits it.
    pub const fn new(name: &'static str, form: Form) -> Self {
        Self {
            name,
            answer_name: name,
            form,
            preset: "null",
            is_create_only: false,
            is_reset_by_edit: false,
            is_trimmed: false,
            tier: AttributeTier::Free,
            since: None,
            until: None,
        }
    }

    pub(super) fn exists(&self, call: &Call<'_>) -> bool {
        call.tier() >= self.tier
            && self.since.is_none_or(|since| call.release() >= since)
            && self.until.is_none_or(|until| call.release() < until)
    }

    pub(super) fn preset(&self) -> Value {
        serde_json::from_str(self.preset).unwrap_or_default()
    }

    /// True if the call contains it.
    pub(super) fn is_sent(&self, call: &Call<'_>, is_new: bool) -> bool {
        let is_sent_alone =
            matches!(self.form, Form::Rows(_, alone) if is_new && call.params.has(alone));
        (call.params.has(self.name) || is_sent_alone) && self.exists(call)
    }

    /// The value in the call, given the stored one.
    pub(super) fn sent_value(&self, call: &Call<'_>, stored: Option<&Value>) -> Result<Value> {
        let (params, name) = (&call.params, self.name);
        Ok(match self.form {
            Form::Text if self.is_trimmed => {
                params.text(name)?.map(|text| text.trim().to_owned()).into()
            }
            Form::Text => params.text(name)?.into(),
            Form::Integer | Form::Named(_) => params.integer(name)?.into(),
            Form::Flag => params.flag(name)?.into(),
            Form::Day => params.date_text(name)?.into(),
            Form::Time => params.time_or_day(name)?.map(clock::format_time).into(),
            Form::LooseDay => {
                let day = params.date(name).unwrap_or_default().flatten();
                day.map(|day| day.to_string()).into()
            }
            Form::Word(words) => params.allowed_text(name, words)?.into(),
            Form::Words(words) => {
                let sent_words = params.allowed_texts(name, words)?.unwrap_or_default();
                // They are stored as flags, so answers have the order of the list.
                let is_sent =
                    words.iter().filter(|word| sent_words.iter().any(|sent| sent == **word));
                is_sent.copied().collect()
            }
            Form::Texts => params.texts(name)?.unwrap_or_default().into(),
            Form::Ids => params.integers(name)?.unwrap_or_default().into(),
            Form::Rows(keys, alone) => {
                let row = |before: Option<&Value>, row_sent: &Value, _| {
                    let mut row = json!({"id": row_id(call, before)?});
                    keys.iter().for_each(|key| row[*key] = row_sent[*key].clone());
                    Ok(Some(row))
                };
                let mut rows = change_rows(call, name, stored.cloned().unwrap_or_default(), row)?;
                if let (None, Some(level)) = (stored, params.get(alone)) {
                    rows.extend(row(None, &json!({ keys[0]: level }), false)?);
                }
                rows.into()
            }
        })
    }
}

/// A list of rows after the changes of a call: an element without `id` adds a row, one with `id`
/// changes that row, and one with `_destroy` removes it. `make_row` makes a row from the stored one,
/// if there is one, and the element; it returns `None` to omit the row.
pub(super) fn change_rows(
    call: &Call<'_>,
    list: &str,
    stored: Value,
    make_row: impl Fn(Option<&Value>, &Value, bool) -> Result<Option<Value>>,
) -> Result<Vec<Value>> {
    let mut elements = stored.as_array().cloned().unwrap_or_default();
    let Some(changes) = call.params.array(list)? else { return Ok(elements) };
    refuse_if(!changes.iter().all(Value::is_object), || ErrorResponse::invalid(list))?;
    for change in changes {
        let Some(id) = read_integer(&format!("{list}[id]"), &change["id"])? else {
            elements.extend(make_row(None, change, false)?);
            continue;
        };
        let index = elements
            .iter()
            .position(|element| element["id"] == id)
            .ok_or_else(ErrorResponse::no_record)?;
        let removes = read_flag("_destroy", &change["_destroy"])? == Some(true);
        match make_row(Some(&elements[index]), change, removes)? {
            Some(row) if !removes => elements[index] = row,
            _ => drop(elements.remove(index)),
        }
    }
    Ok(elements)
}

/// The complaints about members that an item of a list lacks.
pub(super) fn missing_member_faults(
    list: &str,
    index: usize,
    item: &Value,
    names: [&str; 2],
) -> Vec<String> {
    let absent = names.into_iter().filter(|name| item.get(name).is_none());
    absent.map(|name| format!("{list}[{index}][{name}] is missing")).collect()
}

/// The id of a row in a list of an entry.
pub(super) fn row_id(call: &Call<'_>, stored_row: Option<&Value>) -> Result<i64> {
    stored_row.and_then(|before| before["id"].as_i64()).map_or_else(|| next_row_id(call), Ok)
}

/// The next id of a grant or of a row in a list. They are shared by all collections.
pub(super) fn next_row_id(call: &Call<'_>) -> Result<i64> {
    let sql = "INSERT INTO meta (key, value) VALUES ('grants of environments', 1)
               ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING CAST (value AS INTEGER)";
    call.query_value(sql, [])
}
