//! A request as a value: the operation, the contents, and the containers that must be created
//! first.

use std::{borrow::Cow, fmt, marker::PhantomData};

use super::{KeyFilter, Operation, RetrySafety, pending};
use crate::{
    planted::Bug,
    text::encode,
    value::{Fields, Json, Object, Value},
};

/// The body of a request. Its `Debug` shows names only.
#[derive(Clone, Default, PartialEq)]
pub enum RequestBody {
    /// Nothing.
    #[default]
    None,
    /// A JSON object.
    Json(Fields),
    /// A form with files: names with values, at least one of them a [`Value::File`].
    Multipart(Fields),
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Json(fields) | Self::Multipart(fields) => {
                f.debug_set().entries(fields.keys()).finish()
            }
        }
    }
}

/// Live values. Their `Debug` shows names only.
#[derive(Clone, PartialEq)]
struct LiveValues(Vec<(String, Json)>);

impl fmt::Debug for LiveValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// A request that is not sent yet.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub struct Request<E> {
    /// The row of the table of operations.
    pub operation: &'static Operation,
    arguments: Vec<(&'static str, String)>,
    /// The arguments that name a container or entry by path, each with the id to send. The id is
    /// `None` until it is known.
    named_arguments: Vec<(&'static str, Option<u64>)>,
    /// True if `:id` is the id of a container that the same step creates.
    awaits_own_container: bool,
    /// The paths of containers that must be created first.
    awaited_paths: Vec<String>,
    /// Fixed segments of the path that have other names on this service, as (neutral word, name).
    renamed_segments: Vec<(&'static str, String)>,
    query: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub body: RequestBody,
    /// Live values that the body also contains, because the service would reset fields that an edit
    /// omits. These values can become stale.
    repeated_values: LiveValues,
    /// The fields of the body whose values must not be quoted, even plain ones.
    sensitive_fields: Vec<Cow<'static, str>>,
    /// The fields of the body that contain an unknown id.
    pending_fields: Vec<String>,
    /// True if the request must not be resent, because a resend could undo later requests.
    is_sent_once: bool,
    /// The keys to keep of the objects in the response.
    key_filter: KeyFilter,
    effect: PhantomData<E>,
}

impl<E> Request<E> {
    /// A request without arguments.
    pub(super) const fn new(operation: &'static Operation) -> Self {
        Self {
            operation,
            arguments: Vec::new(),
            named_arguments: Vec::new(),
            awaits_own_container: false,
            awaited_paths: Vec::new(),
            renamed_segments: Vec::new(),
            query: Vec::new(),
            body: RequestBody::None,
            repeated_values: LiveValues(Vec::new()),
            sensitive_fields: Vec::new(),
            pending_fields: Vec::new(),
            is_sent_once: false,
            key_filter: KeyFilter::All,
            effect: PhantomData,
        }
    }

    /// Sets `:name` of the path template; `value` is percent-encoded when the path is built.
    pub fn with_argument(mut self, name: &'static str, value: impl ToString) -> Self {
        debug_assert!(self.operation.has_argument(name), "no :{name} in {}", self.operation.path);
        self.arguments.push((name, value.to_string()));
        self
    }

    /// Sets `:name` of the path template to the `id` of the container at `path`. An unknown id is
    /// filled in when the request is sent.
    pub fn with_argument_by_path(
        mut self,
        name: &'static str,
        path: &str,
        id: Option<u64>,
    ) -> Self {
        self.named_arguments.push((name, id));
        self.with_argument(name, path)
    }

    /// Sets `:id` of the path template to the `id` of the container at `path`. If the same step
    /// creates the container, the id is filled in when the request is sent.
    pub fn with_container(mut self, path: &str, id: Option<u64>) -> Self {
        match id {
            Some(id) => self.with_argument("id", id),
            None => {
                self.awaits_own_container = true;
                self.with_argument("id", path)
            }
        }
    }

    /// Makes the request wait for the container at `path`, which must be created first.
    pub fn with_awaited_path(mut self, path: &str) -> Self {
        self.awaited_paths.push(path.to_owned());
        self
    }

    /// Replaces the path segment `neutral_word`, and the same prefix of body fields, by `name`. The
    /// reference uses neutral words for two hosts, but the service uses the real names of the
    /// hosts.
    pub fn rename_segment(mut self, neutral_word: &'static str, name: &str) -> Self {
        if let RequestBody::Json(fields) | RequestBody::Multipart(fields) = &mut self.body {
            let renamed_fields =
                std::mem::take(fields).into_iter().map(|(field, value)| {
                    match field.strip_prefix(neutral_word).filter(|rest| rest.starts_with('_')) {
                        Some(rest) => (format!("{name}{rest}"), value),
                        None => (field, value),
                    }
                });
            *fields = renamed_fields.collect();
        }
        self.renamed_segments.push((neutral_word, name.to_owned()));
        self
    }

    /// True if the query has a parameter of this name.
    pub fn has_query_parameter(&self, name: &str) -> bool {
        self.query.iter().any(|(key, _)| key == name)
    }

    /// Sets a query parameter.
    pub fn with_query(mut self, name: impl Into<Cow<'static, str>>, value: impl ToString) -> Self {
        let (name, value) = (name.into(), value.to_string());
        match self.query.iter_mut().find(|(key, _)| *key == name) {
            Some(parameter) => parameter.1 = value,
            None => self.query.push((name, value)),
        }
        self
    }

    /// Sets the body: JSON, or a form if one of the fields is a file.
    pub fn with_fields(mut self, fields: Fields) -> Self {
        let has_file = fields.values().any(|value| matches!(value, Value::File(_)));
        self.body =
            if has_file { RequestBody::Multipart(fields) } else { RequestBody::Json(fields) };
        self
    }

    /// Frees the unused capacity of the lists in the request.
    pub fn shrink(&mut self) {
        self.arguments.shrink_to_fit();
        self.sensitive_fields.shrink_to_fit();
        if let RequestBody::Json(fields) | RequestBody::Multipart(fields) = &mut self.body {
            fields.shrink_to_fit();
        }
    }

    /// Also sends `live_values`. Values of [`with_fields`](Self::with_fields) take precedence.
    pub fn with_repeated_values(mut self, live_values: Object) -> Self {
        self.repeated_values = LiveValues(live_values.into_iter().collect());
        self
    }

    /// Sets the keys to keep of the objects in the response.
    pub fn with_key_filter(mut self, key_filter: KeyFilter) -> Self {
        self.key_filter = key_filter;
        self
    }

    /// Also keeps `keys` of the objects in the response.
    pub fn keep_keys(self, keys: &[&'static str]) -> Self {
        Self { key_filter: self.key_filter.with_keys(keys), ..self }
    }

    /// The keys to keep of the objects in the response.
    pub const fn key_filter(&self) -> &KeyFilter {
        &self.key_filter
    }

    /// Marks fields of the body whose values must not be quoted, even plain ones. Secrets are never
    /// quoted.
    pub fn with_sensitive_fields(
        mut self,
        fields: impl IntoIterator<Item = impl Into<Cow<'static, str>>>,
    ) -> Self {
        self.sensitive_fields.extend(fields.into_iter().map(Into::into));
        self
    }

    /// True if the value of this field must not be quoted.
    pub fn is_sensitive(&self, field: &str) -> bool {
        self.sensitive_fields.iter().any(|name| name == field)
    }

    /// Marks the fields of the current body that contain ids of referenced objects. When the
    /// request is sent, ids replace the placeholders ([`pending::id_placeholder`]) in these fields.
    pub fn with_id_fields(mut self, fields: impl IntoIterator<Item = String>) -> Self {
        let pending_fields = fields.into_iter().filter(|name| {
            let value = self.body_fields().and_then(|body| body.get(name)?.plain_json());
            value.is_some_and(|json| !pending::placeholder_paths(json).is_empty())
        });
        self.pending_fields = pending_fields.collect();
        self
    }

    /// The paths of the containers that must be created before the request can be sent.
    pub fn awaited_containers(&self) -> impl Iterator<Item = &str> {
        let pending_values = self
            .pending_fields
            .iter()
            .filter_map(|name| self.body_fields()?.get(name)?.plain_json());
        let pending_arguments = self.named_arguments.iter().filter(|(_, id)| id.is_none());
        let arguments = pending_arguments.filter_map(|(name, _)| self.argument(name));
        let path_texts = self.awaited_paths.iter().map(String::as_str);
        pending_values.flat_map(pending::placeholder_paths).chain(arguments).chain(path_texts)
    }

    /// The paths that the arguments name, with and without known ids.
    pub fn named_paths(&self) -> impl Iterator<Item = &str> {
        self.named_arguments.iter().filter_map(|(name, _)| self.argument(name))
    }

    /// The value of the argument `:name`.
    fn argument(&self, name: &str) -> Option<&str> {
        let named_argument = self.arguments.iter().find(|(argument, _)| *argument == name);
        named_argument.map(|(_, value)| value.as_str())
    }

    /// The id of the object that the request reads; `None` if it does not read a single object by
    /// id.
    pub fn requested_id(&self) -> Option<u64> {
        let name = self.operation.path.rsplit('/').next()?.strip_prefix(':')?;
        self.argument(name)?.parse().ok()
    }

    /// The shell command that sends this request. The request must not have a body.
    pub fn to_command(&self) -> String {
        let arguments = self.arguments.iter().map(|(name, value)| format!(" {name}={value}"));
        format!("undrift call {}{}", self.operation.id, arguments.collect::<String>())
    }

    /// Fills in the ids that the request needs. `container_id` is the id of the container of the
    /// request. A write to a container uses the id, because another container may have the path by
    /// now.
    ///
    /// # Errors
    /// The path of a container whose id is not known.
    pub fn with_ids(
        mut self,
        container_id: Option<u64>,
        find_id: impl Fn(&str) -> Option<u64>,
    ) -> Result<Self, String> {
        if self.awaits_own_container {
            let path = self.argument("id").unwrap_or_default().to_owned();
            self.named_arguments.push(("id", Some(container_id.ok_or(path)?)));
            self.awaits_own_container = false;
        }
        for (name, id) in self.named_arguments.iter_mut().filter(|(_, resolved)| resolved.is_none())
        {
            let path = self.arguments.iter().find(|(argument, _)| argument == name);
            let path = path.map(|(_, path)| path.as_str()).unwrap_or_default();
            *id = Some(find_id(path).ok_or_else(|| path.to_owned())?);
        }
        if let RequestBody::Json(fields) | RequestBody::Multipart(fields) = &mut self.body {
            for name in &self.pending_fields {
                if let Some(Value::Plain(json)) = fields.get_mut(name) {
                    pending::fill_placeholders(json, &find_id)?;
                }
            }
        }
        if self.addresses_by_path() { Err(self.path()) } else { Ok(self) }
    }

    /// True if the request addresses a group or project by path instead of by id.
    pub fn addresses_by_path(&self) -> bool {
        let path = self.operation.path;
        if !path.starts_with("/projects/:id") && !path.starts_with("/groups/:id") {
            return false;
        }
        match self.named_arguments.iter().find(|(argument, _)| *argument == "id") {
            Some((_, Some(_))) => false,
            _ => self.argument("id").is_none_or(|id| id.parse::<u64>().is_err()),
        }
    }

    /// True if a change of the live state makes the request wrong. The request then repeats live
    /// values, or would create a duplicate of an object that was created meanwhile.
    pub fn becomes_stale(&self) -> bool {
        self.retry_safety() == RetrySafety::MayDuplicate || self.repeated_values().next().is_some()
    }

    /// Prevents a resend of a removal whose entry is added again later: a late second request would
    /// remove the new entry.
    pub fn prevent_resend(mut self) -> Self {
        self.is_sent_once = true;
        self
    }

    /// The effect of sending the request again.
    pub fn retry_safety(&self) -> RetrySafety {
        if self.is_sent_once && !Bug::ResendRemovals.is_planted() {
            RetrySafety::MayDuplicate
        } else {
            self.operation.retry_safety
        }
    }

    /// The live values that the request repeats, without the values that its own fields replace.
    pub fn repeated_values(&self) -> impl Iterator<Item = (&str, &Json)> {
        let fields = self.body_fields();
        let live_values = self.repeated_values.0.iter().map(|(name, value)| (name.as_str(), value));
        live_values.filter(move |(name, _)| fields.is_none_or(|fields| !fields.contains_key(name)))
    }

    /// The names of all fields in the body, including repeated live values.
    pub fn body_names(&self) -> impl Iterator<Item = &str> {
        let fields = self.body_fields().into_iter().flat_map(Fields::keys);
        fields.map(String::as_str).chain(self.repeated_values().map(|(name, _)| name))
    }

    /// The fields in the body, without repeated live values.
    pub const fn body_fields(&self) -> Option<&Fields> {
        match &self.body {
            RequestBody::None => None,
            RequestBody::Json(fields) | RequestBody::Multipart(fields) => Some(fields),
        }
    }

    /// The path below `/api/v4` with every argument, without the query.
    pub fn path(&self) -> String {
        self.build_path(|name| {
            let (_, id) = self.named_arguments.iter().find(|(argument, _)| *argument == name)?;
            id.map(|id| id.to_string())
        })
    }

    /// The path of the request. `replace_argument` returns the text that replaces the value of an
    /// argument; `None` keeps the value.
    fn build_path(&self, replace_argument: impl Fn(&str) -> Option<String>) -> String {
        let mut path = String::with_capacity(2 * self.operation.path.len());
        for (index, segment) in self.operation.path.split('/').enumerate() {
            path.push_str(if index == 0 { "" } else { "/" });
            let Some(name) = segment.strip_prefix(':') else {
                match self
                    .renamed_segments
                    .iter()
                    .find(|(neutral_word, _)| *neutral_word == segment)
                {
                    Some((_, name)) => path.extend(encode(name)),
                    None => path.push_str(segment),
                }
                continue;
            };
            match (replace_argument(name), self.argument(name)) {
                (Some(replacement), _) => path.push_str(&replacement),
                (None, Some(value)) => path.extend(encode(value)),
                (None, None) => path.push_str(segment),
            }
        }
        path
    }

    /// The path and the query, percent-encoded.
    pub fn path_and_query(&self) -> String {
        self.append_query(self.path())
    }

    /// The target as plans show it, with paths instead of ids that are only needed for sending.
    /// This text is the same before and after the container is created.
    pub fn display_target(&self) -> String {
        // An entry of the same container is shown by its name, which addresses contain in encoded
        // form.
        let path = self.build_path(|name| {
            self.named_arguments.iter().find(|(argument, _)| *argument == name)?;
            let (_, entry) = self.argument(name)?.split_once('#')?.1.split_once('/')?;
            Some(entry.to_owned())
        });
        self.append_query(path)
    }

    /// Adds the query to `path`.
    fn append_query(&self, mut path: String) -> String {
        for (index, (name, value)) in self.query.iter().enumerate() {
            path.push(if index == 0 { '?' } else { '&' });
            path.extend(encode(name).chain(["="]).chain(encode(value)));
        }
        path
    }
}

/// Writes the method and the target, for errors and plans. Never writes the body.
impl<E> fmt::Display for Request<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation.method, self.path_and_query())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{
        IMPORT_EXTGIT, PROJECT_GET, PROJECT_LIST, VARIABLE_LIST, VARIABLE_UPDATE,
    };

    #[test]
    fn a_neutral_word_is_replaced_in_the_path_and_in_fields() {
        let fields = ["extgit_hostname", "extgitted", "new_name"]
            .map(|name| (name.to_owned(), Value::from("extgit")));
        let request =
            IMPORT_EXTGIT.request().with_fields(fields.into()).rename_segment("extgit", "git host");
        assert_eq!(request.path(), "/import/git%20host");
        let names: Vec<_> = request.body_fields().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["extgitted", "git host_hostname", "new_name"]);
        assert!(
            request.body_fields().unwrap().values().all(|value| *value == Value::from("extgit"))
        );
        let other_request =
            PROJECT_GET.request().with_argument("id", "extgit").rename_segment("extgit", "x");
        assert_eq!(other_request.path(), "/projects/extgit");
    }

    #[test]
    fn a_path_argument_is_always_one_segment() {
        let request = VARIABLE_UPDATE
            .request()
            .with_argument("id", "acme/my.shop")
            .with_argument("key", "A/B?c#d é")
            .with_query("filter[environment_scope]", "prod/*");
        assert_eq!(
            request.path_and_query(),
            "/projects/acme%2Fmy.shop/variables/A%2FB%3Fc%23d%20%C3%A9?filter%5Benvironment_scope%5D=prod%2F%2A"
        );
    }

    #[test]
    fn the_debug_text_of_a_request_shows_names_only() {
        let live_values = serde_json::json!({"value": "canary", "key": "canary"});
        let request = VARIABLE_UPDATE
            .request()
            .with_fields([("key".to_owned(), Value::from("canary"))].into());
        let request = request.with_repeated_values(live_values.as_object().unwrap().clone());
        let debug_text = format!("{request:?}");
        assert!(
            debug_text.contains(r#"{"key"}"#)
                && debug_text.contains(r#"{"value", "key"}"#)
                && !debug_text.contains("canary"),
            "{debug_text}"
        );
        assert_eq!(request.body_names().collect::<Vec<_>>(), ["key", "value"]);
        assert_eq!(
            (request.repeated_values().count(), VARIABLE_LIST.request().repeated_values().count()),
            (1, 0)
        );
    }

    #[test]
    fn a_query_parameter_is_sent_once() {
        assert_eq!(
            PROJECT_LIST.request().with_query("page", 1).with_query("page", 2).path_and_query(),
            "/projects?page=2"
        );
    }
}
