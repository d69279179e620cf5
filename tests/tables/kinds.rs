//! Rules that hold for every kind.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use undrift::{
    catalogue::{self, all_sections, description::DESCRIPTION_TEXTS},
    field::{Acceptance, Equality, Field, NamedObject, Relations, Scope, Secrecy, WriteRequest},
    kind::{
        AddressKey, CallContext, FieldSelection, FieldSpec, FieldTable, FormerLocation, Id,
        KeyLocation, LiveNamespace, NameIndex, NamespaceOwner, Operations, ReadSource, Section,
        Shape, Target,
        calls::{CallPurpose, Lifecycle},
        forms, is_readable, plain_text,
    },
    operation::{Op, Read, Write},
    release::{DetectedRelease, REFERENCE},
    value::{Fields, Json, Object, Value},
};

/// Every kind in every scope, by the name of its section.
fn sections() -> impl Iterator<Item = (String, Section)> {
    all_sections().map(|section| (format!("{section:?}"), section))
}

/// The section of projects with this name.
fn of_project(name: &str) -> Section {
    catalogue::find_section(Scope::Project, name).unwrap_or_else(|| panic!("no {name}"))
}

/// True if it comes from a description file.
fn is_described(section: Section) -> bool {
    let mut described = catalogue::registry().described_operations().iter();
    described.any(|op| op.row().fields.is_some_and(|((_, name), _)| name == section.section))
}

/// Every schema below `schema` that is an object with properties, itself first.
fn objects(schema: &Json) -> Vec<&Json> {
    let nested = match schema {
        Json::Object(map) => map.values().flat_map(objects).collect(),
        Json::Array(list) => list.iter().flat_map(objects).collect(),
        _ => Vec::new(),
    };
    let own = schema.get("properties").is_some_and(Json::is_object).then_some(schema);
    own.into_iter().chain(nested).collect()
}

#[test]
fn the_sections_have_a_fixed_order() {
    let of = |scope| {
        let all = catalogue::sections(scope).filter(|section| !is_described(*section));
        all.map(|section| section.section).collect::<Vec<_>>()
    };
    assert_eq!(
        of(Scope::Project),
        [
            "create",
            "settings",
            "variables",
            "members",
            "shares",
            "protected_branches",
            "approvals",
            "approval_rules",
            "pipeline_schedules",
            "hooks",
            "integrations",
            "push_rule",
            "fork_of",
            "archived",
            "branches"
        ]
    );
    assert_eq!(
        of(Scope::Group),
        [
            "create",
            "settings",
            "variables",
            "members",
            "shares",
            "protected_branches",
            "hooks",
            "integrations",
            "push_rule"
        ]
    );
    // Described kinds come last, by name.
    let kinds = catalogue::registry().kinds();
    let described = kinds.iter().skip_while(|kind| kind.section != "archived").skip(1);
    let described: Vec<_> = described.map(|kind| kind.section).collect();
    assert!(described.is_sorted() && kinds.len() == DESCRIPTION_TEXTS.len(), "{described:?}");
    for (at, section) in sections() {
        let found = catalogue::find_section(section.scoped_kind.scope, section.section);
        assert!(found.is_some_and(|found| found.noun == section.noun), "{at}");
    }
    assert!(catalogue::find_section(Scope::Project, "setting").is_none());
    for kind in catalogue::registry().kinds() {
        let scopes: BTreeSet<_> = kind.homes.iter().map(|home| home.scope).collect();
        assert_eq!(scopes.len(), kind.homes.len(), "{}: one home in each scope", kind.section);
        assert!(!scopes.is_empty(), "{}", kind.section);
    }
}

/// The API path of a container of `scope`.
fn root(scope: Scope) -> String {
    format!("/{}s/:id", scope.noun())
}

