//! Checks of declared fields that apply to every kind and need no service.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use jiff::civil::Date;
use regex_syntax::ast::{Error, ErrorKind, parse::Parser};

use super::{EntryFault, FaultTexts, FieldSpec, Reporter, Section, fault_text, limits::is_on};
use crate::{
    diagnostic::Severity,
    field::{Equality, Secrecy, ValueType},
    release::time_zone,
    secret::judge::{self, Credential},
    text,
    value::{Fields, Json, Value},
};

/// The code of the message about a secret in plain text.
const LITERAL_SECRET_CODE: &str = "literal-secret";

/// The fields of a cron expression: name, minimum, maximum, and the names of values. Only expressions
/// with six fields have seconds.
const CRON_FIELDS: [(&str, u32, u32, &[&str]); 6] = [
    ("second", 0, 59, &[]),
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    ("month", 1, 12, &MONTHS),
    ("day of the week", 0, 7, &DAYS),
];

impl Section {
    /// Checks a declared entry without the service: its fields, and the
    /// [rules](super::KindRules::check) of its kind. `is_unresolved` is true before secrets are
    /// resolved.
    pub fn check(self, declared: &Fields, is_unresolved: bool, report: Reporter<'_>) {
        for (name, value) in declared {
            let Some(spec) = self.spec(name) else { continue };
            if is_unresolved {
                self.check_expressions(spec, value, report);
            }
            check_format(spec, value).into_iter().for_each(&mut *report);
            check_text(self.section, spec, value, report);
            check_relations(spec, value, declared, report);
        }
        let mut reported_faults = Vec::new();
        self.rules().check(declared, is_unresolved, &mut |fault| {
            reported_faults.push((fault.field, fault.code));
            report(fault);
        });
        if is_unresolved {
            self.check_credentials(declared, &reported_faults, report);
        }
    }

    /// Reports invalid regular expressions in `value`, also inside a mapping.
    fn check_expressions(self, spec: &'static FieldSpec, value: &Value, report: Reporter<'_>) {
        let whole_value = (None, spec.field.is_regular_expression(), value.text());
        let inner_texts = spec.key_fields.iter().map(|field| {
            let text = value.plain_json().and_then(|value| value.get(field.name)?.as_str());
            (Some(field.name), field.is_regular_expression(), text)
        });
        for (inner_key, is_expression, text) in std::iter::once(whole_value).chain(inner_texts) {
            let name = inner_key.unwrap_or(spec.name);
            if let Some(text) = text.filter(|_| is_expression)
                && let Some((mut fault_texts, message, severity)) = expression_fault(name, text)
            {
                let negative_name = spec.name.replace("_regex", "_negative_regex");
                if fault_texts == fault_text::EXPRESSION_WITH_LOOK_AROUND
                    && self.spec(&negative_name).is_some()
                {
                    fault_texts = fault_text::EXPRESSION_WITH_NEGATIVE;
                }
                let fault =
                    EntryFault::for_field(fault_texts, spec.name).fill("negative", &negative_name);
                report(EntryFault { severity, inner_key, ..fault.fill("why", &message) });
            }
        }
    }

    /// Reports credentials in plain text, and placeholders for them, unless `reported` has the
    /// field with its code.
    fn check_credentials(self, declared: &Fields, reported: &[(&str, &str)], report: Reporter<'_>) {
        for (name, value) in declared {
            let is_reported = |code| reported.contains(&(name.as_str(), code));
            let Some(spec) = self.spec(name).filter(|_| !is_reported(LITERAL_SECRET_CODE)) else {
                continue;
            };
            let Some(credential) = value.plain_json().and_then(super::forms::find_credential_in)
            else {
                let is_filler = spec.field.secrecy() != Secrecy::Open
                    && value.text().is_some_and(judge::is_filler);
                if is_filler && !is_reported("masked-value") {
                    report(EntryFault::for_field(fault_text::FILLER, spec.name));
                }
                continue;
            };
            let fault_texts = match spec.field.secrecy() {
                Secrecy::Open if spec.field.names.is_some() => fault_text::CREDENTIAL_AS_NAME,
                Secrecy::Open => fault_text::CREDENTIAL_SHOWN,
                _ if credential == Credential::Password => fault_text::CREDENTIAL_IN_TEXT,
                _ => fault_text::CREDENTIAL,
            };
            report(
                EntryFault::for_field(fault_texts, spec.name)
                    .fill("what", credential.noun_phrase()),
            );
        }
    }
}

