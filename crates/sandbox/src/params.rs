//! The parameters of a call from all its sources: query, form, JSON or multipart (reference 1, 1).
//!
//! Names with brackets are nested (`filter[environment_scope]=prod`, `topics[]=rust`). Real clients
//! also send such names as literal keys of a JSON object. Parameters that no handler reads are
//! ignored. Values of forms are strings, and every reader converts them: `true`, `"true"` and `"1"`
//! are the same boolean.

use crate::prelude::*;
use url::form_urlencoded;

/// The maximum number of parameters of a call, and the maximum depth of names in brackets. The
/// limits bound the work that a hostile client can cause; real clients need far less.
const MAX_PARAMETERS: usize = 2_000;
const MAX_NAME_DEPTH: usize = 8;
/// The maximum depth of a JSON body.
const MAX_JSON_DEPTH: usize = 64;

/// A file in a part of a multipart body.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The name of the form field.
    pub(crate) field: String,
    /// The last segment of the client's file name.
    pub(crate) file_name: String,
    /// The content.
    pub(crate) bytes: Bytes,
}

/// A requirement on a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamRequirement<'a> {
    /// The parameter must be sent; null is enough.
    Present(&'a str),
    /// The parameter must be sent, and be neither null nor empty.
    NotBlank(&'a str),
    /// The parameter must be sent with an allowed value. The list of values is checked later, when
    /// the value is read. A missing value also gets the error of a value that is not in the list.
    AllowedValue(&'a str),
    /// At least one of these parameters must be sent; null is enough.
    AnyOf(&'a [&'a str]),
}

impl ParamRequirement<'_> {
    /// The errors of a call that does not satisfy this requirement.
    pub(crate) fn errors(&self, params: &Params) -> Vec<String> {
        let (Self::Present(name) | Self::NotBlank(name) | Self::AllowedValue(name)) = self else {
            let Self::AnyOf(names) = self else { return Vec::new() };
            let error = format!("{} {NONE_SENT_TEXT}", names.join(", "));
            let is_any_sent = names.iter().any(|name| params.has(name));
            return if is_any_sent { Vec::new() } else { vec![error] };
        };
        let value = params.get(name);
        let missing_error = value.is_none().then(|| format!("{name} is missing"));
        let value_error = match self {
            Self::NotBlank(_) => value.is_none_or(is_blank).then(|| format!("{name} is empty")),
            Self::AllowedValue(_) => value
                .is_none_or(Value::is_null)
                .then(|| format!("{name} does not have a valid value")),
            Self::Present(_) | Self::AnyOf(_) => None,
        };
        missing_error.into_iter().chain(value_error).collect()
    }
}

/// True if a value is null, or a text that is empty or has only spaces.
fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The message if none of several parameters was sent.
pub(crate) const NONE_SENT_TEXT: &str = "are missing, at least one parameter must be provided";

/// All parameters of a call. Parameters in the body override parameters in the query.
#[derive(Debug, Default)]
pub(crate) struct Params {
    values: Object,
    files: Vec<Upload>,
    param_count: usize,
}

impl Params {
    /// Adds the parameters in a query string or an urlencoded form.
    pub(crate) fn add_form(&mut self, text: &str) -> Result<()> {
        let mut pairs = form_urlencoded::parse(text.as_bytes());
        pairs.try_for_each(|(name, value)| self.add(&name, value.into()))
    }