#[test]
fn every_kind_is_complete() {
    for scope in Scope::ALL {
        let (container, itself) = catalogue::container(scope);
        assert_eq!(container.shape, Shape::Container);
        assert_eq!((itself.get_request)("a/b").operation.path, root(scope));
        assert!(
            container.looked_at.contains(&itself.path_field) && container.looked_at.contains(&"id")
        );
    }
    for (at, section) in sections() {
        let (home, table) = (section.scoped_kind, section.table());
        for name in section.identity.iter().chain(section.required_fields) {
            assert!(table.get(name).is_some(), "{at}.{name}");
        }
        assert_eq!(section.identity.is_empty(), section.shape != Shape::List, "{at}");
        let below = format!("{}/", root(home.scope));
        let read = |op: Op<Read>| assert!(op.row().path.starts_with(&below), "{at}");
        match home.read_source {
            ReadSource::List(op) | ReadSource::Optional(op) => read(op),
            ReadSource::Container => assert_eq!(section.shape, Shape::Container, "{at}"),
            ReadSource::Object | ReadSource::ListField(_) | ReadSource::ObjectField { .. } => {}
        }
        let is_list = matches!(home.read_source, ReadSource::List(_) | ReadSource::ListField(_));
        assert_eq!(is_list, section.shape == Shape::List, "{at}");
        assert!(is_list || home.min_read_level() <= 40, "{at}: nobody else could see the object");
        if let Some(beside) = catalogue::side_list(section) {
            assert!(table.get(beside.field).is_some(), "{at}.{}", beside.field);
            read(beside.list_op);
        }
    }
}

#[test]
fn every_entry_that_can_be_written_can_be_addressed() {
    for (at, section) in sections() {
        let home = section.scoped_kind;
        let Operations { create, edit, delete, .. } = home.operations;
        let in_path: Vec<_> = home
            .address_keys
            .iter()
            .filter_map(|handle| match handle.location {
                KeyLocation::Path(name) => Some(name),
                KeyLocation::Query(_) | KeyLocation::PathOnCreate(_) | KeyLocation::References => {
                    None
                }
            })
            .collect();
        let arguments = |op: Op<Write>| -> Vec<_> {
            op.row().path.split('/').filter_map(|segment| segment.strip_prefix(':')).collect()
        };
        // Keys of the parent entry come before its own.
        let above: Vec<_> = home.parent.iter().map(|parent| parent.argument).collect();
        let own: Vec<_> = ["id"].into_iter().chain(above.iter().copied()).collect();
        for op in edit.into_iter().chain(delete) {
            let entry = in_path.iter().filter(|name| !above.contains(name));
            let wanted: Vec<_> = own.iter().chain(entry).copied().collect();
            assert_eq!(arguments(op), wanted, "{at}: {}", op.row().id);
        }
        // The edit may also create.
        let is_edit = |op: &Op<Write>| edit.is_some_and(|edit| edit.row() == op.row());
        if let Some(op) = create.filter(|op| !is_edit(op)) {
            assert_eq!(arguments(op), own, "{at}: {}", op.row().id);
        }
        let known: BTreeSet<_> =
            home.entry_keys.identity_keys.iter().chain(home.entry_keys.other_keys).collect();
        // An entry without an id can only be named.
        let is_addressed =
            |handle: &&AddressKey| !matches!(handle.location, KeyLocation::References);
        // Of two fields that exclude each other, an entry has one.
        let has = |name: &str| section.has_field(&Object::new(), name);
        let is_own = |handle: &&AddressKey| !above.contains(&handle.field) && has(handle.field);
        for handle in home.address_keys.iter().filter(is_addressed).filter(is_own) {
            assert!(known.contains(&handle.field), "{at}: rows without `{}`", handle.field);
        }
        // A copy left by a lost response must be removable.
        assert!(!section.allows_duplicates() || delete.is_some(), "{at}");
        assert!(!section.is_removable() || delete.is_some(), "{at}");
        let is_fixed = |name: &str| section.identity.contains(&name);
        let mut specs = section.specs().iter();
        let can_differ = specs.any(|spec| is_readable(spec.field) && !is_fixed(spec.name));
        if edit.is_none() && create.is_some() && can_differ {
            assert!(delete.is_some(), "{at}: what is replaced");
        }
    }
}

