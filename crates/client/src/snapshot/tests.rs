//! No live credential leaves: every text field of every kind, with a credential in each form, in
//! plans, exported and absorbed manifests, saved plans and snapshots. The fields come from the
//! tables of the kinds, so a new one is included.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;

use super::reduce::{DeclaredLiterals, Reducer};
use crate::{
    absorb,
    address::Selector,
    catalogue,
    desired::{Container, Desired, Unlisted, testing::container},
    digest::DigestKey,
    export::{Excerpt, ExportBuilder, ExportSettings as Exporting, SecretHandling},
    field::Scope,
    kind::{FieldSelection, Names, ReadSource, Section, Shape, Spec},
    live::{
        Live,
        testing::{caller, here_reading},
    },
    plan::{
        self, Extent, Plan, PlanSettings,
        saved::{PlanSource, Recording, SavedPlan},
    },
    release::DetectedRelease,
    secret::{Secret, Secrets},
    selection::Selection,
    value::{Json, Object},
};

/// What must not leave.
const CANARY: &str = "LiveCanary0123456789";

/// A credential in each form, alone, in a sentence and in a template.
fn forms() -> Vec<String> {
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

/// `text` as a value of `spec`, if it is a field of texts that names nothing.
fn filled(spec: &Spec, text: &str) -> Option<Json> {
    fn within(schema: &Json, text: &str) -> Option<Json> {
        let is = |name: &str| match &schema["type"] {
            Json::Array(names) => names.iter().any(|one| one == name),
            one => one == name,
        };
        if is("string") || schema["anyOf"].is_array() {
            return schema.get("enum").is_none().then(|| text.into());
        }
        if is("array") {
            return Some(json!([within(&schema["items"], text)?]));
        }
        let properties = schema["properties"].as_object()?.iter();
        let parts = properties.filter_map(|(name, of)| Some((name.clone(), within(of, text)?)));
        let parts: Object = parts.collect();
        (!parts.is_empty()).then_some(Json::Object(parts))
    }
    let field = &spec.field;
    let is_text =
        field.names.is_none() && field.relations.names_entries.is_none() && !spec.has_rows();
    within(&spec.schema, text).filter(|_| is_text)
}

/// An example of the field.
fn example(spec: &Spec) -> Option<Json> {
    let first = spec.schema["examples"].as_array()?.first()?;
    Some(first.clone()).filter(|_| spec.field.live_name().is_some())
}

/// An answer of the service with `text` in the field `name`.
fn raw(of: Section, name: &str, text: &str) -> Object {
    let mut raw = of.example_siblings(name);
    for spec in of.table().specs() {
        let is_needed = of.identity.contains(&spec.name) || of.required.contains(&spec.name);
        let value = match *spec.name == *name {
            true => filled(spec, text),
            false => example(spec).filter(|_| is_needed),
        };
        if let (Some(live), Some(value)) = (spec.field.live_name(), value) {
            raw.insert(live.to_owned(), value);
        }
    }
    raw.extend([("id".to_owned(), 3.into()), ("mirror".to_owned(), true.into())]);
    raw
}

/// A declaration in which the field differs, or that has no such entry.
fn declared(of: Section, name: &str) -> Container {
    let path = if of.scoped_kind.scope == Scope::Project { "acme/shop" } else { "acme" };
    let mut sections = Object::new();
    let field = |name: &str| Some((name.to_owned(), example(of.table().get(name)?)?));
    let entry: Object = of.identity.iter().chain([&name]).filter_map(|name| field(name)).collect();
    let entry = Json::Object(entry);
    let is_list = of.shape == Shape::List;
    let is_key = of.identity.contains(&name);
    sections.insert(
        of.section.to_owned(),
        match is_list {
            true if is_key => json!([]),
            true => json!([entry]),
            false => entry,
        },
    );
    container(of.scoped_kind.scope, path, &Json::Object(sections), Unlisted::Delete)
}

/// Everything that leaves, by the way out.
fn outputs(of: Section, name: &str, raw: &Object) -> Vec<(&'static str, String)> {
    let declared = declared(of, name);
    let is_one = of.shape != Shape::List;
    let answer = Json::Object(raw.clone());
    let answer = if is_one { answer } else { json!([answer]) };
    let sections = Json::Object(Object::from_iter([(of.section.to_owned(), answer)]));
    let live = here_reading(&declared, &sections, FieldSelection::All);
    // Names are masked where they are recorded, other fields before.
    let secrets = Secrets::default();
    let is_name = of.identity.contains(&name);
    let secrets = if is_name { secrets } else { secrets.showing_credentials() };
    let mut out = planned(&declared, &live, &secrets);
    for values in [SecretHandling::Plain, SecretHandling::Env, SecretHandling::None] {
        let settings =
            Exporting { values, ..Exporting::plain(caller(), DetectedRelease::NotRequested) };
        let mut builder = ExportBuilder::new(settings, BTreeSet::new());
        builder.add(of.scoped_kind.scope, &declared.path, &live, &Names::default());
        let left_out = format!("{:?}", builder.omitted_reads());
        let files: Vec<_> = builder.finish().files.into_iter().map(|file| file.text).collect();
        out.extend([("export", files.concat()), ("what an export leaves out", left_out)]);
    }
    for key in [None, Some(DigestKey::new(&Secret::new("key")))] {
        let (literals, secrets) = (DeclaredLiterals::collect(&Desired::default()), Arc::default());
        let reducer = Reducer { literals, secrets, key };
        let within = |field: &str, value: Json| Object::from_iter([(field.to_owned(), value)]);
        let kept = match of.scoped_kind.place {
            ReadSource::List(op) | ReadSource::Optional(op) => {
                reducer.reduce_one(op, "acme/shop", raw)
            }
            ReadSource::Object => reducer.reduce_object(of.scoped_kind.scope, raw),
            ReadSource::ListField(field) => {
                reducer.reduce_object(of.scoped_kind.scope, &within(field, json!([raw])))
            }
            ReadSource::ObjectField { field, .. } => {
                reducer.reduce_object(of.scoped_kind.scope, &within(field, json!(raw)))
            }
            ReadSource::Container => continue,
        };
        let kept = kept.map(|kept| Json::Object(kept).to_string());
        out.push(("snapshot", kept.unwrap_or_else(|withheld| withheld)));
    }
    out
}

/// What a plan, its saved form, and the edits that absorb it show. `secrets` redacts the saved form.
fn planned(declared: &Container, live: &Live, secrets: &Secrets) -> Vec<(&'static str, String)> {
    let settings =
        PlanSettings::for_run(caller(), Arc::new(Secrets::default()), &Desired::default());
    let plan = plan::plan_container(declared, live, &settings);
    // Reports redact all that they show; names of entries have to be safe before.
    let names = plan.steps.iter().map(|step| &step.address);
    let names: String =
        names.chain(plan.notes.iter().map(|note| &note.address)).map(ToString::to_string).collect();
    let changes: Vec<_> = plan.steps.iter().map(|step| &step.changes).collect();
    let changes = serde_json::to_string(&changes).unwrap();
    let notes = serde_json::to_string(&plan.notes).unwrap();
    let problems = format!("{:?} {:?}", plan.problems, plan.incomplete);
    let exporting = Exporting::plain(caller(), DetectedRelease::NotRequested);
    let of_ids = Names::default();
    let words = Excerpt::from_live(declared.scope, &declared.path, live, &of_ids, &exporting);
    let (container, words, plan_of) = (declared, words.as_ref(), &plan);
    let seen = absorb::ContainerComparison {
        container,
        plan: plan_of,
        live,
        names: &of_ids,
        excerpt: words,
    };
    let everything = Selector::parse(&format!("{}#*/*", declared.path)).unwrap();
    let whole = Selector::parse(&declared.path).unwrap();
    let chosen = Selection { only: vec![everything, whole], ..Selection::default() };
    let (goals, refused) = absorb::find_drift(&seen, &chosen);
    let absorbed = format!("{goals:?} {refused:?}");
    vec![
        ("names", names),
        ("changes", changes),
        ("saved plan", saved(declared, live, plan, secrets)),
        ("notes", notes),
        ("problems", problems),
        ("absorb", absorbed),
    ]
}

fn saved(
    declared: &Container,
    live: &Live,
    planned: plan::ContainerPlan,
    secrets: &Secrets,
) -> String {
    let mut plan = Plan::default().with_container_plans();
    plan.add(declared, planned, live.clone());
    let made = PlanSource {
        made_at: "2030-01-15T12:00:00Z".parse().unwrap(),
        target: "https://x.example".into(),
        caller: "alice".into(),
        is_sandbox: false,
        manifests: None,
        selectors: Default::default(),
    };
    let recording = Recording { secrets, key: None };
    let containers = std::slice::from_ref(declared);
    let plan = plan.into_sorted(&Extent::default());
    SavedPlan::from_plan(&plan, containers, made, recording).seal(None).to_text()
}

#[test]
fn no_live_credential_of_any_field_leaves_in_any_output() {
    let (forms, mut fields, mut leaks) = (forms(), 0, Vec::new());
    let count = if crate::sample::is_whole() { forms.len() } else { 3 };
    for of in catalogue::all_sections().filter(|of| of.shape != Shape::Container) {
        for spec in of.table().specs().iter().filter(|spec| filled(spec, "").is_some()) {
            // In the sample each field has some of the forms, and each form is in many fields.
            let some = forms.iter().cycle().skip(fields * 5).step_by(7).take(count);
            fields += 1;
            for form in some {
                let raw = raw(of, spec.name, form);
                for (what, text) in outputs(of, spec.name, &raw) {
                    if text.contains(CANARY) {
                        leaks.push(format!("{}.{} {what}: {form}", of.section, spec.name));
                    }
                }
            }
        }
    }
    assert!(fields > 150, "{fields}");
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}