    /// Adds the fields of a JSON object; an empty text and null add nothing.
    pub(crate) fn add_json(&mut self, text: &[u8]) -> Result<()> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let fields = match serde_json::from_slice(text) {
            Ok(Value::Object(members)) => members,
            Ok(Value::Null) => return Ok(()),
            _ => return Err(malformed_json_error()),
        };
        let is_too_deep = fields.values().any(|value| is_deeper_than(value, MAX_JSON_DEPTH - 1));
        refuse_if(is_too_deep, malformed_json_error)?;
        fields.into_iter().try_for_each(|(name, value)| self.add(&name, value))
    }

    /// Adds one file of a multipart body.
    pub(crate) fn add_file(&mut self, file: Upload) {
        self.files.push(file);
    }

    /// Adds one parameter. Brackets in its name make it nested.
    pub(crate) fn add(&mut self, name: &str, value: Value) -> Result<()> {
        self.param_count += 1;
        let name = &documented_name(name);
        let (base_name, brackets) = name.split_at(name.find('[').unwrap_or(name.len()));
        let keys: Vec<&str> =
            brackets.split('[').skip(1).map(|key| key.strip_suffix(']').unwrap_or(key)).collect();
        let is_refused = self.param_count > MAX_PARAMETERS || keys.len() > MAX_NAME_DEPTH;
        refuse_if(is_refused, || ErrorResponse::invalid_parameter("parameters"))?;
        if keys.is_empty() {
            self.values.insert(base_name.to_owned(), value);
        } else {
            let slot = self.values.entry(base_name).or_insert(Value::Null);
            insert_nested(slot, &keys, value);
        }
        Ok(())
    }

    /// Changes a text parameter if it was sent.
    pub(crate) fn map_text(&mut self, name: &str, change: impl FnOnce(&str) -> String) {
        if let Some(Value::String(text)) = self.values.get_mut(name) {
            *text = change(text);
        }
    }

    /// The value of a parameter as it was sent, which may be null.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// True if the parameter was sent, as a value or as a file.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name) || self.file(name).is_some()
    }

    /// The uploaded file of a form field.
    pub(crate) fn file(&self, field: &str) -> Option<&Upload> {
        self.files.iter().find(|file| file.field == field)
    }

    /// Fails with one message that names all missing parameters. A null value is not missing.
    pub(crate) fn require(&self, names: &[&str]) -> Result<()> {
        let requirements: Vec<ParamRequirement> =
            names.iter().map(|name| ParamRequirement::Present(name)).collect();
        self.require_all(&requirements)
    }

    /// Fails with one message that names the error of every parameter.
    pub(crate) fn require_all(&self, requirements: &[ParamRequirement]) -> Result<()> {
        let errors: Vec<String> = requirements.iter().flat_map(|need| need.errors(self)).collect();
        refuse_if(!errors.is_empty(), || ErrorResponse::parameter_errors(&errors))
    }

    /// Fails if none of these parameters was sent, even as null.
    pub(crate) fn require_any(&self, names: &[&str]) -> Result<()> {
        self.require_all(&[ParamRequirement::AnyOf(names)])
    }

    /// Fails if both parameters were sent, even as null.
    pub(crate) fn refuse_both(&self, names: [&str; 2]) -> Result<()> {
        let are_both_sent = names.iter().all(|name| self.has(name));
        let message = "are mutually exclusive";
        refuse_if(are_both_sent, || ErrorResponse::parameter_error(&names.join(", "), message))
    }

    /// A text; numbers and booleans become texts. `None` if absent or null.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>> {
        self.get(name).map_or(Ok(None), |value| read_text(name, value))
    }

    /// The text of a parameter, or `stored_text` if the parameter was not sent. Null counts as an
    /// empty text.
    pub(crate) fn text_or_unchanged(&self, name: &str, stored_text: &str) -> Result<String> {
        if !self.has(name) {
            return Ok(stored_text.to_owned());
        }
        Ok(self.text(name)?.unwrap_or_default())
    }

    /// A boolean. `None` if absent, null or empty.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.get(name).map_or(Ok(None), |value| read_flag(name, value))
    }

    /// True if a boolean was sent and is true.
    pub(crate) fn is_true(&self, name: &str) -> Result<bool> {
        Ok(self.flag(name)? == Some(true))
    }

    /// An integer. `None` if absent, null or empty.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.get(name).map_or(Ok(None), |value| read_integer(name, value))
    }

    /// A time. `None` if absent or null.
    pub(crate) fn time(&self, name: &str) -> Result<Option<jiff::Timestamp>> {
        let time = self.text(name)?.map(|text| text.parse()).transpose();
        time.map_err(|_| ErrorResponse::invalid_parameter(name))
    }

    /// A time. A day without a time means the beginning of the day.
    pub(crate) fn time_or_day(&self, name: &str) -> Result<Option<jiff::Timestamp>> {
        match self.time(name) {
            Err(_) => {
                let midnight = self.date(name)?.flatten().map(|day| day.to_zoned(TimeZone::UTC));
                Ok(midnight.and_then(Result::ok).map(Into::into))
            }
            time => time,
        }
    }

    /// The items of an array. `None` if absent or null.
    pub(crate) fn array(&self, name: &str) -> Result<Option<&Vec<Value>>> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(ErrorResponse::invalid_parameter(name)),
        }
    }

    /// A list of integers: an array, or one text with commas. Anything else becomes 0, an id that
    /// does not exist.
    pub(crate) fn integers(&self, name: &str) -> Result<Option<Vec<i64>>> {
        let items = self.texts(name)?;
        Ok(items.map(|items| items.iter().map(|item| item.parse().unwrap_or(0)).collect()))
    }

    /// A list of texts: an array, or one text with commas. Empty items are left out.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>> {
        let items = match self.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| Ok(read_text(name, item)?.unwrap_or_default()))
                .collect::<Result<Vec<String>>>()?,
            Some(value) => {
                read_text(name, value)?.unwrap_or_default().split(',').map(str::to_owned).collect()
            }
        };
        let items = items.iter().map(|item| item.trim().to_owned());
        Ok(Some(items.filter(|item| !item.is_empty()).collect()))
    }

    /// A list of texts that must all be in `allowed_words`.
    pub(crate) fn allowed_texts(
        &self,
        name: &str,
        allowed_words: &[&str],
    ) -> Result<Option<Vec<String>>> {
        let texts = self.texts(name)?;
        let are_allowed = texts.iter().flatten().all(|word| allowed_words.contains(&word.as_str()));
        refuse_if(!are_allowed, || ErrorResponse::unlisted_parameter_value(name)).map(|()| texts)
    }

    /// A text that must be in `allowed_words`.
    pub(crate) fn allowed_text(
        &self,
        name: &str,
        allowed_words: &[&str],
    ) -> Result<Option<String>> {
        match self.text(name).map_err(|_| ErrorResponse::invalid_and_unlisted(name))? {
            Some(value) if !allowed_words.contains(&value.as_str()) => {
                Err(ErrorResponse::unlisted_parameter_value(name))
            }
            value => Ok(value),
        }
    }

    /// An integer for which `is_allowed` must be true.
    pub(crate) fn allowed_integer(
        &self,
        name: &str,
        is_allowed: impl Fn(i64) -> bool,
    ) -> Result<Option<i64>> {
        self.get(name).map_or(Ok(None), |value| read_allowed_integer(name, value, is_allowed))
    }

    /// A calendar date. The outer option is `None` if the date was not sent. The inner option is
    /// `None` if the date was empty or null.
    pub(crate) fn date(&self, name: &str) -> Result<Option<Option<Date>>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) if is_blank(value) => Ok(Some(None)),
            Some(Value::String(text)) => {
                let date = parse_date(text.trim())
                    .ok_or_else(|| ErrorResponse::invalid_parameter(name))?;
                Ok(Some(Some(date)))
            }
            Some(_) => Err(ErrorResponse::invalid_parameter(name)),
        }
    }

    /// A calendar date in its stored form. `None` if absent, empty or null.
    pub(crate) fn date_text(&self, name: &str) -> Result<Option<String>> {
        Ok(self.date(name)?.flatten().map(|day| day.to_string()))
    }
}

