//! Converts `name=value` arguments to a request, and checks them against the table of operations.
//! This module sends nothing, and resolves no references to secrets.
//!
//! | argument | meaning |
//! |---|---|
//! | `name=text` | the value, in the form of the parameter's type |
//! | `name=a,b`, or `name=a name=b` | several values, if the parameter allows them |
//! | `name[key]=value`, `name.key=value` | one key of an object |
//! | `name=[{"key": value}]` | several objects, as JSON |
//! | `name=@env:NAME`, `name=@file:PATH` | a text from the environment or a file; the only way to pass a secret |
//! | `name=@file:PATH` | a file to upload, for a parameter of that type |
//! | `name=@@text` | a text that starts with `@` |

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, civil::Date};

use crate::{
    catalogue::operations::request_parameters,
    cli::{CommandError, Result},
    level::{AccessLevel, MEMBER_LEVELS},
    operation::{Op, Operation, Parameter, ParameterLocation, ParameterType, Request},
    secret::Reference,
    text::{alternatives, did_you_mean},
    value::{Json, Object, Value},
};

/// A parsed argument.
struct ParsedArgument {
    parameter: &'static Parameter,
    /// The key, for a parameter that is an object.
    key: Option<String>,
    value: Value,
}

/// The request for `operation` with `arguments`.
///
/// # Errors
/// All faults of the arguments; none quotes a possible secret.
pub(super) fn make_request<E: Copy>(
    operation: Op<E>,
    arguments: &[String],
) -> Result<Request<E>, Vec<CommandError>> {
    let operation_row = operation.row();
    let parameters = request_parameters(operation_row);
    let mut faults = Vec::new();
    let mut parsed_args: Vec<ParsedArgument> = Vec::new();
    for argument in arguments {
        let result = parse_argument(operation_row, &parameters, (argument, arguments))
            .and_then(|arg| add_argument(&mut parsed_args, arg));
        faults.extend(result.err());
    }
    // A misspelt required parameter is reported once, not also as missing.
    if faults.is_empty() {
        faults = find_missing_parameters(operation_row, &parameters, &parsed_args);
    }
    if faults.is_empty() { Ok(build_request(operation, parsed_args)) } else { Err(faults) }
}

/// Warnings about deprecated arguments, with their replacements.
pub(super) fn deprecation_warnings(operation_row: &Operation, arguments: &[String]) -> Vec<String> {
    let argument_names: BTreeSet<_> = arguments
        .iter()
        .filter_map(|argument| Some(split_name(argument.split_once('=')?.0).0))
        .collect();
    let parameters = request_parameters(operation_row).into_iter();
    let deprecated_parameters = parameters
        .filter(|parameter| parameter.deprecated && argument_names.contains(parameter.name));
    deprecated_parameters
        .map(|Parameter { name, replaced_by, .. }| match replaced_by {
            Some(other) => format!("`{name}` is deprecated: use `{other}`"),
            None => format!("`{name}` is deprecated"),
        })
        .collect()
}

/// Adds an argument. Values of the same list parameter are joined.
fn add_argument(parsed_args: &mut Vec<ParsedArgument>, new_arg: ParsedArgument) -> Result<()> {
    let Some(old_arg) = parsed_args
        .iter_mut()
        .find(|old| old.parameter.name == new_arg.parameter.name && old.key == new_arg.key)
    else {
        parsed_args.push(new_arg);
        return Ok(());
    };
    match (&mut old_arg.value, new_arg.value) {
        (Value::Plain(Json::Array(items)), Value::Plain(Json::Array(new_items))) => {
            items.extend(new_items);
            Ok(())
        }
        _ => Err(CommandError::usage(format!("`{}` is given twice", new_arg.parameter.name))
            .help("it takes one value")),
    }
}