#[test]
fn every_field_description_is_consistent() {
    for (section, of) in sections() {
        let table = of.table();
        for FieldSpec { name, field, schema, .. } in table.specs() {
            assert_eq!(Field::from_schema(schema), *field, "{section}.{name}");
            if let Some(other) = &field.replacement_name() {
                let other = table
                    .get(other)
                    .unwrap_or_else(|| panic!("{section}.{name} is replaced by nothing"));
                assert_ne!(
                    other.schema["deprecated"], true,
                    "{section}.{name} is replaced by what is deprecated"
                );
                assert_eq!(schema["deprecated"], true, "{section}.{name}");
            }
            let Relations { reset_by, not_with, not_before, limits, hidden_by, at_most, .. } =
                field.relations;
            let named = [reset_by, not_with, not_before, limits, hidden_by, at_most];
            for other in named.into_iter().flatten().chain(field.relations.switch_field()) {
                assert!(table.get(other).is_some(), "{section}.{name} names no field `{other}`");
            }
            let has = |list: &Json, null: Json| {
                list.as_array().is_some_and(|types| types.contains(&null))
            };
            let accepts_null = has(&schema["type"], json!("null"))
                || has(&schema["anyOf"], json!({"type": "null"}));
            assert_eq!(accepts_null, field.nullable, "{section}.{name}");
            if field.secrecy() == Secrecy::Reference {
                assert!(
                    !jsonschema::is_valid(schema, &json!("text")),
                    "{section}.{name} takes a secret as text"
                );
                assert!(jsonschema::is_valid(schema, &json!({"env": "NAME"})), "{section}.{name}");
            }
        }
    }
}