fn malformed_json_error() -> ErrorResponse {
    ErrorResponse::error(http::StatusCode::BAD_REQUEST, "Invalid JSON format")
}

/// Parses a date: year, month and day, or the reverse order. The separators are `-`, `.`, `/` or
/// none. A time of day may follow; it is ignored.
fn parse_date(text: &str) -> Option<Date> {
    let text = text.split(['T', ' ']).next()?;
    let numbers: Vec<&str> = text.split(['-', '.', '/']).collect();
    let [first_number, month, last_number] = numbers.as_slice() else {
        // The date has no separators.
        return text.parse().ok();
    };
    let (year, day) = if first_number.len() == 4 {
        (first_number, last_number)
    } else {
        (last_number, first_number)
    };
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

/// The name of a parameter in the reference (1, 1). Real clients name some parameters after an
/// external host.
fn documented_name(name: &str) -> Cow<'_, str> {
    for (host_prefix, reference_prefix) in
        [("github_", "extgit_"), ("bitbucket_server_", "extserver_")]
    {
        if let Some(suffix) = name.strip_prefix(host_prefix) {
            return Cow::Owned(format!("{reference_prefix}{suffix}"));
        }
    }
    Cow::Borrowed(name)
}

/// Reads a text; `name` is for the error message.
pub(crate) fn read_text(name: &str, value: &Value) -> Result<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::Bool(flag) => Ok(Some(flag.to_string())),
        Value::Array(_) | Value::Object(_) => Err(ErrorResponse::invalid_parameter(name)),
    }
}