/// A fault for each required parameter that is missing.
fn find_missing_parameters(
    operation_row: &Operation,
    parameters: &[&'static Parameter],
    parsed_args: &[ParsedArgument],
) -> Vec<CommandError> {
    let argument_names: BTreeSet<_> = parsed_args.iter().map(|arg| arg.parameter.name).collect();
    let mut missing_names: Vec<_> = parameters
        .iter()
        .filter(|parameter| parameter.required && !argument_names.contains(parameter.name))
        .map(|parameter| format!("`{}`", parameter.name))
        .collect();
    if !operation_row.one_of.is_empty()
        && !operation_row.one_of.iter().any(|name| argument_names.contains(name))
    {
        missing_names.push(alternatives(operation_row.one_of));
    }
    let mut faults: Vec<_> = missing_names
        .iter()
        .map(|names| {
            CommandError::usage(format!("`{}` needs {names}", operation_row.id))
                .help(help_hint(operation_row))
        })
        .collect();
    if argument_names.contains("per_page") && !argument_names.contains("page") {
        faults.push(
            CommandError::usage("`per_page` needs `page`")
                .help("leave both out to read the whole list"),
        );
    }
    faults
}

/// The hint that names the help of an operation.
fn help_hint(operation_row: &Operation) -> String {
    format!("`undrift call {} --help` explains what it takes", operation_row.id)
}

/// The help for an argument without an equals sign. The argument may be the name of a parameter, or
/// the value of the first required parameter that is missing.
fn suggest_equals_sign(
    parameters: &[&'static Parameter],
    argument: &str,
    all_arguments: &[String],
) -> String {
    let mut names = parameters.iter().map(|parameter| parameter.name);
    if names.any(|name| argument.split(':').next() == Some(name)) {
        return format!("write `{}=VALUE`", argument.split(':').next().unwrap_or_default());
    }
    let is_missing =
        |name| !all_arguments.iter().any(|other| other.split('=').next() == Some(name));
    let mut required_parameters = parameters.iter().filter(|parameter| parameter.required);
    let first_missing = required_parameters.find(|parameter| is_missing(parameter.name));
    format!("write `{}={argument}`", first_missing.map_or("NAME", |parameter| parameter.name))
}

/// Parses one argument.
fn parse_argument(
    operation_row: &Operation,
    parameters: &[&'static Parameter],
    (argument, all_arguments): (&str, &[String]),
) -> Result<ParsedArgument> {
    let Some((argument_name, text)) = argument.split_once('=') else {
        let failure = CommandError::usage(format!("`{argument}` is not `name=value`"));
        return Err(failure.help(suggest_equals_sign(parameters, argument, all_arguments)));
    };
    let (name, key) = split_name(argument_name);
    let Some(parameter) = parameters.iter().copied().find(|parameter| parameter.name == name)
    else {
        let fault =
            CommandError::usage(format!("`{}` has no parameter `{name}`", operation_row.id));
        let suggestion = did_you_mean(name, parameters.iter().map(|parameter| parameter.name));
        return Err(fault.help(suggestion.unwrap_or_else(|| help_hint(operation_row))));
    };
    let (value_parameter, key) = match (parameter.value_type, key) {
        (ParameterType::Object(keys), Some(key)) => {
            (find_key(parameter, keys, key)?, Some(key.to_owned()))
        }
        (ParameterType::Map, Some(key)) if !key.is_empty() => (parameter, Some(key.to_owned())),
        (ParameterType::Object(_) | ParameterType::Map, _) => {
            let fault = CommandError::usage(format!("`{name}` needs a key"));
            return Err(fault.help(format!("write `{name}[KEY]=VALUE`")));
        }
        (value_type, Some("")) if value_type.is_list() => (parameter, None),
        (_, Some(_)) => return Err(CommandError::usage(format!("`{name}` has no keys"))),
        (_, None) => (parameter, None),
    };
    Ok(ParsedArgument { parameter, key, value: parse_value(value_parameter, argument_name, text)? })
}

/// Splits `name[key]` or `name.key`.
fn split_name(name_text: &str) -> (&str, Option<&str>) {
    if let Some((name, key)) = name_text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        return (name, Some(key));
    }
    name_text.split_once('.').map_or((name_text, None), |(name, key)| (name, Some(key)))
}

fn find_key(
    parent: &Parameter,
    keys: &'static [Parameter],
    key: &str,
) -> Result<&'static Parameter> {
    keys.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
        let fault = CommandError::usage(format!("`{}` has no key `{key}`", parent.name));
        let names: Vec<_> = keys.iter().map(|parameter| parameter.name).collect();
        let suggestion = did_you_mean(key, names.iter().copied());
        fault.help(suggestion.unwrap_or_else(|| format!("it has {}", alternatives(&names))))
    })
}

