//! Faults of a description that its schema cannot express.

use std::collections::BTreeSet;

use super::make;
use crate::{
    field::{
        Accepted, Available, Compare, Field, Named, Only, Range, Readback, Required, ValueType,
        Weakens,
    },
    kind::{self, Create, Edit, Kind, Removal, Shape},
    kinds::{Registry, words},
    level::Level,
    operation::{
        OPERATIONS, Operation,
        collection::{self, EntryPath, NoPath},
    },
    text,
    value::Json,
};

/// A fault of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place in the description: keys and positions, separated by `/`.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

/// Collections whose entries the service shows in full only once, when they are created.
const SHOWN_ONCE: [&str; 7] = [
    "access_tokens",
    "deploy_tokens",
    "personal_access_tokens",
    "runners",
    "tokens",
    "trigger",
    "triggers",
];

/// Collections that grant something, so their descriptions must have a field of type `grants`.
const GRANTS: [&str; 3] = ["protected_branches", "protected_environments", "protected_tags"];

/// Collections that give access to people, keys or jobs, or show who has it.
const ACCESS: [&str; 19] = [
    "access_requests",
    "approval_rules",
    "billable_members",
    "clusters",
    "deploy_keys",
    "enterprise_users",
    "group_links",
    "identities",
    "invitations",
    "invited_groups",
    "job_token_scope",
    "ldap_group_links",
    "provisioned_users",
    "saml_group_links",
    "scim",
    "service_accounts",
    "share",
    "ssh_certificates",
    "users",
];

/// Parameters that decide who sends a request, or which part of a list it asks for.
const OF_THE_CLIENT: [&str; 8] = [
    "access_token",
    "job_token",
    "page",
    "pagination",
    "per_page",
    "private_token",
    "sudo",
    "token",
];

/// Contents of a repository, which a removal would destroy.
const CONTENTS: [&str; 2] = ["branches", "files"];

/// All faults of `description`. `known` are the kinds that exist already; the section must not have
/// a name of `reserved`.
pub(super) fn check(description: &Kind, known: &Registry, reserved: &[String]) -> Vec<Fault> {
    let mut check = Check { description, faults: Vec::new() };
    check.section(known, reserved);
    check.removal();
    check.creation();
    check.document();
    check.names();
    check.below();
    for (at, field) in description.fields.iter().enumerate() {
        check.field(&format!("fields/{at}"), field);
    }
    check.homes(known);
    check.faults
}

/// The fault of a path that is not that of a collection.
pub(super) fn no_path(at: String, why: NoPath) -> Fault {
    let help = "write a path such as `/projects/:id/feature_flags/:feature_flag_id`";
    Fault { at, message: format!("the path {why}"), help }
}