/// Reads a boolean; `name` is for the error message.
pub(crate) fn read_flag(name: &str, value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(0) => Ok(Some(false)),
            Some(1) => Ok(Some(true)),
            _ => Err(ErrorResponse::invalid_parameter(name)),
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "" => Ok(None),
            "true" | "t" | "1" | "yes" | "y" | "on" => Ok(Some(true)),
            "false" | "f" | "0" | "no" | "n" | "off" => Ok(Some(false)),
            _ => Err(ErrorResponse::invalid_parameter(name)),
        },
        Value::Array(_) | Value::Object(_) => Err(ErrorResponse::invalid_parameter(name)),
    }
}

/// Reads an integer; `name` is for the error message.
pub(crate) fn read_integer(name: &str, value: &Value) -> Result<Option<i64>> {
    match value {
        Value::Null => Ok(None),
        // A fraction is dropped.
        Value::Number(number) => {
            let integer = number.as_i64().or(number.as_f64().map(|float| float as i64));
            integer.map(Some).ok_or_else(|| ErrorResponse::invalid_parameter(name))
        }
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            text.trim().parse().map(Some).map_err(|_| ErrorResponse::invalid_parameter(name))
        }
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(ErrorResponse::invalid_parameter(name))
        }
    }
}

/// Reads an integer for which `is_allowed` must be true; `name` is for the error message.
pub(crate) fn read_allowed_integer(
    name: &str,
    value: &Value,
    is_allowed: impl Fn(i64) -> bool,
) -> Result<Option<i64>> {
    match read_integer(name, value).map_err(|_| ErrorResponse::invalid_and_unlisted(name))? {
        Some(number) if !is_allowed(number) => Err(ErrorResponse::unlisted_parameter_value(name)),
        number => Ok(number),
    }
}

/// True if a value has more than `levels` levels of arrays and objects.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(fields) => fields.values().any(|member| is_deeper_than(member, levels - 1)),
        _ => false,
    }
}