/// The fault of a value whose format is invalid: a time zone, a cron expression or a date.
fn check_format(spec: &FieldSpec, value: &Value) -> Option<EntryFault> {
    let text = value.text()?;
    match spec.field.value_type {
        ValueType::TimeZone if !time_zone::is_valid(text.trim()) => {
            Some(unknown_zone_fault(spec.name, text.trim()))
        }
        ValueType::Cron => {
            let reason = cron_fault(text)?;
            let fault_texts = match text {
                _ if text.contains(['–', '—', '−']) => fault_text::CRON_WITH_DASH,
                _ if has_jenkins_hash(text) => fault_text::CRON_WITH_HASH,
                _ if text.get(..10).is_some_and(|day| day.parse::<Date>().is_ok()) => {
                    fault_text::CRON_OF_DATE
                }
                _ => fault_text::CRON,
            };
            Some(EntryFault::for_field(fault_texts, spec.name).fill("why", &reason))
        }
        ValueType::Date if !text.is_empty() && text.parse::<Date>().is_err() => {
            Some(EntryFault::for_field(fault_text::DATE, spec.name))
        }
        _ => None,
    }
}

/// Reports faults of a text, or of the texts in a list.
fn check_text(section: &str, spec: &FieldSpec, value: &Value, report: Reporter<'_>) {
    let (field, compare) = (spec.name, spec.field.compare);
    let items = value.list().into_iter().flatten();
    let mut items = items.filter_map(Json::as_str);
    if items.any(|text| text.contains([',', ';']) && !text.contains("://")) {
        report(EntryFault::for_field(fault_text::SEVERAL_IN_ONE, field));
    }
    let Some(text) = value.text() else { return };
    let is_branch_or_tag =
        field == "name" && ["protected_branches", "protected_tags"].contains(&section);
    let is_scope_expression = field == "environment_scope" && text.starts_with(['^', '/']);
    let is_name_expression = is_branch_or_tag && looks_like_expression(text);
    let forbidden_text = if text.starts_with("refs/") { "refs/" } else { " " };
    let is_incomplete_key = compare == Equality::PublicKey && !is_complete_key(text);
    let is_short_address = compare == Equality::Location && is_scp_address(text);
    let is_invalid_ref_name = is_branch_or_tag && text.contains(forbidden_text);
    let is_pattern = compare == Equality::Ref && text.contains(['*', '?', '[', ' ']);
    let placeholder = suggest_placeholder(field, text);
    let object_noun = if is_scope_expression { "environment" } else { "branch or tag" };
    let means_all = field == "environment_scope" && is_word_for_all(text);
    let means_null = spec.field.nullable && ["None", "nil", "undefined"].contains(&text);
    let is_url = matches!(compare, Equality::Url | Equality::Location);
    let is_address = spec.field.secrecy() == Secrecy::Address && compare != Equality::Url;
    let has_scheme = text.is_empty() || text.contains("://") || text.starts_with(['{', '$']);
    let lacks_scheme = is_address && !has_scheme && !is_scp_address(text);
    let has_blanks_around = (is_url || compare == Equality::Trimmed) && text.trim() != text;
    let blank_texts =
        if text.ends_with('\n') { fault_text::LINE_END } else { fault_text::BLANK_AROUND };
    for (applies, fault_texts, name, value) in [
        (is_incomplete_key, fault_text::PART_OF_KEY, "", ""),
        (is_short_address, fault_text::SHORT_ADDRESS, "", ""),
        (is_invalid_ref_name, fault_text::NO_REF, "odd", forbidden_text),
        (is_pattern, fault_text::REF_PATTERN, "", ""),
        (placeholder.is_some(), fault_text::PLACEHOLDER, "near", placeholder.unwrap_or_default()),
        (is_scope_expression || is_name_expression, fault_text::NO_GLOB, "what", object_noun),
        (means_all, fault_text::SCOPE_OF_ALL, "text", text),
        (means_null, fault_text::TEXT_FOR_NULL, "text", text),
        (is_url && text.trim().contains(' '), fault_text::BLANK_IN_URL, "", ""),
        (lacks_scheme, fault_text::NO_SCHEME, "", ""),
        (has_blanks_around, blank_texts, "", ""),
    ] {
        if applies {
            report(EntryFault::for_field(fault_texts, field).fill(name, value));
        }
    }
}

