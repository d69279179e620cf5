//! Finds faults in a description that the schema of descriptions cannot detect.

use std::collections::BTreeSet;

use super::{
    fault::{DescriptionFault, FAULT_TABLE, KeyTypes, new_fault},
    make,
};
use crate::{
    catalogue::{Registry, words},
    field::{
        Acceptance, Field, NamedObject, NumberRange, Readback, Requirement, Uniqueness, ValueType,
        Weakening,
    },
    kind::{self, CreateMethod, EditMethod, Kind, Removal, Shape},
    level::AccessLevel,
    operation::{
        OPERATIONS, Operation,
        collection::{self, EntryPath},
    },
    text,
    value::Json,
};

/// Returns all faults of `description`; `json` is the same description as JSON. `registry` has the
/// existing kinds. `reserved_names` are the names that the section must not have.
pub(super) fn check(
    description: &Kind,
    json: &Json,
    registry: &Registry,
    reserved_names: &[String],
) -> Vec<DescriptionFault> {
    let mut checker = DescriptionCheck { description, json, faults: Vec::new() };
    checker.check_section(registry, reserved_names);
    checker.check_creation();
    checker.check_shape();
    checker.check_field_references();
    for (index, field) in description.fields.iter().enumerate() {
        checker.check_field(&format!("fields/{index}"), field);
    }
    checker.check_paths(registry);
    checker.faults
}

struct DescriptionCheck<'d> {
    description: &'d Kind,
    json: &'d Json,
    faults: Vec<DescriptionFault>,
}