/// Parses the value `text` of a parameter. `argument_name` is the part of the argument before the
/// equals sign: the name, and the key if there is one.
fn parse_value(parameter: &Parameter, argument_name: &str, text: &str) -> Result<Value> {
    let reference = match text.strip_prefix('@') {
        None => None,
        Some(literal) if literal.starts_with('@') => {
            return parse_literal(parameter, argument_name, literal);
        }
        Some(reference_text) => match reference_text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Some(Reference::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Some(Reference::File(path.to_owned())),
            _ => {
                let fault = CommandError::usage(format!(
                    "the `@` in `{argument_name}` must be followed by `env:` or `file:`"
                ));
                return Err(fault.help(
                    "write `@env:NAME`, `@file:PATH`, or `@@` for a text that starts with `@`",
                ));
            }
        },
    };
    match (parameter.value_type, reference) {
        (_, None) => parse_literal(parameter, argument_name, text),
        (_, Some(_)) if parameter.location != ParameterLocation::Body => {
            let fault = CommandError::usage(format!(
                "`{argument_name}` is part of the URL, which logs show, so it must not be a secret"
            ));
            Err(fault.help("write the value itself"))
        }
        (ParameterType::File, Some(Reference::File(path))) => Ok(Value::File(path)),
        (ParameterType::File, Some(Reference::Env(_))) => Err(file_failure(argument_name)),
        (ParameterType::Text, Some(reference)) => Ok(Value::Secret(reference)),
        (other, Some(_)) => Err(CommandError::usage(format!(
            "`{argument_name}` must be a {other}, not a reference"
        ))
        .help("write the value itself")),
    }
}

fn file_failure(argument_name: &str) -> CommandError {
    CommandError::usage(format!("`{argument_name}` takes a file"))
        .help(format!("write `{argument_name}=@file:PATH`"))
}

/// Parses a value that is not a reference.
fn parse_literal(parameter: &Parameter, argument_name: &str, text: &str) -> Result<Value> {
    // An empty text clears the value, and is neither a secret nor a file.
    if parameter.secret && !text.is_empty() {
        let fault = CommandError::usage(format!(
            "`{argument_name}` is a secret, and everybody on this machine can see the command line"
        ));
        return Err(fault
            .help(format!("write `{argument_name}=@env:NAME` or `{argument_name}=@file:PATH`")));
    }
    if parameter.value_type == ParameterType::File && (!text.is_empty() || parameter.required) {
        return Err(file_failure(argument_name));
    }
    // An empty segment, `.` or `..` would lead to another path.
    if parameter.location == ParameterLocation::Path && matches!(text, "" | "." | "..") {
        return Err(CommandError::usage(format!(
            "`{text}` is not allowed as `{argument_name}` in a path"
        )));
    }
    match parse_typed_text(parameter.value_type, text) {
        Ok(json) => Ok(Value::Plain(json)),
        Err(fault) => {
            let error = fault.error.map(|error| anyhow::anyhow!("`{argument_name}` {error}"));
            Err(CommandError { error, ..fault })
        }
    }
}

/// Converts a text to a value of a type.
///
/// # Errors
/// A message without its beginning. The caller puts the name of the argument before it.
fn parse_typed_text(value_type: ParameterType, text: &str) -> Result<Json> {
    let item_type = match value_type {
        ParameterType::Words(words) => ParameterType::Word(words),
        ParameterType::Integers => ParameterType::Integer,
        _ => ParameterType::Text,
    };
    match value_type {
        ParameterType::Words(_) | ParameterType::Integers | ParameterType::Texts => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|text| parse_typed_text(item_type, text)).collect()
        }
        ParameterType::Word(words) => parse_word(words, text),
        ParameterType::Integer => text
            .parse::<i64>()
            .map(Json::from)
            .map_err(|_| CommandError::usage(format!("must be a whole number, not `{text}`"))),
        ParameterType::Boolean => text
            .parse::<bool>()
            .map(Json::from)
            .map_err(|_| CommandError::usage(format!("must be `true` or `false`, not `{text}`"))),
        ParameterType::Date
            if !text.is_empty() && (text.len() != 10 || text.parse::<Date>().is_err()) =>
        {
            Err(CommandError::usage(format!("must be a date such as `2099-01-31`, not `{text}`")))
        }
        ParameterType::Time if text.parse::<Timestamp>().is_err() => Err(CommandError::usage(
            format!("must be a time such as `2099-01-31T12:00:00Z`, not `{text}`"),
        )),
        ParameterType::Level => parse_level(text),
        // A name may look like a number, such as `007`.
        ParameterType::IdOrName => Ok(text
            .parse::<u64>()
            .ok()
            .filter(|id| id.to_string() == text)
            .map_or_else(|| text.into(), Json::from)),
        ParameterType::Objects(keys) => parse_objects(keys, text),
        ParameterType::Text
        | ParameterType::Map
        | ParameterType::Object(_)
        | ParameterType::File
        | ParameterType::Date
        | ParameterType::Time => Ok(text.into()),
    }
}