#[test]
fn every_schema_is_valid_closed_described_and_true_to_its_examples() {
    // A container that is never created has no key in manifests.
    for (section, of) in sections().filter(|(_, of)| !of.table().specs().is_empty()) {
        let table = of.table();
        jsonschema::meta::validate(&table.schema).unwrap_or_else(|e| panic!("{section}: {e}"));
        assert!(
            table.schema["description"].as_str().is_some_and(|text| text.ends_with('.')),
            "{section}"
        );
        for object in objects(&table.schema) {
            assert_eq!(object["additionalProperties"], false, "{section}: {object}");
            let properties = object["properties"].as_object().unwrap();
            for (name, property) in properties {
                let at = format!("{section}.{name}");
                // A mapping of one key, such as a reference to a secret, may have one description
                // for both.
                let whole = object.get("description").filter(|_| properties.len() == 1);
                let text = property
                    .get("description")
                    .or(whole)
                    .and_then(Json::as_str)
                    .unwrap_or_else(|| panic!("{at} is not described"));
                assert!(text.ends_with('.') && !text.contains('\n'), "{at}: {text}");
                for example in property["examples"].as_array().into_iter().flatten() {
                    assert!(jsonschema::is_valid(property, example), "{at}: {example}");
                }
                let words = property["enum"].as_array();
                if let Some(names) = words.filter(|all| all.iter().all(Json::is_string)) {
                    let texts = property["markdownEnumDescriptions"]
                        .as_array()
                        .unwrap_or_else(|| panic!("{at} has bare words"));
                    assert_eq!(names.len(), texts.len(), "{at}");
                    assert!(
                        texts
                            .iter()
                            .all(|text| text.as_str().is_some_and(|text| text.ends_with('.'))),
                        "{at}: {texts:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn levels_are_words_in_any_case_or_numbers() {
    let schema = &of_project("members").table().get("access_level").unwrap().schema;
    for (level, valid) in [
        (json!("developer"), true),
        (json!("Developer"), true),
        (json!("MINIMAL_ACCESS"), true),
        (json!(5), true),
        (json!(50), true),
        (json!(0), false),
        (json!(35), false),
        (json!("40"), false),
        (json!("developers"), false),
        (json!("no_access"), false),
        (json!(null), false),
        (json!(true), false),
    ] {
        assert_eq!(jsonschema::is_valid(schema, &level), valid, "{level}");
    }
}

#[test]
fn limits_are_in_the_schema() {
    for (section, entry, valid) in [
        ("settings", json!({"build_timeout": 600}), true),
        ("settings", json!({"build_timeout": 599}), false),
        ("settings", json!({"ci_default_git_depth": 1000}), true),
        ("settings", json!({"ci_default_git_depth": 1001}), false),
        ("settings", json!({"approvals_before_merge": -1}), false),
        ("settings", json!({"topics": ["a", "a"]}), false),
        ("settings", json!({"auto_cancel_pending_pipelines": true}), false),
        ("settings", json!({"requirements_access_level": "public"}), false),
        ("settings", json!({"pages_access_level": "public"}), true),
        ("settings", json!({"avatar": "a.png"}), false),
        ("settings", json!({"avatar": {"file": "a.png"}}), true),
        ("settings", json!({"pages_enabled": true}), false),
        ("settings", json!({"initialize_with_readme": true}), false),
        ("members", json!({"user": "a", "expires_at": "2099-1-1"}), false),
        ("members", json!({"access_level": "guest"}), false),
        ("hooks", json!({"name": "ci"}), false),
        ("push_rule", json!({}), false),
        ("push_rule", json!({"max_file_size": -1}), false),
        ("push_rule", json!({"file_name_regex": "x".repeat(511)}), true),
        ("push_rule", json!({"file_name_regex": "x".repeat(512)}), false),
    ] {
        let schema = &of_project(section).table().schema;
        assert_eq!(jsonschema::is_valid(schema, &entry), valid, "{section}: {entry}");
    }
}

/// Values of every type that a property accepts: all words of an enum, both booleans, `null`, a
/// mapping of everything.
fn samples(schema: &Json) -> Vec<Json> {
    if let Some(choices) = schema["anyOf"].as_array() {
        return choices.iter().flat_map(samples).collect();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.clone();
    }
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let of_type = |kind: &Json| match kind.as_str() {
        Some("null") => vec![json!(null)],
        Some("boolean") => vec![json!(false), json!(true)],
        Some("integer") => vec![schema.get("minimum").cloned().unwrap_or(json!(0)), json!(20)],
        Some("array") => {
            let one = samples(&schema["items"]);
            vec![json!([]), json!(["b", "a"]), one.into()]
        }
        Some("object") => {
            let of = |property: &Json| samples(property).into_iter().next();
            let properties = schema["properties"].as_object().into_iter().flatten();
            vec![
                properties
                    .filter_map(|(name, property)| Some((name.clone(), of(property)?)))
                    .collect::<Object>()
                    .into(),
            ]
        }
        _ => schema["examples"].as_array().cloned().unwrap_or_else(|| vec![json!("text")]),
    };
    types.iter().flat_map(of_type).filter(|sample| jsonschema::is_valid(schema, sample)).collect()
}

/// The response of a service that stores what it gets, with the names of responses. Empty text becomes
/// `null`, and a list of ids becomes a list of objects; the id of an entry of another section is
/// its position in `entries`, which are names.
fn echo(table: &FieldTable, body: &Fields, absent: &Json, entries: &[Json]) -> Object {
    let live = |(sent, value): (&String, &Value)| {
        let spec = table.specs().iter().find(|spec| spec.field.sent_name() == sent)?;
        let value = match value.plain_json()? {
            Json::String(text) if text.is_empty() => absent.clone(),
            Json::Array(ids) if spec.field.relations.names_entries.is_some() => {
                let at = |id: &Json| usize::try_from(id.as_u64().unwrap()).unwrap();
                ids.iter().map(|id| json!({"id": id, "name": entries[at(id)]})).collect()
            }
            Json::Array(ids) if spec.field.names.is_some() => {
                ids.iter().map(|id| json!({"id": id})).collect()
            }
            other if spec.field.is_nested() => json!({ "value": other }),
            other => other.clone(),
        };
        Some((spec.field.live_name()?.to_owned(), value))
    };
    body.iter().filter_map(live).collect()
}

#[test]
fn sent_values_read_back_as_declared() {
    let mut compared = 0;
    for (at, section) in sections() {
        let table = section.table();
        // Responses have the names of roles, and requests the ids.
        let is_sent = |spec: &&FieldSpec| {
            spec.field.accepted != Acceptance::Never && spec.field.names != Some(NamedObject::Role)
        };
        for spec in table.specs().iter().filter(is_sent) {
            for sample in samples(&spec.schema) {
                let mut value = Value::Plain(sample);
                forms::normalize_spelling(spec, &mut value);
                forms::replace_deprecated_keys(spec, &mut value);
                let declared = Fields::from([(spec.name.to_owned(), value.clone())]);
                let mut names = NameIndex::default();
                for (id, (_, named, name)) in (5..).zip(forms::referenced_names(section, &declared))
                {
                    names.insert(named, &name, Some(id));
                }
                let entries = match (&spec.field.relations.names_entries, value.plain_json()) {
                    (Some(_), Some(Json::Array(entries))) => entries.clone(),
                    _ => Vec::new(),
                };
                if let Some(other) = spec.field.relations.names_entries {
                    let id = |(id, name): (u64, &Json)| (plain_text(name), Some(Id::Known(id)));
                    names.insert_entry_ids(other, Ok((0..).zip(&entries).map(id).collect()));
                }
                let body = forms::Encoder { section, names: &names }
                    .encode_body(&declared, WriteRequest::Edit)
                    .unwrap();
                let wanted = forms::to_comparable(Some(spec), value.plain_json().unwrap(), &names);
                for absent in [json!(null), json!("")] {
                    let raw = echo(table, &body, &absent, &entries);
                    let live = section.read(&raw, FieldSelection::Only(&[spec.name].into()));
                    let Some(live) = live.fields.raw().get(spec.name) else { continue };
                    compared += 1;
                    assert!(
                        forms::are_equal(spec.field.compare, &wanted, live),
                        "{at}.{}: {value:?} {live}",
                        spec.name
                    );
                }
            }
        }
    }
    assert!(compared > 2 * 250, "only {compared}");
}

/// A row with a list or flag as identity would be read as another entry: the real one would be
/// removed by its id and created anew.
#[test]
fn an_identity_of_the_wrong_type_makes_a_section_unreadable() {
    let mut seen = 0;
    for (at, section) in sections() {
        let rows = section.scoped_kind.entry_keys;
        let told = |spec: &&FieldSpec| section.identity.contains(&spec.name);
        let told = section.table().specs().iter().filter(told);
        let identity_keys = told.filter_map(|spec| spec.field.live_name());
        let keys: BTreeSet<&str> = rows
            .identity_keys
            .iter()
            .chain(rows.other_keys)
            .copied()
            .chain(identity_keys)
            .collect();
        let tells_inherited = |key: &&str| {
            section.scoped_kind.inherited.iter().any(|of| of.is_negated && of.field == *key)
        };
        for key in keys.into_iter().filter(|key| !tells_inherited(key)) {
            let of = |value: Json| {
                let row = Object::from_iter([(key.to_owned(), value)]);
                section.mistyped_key(&row).is_none()
            };
            let fits = [json!([]), json!({}), json!(true), json!(7), json!("x")].map(of);
            assert!(!fits[1], "{at}.{key}");
            assert!(fits.iter().filter(|fits| **fits).count() <= 1, "{at}.{key}: {fits:?}");
            assert_eq!(fits[3], key.ends_with("id") || key.ends_with("level"), "{at}.{key}");
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen}");
}

/// Another group or project may have the path when a write arrives.
#[test]
fn a_write_goes_to_a_container_by_its_id() {
    let mut seen = BTreeSet::new();
    for (at, section) in sections() {
        for id in [Some(7), None] {
            let namespace = Some(LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group });
            let path: Arc<str> = "acme/shop".into();
            let target = Target { id, namespace, ..Target::new(section.scoped_kind.scope, path) };
            for (declared, names) in whole_entries(section) {
                let changed: Vec<_> = declared.keys().map(String::as_str).collect();
                let entry = json!({"id": 5, "name": "x", "key": "x", "environment_scope": "*"});
                let live = section.read(entry.as_object().unwrap(), FieldSelection::All);
                let former = FormerLocation {
                    path: "acme/old".into(),
                    is_renamed: true,
                    is_transferred: true,
                    is_transferred_first: false,
                    namesake: None,
                    name: None,
                };
                let purposes = [
                    CallPurpose::Create(&declared),
                    CallPurpose::Change(&declared, &live, &changed),
                    CallPurpose::Remove(&live),
                    CallPurpose::Container(Lifecycle::Move(&former)),
                    CallPurpose::Container(Lifecycle::Delete),
                    CallPurpose::Container(Lifecycle::Restore),
                ];
                for act in purposes {
                    let release = DetectedRelease::Known(REFERENCE);
                    let (target, names) = (&target, &names);
                    let context = CallContext {
                        section,
                        target,
                        names,
                        release,
                        has_unique_address: true,
                        purpose: act,
                    };
                    for call in section.rules().calls(&context).unwrap_or_default() {
                        let request = call.request;
                        let is_new = id.is_none() && request.addresses_by_path();
                        let sent = request.with_ids(Some(7), |_| Some(9)).unwrap();
                        assert!(!sent.addresses_by_path(), "{at}: {sent}");
                        if is_new {
                            seen.insert(format!("{at} {}", sent.operation.id));
                        }
                    }
                }
            }
        }
    }
    assert!(seen.len() > 50, "only {seen:#?}");
}

/// Everything that an entry of a section can declare, in several variants, with the ids of the
/// names in it.
fn whole_entries(section: Section) -> Vec<(Fields, NameIndex)> {
    let specs = || section.table().specs().iter();
    let sample = |spec: &FieldSpec, at: usize| {
        let mut samples = samples(&spec.schema);
        let mut value = Value::Plain(samples.swap_remove(at.min(samples.len().checked_sub(1)?)));
        forms::normalize_spelling(spec, &mut value);
        forms::replace_deprecated_keys(spec, &mut value);
        Some((spec.name.to_owned(), value))
    };
    let alone = specs().filter_map(|spec| Some(Fields::from([sample(spec, 1)?])));
    let all = (0..3).map(|index| specs().filter_map(|spec| sample(spec, index)).collect());
    let named = |declared: Fields| {
        let mut names = NameIndex::default();
        for (id, (_, named, name)) in (5..).zip(forms::referenced_names(section, &declared)) {
            names.insert(named, &name, Some(id));
        }
        (declared, names)
    };
    alone.chain(all).map(named).collect()
}

#[test]
fn fields_that_name_entries_refer_to_sections_with_ids() {
    let mut found = 0;
    for (at, section) in sections() {
        for spec in section.table().specs() {
            let Some(other) = spec.field.relations.names_entries else { continue };
            let other = catalogue::find_section(section.scoped_kind.scope, other)
                .unwrap_or_else(|| panic!("{at}"));
            let mut fields = other.scoped_kind.address_keys.iter().map(|handle| handle.field);
            assert!(fields.any(|field| field == "id"), "{at}");
            found += 1;
        }
    }
    assert_ne!(found, 0);
}

#[test]
fn a_field_missing_in_a_live_object_is_not_read() {
    for (at, section) in sections() {
        assert!(section.read(&Object::new(), FieldSelection::All).fields.raw().is_empty(), "{at}");
    }
}

#[test]
fn fields_compared_by_row_have_a_schema_of_rows() {
    for (at, section) in sections() {
        for spec in section.table().specs() {
            let is_rows = spec.field.compare == Equality::Rows;
            let rows = &spec.schema["items"]["properties"];
            assert!(!is_rows || rows.is_object(), "{at}.{}", spec.name);
        }
    }
}