/// Reports faults of a value in relation to other fields.
fn check_relations(spec: &FieldSpec, value: &Value, declared: &Fields, report: Reporter<'_>) {
    let (field, text) = (spec.name, value.text().unwrap_or_default());
    let earlier_field = spec.field.relations.not_before;
    let earlier_value = earlier_field
        .and_then(|other_field| Some((other_field, declared.get(other_field)?.text()?)));
    // Dates of the same form can be compared as texts.
    if let Some((earlier_name, _)) =
        earlier_value.filter(|(_, day)| text.len() == day.len() && text < *day)
    {
        report(EntryFault::for_field(fault_text::BEFORE, field).with_other_field(earlier_name));
    }
    let excluded_field = spec.field.relations.not_with;
    if let Some((excluded_name, other_value)) =
        excluded_field.and_then(|other| Some((other, declared.get(other)?)))
        && [value, other_value].into_iter().all(is_on)
    {
        let fault_texts = if other_value.flag().is_some() {
            fault_text::FLAGS_TOGETHER
        } else {
            fault_text::TOGETHER
        };
        report(EntryFault::for_field(fault_texts, field).with_other_field(excluded_name));
    }
}

/// The placeholders in templates of commit messages.
const TEMPLATE_PLACEHOLDERS: &str = "all_commits approved_by branch_name co_authored_by description \
    file_path file_paths files_count first_commit first_multiline_commit \
    first_multiline_commit_description issues local_reference merge_request_author merged_by \
    project_name project_path reference reviewed_by source_branch source_project_id \
    suggestions_count target_branch target_project_id title url user_full_name username";

/// The placeholders in the addresses of badges.
const BADGE_PLACEHOLDERS: &str = "commit_sha default_branch gitlab_pages_domain gitlab_server group_name \
    latest_tag project_id project_name project_namespace project_path project_title";

/// A known placeholder that `text` probably means. It is similar to an unknown placeholder in
/// `text`, or it is in `text` without its `%`.
fn suggest_placeholder(field: &str, text: &str) -> Option<&'static str> {
    let placeholders = match field {
        "merge_commit_template" | "squash_commit_template" | "suggestion_commit_message" => {
            TEMPLATE_PLACEHOLDERS
        }
        "link_url" | "image_url" => BADGE_PLACEHOLDERS,
        _ => return None,
    };
    text.match_indices('{').find_map(|(brace_index, _)| {
        let name = text[brace_index + 1..].split('}').next()?;
        let known_name = placeholders.split(' ').find(|placeholder| *placeholder == name);
        if text[..brace_index].ends_with('%') {
            text::nearest(name, placeholders.split(' ')).filter(|_| known_name.is_none())
        } else {
            known_name
        }
    })
}

/// True if the name of a branch or tag looks like a regular expression or a shell glob. Names
/// rarely have such characters, and `*` is the only wildcard of the service. In `v1.*`, the dot
/// belongs to the name.
fn looks_like_expression(text: &str) -> bool {
    let mut wildcard_prefixes = text.match_indices(".*").map(|(index, _)| &text[..index]);
    text.starts_with('^')
        || text.ends_with('$')
        || wildcard_prefixes
            .any(|prefix| !prefix.ends_with(|c: char| c.is_alphanumeric() || c == '*'))
        || text.contains(['\\', '[', '?', '|'])
        || text.contains('{') && text.contains(',')
}

/// True if the scope of a variable is a word for all environments.
fn is_word_for_all(text: &str) -> bool {
    ["all", "all default", "all environments"]
        .contains(&&*text.to_lowercase().replace(['_', '-'], " "))
}