impl DescriptionCheck<'_> {
    fn report(&mut self, pointer: impl Into<String>, fault_key: &str) {
        self.faults.push(new_fault(pointer, fault_key, ""));
    }

    fn report_with_detail(&mut self, pointer: impl Into<String>, fault_key: &str, detail: &str) {
        self.faults.push(new_fault(pointer, fault_key, detail));
    }

    fn check_section(&mut self, registry: &Registry, reserved_names: &[String]) {
        let sections: BTreeSet<_> = registry.kinds().iter().map(|kind| kind.section).collect();
        let reserved_names: BTreeSet<_> = reserved_names.iter().map(String::as_str).collect();
        let Kind { section, aliases, removal, .. } = self.description;
        if sections.contains(section) {
            self.report_with_detail("section", "section_twice", section);
        } else if reserved_names.contains(section) {
            self.report_with_detail("section", "section_of_documents", section);
        }
        if let Some(alias) =
            aliases.iter().find(|name| (&sections | &reserved_names).contains(*name))
        {
            self.report_with_detail("aliases", "alias_of_documents", alias);
        }
        if *removal == Removal::Access && !self.has_type(ValueType::Level) {
            self.report("removal", "no_level");
        }
    }

    /// If a PUT to the path of an entry creates the entry, the path must contain the identity of
    /// the entry. If no request creates entries, no request may remove them.
    fn check_creation(&mut self) {
        let Kind { create, edit, identity, fields, before_removal, .. } = self.description;
        let paths = self.paths();
        let path_has_identity = paths
            .iter()
            .all(|path| path.argument.is_some_and(|argument| [argument] == identity[..]));
        let has_removal_request = *edit == EditMethod::Replace
            || before_removal.is_some()
            || paths.iter().any(|path| !path.address_query.is_empty());
        match create {
            CreateMethod::Never
                if has_removal_request
                    || fields.iter().any(|field| field.required == Requirement::OnCreate) =>
            {
                self.report("create", "no_request");
            }
            CreateMethod::Put | CreateMethod::WithContainer
                if !path_has_identity || *edit != EditMethod::Put =>
            {
                self.report("create", "no_entry_path");
            }
            _ => {}
        }
    }

    /// The valid paths of the description.
    fn paths(&self) -> Vec<EntryPath> {
        self.description
            .homes
            .iter()
            .flat_map(|scoped_kind| EntryPath::parse(scoped_kind.path))
            .collect()
    }

    /// A list needs an identity. Other shapes must not have keys that only apply to entries.
    fn check_shape(&mut self) {
        let kind = self.description;
        let has_entry_keys = !kind.identity.is_empty()
            || kind.name_field.is_some()
            || kind.before_removal.is_some()
            || kind.removal != Removal::Nothing
            || kind.create != CreateMethod::Post
            || kind.edit == EditMethod::Replace
            || self.has_type(ValueType::Grants)
            || self.has_type(ValueType::Approvals);
        match kind.shape {
            Shape::List if kind.identity.is_empty() => self.report("identity", "no_identity"),
            Shape::List => {}
            _ if has_entry_keys => self.report("shape", "no_entries"),
            _ => {}
        }
    }

    /// The keys whose values are names of fields must name existing fields of a suitable type.
    fn check_field_references(&mut self) {
        let Kind { identity, name_field, .. } = self.description;
        for key in ["identity", "either", "grants"] {
            let names = self.json[key].as_array().into_iter().flatten().filter_map(Json::as_str);
            for (index, name) in names.enumerate() {
                self.check_field_name(format!("{key}/{index}"), Some(name));
            }
        }
        for key in ["name_field", "called_by"] {
            self.check_field_name(key.to_owned(), self.json[key].as_str());
        }
        for (index, name) in identity.iter().enumerate() {
            if let Some(reason) = self.find_field(name).and_then(|field| self.identity_fault(field))
            {
                self.report_with_detail(format!("identity/{index}"), "not_identifying", reason);
            }
        }
        let stored_name_field = name_field.and_then(|name| self.find_field(name));
        if stored_name_field.is_some_and(|field| {
            field.value_type != ValueType::Text || identity.contains(&field.name)
        }) {
            self.report("name_field", "no_name");
        }
        // The path contains the id of the parent. The field that names the parent must be plain text.
        let has_parent = self.paths().iter().any(|path| path.parent_path().is_some());
        let parent_field =
            identity.first().filter(|_| has_parent).and_then(|name| self.find_field(name));
        if parent_field.is_some_and(|field| {
            field.value_type != ValueType::Text
                || field.sensitive
                || field.names.is_some()
                || field.send_as.is_some()
                || field.read != Readback::Same
        }) {
            self.report("identity/0", "no_parent");
        }
    }

    fn find_field(&self, name: &str) -> Option<&'_ Field> {
        self.find_fields(name).next()
    }

    /// The manifest fields with this name. There are two such fields if the field of groups differs
    /// from the field of projects.
    fn find_fields(&self, name: &str) -> impl Iterator<Item = &'_ Field> {
        let declared_fields =
            self.description.fields.iter().filter(|field| field.accepted != Acceptance::ByCall);
        declared_fields.filter(move |field| field.name == name)
    }

    fn has_type(&self, value_type: ValueType) -> bool {
        self.description.fields.iter().any(|field| field.value_type == value_type)
    }

    fn check_field_name(&mut self, pointer: String, name: Option<&str>) {
        if let Some(name) = name.filter(|name| self.find_field(name).is_none()) {
            self.report_with_detail(pointer, "no_field", &text::escape(name));
        }
    }

    /// The reason why `field` cannot be part of an identity, which every response must show.
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
                (has_one_scope && self.find_fields(field.name).count() < 2)
                    .then_some("that only one scope has")
            }
        }
    }

    fn check_field(&mut self, pointer: &str, field: &Field) {
        let name = field.name;
        let mut same_name_fields =
            self.description.fields.iter().filter(|other| other.name == name);
        let same_scope_field = same_name_fields.find(|other_field: &&Field| {
            let scopes = other_field.available.scope().zip(field.available.scope());
            scopes.is_none_or(|(scope, other_scope)| scope == other_scope)
        });
        if same_scope_field.is_some_and(|first_field| !std::ptr::eq(first_field, field)) {
            self.report_with_detail(format!("{pointer}/name"), "field_twice", name);
        }
        if words::ENTRY_KEYS.contains(&name) {
            self.report_with_detail(format!("{pointer}/name"), "field_of_entries", name);
        }
        if let Some(alias) = field.aliases.iter().find(|alias| {
            let mut other_fields =
                self.description.fields.iter().filter(|other| other.name != name);
            self.find_field(alias).is_some()
                || other_fields.any(|other| other.aliases.contains(alias))
        }) {
            self.report_with_detail(format!("{pointer}/aliases"), "alias_twice", alias);
        }
        let field_json = self.json.pointer(&format!("/{pointer}")).unwrap_or(&Json::Null);
        for key in ["reset_by", "not_with", "not_before", "limits"] {
            self.check_field_name(
                format!("{pointer}/relations/{key}"),
                field_json["relations"][key].as_str(),
            );
        }
        self.check_key_types(pointer, field, field_json);
        self.check_words(pointer, field);
        self.check_guards(pointer, field);
        self.check_requests(pointer, field);
        if self.faults.is_empty() {
            self.check_schema(pointer, field);
        }
    }

    /// Reports keys that are not allowed for the type of the field.
    fn check_key_types(&mut self, pointer: &str, field: &Field, field_json: &Json) {
        for KeyTypes { key, values, types, help } in &FAULT_TABLE.keys {
            let value = field_json.pointer(&format!("/{key}"));
            let is_restricted =
                value.is_some_and(|value| values.is_empty() || values.contains(value));
            if is_restricted && !types.contains(&field.value_type) {
                let (key_pointer, message) =
                    (format!("{pointer}/{key}"), format!("`{key}` does not fit this type"));
                self.faults.push(DescriptionFault { pointer: key_pointer, message, help });
            }
        }
    }

    fn check_words(&mut self, pointer: &str, field: &Field) {
        let words: BTreeSet<_> = field.words.iter().map(|word| word.word).collect();
        if field.value_type == ValueType::Word && words.is_empty() {
            self.report(format!("{pointer}/type"), "no_words");
        } else if words.len() < field.words.len() {
            self.report(format!("{pointer}/words"), "word_twice");
        }
        let has_level_words =
            [ValueType::Grants, ValueType::Approvals, ValueType::Level].contains(&field.value_type);
        if has_level_words
            && !words.iter().all(|word: &&str| AccessLevel::parse(&Json::from(*word)).is_some())
        {
            self.report(format!("{pointer}/words"), "word_of_no_level");
        }
    }

    /// Guards must know who gets which access, and who loses access. For a flag in `grants`, guards
    /// use the risk of the flag, not the risk of its entry. A field that gives access must not be
    /// described as a protection.
    fn check_guards(&mut self, pointer: &str, field: &Field) {
        let Kind { identity, name_field, removal, fields, grants, .. } = self.description;
        let is_readable = field.read != Readback::Never;
        let has_readable_grants = is_readable && field.grants.lets.is_some();
        let level_count =
            fields.iter().filter(|field| field.value_type == ValueType::Level).count();
        let fault_key = match field.value_type {
            ValueType::Boolean
                if grants.contains(&field.name)
                    && !matches!(
                        field.weakens,
                        Weakening::OpensWhenOn | Weakening::OpensWhenOff
                    ) =>
            {
                return self.report(format!("{pointer}/weakens"), "hidden_flag");
            }
            ValueType::Approvals
                if !self.has_type(ValueType::Grants)
                    || field.weakens != Weakening::WhenFewer
                    || !has_readable_grants =>
            {
                "hidden_approvals"
            }
            ValueType::Grants if field.weakens != Weakening::WhenWider || !has_readable_grants => {
                "hidden_grants"
            }
            ValueType::Grants if *removal != Removal::Weakens => "grants_unprotected",
            ValueType::Grants if identity.len() > 1 || name_field.is_some() => "grants_of_several",
            ValueType::Level
                if *removal != Removal::Access || field.weakens != Weakening::Never =>
            {
                "hidden_level"
            }
            ValueType::Level if level_count > 1 || !is_readable || field.nullable => {
                "several_levels"
            }
            _ => return,
        };
        self.report(format!("{pointer}/type"), fault_key);
    }

    /// Requests and responses must contain enough to create an entry, change it and restore it.
    fn check_requests(&mut self, pointer: &str, field: &Field) {
        let Kind { identity, name_field, edit, create, .. } = self.description;
        let is_replaced = *edit == EditMethod::Replace;
        // If entries are found by their name, their identity can change.
        let is_fixed_identity = name_field.is_none() && identity.contains(&field.name);
        // An entry shared by several containers keeps the values of the first creation.
        let is_shared = field.among == Uniqueness::Shared;
        let is_readable = field.read != Readback::Never;
        let should_be_editable = !is_replaced && !is_fixed_identity && !is_shared && is_readable;
        if field.accepted == Acceptance::OnCreate && should_be_editable {
            let is_never_created = *create == CreateMethod::Never;
            let fault_key = if is_never_created { "never_changes_here" } else { "never_changes" };
            self.report(format!("{pointer}/accepted"), fault_key);
        }
        let is_secret = field.value_type == ValueType::Secret;
        if (field.read == Readback::Never || is_secret) && is_replaced {
            self.report(format!("{pointer}/name"), "lost_if_replaced");
        }
        if is_secret && field.read != Readback::Same {
            self.report(format!("{pointer}/read"), "secret_read");
        }
    }

    /// Runs the checks that need the schema of the field.
    fn check_schema(&mut self, pointer: &str, field: &Field) {
        let NumberRange { min, max } = field.valid.size;
        let is_length = field.value_type != ValueType::Integer;
        if is_length && [min, max].into_iter().flatten().any(|limit| limit < 0) {
            return self.report(format!("{pointer}/valid/size"), "negative_length");
        }
        let schema = kind::field_schema(Box::leak(Box::new(field.clone())));
        let Ok(validator) = jsonschema::validator_for(&schema) else {
            return self.report(format!("{pointer}/valid/pattern"), "no_expression");
        };
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            self.report(format!("{pointer}/valid/size"), "limits_swapped");
        }
        if !field.examples.iter().all(|example| validator.is_valid(example)) {
            return self.report(format!("{pointer}/examples"), "no_example");
        }
        let defaults = [("create", &field.default.create), ("service", &field.default.service)];
        let invalid_default = defaults
            .into_iter()
            .find(|(_, value)| value.as_ref().is_some_and(|value| !validator.is_valid(value)));
        if let Some((key, _)) = invalid_default {
            self.report(format!("{pointer}/default/{key}"), "no_default");
        }
    }

    fn check_paths(&mut self, registry: &Registry) {
        let mut scopes = BTreeSet::new();
        let described_rows = registry.described_operations().iter().map(|op| op.row());
        let operations: Vec<_> =
            OPERATIONS.iter().map(|op| op.row()).chain(described_rows).collect();
        for (index, scoped_kind) in self.description.homes.iter().enumerate() {
            let pointer = format!("homes/{index}/path");
            let path = match EntryPath::parse(scoped_kind.path) {
                Ok(path) => path,
                Err(path_error) => {
                    self.report_with_detail(pointer, "no_path", path_error);
                    continue;
                }
            };
            if !scopes.insert(path.scope) {
                self.report_with_detail(pointer, "scope_twice", path.scope.noun());
            } else if let Err(path_error) =
                make::find_parent_collection(self.description, scoped_kind, &path, registry)
            {
                self.report_with_detail(pointer, "no_path", path_error);
            } else {
                self.check_addressing(&pointer, &path);
                if let Some((fault_key, detail)) = self.find_path_fault(&path, &operations) {
                    let is_noun_fault = fault_key == "operation_twice";
                    self.report_with_detail(
                        if is_noun_fault { "noun" } else { &pointer },
                        fault_key,
                        detail,
                    );
                }
            }
        }
    }

    /// Checks that the path addresses an entry in exactly one way: by an argument or by the query.
    fn check_addressing(&mut self, pointer: &str, path: &EntryPath) {
        for (_, field) in &path.address_query {
            self.check_field_name(pointer.to_owned(), Some(field));
        }
        let mut names = path.address_query.iter().chain(&path.list_query).map(|(name, _)| *name);
        if let Some(name) = names.find(|name| FAULT_TABLE.paths["of_the_client"].contains(name)) {
            self.report_with_detail(pointer, "of_the_client", name);
        }
        let address_count =
            usize::from(path.argument.is_some()) + usize::from(!path.address_query.is_empty());
        let fault_key = match (self.description.shape, address_count) {
            (Shape::Mapping, 1..) => "object_addressed",
            (Shape::List, 0) => "not_addressed",
            (_, 2..) => "addressed_twice",
            _ if path.argument == Some("id") => "id_of_container",
            _ => return,
        };
        self.report(pointer, fault_key);
    }

    /// The key of the path's fault, with a detail; `None` if the path has no fault. A path has a
    /// fault if it must not be described, or if another operation already has it.
    fn find_path_fault<'o>(
        &self,
        path: &EntryPath,
        operations: &[&'o Operation],
    ) -> Option<(&'static str, &'o str)> {
        let has_listed_name = |path_list_key: &str| {
            path.names().any(|name| FAULT_TABLE.paths[path_list_key].contains(&name))
        };
        if has_listed_name("shown_once") && !self.description.refers_to(NamedObject::Runner) {
            return Some(("shown_once", ""));
        }
        let is_single_object = self.description.shape == Shape::Mapping;
        let (table_rows, described_rows) = operations.split_at(OPERATIONS.len());
        let mut overlapping_rows =
            table_rows.iter().filter(|row| path.starts_with_same_segment_as(row)).chain(
                described_rows.iter().filter(|row| path.shares_path_with(row, is_single_object)),
            );
        let ids: Vec<_> = collection::operation_ids(path.scope, self.description.noun).collect();
        match overlapping_rows.next() {
            Some(other_operation) => Some(("path_twice", other_operation.path)),
            None if has_listed_name("contents") => Some(("contents", "")),
            None if has_listed_name("without_grants") && !self.has_type(ValueType::Grants) => {
                Some(("without_grants", ""))
            }
            None if has_listed_name("without_level") && !self.has_type(ValueType::Level) => {
                Some(("without_level", ""))
            }
            None => {
                let other_operation =
                    operations.iter().find(|row| ids.iter().any(|id| id == row.id))?;
                Some(("operation_twice", other_operation.id))
            }
        }
    }
}