/// Inserts `value` into `slot` at the path `keys`; an empty key appends to an array.
fn insert_nested(slot: &mut Value, keys: &[&str], value: Value) {
    let Some((key, remaining_keys)) = keys.split_first() else {
        *slot = value;
        return;
    };
    if !key.is_empty() {
        if !slot.is_object() {
            *slot = Value::Object(Map::new());
        }
        return insert_nested(&mut slot[*key], remaining_keys, value);
    }
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(items) = slot else { return };
    // `a[][b]=1&a[][c]=2` adds both keys to one object. A repeated key starts a new object.
    let last_object_and_key = items.last().and_then(Value::as_object).zip(remaining_keys.first());
    if last_object_and_key.is_none_or(|(fields, key)| fields.contains_key(*key)) {
        items.push(Value::Null);
    }
    if let Some(last) = items.last_mut() {
        insert_nested(last, remaining_keys, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form(text: &str) -> Params {
        let mut params = Params::default();
        params.add_form(text).expect("a form");
        params
    }

    #[test]
    fn names_in_brackets_nest_in_every_spelling() {
        let mut literal_params = Params::default();
        literal_params.add_json(br#"{"filter[environment_scope]": "prod"}"#).expect("an object");
        let mut nested_params = Params::default();
        nested_params.add_json(br#"{"filter": {"environment_scope": "prod"}}"#).expect("an object");
        for params in [
            form("filter[environment_scope]=prod"),
            form("filter%5Benvironment_scope%5D=prod"),
            literal_params,
            nested_params,
        ] {
            assert_eq!(params.get("filter"), Some(&json!({"environment_scope": "prod"})));
        }
        assert_eq!(form("topics[]=b&topics[]=a").get("topics"), Some(&json!(["b", "a"])));
        assert_eq!(form("a[b][c]=d+e%2Bf").get("a"), Some(&json!({"b": {"c": "d e+f"}})));
        assert_eq!(
            form("a[][b]=1&a[][c]=2&a[][b]=3").get("a"),
            Some(&json!([{"b": "1", "c": "2"}, {"b": "3"}]))
        );
    }

    #[test]
    fn booleans_are_read_in_every_spelling() {
        for (value, expected) in [
            (json!(true), Some(true)),
            (json!("true"), Some(true)),
            (json!("1"), Some(true)),
            (json!(0), Some(false)),
            (json!("false"), Some(false)),
            (json!(null), None),
            (json!(""), None),
        ] {
            assert_eq!(read_flag("x", &value).expect("a boolean"), expected, "{value}");
        }
        for value in [json!("maybe"), json!(2), json!([]), json!({})] {
            let failure = read_flag("x", &value).expect_err("not a boolean");
            assert_eq!(failure.body, json!({"error": "x is invalid"}), "{value}");
        }
    }

    #[test]
    fn every_missing_parameter_is_named_at_once() {
        let failure = form("other=1").require(&["key", "value"]).expect_err("both are missing");
        assert_eq!(failure.body, json!({"error": "key is missing, value is missing"}));
        assert!(form("key=&value=x").require(&["key", "value"]).is_ok());
        let mut null_params = Params::default();
        null_params.add_json(br#"{"a": null, "b": null, "c": null}"#).expect("an object");
        assert!(null_params.require(&["a"]).is_ok());
        for (params, expected) in [
            (null_params, "b is empty, c does not have a valid value"),
            (
                Params::default(),
                "a is missing, b is missing, b is empty, c is missing, c does not have a valid value",
            ),
        ] {
            let failure = params
                .require_all(&[
                    ParamRequirement::Present("a"),
                    ParamRequirement::NotBlank("b"),
                    ParamRequirement::AllowedValue("c"),
                ])
                .expect_err("incomplete");
            assert_eq!(failure.body, json!({ "error": expected }));
        }
        let failure = Params::default().require_any(&["a", "b"]).expect_err("neither");
        let expected = "a, b are missing, at least one parameter must be provided";
        assert_eq!(failure.body, json!({ "error": expected }));
    }

    #[test]
    fn a_value_of_a_wrong_type_gets_two_errors() {
        let params = form("level=x&word[]=a");
        for failure in [
            params.allowed_integer("level", |_| true).expect_err("not a number"),
            params.allowed_text("word", &["a"]).expect_err("not a text"),
        ] {
            let text = failure.body["error"].as_str().unwrap_or_default().to_owned();
            assert!(text.ends_with(" does not have a valid value"), "{text}");
            assert!(text.contains(" is invalid, "), "{text}");
        }
        assert_eq!(
            form("level=3").allowed_integer("level", |level| level == 3).expect("3"),
            Some(3)
        );
        assert!(form("level=3").allowed_integer("level", |level| level == 4).is_err());
    }

    #[test]
    fn malformed_and_deep_bodies_are_refused() {
        let deep_json = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
        for text in ["[1]", "{", "nonsense", deep_json.as_str()] {
            assert!(Params::default().add_json(text.as_bytes()).is_err(), "{text:.20}");
        }
        let brackets = format!("a{}=1", "[b]".repeat(20));
        assert!(Params::default().add_form(&brackets).is_err());
    }

    #[test]
    fn lists_are_arrays_or_text_with_commas() {
        assert_eq!(form("ids=1,2").integers("ids").expect("ids"), Some(vec![1, 2]));
        assert_eq!(form("ids[]=1&ids[]=2").integers("ids").expect("ids"), Some(vec![1, 2]));
        assert_eq!(form("ids=1,x").integers("ids").expect("ids"), Some(vec![1, 0]));
    }
}