/// Parses a list of objects as JSON. Checks only the keys; the service checks the values.
fn parse_objects(keys: &[Parameter], text: &str) -> Result<Json> {
    let objects: Vec<Object> = serde_json::from_str(text).map_err(|_| {
        CommandError::usage("must be a list of objects in JSON").help("write `[{\"KEY\": VALUE}]`")
    })?;
    let names: Vec<_> = keys.iter().map(|key| key.name).collect();
    match objects.iter().flat_map(Object::keys).find(|name| !names.contains(&name.as_str())) {
        None => Ok(objects.into_iter().map(Json::Object).collect()),
        Some(name) => Err(CommandError::usage(format!("has no key `{name}`"))
            .help(format!("it has {}", alternatives(&names)))),
    }
}

fn parse_word(allowed_words: &[&str], text: &str) -> Result<Json> {
    if allowed_words.contains(&text) {
        return Ok(text.into());
    }
    let fault =
        CommandError::usage(format!("must be {}, not `{text}`", alternatives(allowed_words)));
    Err(CommandError { help: did_you_mean(text, allowed_words.iter().copied()), ..fault })
}

/// Parses a level, which is written as a number or a word, to its number (reference 1, 2.1).
fn parse_level(text: &str) -> Result<Json> {
    const NO_ACCESS: &str = "no_access";
    if text == "0" || text.eq_ignore_ascii_case(NO_ACCESS) {
        return Ok(0.into());
    }
    let level_value = text.parse::<u8>().map_or_else(|_| Json::from(text), Json::from);
    AccessLevel::parse(&level_value).map(|level| level.number.into()).ok_or_else(|| {
        let level_words: Vec<_> = std::iter::once(NO_ACCESS)
            .chain(MEMBER_LEVELS.iter().map(|level| level.word))
            .collect();
        CommandError::usage(format!(
            "must be a level ({}), not `{text}`",
            alternatives(&level_words)
        ))
    })
}

fn build_request<E: Copy>(operation: Op<E>, parsed_args: Vec<ParsedArgument>) -> Request<E> {
    let mut request = operation.request();
    let mut body = BTreeMap::new();
    for ParsedArgument { parameter, key, value } in parsed_args {
        match parameter.location {
            ParameterLocation::Path => {
                request = request.with_argument(parameter.name, url_text(&value));
            }
            ParameterLocation::Query => {
                let key = key.map_or_else(String::new, |key| format!("[{key}]"));
                request = request.with_query(parameter.name.to_owned() + &key, url_text(&value));
            }
            ParameterLocation::Body => {
                let Some(key) = key else {
                    body.insert(parameter.name.to_owned(), value);
                    continue;
                };
                let entry = body
                    .entry(parameter.name.to_owned())
                    .or_insert_with(|| Value::Plain(Object::new().into()));
                if let (Value::Plain(Json::Object(object)), Value::Plain(value)) = (entry, value) {
                    object.insert(key, value);
                }
            }
        }
    }
    if body.is_empty() { request } else { request.with_fields(body.into_iter().collect()) }
}

/// The value as text for a path or a query; the items of a list are separated by commas.
fn url_text(value: &Value) -> String {
    match value.plain_json() {
        Some(Json::Array(items)) => items.iter().map(unquoted_text).collect::<Vec<_>>().join(","),
        Some(json) => unquoted_text(json),
        None => String::new(),
    }
}

fn unquoted_text(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// The references in a request that must be resolved before it is sent.
pub(super) fn secret_references<E>(request: &Request<E>) -> BTreeSet<&Reference> {
    let values = request.body_fields().into_iter().flat_map(undrift_model::value::Fields::values);
    let references = values.filter_map(|value| match value {
        Value::Secret(reference) => Some(reference),
        Value::Plain(_) | Value::File(_) => None,
    });
    references.collect()
}
