//! Tests that no output contains a live credential. Each text field of each kind gets a credential
//! in each form. The outputs are plans, exported and absorbed manifests, saved plans and snapshots.
//! The fields come from the tables of the kinds, so a new field is included automatically.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;

use super::reduce::{DeclaredLiterals, Reducer};
use crate::{
    absorb,
    address::Selector,
    catalogue,
    desired::{Container, Desired, Unlisted, testing::container},
    digest::DigestKey,
    export::{Excerpt, ExportBuilder, ExportSettings, SecretHandling},
    field::Scope,
    kind::{FieldSelection, FieldSpec, NameIndex, ReadSource, Section, Shape},
    live::{
        LiveContainer,
        testing::{caller, live_container_with},
    },
    plan::{
        self, Extent, Plan, PlanSettings,
        saved::{PlanRecorder, SaveContext, SavedPlan},
    },
    release::DetectedRelease,
    secret::{Secret, Secrets},
    selection::Selection,
    value::{Json, Object},
};

/// The text that no output may contain.
const CANARY: &str = "LiveCanary0123456789";

/// Texts with a credential in each form: alone, in a sentence, and in a template.
fn credential_forms() -> Vec<String> {
    let forms = [
        "https://bot:C@h.example.org/x",
        "https://C@h.example.org/x",
        "https://bot:a/C@h.example.org/x",
        "https://h.example.org/x?private_token=C",
        "https://h.example.org/x?token=C/:id",
        "https://h.example.org/%{project_path}?a=b;api_key=C&c=d",
        "https://h.example.org/x#access_token=C",
        "https://hooks.slack.com/services/T0/B0/C",
        "https://acme.webhook.office.com/webhookb2/C",
        "https://discord.com/api/webhooks/1/C",
        "https://chat.example.org/hooks/C",
        "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=C",
        "glpat-C",
        "glptt-C",
        "ghp_C",
        "AKIAC",
        "xoxb-C",
        "eyJC.eyJC.C",
        "-----BEGIN RSA PRIVATE KEY-----\nC\n-----END RSA PRIVATE KEY-----",
    ];
    let sentence = |form: &&str| format!("see {form} or (ask '{form}'), as in PASSWORD=C");
    let all = forms.iter().map(ToString::to_string).chain(forms.iter().map(sentence));
    all.map(|form| form.replace('C', CANARY).replace(&format!("{CANARY}ANARY"), "CANARY")).collect()
}

/// `text` as a value of the field `spec`; `None` if the field takes no text, or refers to an
/// object.
fn text_value(spec: &FieldSpec, text: &str) -> Option<Json> {
    fn make_schema_value(schema: &Json, text: &str) -> Option<Json> {
        let has_type = |name: &str| match &schema["type"] {
            Json::Array(names) => names.iter().any(|other| other == name),
            other => other == name,
        };
        if has_type("string") || schema["anyOf"].is_array() {
            return schema.get("enum").is_none().then(|| text.into());
        }
        if has_type("array") {
            return Some(json!([make_schema_value(&schema["items"], text)?]));
        }
        let properties = schema["properties"].as_object()?.iter();
        let fields = properties
            .filter_map(|(name, def)| Some((name.clone(), make_schema_value(def, text)?)));
        let fields: Object = fields.collect();
        (!fields.is_empty()).then_some(Json::Object(fields))
    }
    let field = &spec.field;
    let is_text =
        field.names.is_none() && field.relations.names_entries.is_none() && !spec.has_rows();
    make_schema_value(&spec.schema, text).filter(|_| is_text)
}

/// The example value of the field, if the service returns the field.
fn example_value(spec: &FieldSpec) -> Option<Json> {
    let first = spec.schema["examples"].as_array()?.first()?;
    Some(first.clone()).filter(|_| spec.field.live_name().is_some())
}