/// The names of months and days in cron expressions, in the order of their numbers.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The fault of a cron expression, such as a wrong number of fields, a number out of range, or an
/// unknown name.
fn cron_fault(text: &str) -> Option<String> {
    let fields: Vec<_> = text.split_whitespace().collect();
    if has_jenkins_hash(text) {
        return Some("has an `H`, which is not a number".to_owned());
    }
    let is_shortcut = text.starts_with('@');
    if !(5..=CRON_FIELDS.len()).contains(&fields.len()) && !is_shortcut {
        return Some("must have five fields".to_owned());
    }
    // The service reads the first of six fields as seconds.
    let cron_fields = &CRON_FIELDS[CRON_FIELDS.len().saturating_sub(fields.len())..];
    let mut special_characters = text.chars().filter(|c| !c.is_ascii_alphanumeric());
    if let Some(character) = special_characters.find(|c| !" */,-#?@".contains(*c)) {
        return Some(format!("must not have `{}`", character.escape_debug()));
    }
    let parse_number = |number_text: &str| number_text.split('/').next()?.parse::<u32>().ok();
    let split_words = |field: &str| {
        let words = field.split(|c: char| !c.is_ascii_alphabetic()).map(str::to_ascii_lowercase);
        words.filter(|word| word.len() > 1).collect::<Vec<_>>()
    };
    let name_fault = fields.iter().zip(cron_fields).find_map(|(field, (name, _, _, names))| {
        let unknown_name =
            split_words(field).into_iter().find(|word| !names.contains(&word.as_str()))?;
        Some(match names.first() {
            Some(first_name) => {
                format!(
                    "has `{unknown_name}` for the {name}, whose names are written like `{first_name}`"
                )
            }
            None => format!("has `{unknown_name}` for the {name}, which is a number"),
        })
    });
    if let Some(fault) = name_fault.filter(|_| !is_shortcut) {
        return Some(fault);
    }
    let mut list_items = fields.iter().flat_map(|field| field.split(','));
    if list_items
        .any(|list_item| list_item.rsplit_once('/').is_some_and(|(_, step)| step.parse() == Ok(0)))
    {
        return Some("must have a step of at least 1 after each `/`".to_owned());
    }
    let mut fields = fields.into_iter().zip(cron_fields).filter(|_| !is_shortcut);
    let (_, (name, min, max, _)) = fields.find(|(field, (_, min, max, _))| {
        let mut numbers = field.split([',', '-']).filter_map(parse_number);
        numbers.any(|number| !(*min..=*max).contains(&number))
    })?;
    Some(format!("must have {min} to {max} for the {name}"))
}

/// True if `text` has the short form of an SSH address, as in `git@HOST:PATH`.
fn is_scp_address(text: &str) -> bool {
    let user_host_and_path = text.split_once(':').filter(|_| !text.contains("://"));
    user_host_and_path
        .is_some_and(|(host_and_path, path)| host_and_path.contains('@') && !path.is_empty())
}

/// The fault for an unknown time zone. The suggestion compares the last part of the name, usually a
/// city.
fn unknown_zone_fault(field: &'static str, zone: &str) -> EntryFault {
    let city = last_zone_part(zone);
    let nearest_zone = time_zone::names()
        .find(|name| last_zone_part(name).eq_ignore_ascii_case(city))
        .or_else(|| text::nearest(zone, time_zone::names()))
        .filter(|candidate| {
            strsim::osa_distance(last_zone_part(candidate), city) <= city.len() / 4
        });
    // The names of `Etc` zones have the opposite sign of their offset: `Etc/GMT+2` is UTC-2.
    let is_offset = zone.contains(['+', '-']);
    let fault_texts = match nearest_zone {
        _ if is_offset => fault_text::ZONE_AS_OFFSET,
        Some(_) => fault_text::ZONE_NEAR,
        None => fault_text::ZONE,
    };
    let fault =
        EntryFault::for_field(fault_texts, field).fill("near", nearest_zone.unwrap_or_default());
    fault.fill("zone", &text::escape(zone))
}

