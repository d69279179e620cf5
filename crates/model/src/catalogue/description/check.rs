//! Looks for faults of a description that its schema cannot express.

use std::collections::BTreeSet;

use super::{
    fault::{DATA, DescriptionFault, KeyFit, fault},
    make,
};
use crate::{
    catalogue::{Registry, words},
    field::{Accepted, Among, Field, NamedObject, Range, Readback, Required, ValueType, Weakens},
    kind::{self, Create, EditMethod, Kind, Removal, Shape},
    level::AccessLevel,
    operation::{
        OPERATIONS, Operation,
        collection::{self, EntryPath},
    },
    text,
    value::Json,
};

/// All faults of `description`; `json` is its text as JSON. `registry` has the existing kinds. The
/// section must not have a name in `reserved`.
pub(super) fn check(
    description: &Kind,
    json: &Json,
    registry: &Registry,
    reserved: &[String],
) -> Vec<DescriptionFault> {
    let mut check = DescriptionCheck { description, json, faults: Vec::new() };
    check.check_section(registry, reserved);
    check.check_creation();
    check.check_shape();
    check.check_names();
    for (at, field) in description.fields.iter().enumerate() {
        check.check_field(&format!("fields/{at}"), field);
    }
    check.check_homes(registry);
    check.faults
}

struct DescriptionCheck<'d> {
    description: &'d Kind,
    json: &'d Json,
    faults: Vec<DescriptionFault>,
}

