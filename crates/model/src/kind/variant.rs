//! Kinds whose entries have different fields. The first field of the identity selects the variant.
//! The variant defines which fields an entry has and needs, and which other entries of the project
//! it excludes.

use serde_json::json;

use super::Section;
use crate::{
    address::parent_group_path,
    field::{Scope, Secrecy, Uniqueness, Variant},
    value::{Json, Object},
};

impl Section {
    /// The variant of an entry with these `fields`; `None` if the kind has no variants, or if the
    /// variant is unknown.
    fn variant(self, fields: &Object) -> Option<&'static Variant> {
        let variant_name = fields.get(*self.identity.first()?)?;
        self.table().variant(variant_name.as_str()?)
    }

    /// True if an entry with these `fields` has the field `name`.
    pub fn has_field(self, fields: &Object, name: &str) -> bool {
        if self.either.contains(&name) {
            return fields.get(name).is_some_and(|value| !value.is_null());
        }
        !self.table().has_variants()
            || self.identity.contains(&name)
            || self.variant(fields).is_some_and(|variant| variant.fields.contains(name))
    }

    /// The fields that the variant of an entry with these `fields` requires, in addition to the
    /// fields that every entry requires.
    pub fn needed_fields(self, fields: &Object) -> &'static [&'static str] {
        self.variant(fields).map_or(&[], |variant| variant.needs)
    }

    /// The exclusive set of the entry `name`, such as "issue tracker". A project has only one
    /// entry of each exclusive set.
    pub fn exclusive_set(self, name: &str) -> Option<&'static str> {
        let variant =
            self.table().variant(name).filter(|_| self.scoped_kind.scope == Scope::Project);
        variant?.only_one
    }

    /// True if an entry must not have the same name as an entry of a group above.
    pub fn is_name_unique_above(self) -> bool {
        self.has_identity_rule(Uniqueness::UniqueAbove) || self.is_name_unique_in_group()
    }

    /// True if an entry of a group must not have the same name as an entry of a project directly in
    /// the group.
    pub fn is_name_unique_in_group(self) -> bool {
        self.has_identity_rule(Uniqueness::UniqueInGroup)
    }

    fn has_identity_rule(self, uniqueness: Uniqueness) -> bool {
        self.identity.iter().any(|name| self.field(name).among == uniqueness)
    }

    /// The key that only one entry of a project and its parent groups can have: the name, or the
    /// exclusive set of the entry.
    pub fn exclusive_key(self, name: &str) -> Option<&str> {
        if self.is_name_unique_above() { Some(name) } else { self.exclusive_set(name) }
    }

    /// True if entries of the container of `scope` at `path` may collide with entries of `group`,
    /// which is above the container.
    pub fn may_collide_with(self, group: &str, scope: Scope, path: &str) -> bool {
        let is_direct =
            parent_group_path(path).is_some_and(|parent| parent.eq_ignore_ascii_case(group));
        match scope {
            Scope::Group => self.has_identity_rule(Uniqueness::UniqueAbove),
            Scope::Project => is_direct || !self.is_name_unique_in_group(),
        }
    }

    /// True if the service refuses the entry `name` below a group that has the entry `parent_name`.
    pub fn collides_with_parent(self, name: &str, parent_name: &str) -> bool {
        let key = self.exclusive_key(name);
        key.is_some()
            && key == self.exclusive_key(parent_name)
            && (self.is_name_unique_above() || name != parent_name)
    }

    /// The other fields of an example entry with the field `name`, from the variant that needs the
    /// fewest secrets. Empty if every entry can have the field.
    pub fn example_siblings(self, name: &str) -> Object {
        let is_secret = |name: &str| self.field(name).secrecy() == Secrecy::Reference;
        let example =
            |name: &str| &self.spec(name).map_or(&Json::Null, |spec| &spec.schema)["examples"][0];
        let Some(variant_field) = self.identity.first() else { return Object::new() };
        let variants = self.field(variant_field).variants().filter(|(word, variant)| {
            let is_example = name == *variant_field && example(name) == word;
            is_example || variant.fields.contains(name) && !variant.example.contains_key(name)
        });
        let variant = variants
            .min_by_key(|(_, variant)| variant.needs.iter().filter(|name| is_secret(name)).count());
        let Some((word, variant)) = variant else { return Object::new() };
        let required_values = variant.needs.iter().map(|name| {
            let secret = is_secret(name).then(|| json!({"env": name.to_uppercase()}));
            ((*name).to_owned(), secret.unwrap_or_else(|| example(name).clone()))
        });
        let mut example_fields: Object = [((*variant_field).to_owned(), word.into())]
            .into_iter()
            .chain(required_values)
            .collect();
        example_fields
            .extend(variant.example.clone().into_iter().filter(|(_, value)| !value.is_null()));
        example_fields
    }
}