/// The last part of the name of a time zone.
fn last_zone_part(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

/// The reason why `text` is not a valid regular expression, with the texts of the fault. The
/// grammar of the parser is similar to RE2, but not the same. If RE2 may accept the expression, the
/// fault is only a warning.
fn expression_fault(name: &str, text: &str) -> Option<(FaultTexts, String, Severity)> {
    let error = Parser::new().parse(text).err();
    let is_certain =
        error.as_ref().is_some_and(|error| is_refused_by_re2(error) && !text.contains("\\Q"));
    if !is_certain && has_slash_delimiters(name, text) {
        let message = format!("`{name}` has a `/` at both ends, which are part of the expression");
        return Some((fault_text::EXPRESSION_IN_SLASHES, message, Severity::Warning));
    }
    if !is_certain && text.ends_with(['\n', '\r']) {
        let message = format!("`{name}` ends in a line break, which is part of the expression");
        return Some((fault_text::EXPRESSION_OF_LINES, message, Severity::Warning));
    }
    if error.is_none() && text.contains("/*") && !text.contains('[') {
        let message = format!("in `{name}`, `/*` matches only slashes");
        return Some((fault_text::EXPRESSION_OF_GLOB, message, Severity::Warning));
    }
    let error = error?;
    let fault_texts = if text.starts_with('*') || text.contains("|*") {
        fault_text::EXPRESSION_OF_GLOB
    } else if text.contains("(?!") {
        fault_text::EXPRESSION_WITH_LOOK_AROUND
    } else {
        fault_text::EXPRESSION
    };
    let severity = if is_certain { Severity::Error } else { Severity::Warning };
    let mut message = format!("`{name}` is not a valid regular expression: {}", error.kind());
    let column = error.span().start.column;
    if column > 1 {
        message = format!("{message} (character {column})");
    }
    Some((fault_texts, message, severity))
}

/// True if the expression `text` of the field `name` has slashes around it, as in JavaScript.
/// Slashes around an expression for file or branch names may belong to the names.
fn has_slash_delimiters(name: &str, text: &str) -> bool {
    let inner_and_flags = text.strip_prefix('/').and_then(|text| text.rsplit_once('/'));
    inner_and_flags.is_some_and(|(inner_text, flags)| {
        let is_anchored =
            inner_text.starts_with('^') || inner_text.ends_with('$') || !flags.is_empty();
        let is_path = name.contains("file") || name.contains("branch");
        !inner_text.is_empty()
            && flags.chars().all(|c| "gimsuxy".contains(c))
            && (is_anchored || !is_path)
    })
}

/// True if a cron expression has an `H`, which Jenkins replaces by a number.
fn has_jenkins_hash(text: &str) -> bool {
    text.split([' ', ',']).any(|list_item| list_item.split(['/', '(']).next() == Some("H"))
}

/// True if the data of an SSH key is complete. The data is a sequence of parts, and each part
/// follows its length. The first part is the type of the key.
fn is_complete_key(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(key_type), Some(key)) = (words.next(), words.next()) else { return true };
    let Ok(bytes) = BASE64_STANDARD_NO_PAD.decode(key.trim_end_matches('=')) else { return false };
    let (mut key_parts, mut unread_bytes) = (Vec::new(), &bytes[..]);
    while let Some((length, tail)) = unread_bytes.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((key_part, tail)) = tail.split_at_checked(length) else { return false };
        key_parts.push(key_part);
        unread_bytes = tail;
    }
    unread_bytes.is_empty() && key_parts.len() > 1 && key_parts[0] == key_type.as_bytes()
}