struct Check<'d> {
    description: &'d Kind,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, at: impl Into<String>, message: impl Into<String>, help: &'static str) {
        self.faults.push(Fault { at: at.into(), message: message.into(), help });
    }

    /// `removal: access` needs a field that gives access.
    fn removal(&mut self) {
        if self.description.removal == Removal::Access && !self.has(ValueType::Level) {
            let help = "add the field with the level of access";
            self.fault("removal", "`removal: access` needs a field with the type `level`", help);
        }
    }

    /// An entry that is added at its own path needs its identity in that path. What no request
    /// creates has no request that removes it either.
    fn creation(&mut self) {
        let Kind { create, edit, identity, fields, .. } = self.description;
        let paths = self.paths();
        if *create == Create::Never {
            let is_removed = *edit == Edit::Replace
                || self.description.before_removal.is_some()
                || paths.iter().any(|path| !path.addresses.is_empty());
            let is_needed = fields.iter().any(|field| field.required == Required::OnCreate);
            if is_removed || is_needed {
                let help = "leave out `required: on_create`, `edit: replace`, `before_removal` and `query`";
                self.fault("create", "no request creates or removes an entry", help);
            }
            return;
        }
        if *create == Create::Post {
            return;
        }
        let is_named =
            paths.iter().all(|path| path.argument.is_some_and(|of| [of] == identity[..]));
        if !is_named || *edit != Edit::Put {
            let help = "end `path` with the one field of `identity`, such as `:name`, and leave out `edit`";
            self.fault("create", "a request for a new entry needs its path", help);
        }
    }

    /// The paths that can be read.
    fn paths(&self) -> Vec<EntryPath> {
        self.description.homes.iter().flat_map(|home| EntryPath::parse(home.path)).collect()
    }

    /// A document has no entries; other descriptions identify theirs.
    fn document(&mut self) {
        let of = self.description;
        if of.shape == Shape::List {
            if of.identity.is_empty() {
                let help = "name the fields, or write `shape: mapping` for a single object";
                self.fault("identity", "no field identifies an entry", help);
            }
            return;
        }
        let has_entries = !of.identity.is_empty()
            || of.name_field.is_some()
            || of.before_removal.is_some()
            || of.removal != Removal::Nothing
            || of.create != Create::Post
            || of.edit == Edit::Replace;
        if has_entries || self.has(ValueType::Grants) || self.has(ValueType::Approvals) {
            let help = "remove `identity`, `name_field`, `before_removal`, `create` and fields of type `grants`, and write `removal: nothing`";
            self.fault("shape", "a single object has no entries", help);
        }
    }

    fn section(&mut self, known: &Registry, reserved: &[String]) {
        let name = &self.description.section;
        if known.kinds().iter().any(|kind| kind.section == *name) {
            let help = "leave the description out, or choose another name";
            self.fault("section", format!("there is a section `{name}` already"), help);
        } else if reserved.iter().any(|other| other == name) {
            let help = "choose another name";
            self.fault("section", format!("`{name}` is a key of documents"), help);
        }
        let is_key = |alias: &&&str| {
            reserved.iter().any(|name| name == **alias)
                || known.kinds().iter().any(|kind| kind.section == **alias)
        };
        if let Some(alias) = self.description.aliases.iter().find(is_key) {
            self.fault("aliases", format!("`{alias}` is a key of documents"), "leave it out");
        }
    }

    /// Keys that name fields must name existing ones.
    fn names(&mut self) {
        let Kind { identity, either, grants, name_field, called_by, .. } = self.description;
        let lists = [("identity", *identity), ("either", either), ("grants", grants)];
        let listed = lists.into_iter().flat_map(|(list, names)| {
            names.iter().enumerate().map(move |(at, name)| (format!("{list}/{at}"), *name))
        });
        let named = [("name_field", name_field), ("called_by", called_by)];
        let called = named.into_iter().filter_map(|(at, name)| Some((at.to_owned(), (*name)?)));
        for (at, name) in listed.chain(called).collect::<Vec<_>>() {
            self.known(at, name);
        }
        for (at, name) in identity.iter().enumerate() {
            self.identity(format!("identity/{at}"), name);
        }
        if let Some(field) = self.description.name_field.and_then(|name| self.of(name))
            && (field.value_type != ValueType::Text || identity.contains(&field.name))
        {
            let help = "name a field of type `text` that is not in `identity`";
            self.fault(
                "name_field",
                "the name of an entry must be a text outside `identity`",
                help,
            );
        }
    }

    /// The field that names the parent must be plain text.
    fn below(&mut self) {
        let of_parent = self.paths().iter().any(|path| path.parent().is_some());
        let first = self.description.identity.first().filter(|_| of_parent);
        let Some(field) = first.and_then(|name| self.of(name)) else { return };
        let is_plain =
            field.value_type == ValueType::Text && !field.sensitive && field.names.is_none();
        if !is_plain || field.send_as.is_some() || field.read != Readback::Same {
            let help = "put a field of type `text` first in `identity`, for the parent";
            self.fault("identity/0", "this field cannot name the parent entry", help);
        }
    }

    fn of(&self, name: &str) -> Option<&'_ Field> {
        self.named(name).next()
    }

    /// The fields of manifests with this name: two if each scope has its own.
    fn named(&self, name: &str) -> impl Iterator<Item = &'_ Field> {
        let declared = |field: &&Field| field.accepted != Accepted::ByCall;
        self.description.fields.iter().filter(move |field| field.name == name).filter(declared)
    }

    fn has(&self, value: ValueType) -> bool {
        self.description.fields.iter().any(|field| field.value_type == value)
    }

    fn known(&mut self, at: String, name: &str) {
        if self.of(name).is_none() {
            let help = "name one of `fields`";
            self.fault(at, format!("there is no field `{}`", text::escape(name)), help);
        }
    }

    /// The identity must be known for every entry.
    fn identity(&mut self, at: String, name: &str) {
        let Some(field) = self.of(name) else { return };
        let why =
            match field {
                Field {
                    value_type:
                        ValueType::Boolean
                        | ValueType::Texts
                        | ValueType::Secret
                        | ValueType::Grants
                        | ValueType::Approvals,
                    ..
                } => "of this type",
                Field { read: Readback::Never, .. } => "that responses leave out",
                Field { nullable: true, .. } => "that may be null",
                Field {
                    available: Available { only: Only::Group | Only::Project, .. }, ..
                } if self.named(name).count() < 2 => "that only one scope has",
                _ => return,
            };
        let help = "use fields that every entry has and that the list shows";
        self.fault(at, format!("a field {why} cannot identify an entry"), help);
    }

    fn field(&mut self, at: &str, field: &Field) {
        let name = &field.name;
        let is_of_both = |other: &&Field| {
            let scopes = other.available.scope().zip(field.available.scope());
            scopes.is_none_or(|(one, other)| one == other)
        };
        let first = self.named(name).find(is_of_both);
        if first.is_some_and(|first| !std::ptr::eq(first, field)) {
            let help = "describe each field once";
            self.fault(format!("{at}/name"), format!("`{name}` is described twice"), help);
        }
        if words::OF_ENTRIES.contains(name) {
            let help = "choose another name, and put the service's name into `send_as` and `read`";
            self.fault(format!("{at}/name"), format!("every entry has a key `{name}`"), help);
        }
        let is_taken = |alias: &&&str| {
            let means_other = |other: &Field| other.name != *name && other.aliases.contains(alias);
            self.of(alias).is_some() || self.description.fields.iter().any(means_other)
        };
        if let Some(alias) = field.aliases.iter().find(is_taken) {
            let message = format!("`{alias}` is a field, or also stands for another");
            self.fault(format!("{at}/aliases"), message, "leave it out");
        }
        let of = &field.relations;
        for (key, other) in [
            ("reset_by", of.reset_by),
            ("not_with", of.not_with),
            ("not_before", of.not_before),
            ("limits", of.limits),
        ] {
            other.iter().for_each(|other| self.known(format!("{at}/relations/{key}"), other));
        }
        self.value(at, field);
        self.grants(at, field);
        self.granting_flag(at, field);
        self.level(at, field);
        self.sending(at, field);
        if self.faults.is_empty() {
            self.schema(at, field);
        }
    }

    /// Keys that only fit certain types of fields.
    fn value(&mut self, at: &str, field: &Field) {
        let mut only = |key: &str, applies: bool, types: &[ValueType], help| {
            if applies && !types.contains(&field.value_type) {
                let message = format!("`{key}` does not fit this type");
                self.fault(format!("{at}/{key}"), message, help);
            }
        };
        let has_words = !field.words.is_empty();
        let worded = [ValueType::Word, ValueType::Grants, ValueType::Approvals, ValueType::Level];
        let of_words = "only the types `word`, `level`, `grants` and `approvals` have words";
        only("words", has_words, &worded, of_words);
        let text = [ValueType::Text, ValueType::Expression];
        let of_text = "only a text can have a pattern";
        only("valid/pattern", field.valid.pattern.is_some(), &text, of_text);
        let number = [ValueType::Integer];
        let sized = [ValueType::Integer, ValueType::Text, ValueType::Expression, ValueType::Texts];
        let has_size = field.valid.size != Range::default();
        only("valid/size", has_size, &sized, "only integers and texts have limits");
        let nullable = [
            ValueType::Text,
            ValueType::Expression,
            ValueType::Integer,
            ValueType::Date,
            ValueType::Texts,
        ];
        let to_null = "only a text, an integer, a date or a list of texts can be null";
        let flag = matches!(
            field.weakens,
            Weakens::WhenOff | Weakens::WhenOn | Weakens::OpensWhenOff | Weakens::OpensWhenOn
        );
        only("weakens", flag, &[ValueType::Boolean], "only for the type `boolean`");
        let height = matches!(field.weakens, Weakens::WhenLower | Weakens::WhenHigher);
        only("weakens", height, &number, "only for the type `integer`");
        let is_later = field.weakens == Weakens::WhenLater;
        only("weakens", is_later, &[ValueType::Word], "only for the type `word`");
        only("nullable", field.nullable, &nullable, to_null);
        only(
            "names",
            field.names.is_some(),
            &text,
            "a field that names something must have the type `text`",
        );
        let granted = [ValueType::Grants];
        let is_wider = field.weakens == Weakens::WhenWider;
        only("weakens", is_wider, &granted, "only for the type `grants`");
        let is_fewer = field.weakens == Weakens::WhenFewer;
        only("weakens", is_fewer, &[ValueType::Approvals], "only for the type `approvals`");
        let lists = [ValueType::Grants, ValueType::Approvals];
        only(
            "grants/lets",
            field.grants.lets.is_some(),
            &lists,
            "only for the types `grants` and `approvals`",
        );
        only(
            "grants/deploy_keys",
            field.grants.deploy_keys,
            &granted,
            "only for the type `grants`",
        );
        only(
            "grants/single_level_as",
            field.grants.single_level_as.is_some(),
            &granted,
            "only for the type `grants`",
        );
        let open = [ValueType::Text, ValueType::Integer, ValueType::Texts];
        only("sensitive", field.sensitive, &open, "leave it out: the type decides what is hidden");
        let (types, help): (&[_], _) = match field.compare {
            Compare::Trimmed => (
                &[ValueType::Text, ValueType::Expression, ValueType::TimeZone, ValueType::Cron],
                "only texts can be trimmed",
            ),
            Compare::AnyCase | Compare::PublicKey => {
                (&[ValueType::Text], "only texts can be compared like this")
            }
            Compare::Set => (&[ValueType::Texts], "only lists of texts can be compared like this"),
            Compare::Url | Compare::Location => {
                (&[ValueType::Text, ValueType::Address], "only URLs can be compared like this")
            }
            _ => return self.words(at, field),
        };
        only("compare", true, types, help);
        self.words(at, field);
    }

    /// A flag in `grants` is judged by its own stake, not by the entry that has it.
    fn granting_flag(&mut self, at: &str, field: &Field) {
        let opens = matches!(field.weakens, Weakens::OpensWhenOn | Weakens::OpensWhenOff);
        let grants = self.description.grants.contains(&field.name);
        if grants && field.value_type == ValueType::Boolean && !opens {
            let help = "write `weakens: opens_when_on`, or `opens_when_off`";
            self.fault(format!("{at}/weakens"), "guards must see who is let in", help);
        }
    }

    /// Guards need to know who gets a grant, and on what.
    fn grants(&mut self, at: &str, field: &Field) {
        let Kind { identity, name_field, removal, .. } = self.description;
        let (message, help) = if field.value_type == ValueType::Approvals {
            if self.has(ValueType::Grants)
                && field.weakens == Weakens::WhenFewer
                && field.grants.lets.is_some()
                && field.read != Readback::Never
            {
                return;
            }
            let help = "write `weakens: when_fewer`, write `grants: {lets: …}` with what needs the approvals, remove `read: never`, and add the field with `grants`";
            ("guards must see each approval that is no longer required", help)
        } else if field.value_type != ValueType::Grants {
            return;
        } else if field.weakens != Weakens::WhenWider
            || field.grants.lets.is_none()
            || (field.read == Readback::Never)
        {
            let help = "write `weakens: when_wider`, write `grants: {lets: …}` with what is allowed, and remove `read: never`";
            ("guards must see every new grant", help)
        } else if *removal != Removal::Weakens {
            ("an entry with grants is a protection", "write `removal: weakens`")
        } else if identity.len() > 1 || name_field.is_some() {
            let help = "remove `name_field`, and keep one field in `identity`";
            ("an entry with grants must be identified by one field", help)
        } else {
            return;
        };
        self.fault(format!("{at}/type"), message, help);
    }

    /// A field that gives access is not a protection; removing its entry removes access.
    fn level(&mut self, at: &str, field: &Field) {
        let Kind { removal, fields, .. } = self.description;
        let levels = fields.iter().filter(|field| field.value_type == ValueType::Level).count();
        let (message, help) = if field.value_type != ValueType::Level {
            return;
        } else if *removal != Removal::Access || field.weakens != Weakens::Never {
            ("guards must see who loses access", "write `removal: access` and `weakens: never`")
        } else if levels > 1 || (field.read == Readback::Never) || field.nullable {
            let help = "keep one `level`, without `nullable` and `read: never`";
            ("an entry must have exactly one visible level of access", help)
        } else {
            return;
        };
        self.fault(format!("{at}/type"), message, help);
    }

    fn words(&mut self, at: &str, field: &Field) {
        let words: BTreeSet<_> = field.words.iter().map(|word| word.word).collect();
        if field.value_type == ValueType::Word && words.is_empty() {
            self.fault(format!("{at}/type"), "there are no `words`", "list them in `words`");
        } else if words.len() < field.words.len() {
            self.fault(format!("{at}/words"), "a word is listed twice", "list each word once");
        }
        let is_level = |word: &&str| Level::parse(&Json::from(*word)).is_some();
        let of_levels =
            [ValueType::Grants, ValueType::Approvals, ValueType::Level].contains(&field.value_type);
        if of_levels && !words.iter().all(is_level) {
            let help = "use names of levels, such as `developer`";
            self.fault(format!("{at}/words"), "a word is not a level of access", help);
        }
    }

    /// Requests and responses must contain enough to create an entry, change it and restore it.
    fn sending(&mut self, at: &str, field: &Field) {
        let is_replaced = self.description.edit == Edit::Replace;
        // If entries are found by their name, their identity can change.
        let stays = self.description.name_field.is_none()
            && self.description.identity.contains(&field.name);
        if field.accepted == Accepted::OnCreate && !is_replaced && !stays {
            self.fault(
                format!("{at}/accepted"),
                "a field with `accepted: on_create` can never change",
                match self.description.create {
                    Create::Never => "leave out `accepted`, or add it to `identity`",
                    _ => "add it to `identity` and remove `name_field`, or write `edit: replace`",
                },
            );
        }
        let is_unread = field.read == Readback::Never || field.value_type == ValueType::Secret;
        if is_unread && is_replaced {
            self.fault(
                format!("{at}/name"),
                "a field that responses leave out would be lost when its entry is replaced",
                "remove the field, or write `edit: put`",
            );
        }
        if field.value_type == ValueType::Secret && field.read != Readback::Same {
            let help = "remove `read`";
            self.fault(format!("{at}/read"), "responses do not contain this field", help);
        }
    }

    /// Checks that use the schema of the field.
    fn schema(&mut self, at: &str, field: &Field) {
        let Range { min, max } = field.valid.size;
        let is_length = field.value_type != ValueType::Integer;
        if is_length && [min, max].into_iter().flatten().any(|limit| limit < 0) {
            let help = "write 0 or more";
            return self.fault(format!("{at}/valid/size"), "a length is below 0", help);
        }
        let property = kind::property(Box::leak(Box::new(field.clone())));
        let Ok(validator) = jsonschema::validator_for(&property) else {
            let help = "correct the expression";
            let message = "not a valid regular expression";
            return self.fault(format!("{at}/valid/pattern"), message, help);
        };
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            let help = "swap the numbers";
            self.fault(format!("{at}/valid/size"), "the lowest number is above the highest", help);
        }
        let wrong =
            |value: &Option<Json>| value.as_ref().is_some_and(|value| !validator.is_valid(value));
        if !field.examples.iter().all(|example| validator.is_valid(example)) {
            let help = "give an example that the field allows";
            self.fault(format!("{at}/examples"), "the field does not allow this example", help);
        } else if wrong(&field.default.create) {
            let help = "give a value that the field allows";
            self.fault(format!("{at}/default/create"), "the field does not allow this value", help);
        } else if wrong(&field.default.service) {
            let help = "give a value that the field allows";
            self.fault(
                format!("{at}/default/service"),
                "the field does not allow this value",
                help,
            );
        }
    }

    fn homes(&mut self, known: &Registry) {
        let mut scopes = BTreeSet::new();
        let described = known.described().iter().map(|op| op.row());
        let operations: Vec<_> = OPERATIONS.iter().map(|op| op.row()).chain(described).collect();
        for (at, home) in self.description.homes.iter().enumerate() {
            let path = format!("homes/{at}/path");
            let of = match EntryPath::parse(home.path) {
                Ok(of) => of,
                Err(why) => {
                    self.faults.push(no_path(path, why));
                    continue;
                }
            };
            if !scopes.insert(of.scope) {
                let message = format!("there is a path below {}s already", of.scope.noun());
                self.fault(path, message, "describe the other collection in a file of its own");
            } else if let Err(why) = make::above(self.description, home, &of, known) {
                self.faults.push(no_path(path, why));
            } else {
                self.address(&path, &of);
                self.home(&path, &of, &operations);
            }
        }
    }

    /// The path must address an entry in one way.
    fn address(&mut self, at: &str, path: &EntryPath) {
        for (_, field) in &path.addresses {
            self.known(at.to_owned(), field);
        }
        let mut names = path.addresses.iter().chain(&path.listing).map(|(name, _)| *name);
        if let Some(name) = names.find(|name| OF_THE_CLIENT.contains(name)) {
            let message = format!("only undrift itself sends the parameter `{name}`");
            self.fault(at, message, "leave it out");
        }
        let ways = usize::from(path.argument.is_some()) + usize::from(!path.addresses.is_empty());
        let (message, help) = match (self.description.shape, ways) {
            (Shape::Mapping, 1..) => {
                ("the path of a single object addresses an entry", "end the path with a name")
            }
            (Shape::List, 0) => (
                "the path does not address an entry",
                "end the path with an argument, such as `/:feature_flag_id`",
            ),
            (_, 2..) => ("the path addresses an entry twice", "leave one of them out"),
            _ if path.argument == Some("id") => (
                "`id` is the argument of the project or group",
                "use the name in the documentation of the service, such as `:badge_id`",
            ),
            _ => return,
        };
        self.fault(at, message, help);
    }

    /// Paths that descriptions must not, or need not, describe.
    fn home(&mut self, path: &str, below: &EntryPath, operations: &[&Operation]) {
        let has = |names: &[&str]| below.names().any(|part| names.contains(&part));
        let names_runners = |field: &Field| field.names == Some(Named::Runner);
        if has(&SHOWN_ONCE) && !self.description.fields.iter().any(names_runners) {
            let message = "the service shows these entries only once, so they cannot be managed";
            return self.fault(path, message, "create it with `undrift call` or by hand");
        }
        let is_document = self.description.shape == Shape::Mapping;
        let (of_rust, described) = operations.split_at(OPERATIONS.len());
        let mut same = of_rust
            .iter()
            .filter(|row| below.shares_ground_with(row))
            .chain(described.iter().filter(|row| below.shares_path_with(row, is_document)));
        if let Some(own) = same.next() {
            let message = format!("undrift already knows `{}`", own.path);
            return self.fault(path, message, "leave the description out");
        }
        if has(&CONTENTS) {
            let message = "these are contents of a repository, which a removal would destroy";
            return self.fault(path, message, "push them, or use `undrift call`");
        }
        if has(&GRANTS) && !self.has(ValueType::Grants) {
            let message = "this is a protection, but no field has the type `grants`";
            let help = "add the field that grants something, with the type `grants`";
            return self.fault(path, message, help);
        }
        if has(&ACCESS) && !self.has(ValueType::Level) {
            let message = "this gives access, but no field has the type `level`";
            let help = "add the field with the level of access, or use `undrift call`";
            return self.fault(path, message, help);
        }
        let ids: Vec<_> = collection::ids(below.scope, self.description.noun).collect();
        if let Some(own) = operations.iter().find(|row| ids.iter().any(|id| id == row.id)) {
            let message = format!("there is an operation `{}` already", own.id);
            self.fault("noun", message, "choose another noun");
        }
    }
}
