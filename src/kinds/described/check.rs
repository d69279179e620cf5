//! What is wrong with a description that its schema cannot say.

use std::collections::BTreeSet;

use super::{
    description::{Create, Description, Edit, Field, Scalar, Value, Weakens},
    entry, make,
};
use crate::{
    field::Compare,
    kind::{Kind, Removal},
    kinds::Registry,
    level::Level,
    operation::{
        OPERATIONS, Operation,
        collection::{Below, NoPath},
    },
    text,
    value::Json,
};

/// One thing that is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the description, as keys and positions with `/` between them.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

/// Collections of what the service shows in full once, when it is made.
const SHOWN_ONCE: [&str; 7] = [
    "access_tokens",
    "deploy_tokens",
    "personal_access_tokens",
    "runners",
    "tokens",
    "trigger",
    "triggers",
];

/// Collections that say whom they let do something, so that their descriptions have to.
const GRANTS: [&str; 3] = ["protected_branches", "protected_environments", "protected_tags"];

/// Collections by which people, keys or jobs get access, or which say who has it.
const ACCESS: [&str; 14] = [
    "access_requests",
    "approval_rules",
    "billable_members",
    "deploy_keys",
    "enterprise_users",
    "invitations",
    "job_token_scope",
    "ldap_group_links",
    "member_roles",
    "provisioned_users",
    "saml_group_links",
    "scim",
    "service_accounts",
    "ssh_certificates",
];

/// Fields that every entry of a manifest has.
const OF_ENTRIES: [&str; 2] = ["extra", "state"];

/// Everything that is wrong with `description`, beside what is `known` already; sections cannot be
/// called as any of `reserved`.
pub(super) fn check(
    description: &Description,
    known: &Registry,
    reserved: &[String],
) -> Vec<Fault> {
    let mut check = Check { description, faults: Vec::new() };
    check.section(known, reserved);
    check.removal();
    check.creation();
    check.names();
    for (at, field) in description.fields.iter().enumerate() {
        check.field(&format!("fields/{at}"), field);
    }
    check.homes(known);
    check.faults
}

/// What is wrong with a path that is none of a collection.
pub(super) fn no_path(at: String, why: NoPath) -> Fault {
    let help = "write a path such as `/projects/:id/milestones`";
    Fault { at, message: format!("the path {why}"), help }
}