/// A response of the service with `text` in the field `name`.
fn make_response(section: Section, name: &str, text: &str) -> Object {
    let mut raw = section.example_siblings(name);
    for spec in section.specs() {
        let is_needed =
            section.identity.contains(&spec.name) || section.required_fields.contains(&spec.name);
        let value = match *spec.name == *name {
            true => text_value(spec, text),
            false => example_value(spec).filter(|_| is_needed),
        };
        if let (Some(live), Some(value)) = (spec.field.live_name(), value) {
            raw.insert(live.to_owned(), value);
        }
    }
    raw.extend([("id".to_owned(), 3.into()), ("mirror".to_owned(), true.into())]);
    raw
}

/// A declaration whose value of the field `name` differs from the live value. If the field
/// identifies entries, the declaration lacks the live entry.
fn make_declaration(section: Section, name: &str) -> Container {
    let path = if section.scoped_kind.scope == Scope::Project { "acme/shop" } else { "acme" };
    let mut sections = Object::new();
    let field = |name: &str| Some((name.to_owned(), example_value(section.spec(name)?)?));
    let entry: Object =
        section.identity.iter().chain([&name]).filter_map(|name| field(name)).collect();
    let entry = Json::Object(entry);
    let is_list = section.shape == Shape::List;
    let is_key = section.identity.contains(&name);
    sections.insert(
        section.section.to_owned(),
        match is_list {
            true if is_key => json!([]),
            true => json!([entry]),
            false => entry,
        },
    );
    container(section.scoped_kind.scope, path, &Json::Object(sections), Unlisted::Delete)
}

/// All outputs, each with its name.
fn make_outputs(section: Section, name: &str, raw: &Object) -> Vec<(&'static str, String)> {
    let container = make_declaration(section, name);
    let is_single = section.shape != Shape::List;
    let response = Json::Object(raw.clone());
    let response = if is_single { response } else { json!([response]) };
    let sections = Json::Object(Object::from_iter([(section.section.to_owned(), response)]));
    let live = live_container_with(&container, &sections, FieldSelection::All);
    // The names of entries are masked when the plan is recorded. All other fields are masked before
    // that.
    let secrets = Secrets::default();
    let is_name = section.identity.contains(&name);
    let secrets = if is_name { secrets } else { secrets.with_visible_credentials() };
    let mut outputs = plan_outputs(&container, &live, &secrets);
    for values in [SecretHandling::Plain, SecretHandling::Env, SecretHandling::None] {
        let settings = ExportSettings {
            secret_handling: values,
            ..ExportSettings::for_caller(caller(), DetectedRelease::NotRequested)
        };
        let mut builder = ExportBuilder::new(settings, BTreeSet::new());
        builder.add(section.scoped_kind.scope, &container.path, &live, &NameIndex::default());
        let omitted = format!("{:?}", builder.omitted_reads());
        let files: Vec<_> = builder.finish().files.into_iter().map(|file| file.text).collect();
        outputs.extend([("export", files.concat()), ("what an export leaves out", omitted)]);
    }
    for key in [None, Some(DigestKey::new(&Secret::new("key")))] {
        let (literals, secrets) = (DeclaredLiterals::collect(&Desired::default()), Arc::default());
        let reducer = Reducer { literals, secrets, key };
        let object_with = |field: &str, value: Json| Object::from_iter([(field.to_owned(), value)]);
        let reduced_object =
            match section.scoped_kind.read_source {
                ReadSource::List(op) | ReadSource::Optional(op) => {
                    reducer.reduce_row(op, "acme/shop", raw)
                }
                ReadSource::Object => reducer.reduce_object(section.scoped_kind.scope, raw),
                ReadSource::ListField(field) => reducer
                    .reduce_object(section.scoped_kind.scope, &object_with(field, json!([raw]))),
                ReadSource::ObjectField { field, .. } => reducer
                    .reduce_object(section.scoped_kind.scope, &object_with(field, json!(raw))),
                ReadSource::Container => continue,
            };
        let text = reduced_object.map(|object| Json::Object(object).to_string());
        outputs.push(("snapshot", text.unwrap_or_else(|reason| reason)));
    }
    outputs
}