impl DescriptionCheck<'_> {
    fn report(&mut self, at: impl Into<String>, name: &str) {
        self.faults.push(fault(at, name, ""));
    }

    fn report_about(&mut self, at: impl Into<String>, name: &str, about: &str) {
        self.faults.push(fault(at, name, about));
    }

    fn check_section(&mut self, registry: &Registry, reserved: &[String]) {
        let sections: BTreeSet<_> = registry.kinds().iter().map(|kind| kind.section).collect();
        let reserved: BTreeSet<_> = reserved.iter().map(String::as_str).collect();
        let Kind { section, aliases, removal, .. } = self.description;
        if sections.contains(section) {
            self.report_about("section", "section_twice", section);
        } else if reserved.contains(section) {
            self.report_about("section", "section_of_documents", section);
        }
        if let Some(alias) = aliases.iter().find(|name| (&sections | &reserved).contains(*name)) {
            self.report_about("aliases", "alias_of_documents", alias);
        }
        if *removal == Removal::Access && !self.has_type(ValueType::Level) {
            self.report("removal", "no_level");
        }
    }

    /// An entry that is added at its own path needs its identity in that path. What no request
    /// creates has no request that removes it either.
    fn check_creation(&mut self) {
        let Kind { create, edit, identity, fields, before_removal, .. } = self.description;
        let paths = self.paths();
        let is_named = paths
            .iter()
            .all(|path| path.argument.is_some_and(|argument| [argument] == identity[..]));
        let is_removed = *edit == EditMethod::Replace
            || before_removal.is_some()
            || paths.iter().any(|path| !path.address_query.is_empty());
        match create {
            Create::Never
                if is_removed
                    || fields.iter().any(|field| field.required == Required::OnCreate) =>
            {
                self.report("create", "no_request");
            }
            Create::Put | Create::WithContainer if !is_named || *edit != EditMethod::Put => {
                self.report("create", "no_entry_path");
            }
            _ => {}
        }
    }

    /// The paths that can be read.
    fn paths(&self) -> Vec<EntryPath> {
        self.description.homes.iter().flat_map(|home| EntryPath::parse(home.path)).collect()
    }

    /// A document has no entries; other descriptions identify theirs.
    fn check_shape(&mut self) {
        let kind = self.description;
        let has_entries = !kind.identity.is_empty()
            || kind.name_field.is_some()
            || kind.before_removal.is_some()
            || kind.removal != Removal::Nothing
            || kind.create != Create::Post
            || kind.edit == EditMethod::Replace
            || self.has_type(ValueType::Grants)
            || self.has_type(ValueType::Approvals);
        match kind.shape {
            Shape::List if kind.identity.is_empty() => self.report("identity", "no_identity"),
            Shape::List => {}
            _ if has_entries => self.report("shape", "no_entries"),
            _ => {}
        }
    }

    /// Keys that name fields must name existing ones, and fitting ones.
    fn check_names(&mut self) {
        let Kind { identity, name_field, .. } = self.description;
        for key in ["identity", "either", "grants"] {
            for (at, name) in texts_in(&self.json[key]).enumerate() {
                self.check_field_name(format!("{key}/{at}"), Some(name));
            }
        }
        for key in ["name_field", "called_by"] {
            self.check_field_name(key.to_owned(), self.json[key].as_str());
        }
        for (at, name) in identity.iter().enumerate() {
            if let Some(why) = self.field_named(name).and_then(|field| self.identity_fault(field)) {
                self.report_about(format!("identity/{at}"), "not_identifying", why);
            }
        }
        let stored_name = name_field.and_then(|name| self.field_named(name));
        if stored_name.is_some_and(|field| {
            field.value_type != ValueType::Text || identity.contains(&field.name)
        }) {
            self.report("name_field", "no_name");
        }
        // The path has the id of the parent, which only plain text can name.
        let has_parent = self.paths().iter().any(|path| path.parent().is_some());
        let parent =
            identity.first().filter(|_| has_parent).and_then(|name| self.field_named(name));
        if parent.is_some_and(|field| {
            field.value_type != ValueType::Text
                || field.sensitive
                || field.names.is_some()
                || field.send_as.is_some()
                || field.read != Readback::Same
        }) {
            self.report("identity/0", "no_parent");
        }
    }

    fn field_named(&self, name: &str) -> Option<&'_ Field> {
        self.fields_named(name).next()
    }

    /// The fields of manifests with this name: two if each scope has its own.
    fn fields_named(&self, name: &str) -> impl Iterator<Item = &'_ Field> {
        let declared_fields =
            self.description.fields.iter().filter(|field| field.accepted != Accepted::ByCall);
        declared_fields.filter(move |field| field.name == name)
    }

    fn has_type(&self, value: ValueType) -> bool {
        self.description.fields.iter().any(|field| field.value_type == value)
    }

    fn check_field_name(&mut self, at: String, name: Option<&str>) {
        if let Some(name) = name.filter(|name| self.field_named(name).is_none()) {
            self.report_about(at, "no_field", &text::escape(name));
        }
    }

    /// The identity must be known for every entry.
    fn identity_fault(&self, field: &Field) -> Option<&'static str> {
        match field.value_type {
            ValueType::Boolean
            | ValueType::Texts
            | ValueType::Secret
            | ValueType::Grants
            | ValueType::Approvals => Some("of this type"),
            _ if field.read == Readback::Never => Some("that responses leave out"),
            _ if field.nullable => Some("that may be null"),
            _ => {
                let has_one_scope = field.available.scope().is_some();
                (has_one_scope && self.fields_named(field.name).count() < 2)
                    .then_some("that only one scope has")
            }
        }
    }

    fn check_field(&mut self, at: &str, field: &Field) {
        let name = field.name;
        let mut same_name_fields =
            self.description.fields.iter().filter(|other| other.name == name);
        let first = same_name_fields.find(|other: &&Field| {
            let scopes = other.available.scope().zip(field.available.scope());
            scopes.is_none_or(|(one, other)| one == other)
        });
        if first.is_some_and(|first| !std::ptr::eq(first, field)) {
            self.report_about(format!("{at}/name"), "field_twice", name);
        }
        if words::ENTRY_KEYS.contains(&name) {
            self.report_about(format!("{at}/name"), "field_of_entries", name);
        }
        if let Some(alias) = field.aliases.iter().find(|alias| {
            let mut other_fields =
                self.description.fields.iter().filter(|other| other.name != name);
            self.field_named(alias).is_some()
                || other_fields.any(|other| other.aliases.contains(alias))
        }) {
            self.report_about(format!("{at}/aliases"), "alias_twice", alias);
        }
        let written = self.json.pointer(&format!("/{at}")).unwrap_or(&Json::Null);
        for key in ["reset_by", "not_with", "not_before", "limits"] {
            self.check_field_name(
                format!("{at}/relations/{key}"),
                written["relations"][key].as_str(),
            );
        }
        self.check_key_types(at, field, written);
        self.check_words(at, field);
        self.check_guards(at, field);
        self.check_requests(at, field);
        if self.faults.is_empty() {
            self.check_schema(at, field);
        }
    }

    /// Keys that only fit certain types of fields.
    fn check_key_types(&mut self, at: &str, field: &Field, written: &Json) {
        for KeyFit { key, values, types, help } in &DATA.keys {
            let value = written.pointer(&format!("/{key}"));
            let is_about = value.is_some_and(|value| values.is_empty() || values.contains(value));
            if is_about && !types.contains(&field.value_type) {
                let (at, message) =
                    (format!("{at}/{key}"), format!("`{key}` does not fit this type"));
                self.faults.push(DescriptionFault { pointer: at, message, help });
            }
        }
    }

    fn check_words(&mut self, at: &str, field: &Field) {
        let words: BTreeSet<_> = field.words.iter().map(|word| word.word).collect();
        if field.value_type == ValueType::Word && words.is_empty() {
            self.report(format!("{at}/type"), "no_words");
        } else if words.len() < field.words.len() {
            self.report(format!("{at}/words"), "word_twice");
        }
        let has_level_words =
            [ValueType::Grants, ValueType::Approvals, ValueType::Level].contains(&field.value_type);
        if has_level_words
            && !words.iter().all(|word: &&str| AccessLevel::parse(&Json::from(*word)).is_some())
        {
            self.report(format!("{at}/words"), "word_of_no_level");
        }
    }

    /// Guards must see who gets something, on what, and who loses it. A flag in `grants` is judged by
    /// its own risk, not by the entry that has it; a field that gives access is not a protection.
    fn check_guards(&mut self, at: &str, field: &Field) {
        let Kind { identity, name_field, removal, fields, grants, .. } = self.description;
        let is_seen = field.read != Readback::Never;
        let is_listed = is_seen && field.grants.lets.is_some();
        let levels = fields.iter().filter(|field| field.value_type == ValueType::Level).count();
        let name = match field.value_type {
            ValueType::Boolean
                if grants.contains(&field.name)
                    && !matches!(field.weakens, Weakens::OpensWhenOn | Weakens::OpensWhenOff) =>
            {
                return self.report(format!("{at}/weakens"), "hidden_flag");
            }
            ValueType::Approvals
                if !self.has_type(ValueType::Grants)
                    || field.weakens != Weakens::WhenFewer
                    || !is_listed =>
            {
                "hidden_approvals"
            }
            ValueType::Grants if field.weakens != Weakens::WhenWider || !is_listed => {
                "hidden_grants"
            }
            ValueType::Grants if *removal != Removal::Weakens => "grants_unprotected",
            ValueType::Grants if identity.len() > 1 || name_field.is_some() => "grants_of_several",
            ValueType::Level if *removal != Removal::Access || field.weakens != Weakens::Never => {
                "hidden_level"
            }
            ValueType::Level if levels > 1 || !is_seen || field.nullable => "several_levels",
            _ => return,
        };
        self.report(format!("{at}/type"), name);
    }

    /// Requests and responses must contain enough to create an entry, change it and restore it.
    fn check_requests(&mut self, at: &str, field: &Field) {
        let Kind { identity, name_field, edit, create, .. } = self.description;
        let is_replaced = *edit == EditMethod::Replace;
        // If entries are found by their name, their identity can change.
        let is_fixed = name_field.is_none() && identity.contains(&field.name);
        // What all groups and projects share is as the first one created it.
        let is_shared = field.among == Among::Shared;
        let can_differ = field.read != Readback::Never;
        let is_open = !is_replaced && !is_fixed && !is_shared && can_differ;
        if field.accepted == Accepted::OnCreate && is_open {
            let never = *create == Create::Never;
            let name = if never { "never_changes_here" } else { "never_changes" };
            self.report(format!("{at}/accepted"), name);
        }
        let is_secret = field.value_type == ValueType::Secret;
        if (field.read == Readback::Never || is_secret) && is_replaced {
            self.report(format!("{at}/name"), "lost_if_replaced");
        }
        if is_secret && field.read != Readback::Same {
            self.report(format!("{at}/read"), "secret_read");
        }
    }

    /// Checks that use the schema of the field.
    fn check_schema(&mut self, at: &str, field: &Field) {
        let Range { min, max } = field.valid.size;
        let is_length = field.value_type != ValueType::Integer;
        if is_length && [min, max].into_iter().flatten().any(|limit| limit < 0) {
            return self.report(format!("{at}/valid/size"), "negative_length");
        }
        let property = kind::field_schema(Box::leak(Box::new(field.clone())));
        let Ok(validator) = jsonschema::validator_for(&property) else {
            return self.report(format!("{at}/valid/pattern"), "no_expression");
        };
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            self.report(format!("{at}/valid/size"), "limits_swapped");
        }
        if !field.examples.iter().all(|example| validator.is_valid(example)) {
            return self.report(format!("{at}/examples"), "no_example");
        }
        let defaults = [("create", &field.default.create), ("service", &field.default.service)];
        let invalid_default = defaults
            .into_iter()
            .find(|(_, value)| value.as_ref().is_some_and(|value| !validator.is_valid(value)));
        if let Some((key, _)) = invalid_default {
            self.report(format!("{at}/default/{key}"), "no_default");
        }
    }

    fn check_homes(&mut self, registry: &Registry) {
        let mut scopes = BTreeSet::new();
        let described = registry.described_operations().iter().map(|op| op.row());
        let operations: Vec<_> = OPERATIONS.iter().map(|op| op.row()).chain(described).collect();
        for (at, home) in self.description.homes.iter().enumerate() {
            let at = format!("homes/{at}/path");
            let path = match EntryPath::parse(home.path) {
                Ok(path) => path,
                Err(why) => {
                    self.report_about(at, "no_path", why);
                    continue;
                }
            };
            if !scopes.insert(path.scope) {
                self.report_about(at, "scope_twice", path.scope.noun());
            } else if let Err(why) = make::find_parents(self.description, home, &path, registry) {
                self.report_about(at, "no_path", why);
            } else {
                self.check_addressing(&at, &path);
                if let Some((name, about)) = self.reject_home(&path, &operations) {
                    let is_noun_fault = name == "operation_twice";
                    self.report_about(if is_noun_fault { "noun" } else { &at }, name, about);
                }
            }
        }
    }

    /// The path must address an entry in one way.
    fn check_addressing(&mut self, at: &str, path: &EntryPath) {
        for (_, field) in &path.address_query {
            self.check_field_name(at.to_owned(), Some(field));
        }
        let mut names = path.address_query.iter().chain(&path.list_query).map(|(name, _)| *name);
        if let Some(name) = names.find(|name| DATA.paths["of_the_client"].contains(name)) {
            self.report_about(at, "of_the_client", name);
        }
        let address_count =
            usize::from(path.argument.is_some()) + usize::from(!path.address_query.is_empty());
        let name = match (self.description.shape, address_count) {
            (Shape::Mapping, 1..) => "object_addressed",
            (Shape::List, 0) => "not_addressed",
            (_, 2..) => "addressed_twice",
            _ if path.argument == Some("id") => "id_of_container",
            _ => return,
        };
        self.report(at, name);
    }

    /// Why descriptions must not, or need not, describe this path: the fault, and what it is about.
    fn reject_home<'o>(
        &self,
        path: &EntryPath,
        operations: &[&'o Operation],
    ) -> Option<(&'static str, &'o str)> {
        let names_any = |name: &str| path.names().any(|part| DATA.paths[name].contains(&part));
        if names_any("shown_once") && !self.description.names_any(NamedObject::Runner) {
            return Some(("shown_once", ""));
        }
        let is_document = self.description.shape == Shape::Mapping;
        let (table_rows, described) = operations.split_at(OPERATIONS.len());
        let mut overlapping = table_rows
            .iter()
            .filter(|row| path.shares_first_name_with(row))
            .chain(described.iter().filter(|row| path.shares_path_with(row, is_document)));
        let ids: Vec<_> = collection::operation_ids(path.scope, self.description.noun).collect();
        match overlapping.next() {
            Some(other) => Some(("path_twice", other.path)),
            None if names_any("contents") => Some(("contents", "")),
            None if names_any("without_grants") && !self.has_type(ValueType::Grants) => {
                Some(("without_grants", ""))
            }
            None if names_any("without_level") && !self.has_type(ValueType::Level) => {
                Some(("without_level", ""))
            }
            None => {
                let other = operations.iter().find(|row| ids.iter().any(|id| id == row.id))?;
                Some(("operation_twice", other.id))
            }
        }
    }
}

/// The texts in a list.
fn texts_in(list: &Json) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str)
}
