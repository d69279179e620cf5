//! The fields of collection entries: their types, and how calls set their values.

use super::prelude::*;
use crate::attributes::{leaked, leaked_list};

/// The type of object to which an id refers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferencedType {
    /// A user.
    User,
    /// A group.
    Group,
    /// A project.
    Project,
}

impl ReferencedType {
    /// The username or full path of the object with this id; null if the object no longer exists.
    pub(super) fn find_name(self, call: &Call<'_>, id: &Value) -> Result<Value> {
        let id = id.as_i64().unwrap_or_default();
        Ok(match self {
            Self::User => User::find_by_id(call.db, id)?.map(|user| user.username),
            Self::Group => Namespace::find_by_id(call.db, id)?.map(|group| group.full_path),
            Self::Project => Project::find_by_id(call.db, id)?.map(|project| project.full_path),
        }
        .into())
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FieldType {
    /// Text.
    Text,
    /// An integer.
    Integer,
    /// A boolean.
    Flag,
    /// A day.
    Day,
    /// A time. A day means the beginning of the day.
    Time,
    /// A day; a text that is not a day becomes null.
    LooseDay,
    /// One of these words.
    Word(#[serde(borrow, deserialize_with = "leaked_list")] &'static [&'static str]),
    /// A list of some of these words.
    Words(#[serde(borrow, deserialize_with = "leaked_list")] &'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of ids.
    Ids,
    /// The id of an object. Responses contain the username or full path of the object instead.
    Reference(ReferencedType),
    /// A list of objects (rows), each with one of these keys. In responses each row has an id. An
    /// edit contains new rows without `id`, changed rows with `id`, and removed rows with `id` and
    /// `_destroy`. A create may send a single row: the second value names the parameter for its
    /// first key.
    #[serde(skip)]
    Rows(&'static [&'static str], &'static str),
}

/// A field of an entry.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RowField {
    /// The name of the field in requests.
    pub name: &'static str,
    /// The name of the field in responses, if it differs; empty if responses omit the field.
    pub answer_name: Option<&'static str>,
    /// The type of the field.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// The value of the field in a new entry if the call omits the field.
    #[serde(deserialize_with = "leaked")]
    pub default: &'static Value,
    /// True if an edit ignores the field.
    pub is_create_only: bool,
    /// True if an edit that omits the field resets it to its default.
    pub is_reset_by_edit: bool,
    /// True if spaces around the value are removed.
    pub is_trimmed: bool,
    /// The lowest licence with this field.
    pub tier: ServiceTier,
    /// The lowest licence with which groups accept this field.
    pub group_tier: ServiceTier,
    /// The first release with this field.
    pub since: Option<Release>,
    /// The release that removed this field.
    pub until: Option<Release>,
}

impl Default for RowField {
    fn default() -> Self {
        Self::new("", FieldType::Text)
    }
}

impl RowField {
    /// A field with the same name in requests and responses. The value is null by default, and an
    /// edit that omits the field does not change it.
    pub const fn new(name: &'static str, field_type: FieldType) -> Self {
        Self {
            name,
            answer_name: None,
            field_type,
            default: &Value::Null,
            is_create_only: false,
            is_reset_by_edit: false,
            is_trimmed: false,
            tier: ServiceTier::Free,
            group_tier: ServiceTier::Free,
            since: None,
            until: None,
        }
    }

    /// The name of the field in responses; empty if responses omit the field.
    pub(super) fn name_in_responses(&self) -> &'static str {
        self.answer_name.unwrap_or(self.name)
    }

    pub(super) fn is_available(&self, call: &Call<'_>) -> bool {
        call.tier() >= self.tier
            && self.since.is_none_or(|since| call.release() >= since)
            && self.until.is_none_or(|until| call.release() < until)
    }

    /// True if the call sets this field, and this release and tier have it.
    pub(super) fn is_set_by_call(&self, call: &Call<'_>, is_new: bool) -> bool {
        let is_single_row_sent = matches!(self.field_type, FieldType::Rows(_, single_name) if is_new && call.has(single_name));
        (call.has(self.name) || is_single_row_sent)
            && self.is_available(call)
            && (call.tier() >= self.group_tier || !call.is_group_operation())
    }

    /// Reads the new value from the call. A list of rows also depends on the stored value.
    pub(super) fn read_value(
        &self,
        call: &Call<'_>,
        stored_value: Option<&Value>,
    ) -> Result<Value> {
        let (params, name) = (&call.params, self.name);
        Ok(match self.field_type {
            FieldType::Text if self.is_trimmed => {
                params.text(name)?.map(|text| text.trim().to_owned()).into()
            }
            FieldType::Text => params.text(name)?.into(),
            FieldType::Integer | FieldType::Reference(_) => params.integer(name)?.into(),
            FieldType::Flag => params.flag(name)?.into(),
            FieldType::Day => params.date_text(name)?.into(),
            FieldType::Time => params.time_or_day(name)?.map(clock::format_time).into(),
            FieldType::LooseDay => {
                let day = params.date(name).unwrap_or_default().flatten();
                day.map(|day| day.to_string()).into()
            }
            FieldType::Word(words) => params.allowed_text(name, words)?.into(),
            FieldType::Words(words) => {
                let requested_words = params.allowed_texts(name, words)?.unwrap_or_default();
                // The service stores the words as flags. Responses therefore have the order of
                // `words`.
                let ordered_words = words
                    .iter()
                    .filter(|word| requested_words.iter().any(|requested| requested == **word));
                ordered_words.copied().collect()
            }
            FieldType::Texts => params.texts(name)?.unwrap_or_default().into(),
            FieldType::Ids => params.integers(name)?.unwrap_or_default().into(),
            FieldType::Rows(keys, single_name) => {
                let make_row = |stored_row: Option<&Value>, element: &Value, _| {
                    let mut row = json!({"id": row_id_or_next(call, stored_row)?});
                    keys.iter().for_each(|key| row[*key] = element[*key].clone());
                    Ok(Some(row))
                };
                let mut rows = apply_row_changes(
                    call,
                    name,
                    stored_value.cloned().unwrap_or_default(),
                    make_row,
                )?;
                if let (None, Some(single_value)) = (stored_value, params.get(single_name)) {
                    rows.extend(make_row(None, &json!({ keys[0]: single_value }), false)?);
                }
                rows.into()
            }
        })
    }
}

/// Applies the changes in a call to a list of rows. An element without `id` adds a row. An element
/// with `id` changes the row with this id, or removes it if the element has `_destroy`. `make_row`
/// gets the stored row (`None` for a new row), the element, and true for a removal. It returns the
/// changed row, or `None` to omit the row.
pub(super) fn apply_row_changes(
    call: &Call<'_>,
    list_name: &str,
    stored_rows: Value,
    make_row: impl Fn(Option<&Value>, &Value, bool) -> Result<Option<Value>>,
) -> Result<Vec<Value>> {
    let mut rows = stored_rows.as_array().cloned().unwrap_or_default();
    let Some(changes) = call.array(list_name)? else { return Ok(rows) };
    refuse_if(!changes.iter().all(Value::is_object), || {
        ErrorResponse::invalid_parameter(list_name)
    })?;
    for change in changes {
        let Some(id) = read_integer(&format!("{list_name}[id]"), &change["id"])? else {
            rows.extend(make_row(None, change, false)?);
            continue;
        };
        let index = rows.iter().position(|element| element["id"] == id).or_no_record()?;
        let is_removal = read_flag("_destroy", &change["_destroy"])? == Some(true);
        match make_row(Some(&rows[index]), change, is_removal)? {
            Some(row) if !is_removal => rows[index] = row,
            _ => drop(rows.remove(index)),
        }
    }
    Ok(rows)
}

/// The errors for keys that an item of a list lacks.
pub(super) fn missing_key_errors(
    list_name: &str,
    index: usize,
    item: &Value,
    names: [&str; 2],
) -> Vec<String> {
    let missing_names = names.into_iter().filter(|name| item.get(name).is_none());
    missing_names.map(|name| format!("{list_name}[{index}][{name}] is missing")).collect()
}

/// The id of a stored row, or the next id for a new row.
pub(super) fn row_id_or_next(call: &Call<'_>, stored_row: Option<&Value>) -> Result<i64> {
    stored_row.and_then(|row| row["id"].as_i64()).map_or_else(|| next_row_id(call), Ok)
}

/// The next id of a grant, or of a row in a list. All collections share one counter.
pub(super) fn next_row_id(call: &Call<'_>) -> Result<i64> {
    let sql = "INSERT INTO meta (key, value) VALUES ('grants of environments', 1)
               ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING CAST (value AS INTEGER)";
    call.query_value(sql, [])
}
