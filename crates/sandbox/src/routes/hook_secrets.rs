//! The two kinds of secrets of a hook: headers that the hook sends, and variables in its URL. Each
//! secret has a key. Responses show only the keys.

use undrift_release::REFERENCE;

use super::prelude::*;

/// One kind of secrets.
pub(super) struct SecretKind {
    pub(super) name: &'static str,
    since: Release,
    /// The maximum length of a value, in characters.
    max_length: usize,
    /// The name of one secret in refusals.
    pub(super) noun: &'static str,
}

pub(super) const URL_VARIABLES: SecretKind =
    SecretKind { name: "url_variables", since: REFERENCE, max_length: 100, noun: "URL variable" };
pub(super) const HEADERS: SecretKind = SecretKind {
    name: "custom_headers",
    since: Release::new(17, 1),
    max_length: 2_048,
    noun: "Custom header",
};
pub(super) const SECRET_KINDS: [&SecretKind; 2] = [&URL_VARIABLES, &HEADERS];

/// The maximum number of secrets of one kind in a hook.
const MAX_SECRETS_PER_KIND: usize = 20;

impl SecretKind {
    pub(super) fn is_supported(&self, call: &Call<'_>) -> bool {
        self.since <= call.release()
    }

    fn stored_secrets<'a>(&self, settings: &'a Object) -> Option<&'a Object> {
        settings.get(self.name).and_then(Value::as_object)
    }

    /// The keys, in the order in which they were added.
    pub(super) fn keys_json(&self, settings: &Object) -> Value {
        self.stored_secrets(settings)
            .into_iter()
            .flat_map(Map::keys)
            .map(|key| json!({ "key": key }))
            .collect()
    }

    /// The secrets in a call, by key.
    pub(super) fn read_secrets(&self, params: &Params) -> Result<Vec<(String, Value)>> {
        let Some(items) = params.array(self.name)? else { return Ok(Vec::new()) };
        refuse_if(!items.iter().all(Value::is_object), || {
            ErrorResponse::invalid_parameter(self.name)
        })?;
        let numbered_items = items.iter().enumerate();
        let missing_errors: Vec<_> = numbered_items
            .flat_map(|(index, item)| missing_key_errors(self.name, index, item, ["key", "value"]))
            .collect();
        refuse_if(!missing_errors.is_empty(), || ErrorResponse::parameter_errors(&missing_errors))?;
        let read_item_text = |item: &Value, name: &str| params::read_text(self.name, &item[name]);
        items
            .iter()
            .map(|item| {
                Ok((
                    read_item_text(item, "key")?.unwrap_or_default(),
                    read_item_text(item, "value")?.into(),
                ))
            })
            .collect()
    }

    /// Adds secrets to the stored secrets. A new secret replaces a stored secret with the same key.
    pub(super) fn add(
        &self,
        settings: &mut Object,
        new_secrets: impl IntoIterator<Item = (String, Value)>,
    ) {
        let secrets = settings.entry(self.name).or_insert_with(|| json!({}));
        if let Value::Object(secret_map) = secrets {
            secret_map.extend(new_secrets);
        }
    }

    /// Removes a secret; true if it existed.
    pub(super) fn remove(&self, settings: &mut Object, key: &str) -> bool {
        let secrets = settings.get_mut(self.name).and_then(Value::as_object_mut);
        secrets.is_some_and(|secret_map| secret_map.shift_remove(key).is_some())
    }

    pub(super) fn is_valid(&self, settings: &Object) -> bool {
        self.stored_secrets(settings).is_none_or(|secrets| {
            secrets.len() <= MAX_SECRETS_PER_KIND
                && secrets.iter().all(|(key, value)| {
                    let length = value.as_str().map_or(0, |text| text.chars().count());
                    is_key(key) && (1..=self.max_length).contains(&length)
                })
        })
    }
}

/// A key: letters, then digits, then words of letters and digits that each follow a separator.
const KEY_REGEX: &str = "[A-Za-z]+[0-9]*(?:[._-][A-Za-z0-9]+)*";

fn is_key(text: &str) -> bool {
    static KEY_PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(&format!("^(?:{KEY_REGEX})$")).ok());
    KEY_PATTERN.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// The URL of a hook with its variables filled in; `None` if a variable is missing.
pub(super) fn fill_url(settings: &Object) -> Option<String> {
    static VARIABLE_PATTERN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(&format!(r"\{{({KEY_REGEX})\}}")).ok());
    let url = settings.get("url").and_then(Value::as_str).unwrap_or_default();
    let variables = URL_VARIABLES.stored_secrets(settings);
    let mut is_complete = true;
    let filled_url = VARIABLE_PATTERN.as_ref()?.replace_all(url, |captures: &Captures<'_>| {
        let value = variables.and_then(|values| values.get(&captures[1])?.as_str());
        is_complete &= value.is_some();
        value.unwrap_or_default().to_owned()
    });
    is_complete.then(|| filled_url.into_owned())
}

/// Clears the secrets of a hook if its URL changed. Headers are always cleared. Variables are
/// cleared if the former hook has a variable with the same key.
pub(super) fn clear_secrets(settings: &mut Object, former_settings: &Object) {
    if !former_settings.contains_key("url") || fill_url(settings) == fill_url(former_settings) {
        return;
    }
    let list_keys =
        |settings| URL_VARIABLES.stored_secrets(settings).into_iter().flat_map(Map::keys);
    let has_variables =
        list_keys(former_settings).any(|key| list_keys(settings).any(|other| key == other));
    if has_variables {
        settings.insert(URL_VARIABLES.name.to_owned(), json!({}));
    }
    settings.insert(HEADERS.name.to_owned(), json!({}));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_begin_with_letters() {
        for (key, is_valid) in [
            ("X-A", true),
            ("token", true),
            ("a1.b_2-3c", true),
            ("", false),
            ("1x", false),
            ("a1b", false),
            ("X A", false),
            ("a--b", false),
            ("a-", false),
        ] {
            assert_eq!(is_key(key), is_valid, "{key}");
        }
    }

    #[test]
    fn variables_are_filled_into_a_url() {
        let hook_with_url = |url: &str| json!({"url": url, "url_variables": {"a": "1", "b": "2"}});
        for (url, filled_url) in [
            ("https://x/{a}/{b}?{a}", Some("https://x/1/2?1")),
            ("https://x/{c}", None),
            ("https://x/{1}{", Some("https://x/{1}{")),
        ] {
            let settings = hook_with_url(url).as_object().cloned().unwrap_or_default();
            assert_eq!(fill_url(&settings).as_deref(), filled_url, "{url}");
        }
    }
}