/// True if RE2 also refuses the expression.
fn is_refused_by_re2(error: &Error) -> bool {
    let text_at_fault = &error.pattern()[error.span().start.offset..];
    match error.kind() {
        ErrorKind::ClassRangeInvalid
        | ErrorKind::ClassUnclosed
        | ErrorKind::EscapeUnexpectedEof
        | ErrorKind::GroupUnclosed
        | ErrorKind::GroupUnopened
        | ErrorKind::RepetitionMissing
        | ErrorKind::UnsupportedLookAround => true,
        // In RE2, `\0` and `\12` are octal numbers.
        ErrorKind::UnsupportedBackreference => {
            let mut octal_flags =
                text_at_fault.trim_start_matches('\\').chars().map(|c| c.is_digit(8));
            let is_zero = text_at_fault.starts_with("\\0");
            let is_octal =
                is_zero || (octal_flags.next() == Some(true) && octal_flags.next() == Some(true));
            !is_octal
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cron_expression_has_five_fields_or_seconds_before_them() {
        for (text, is_valid) in [
            ("0 4 * * *", true),
            ("*/5 0-23 1,31 jan-DEC 7", true),
            ("0 0 L * mon#1", true),
            ("@daily", true),
            ("0 4 * *", false),
            ("0 4 * * 1–5", false),
            ("60 4 * * *", false),
            ("0 24/2 * * *", false),
            ("0 4 0 * *", false),
            ("0 4 * 1-13 *", false),
            ("0 4 * * 1,8", false),
            ("H 2 * * *", false),
            ("H(0-29)/10 2 * * *", false),
            ("0 4 * mar THU", true),
            ("0 30 4 * * *", true),
            ("0 0 2 * * MON", true),
            ("60 0 2 * * *", false),
            ("0 4 * * * UTC", false),
            ("0 0 2 * * * *", false),
        ] {
            assert_eq!(cron_fault(text).is_none(), is_valid, "{text}");
        }
    }

    #[test]
    fn paths_are_not_delimited_expressions() {
        assert!(!has_slash_delimiters("file_name_regex", "/secrets/"));
        assert!(has_slash_delimiters("file_name_regex", "/^secrets/"));
        assert!(
            has_slash_delimiters("commit_message_regex", "/SHOP/")
                && !has_slash_delimiters("", "/a/b")
        );
    }

    /// The service refuses a broken expression, with or without slashes around it.
    #[test]
    fn a_broken_expression_between_slashes_is_an_error() {
        for (text, severity) in [("/(a/i", Severity::Error), ("/^a/i", Severity::Warning)] {
            let (_, message, actual_severity) = expression_fault("file_name_regex", text).unwrap();
            assert_eq!(actual_severity, severity, "{message}");
            assert_eq!(
                message.contains("unclosed group"),
                severity == Severity::Error,
                "{message}"
            );
        }
    }

    #[test]
    fn a_part_of_an_ssh_key_is_no_key() {
        let key =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        assert!(is_complete_key(key) && is_complete_key(&format!("{key} ci")));
        assert!(
            !is_complete_key(&key[..key.len() - 8]) && !is_complete_key("ssh-rsa AAAAB3NzaC1yc2E")
        );
        assert!(!is_complete_key(&key.replace("ssh-ed25519", "ssh-rsa")));
    }

    #[test]
    fn a_short_ssh_address_is_no_url() {
        assert!(is_scp_address("git@git.example.org:acme/shop.git"));
        assert!(!is_scp_address("ssh://git@git.example.org/acme/shop.git"));
        assert!(!is_scp_address("https://git.example.org/acme/shop.git"));
    }

    #[test]
    fn an_expression_that_re2_certainly_refuses_is_an_error() {
        for (text, expected) in [
            ("^(feat|fix): ", None),
            (r"\.(exe|jar)$", None),
            ("(", Some(Severity::Error)),
            (")", Some(Severity::Error)),
            ("^SHOP-\n", Some(Severity::Warning)),
            ("[a", Some(Severity::Error)),
            ("[z-a]", Some(Severity::Error)),
            ("*a", Some(Severity::Error)),
            ("a\\", Some(Severity::Error)),
            ("(?=x)", Some(Severity::Error)),
            (r"\d+(?<!x)", Some(Severity::Error)),
            (r"(a)\1", Some(Severity::Error)),
            // RE2 accepts the following expressions.
            (r"\012", Some(Severity::Warning)),
            ("/^SHOP-/", Some(Severity::Warning)),
            ("/shop/i", Some(Severity::Warning)),
            (r"\12", Some(Severity::Warning)),
            (r"\Qa(b\E", Some(Severity::Warning)),
            ("a{,5}", Some(Severity::Warning)),
        ] {
            assert_eq!(
                expression_fault("", text).map(|(_, _, severity)| severity),
                expected,
                "{text}"
            );
        }
    }
}