/// The texts of a plan, its saved form, and the edits that absorb it. `secrets` redacts the saved
/// form.
fn plan_outputs(
    declared: &Container,
    live: &LiveContainer,
    secrets: &Secrets,
) -> Vec<(&'static str, String)> {
    let settings =
        PlanSettings::for_run(caller(), Arc::new(Secrets::default()), &Desired::default());
    let plan = plan::plan_container(declared, live, &settings);
    // Reports redact their text, but the names of entries must be safe before that.
    let names = plan.steps.iter().map(|step| &step.address);
    let names: String =
        names.chain(plan.notes.iter().map(|note| &note.address)).map(ToString::to_string).collect();
    let changes: Vec<_> = plan.steps.iter().map(|step| &step.changes).collect();
    let changes = serde_json::to_string(&changes).unwrap();
    let notes = serde_json::to_string(&plan.notes).unwrap();
    let problems = format!("{:?} {:?}", plan.problems, plan.incomplete);
    let export_settings = ExportSettings::for_caller(caller(), DetectedRelease::NotRequested);
    let names_of_ids = NameIndex::default();
    let excerpt =
        Excerpt::from_live(declared.scope, &declared.path, live, &names_of_ids, &export_settings);
    let (container, excerpt, plan_ref) = (declared, excerpt.as_ref(), &plan);
    let comparison = absorb::ContainerComparison {
        container,
        plan: plan_ref,
        live,
        names: &names_of_ids,
        excerpt,
    };
    let entries_selector = Selector::parse(&format!("{}#*/*", declared.path)).unwrap();
    let container_selector = Selector::parse(&declared.path).unwrap();
    let selection =
        Selection { only: vec![entries_selector, container_selector], ..Selection::default() };
    let (goals, refusals) = absorb::find_drift(&comparison, &selection);
    let absorb_text = format!("{goals:?} {refusals:?}");
    vec![
        ("names", names),
        ("changes", changes),
        ("saved plan", saved_plan_text(declared, live, plan, secrets)),
        ("notes", notes),
        ("problems", problems),
        ("absorb", absorb_text),
    ]
}

fn saved_plan_text(
    declared: &Container,
    live: &LiveContainer,
    container_plan: plan::ContainerPlan,
    secrets: &Secrets,
) -> String {
    let mut plan = Plan::default().with_container_plans();
    plan.add(declared, container_plan, live.clone());
    let source = SaveContext {
        made_at: "2030-01-15T12:00:00Z".parse().unwrap(),
        target: "https://x.example".into(),
        caller: "alice".into(),
        is_sandbox: false,
        manifests: None,
        selectors: Default::default(),
    };
    let recorder = PlanRecorder { secrets, key: None };
    let containers = std::slice::from_ref(declared);
    let plan = plan.finish(&Extent::default());
    SavedPlan::from_plan(&plan, containers, source, recorder).seal(None).to_text()
}

#[test]
fn no_output_contains_a_live_credential_of_any_field() {
    let (forms, mut field_count, mut leaks) = (credential_forms(), 0, Vec::new());
    let form_count = if crate::sample::plays_all() { forms.len() } else { 3 };
    for section in catalogue::all_sections().filter(|candidate| candidate.shape != Shape::Container)
    {
        for spec in section.specs().iter().filter(|spec| text_value(spec, "").is_some()) {
            // In the sample each field has some of the forms, and each form is in many fields.
            let used_forms = forms.iter().cycle().skip(field_count * 5).step_by(7).take(form_count);
            field_count += 1;
            for form in used_forms {
                let raw = make_response(section, spec.name, form);
                for (output, text) in make_outputs(section, spec.name, &raw) {
                    if text.contains(CANARY) {
                        leaks.push(format!("{}.{} {output}: {form}", section.section, spec.name));
                    }
                }
            }
        }
    }
    assert!(field_count > 150, "{field_count}");
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}