struct Check<'d> {
    description: &'d Description,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, at: impl Into<String>, message: impl Into<String>, help: &'static str) {
        self.faults.push(Fault { at: at.into(), message: message.into(), help });
    }

    /// Only what gives access takes it when it is removed.
    fn removal(&mut self) {
        if self.description.removal == Removal::Access && !self.has(Value::Level) {
            let help = "describe the field that says how much, with the type `level`";
            self.fault("removal", "no field gives access", help);
        }
    }

    /// What is added at its own path has to say there what it is.
    fn creation(&mut self) {
        let Description { create, edit, identity, entry, .. } = self.description;
        if *create == Create::Post {
            return;
        }
        let named = entry.field.as_deref().and_then(|name| {
            self.description
                .fields
                .iter()
                .find(|field| field.read_as.as_deref().unwrap_or(&field.name) == name)
        });
        let is_named = named.is_some_and(|field| [field.name.as_str()] == identity[..]);
        if !is_named || *edit == Edit::Replace {
            let help = "give `entry: {field: …}` the one field of `identity`, and leave out `edit: replace`";
            self.fault("create", "the path of a new entry would not be known", help);
        }
    }

    fn section(&mut self, known: &Registry, reserved: &[String]) {
        let name = &self.description.section;
        if known.kinds().iter().any(|kind: &&Kind| kind.section == name) {
            let help = "leave the description out, or choose another name";
            self.fault("section", format!("there is a section `{name}` already"), help);
        } else if reserved.contains(name) {
            let help = "choose another name";
            self.fault("section", format!("`{name}` is a key of documents"), help);
        }
    }

    /// What names fields has to name them.
    fn names(&mut self) {
        let Description { identity, required, grants, called, .. } = self.description;
        let lists = [("identity", identity), ("required", required), ("grants", grants)];
        let listed = lists.into_iter().flat_map(|(list, names)| {
            names.iter().enumerate().map(move |(at, name)| (format!("{list}/{at}"), name))
        });
        let called = called.iter().map(|name| ("called".to_owned(), name));
        for (at, name) in listed.chain(called).collect::<Vec<_>>() {
            self.known(at, name);
        }
        for (at, name) in identity.iter().enumerate() {
            self.identity(format!("identity/{at}"), name);
        }
        if let Some(field) = self.description.called.as_ref().and_then(|name| self.of(name))
            && (field.value != Value::Text || identity.contains(&field.name))
        {
            let help = "name a field of type `text` that is not in `identity`";
            self.fault("called", "this field cannot be the name of an entry", help);
        }
    }

    fn of(&self, name: &str) -> Option<&'_ Field> {
        self.description.fields.iter().find(|field| field.name == name)
    }

    fn has(&self, value: Value) -> bool {
        self.description.fields.iter().any(|field| field.value == value)
    }

    fn known(&mut self, at: String, name: &str) {
        if self.of(name).is_none() {
            let help = "name one of `fields`";
            self.fault(at, format!("there is no field `{}`", text::escape(name)), help);
        }
    }

    /// What tells entries apart has to be known of each of them.
    fn identity(&mut self, at: String, name: &str) {
        let Some(field) = self.of(name) else { return };
        let why = match field {
            Field {
                value: Value::Boolean | Value::Texts | Value::Secret | Value::Grants, ..
            } => "of this type",
            Field { write_only: true, .. } => "that answers leave out",
            Field { nullable: true, .. } => "that may be null",
            Field { only: Some(_), .. } => "that only one scope has",
            _ => return,
        };
        let help = "name fields that every entry has, and that its list shows";
        self.fault(at, format!("a field {why} cannot tell entries apart"), help);
    }

    fn field(&mut self, at: &str, field: &Field) {
        let name = &field.name;
        let first = self.description.fields.iter().find(|other| other.name == *name);
        if first.is_some_and(|first| !std::ptr::eq(first, field)) {
            let help = "describe each field once";
            self.fault(format!("{at}/name"), format!("`{name}` is described twice"), help);
        }
        if OF_ENTRIES.contains(&name.as_str()) {
            let help = "choose another name, and give the service's in `send_as` and `read_as`";
            self.fault(format!("{at}/name"), format!("every entry has a key `{name}`"), help);
        }
        if let Some(other) = &field.forgotten_with {
            self.known(format!("{at}/forgotten_with"), other);
        }
        if let Some(other) = &field.not_with {
            self.known(format!("{at}/not_with"), other);
        }
        if let Some(switch) = &field.limits {
            self.known(format!("{at}/limits"), switch);
        }
        self.value(at, field);
        self.grants(at, field);
        self.level(at, field);
        self.sending(at, field);
        if self.faults.is_empty() {
            self.schema(at, field);
        }
    }

    /// What fits to the type of a field only.
    fn value(&mut self, at: &str, field: &Field) {
        let mut only = |key: &str, applies: bool, types: &[Value], help| {
            if applies && !types.contains(&field.value) {
                let message = format!("`{key}` does not fit to this type");
                self.fault(format!("{at}/{key}"), message, help);
            }
        };
        let has_words = !field.words.is_empty();
        let worded = [Value::Word, Value::Grants, Value::Level];
        let of_words = "words go with the types `word`, `level` and `grants`";
        only("words", has_words, &worded, of_words);
        let text = [Value::Text];
        only("pattern", field.pattern.is_some(), &text, "a pattern goes with the type `text`");
        let blank = [Value::Text, Value::TimeZone];
        only("trimmed", field.trimmed, &blank, "this goes with the type `text`");
        only("expression", field.expression, &text, "an expression goes with the type `text`");
        let number = [Value::Integer];
        let of_number = "limits go with the type `integer`";
        only("minimum", field.minimum.is_some(), &number, of_number);
        only("maximum", field.maximum.is_some(), &number, of_number);
        let nullable = [Value::Text, Value::Integer, Value::Date, Value::Texts];
        let to_null = "what can be cleared is a text, an integer, a date or a list of texts";
        let flag = matches!(field.weakens, Weakens::WhenOff | Weakens::WhenOn);
        only("weakens", flag, &[Value::Boolean], "this goes with the type `boolean`");
        let height = matches!(field.weakens, Weakens::WhenLower | Weakens::WhenHigher);
        only("weakens", height, &number, "this goes with the type `integer`");
        only("nullable", field.nullable, &nullable, to_null);
        only("names", field.names.is_some(), &text, "what is named is written as text");
        let granted = [Value::Grants];
        let is_wider = field.weakens == Weakens::WhenWider;
        only("weakens", is_wider, &granted, "this goes with the type `grants`");
        only("lets", field.lets.is_some(), &granted, "this goes with the type `grants`");
        only("alone_as", field.alone_as.is_some(), &granted, "this goes with the type `grants`");
        let open = [Value::Text, Value::Integer, Value::Texts];
        only("sensitive", field.sensitive, &open, "leave it out: the type says how secret it is");
        let (types, help): (&[_], _) = match field.compare {
            Compare::AnyCase | Compare::PublicKey => {
                (&[Value::Text], "this comparison is for texts")
            }
            Compare::Set => (&[Value::Texts], "this comparison is for lists of texts"),
            Compare::Url | Compare::Location => {
                (&[Value::Text, Value::Address], "this comparison is for URLs")
            }
            _ => return self.words(at, field),
        };
        only("compare", true, types, help);
        self.words(at, field);
    }

    /// Guards have to know what is granted, on what, and to whom: of a group they would have to know
    /// what is in it.
    fn grants(&mut self, at: &str, field: &Field) {
        let Description { identity, called, removal, homes, .. } = self.description;
        let (message, help) = if field.value != Value::Grants {
            return;
        } else if field.weakens != Weakens::WhenWider || field.lets.is_none() || field.write_only {
            let help = "say `weakens: when_wider`, in `lets` what they may do, and no `write_only`";
            ("guards have to see whom more is granted, and what", help)
        } else if *removal != Removal::Weakens {
            ("an entry that grants something protects", "say `removal: weakens`")
        } else if identity.len() > 1 || called.is_some() {
            let help = "leave out `called`, and name one field in `identity`";
            ("what is granted is granted on what one field says", help)
        } else if homes.iter().any(|home| home.path.starts_with("/groups/")) {
            ("grants are on what belongs to projects", "describe the path below projects alone")
        } else {
            return;
        };
        self.fault(format!("{at}/type"), message, help);
    }

    /// What gives access protects nothing, and takes it away when it is removed.
    fn level(&mut self, at: &str, field: &Field) {
        let Description { removal, fields, .. } = self.description;
        let levels = fields.iter().filter(|field| field.value == Value::Level).count();
        let (message, help) = if field.value != Value::Level {
            return;
        } else if *removal != Removal::Access || field.weakens != Weakens::Never {
            ("guards have to see who loses access", "say `removal: access` and `weakens: never`")
        } else if levels > 1 || field.write_only || field.nullable {
            let help = "describe one level, without `nullable` and `write_only`";
            ("an entry gives one level of access", help)
        } else {
            return;
        };
        self.fault(format!("{at}/type"), message, help);
    }

    fn words(&mut self, at: &str, field: &Field) {
        let words: BTreeSet<_> = field.words.iter().map(|word| &word.word).collect();
        if field.value == Value::Word && words.is_empty() {
            self.fault(format!("{at}/type"), "there are no `words`", "list them in `words`");
        } else if words.len() < field.words.len() {
            self.fault(format!("{at}/words"), "a word stands here twice", "list each word once");
        }
        let is_level = |word: &&String| Level::parse(&Json::from(word.as_str())).is_some();
        let of_levels = [Value::Grants, Value::Level].contains(&field.value);
        if of_levels && !words.iter().all(is_level) {
            let help = "write words of levels, such as `developer`";
            self.fault(format!("{at}/words"), "a word is no level of access", help);
        }
    }

    /// What is sent and read has to be enough to bring an entry about, to change it and to put it
    /// back.
    fn sending(&mut self, at: &str, field: &Field) {
        let is_replaced = self.description.edit == Edit::Replace;
        // What is found by its name may differ in its identity.
        let stays =
            self.description.called.is_none() && self.description.identity.contains(&field.name);
        if field.create_only && !is_replaced && !stays {
            self.fault(
                format!("{at}/create_only"),
                "a field that no edit takes cannot be changed",
                "add it to `identity` and leave out `called`, or say `edit: replace`",
            );
        }
        let is_unread = field.write_only || field.value == Value::Secret;
        if is_unread && is_replaced {
            self.fault(
                format!("{at}/name"),
                "a field that answers leave out would be lost when its entry is replaced",
                "leave the field out, or say `edit: put`",
            );
        }
        if is_unread && field.read_as.is_some() {
            let help = "leave out `read_as` or `write_only`";
            self.fault(format!("{at}/read_as"), "answers do not have this field", help);
        }
    }

    /// What is left to the schema that comes of it.
    fn schema(&mut self, at: &str, field: &Field) {
        let property = entry::property(field);
        let Ok(validator) = jsonschema::validator_for(&property) else {
            let help = "correct the expression";
            let message = "this is no regular expression";
            return self.fault(format!("{at}/pattern"), message, help);
        };
        let limits = field.minimum.zip(field.maximum);
        if limits.is_some_and(|(least, most)| least > most) {
            let help = "swap `minimum` and `maximum`";
            self.fault(format!("{at}/minimum"), "no number is that large and that small", help);
        }
        let wrong = |value: &Option<Scalar>| {
            value.as_ref().is_some_and(|value| !validator.is_valid(&value.0))
        };
        if wrong(&field.example) || wrong(&field.another_example) {
            let help = "give an example that the field takes";
            self.fault(format!("{at}/example"), "the field does not take this example", help);
        } else if wrong(&field.created_with) {
            let help = "give a value that the field takes";
            self.fault(format!("{at}/created_with"), "the field does not take this value", help);
        } else if wrong(&field.preset) {
            let help = "give a value that the field takes";
            self.fault(format!("{at}/preset"), "the field does not take this value", help);
        }
    }

    fn homes(&mut self, known: &Registry) {
        let mut scopes = BTreeSet::new();
        let described = known.described().iter().map(|op| op.row());
        let operations: Vec<_> = OPERATIONS.iter().map(|op| op.row()).chain(described).collect();
        for (at, home) in self.description.homes.iter().enumerate() {
            let path = format!("homes/{at}/path");
            match Below::parse(&home.path) {
                Ok(below) if !scopes.insert(below.scope) => {
                    let message = format!("there is a path below {}s already", below.scope.noun());
                    self.fault(path, message, "describe the other collection in a file of its own");
                }
                Ok(below) => self.home(&path, &below, &operations),
                Err(why) => self.faults.push(no_path(path, why)),
            }
        }
        if make::argument(self.description) == "id" {
            let help = "write what the service's documentation has, such as `badge_id`";
            let message = "`id` names the project or group in the path";
            self.fault("entry/argument", message, help);
        }
    }

    /// What undrift must not, or need not, be told about.
    fn home(&mut self, path: &str, below: &Below, operations: &[&Operation]) {
        let has = |names: &[&str]| below.segments().iter().any(|own| names.contains(&own.as_str()));
        if has(&SHOWN_ONCE) {
            let message = "what the service makes here it shows once, so it cannot be declared";
            return self.fault(path, message, "create it with `undrift call` or by hand");
        }
        if let Some(own) = operations.iter().find(|row| below.shares_ground_with(row)) {
            let message = format!("undrift knows what is at `{}` already", own.path);
            return self.fault(path, message, "leave the description out");
        }
        if has(&GRANTS) && !self.has(Value::Grants) {
            let message = "this protects, and no field says whom it lets do what";
            let help = "describe the field that does, with the type `grants`";
            return self.fault(path, message, help);
        }
        if has(&ACCESS) && !self.has(Value::Level) {
            let message =
                "this gives access, and no field says how much, which guards have to know";
            let help = "describe the field that does, with the type `level`; or manage it by `undrift call`";
            return self.fault(path, message, help);
        }
        let ids: Vec<_> = make::ids(self.description, below).collect();
        if let Some(own) = operations.iter().find(|row| ids.iter().any(|id| id == row.id)) {
            let message = format!("there is an operation `{}` already", own.id);
            self.fault("noun", message, "choose another noun");
        }
    }
}
