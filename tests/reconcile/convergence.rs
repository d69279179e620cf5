//! Creates, changes and clears every readable field of every kind, in faithful and in hostile
//! services.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};
use undrift::{
    catalogue::{self, operations},
    diff::{Action, Reason},
    export::{ExportSettings, SecretHandling},
    field::{Equality, Field, Readback, Scope, Secrecy},
    kind::{FieldSpec, Section, Shape},
    live::Caller,
    operation::{AnyOp, Operation},
    plan::Plan,
    release::{REFERENCE, Release},
    sandbox::Profile,
};

use crate::{
    export::export_settings,
    hostile::hostile,
    parts::{PARTS, in_parts, items_of_part},
    reached::{Reach, reach},
    switches::{halves, switches},
    world::{NEWEST, World, group, project, seed},
};

/// Fields that are tested elsewhere or cannot be tested alone, with the reason.
const TESTED_APART: &[(&str, &str)] = &[
    ("approval_rules.previously", "`renames` does"),
    ("approval_rules.report_type", "`only_new` does"),
    ("deploy_keys.expires_at", "`only_new` does"),
    ("labels.previously", "`renames` does"),
    ("milestones.previously", "`renames` does"),
    ("pipeline_schedules.previously", "`renames` does"),
    ("settings.mr_default_target_self", "the service accepts it for forks only"),
    (
        "settings.default_branch",
        "it needs a repository; see `a_default_branch_is_set_with_the_readme`",
    ),
    ("approvals.selective_code_owner_removals", "the sandbox has it in no release"),
    ("fork_of.fork_of", "it needs another project; see `sources`"),
    ("settings.file_template_project_id", "it needs a project of the group"),
    ("members.member_role", "it needs a custom role; see `roles`"),
    ("members.override", "only groups that follow a directory have it"),
    ("members.membership", "only top-level groups have it"),
    ("hooks.url_variables", "the service requires them together with the URL; see `hooks`"),
];

/// Settings that only top-level groups have.
const TOP_LEVEL_FIELDS: &[&str] = &[
    "prevent_sharing_groups_outside_hierarchy",
    "prevent_forking_outside_group",
    "ip_restriction_ranges",
    "allowed_email_domains_list",
    "enabled_git_access_protocol",
    "shared_runners_minutes_limit",
];

/// Fields that responses never show; they are sent and not compared.
const NEVER_READ: &[&str] = &[
    "approval_rules.previously",
    "branches.ref",
    "external_status_checks.shared_secret",
    "hooks.previously",
    "hooks.token",
    "integrations.api_key",
    "integrations.jira_issue_transition_automatic",
    "integrations.password",
    "integrations.token",
    "integrations.user_key",
    "integrations.webhook",
    "labels.previously",
    "milestones.previously",
    "pipeline_schedules.previously",
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Create,
    Change,
    Clear,
}

/// A valid value for the schema and the service, different for each form.
fn sample(kind: Section, spec: &FieldSpec, form: Phase) -> Json {
    if form == Phase::Clear {
        return Json::Null;
    }
    let first = form == Phase::Create;
    let pick = |a: Json, b: Json| if first { a } else { b };
    match (kind.section, spec.name) {
        ("settings", "visibility") => return pick("internal".into(), "private".into()),
        ("settings", "container_expiration_policy") => {
            let name = if first { "name_regex" } else { "name_regex_keep" };
            return json!({"enabled": first, "cadence": pick("7d".into(), "1month".into()), "keep_n": pick(5.into(), 10.into()), name: "^x"});
        }
        ("settings", "default_branch_protection") => return pick(2.into(), 0.into()),
        ("settings", "project_creation_level") => {
            return pick("developer".into(), "maintainer".into());
        }
        ("settings", "ip_restriction_ranges") => {
            return pick("192.0.2.0/24".into(), "192.0.2.0/24,198.51.100.7".into());
        }
        ("settings", "default_branch") => return pick("main".into(), "trunk".into()),
        ("settings", "allowed_email_domains_list") => {
            return pick("example.com".into(), "example.com,example.org".into());
        }
        ("settings", "avatar") => return json!({"file": "logo.png"}),
        ("settings", "import_url") => return json!({"env": "IMPORT_URL"}),
        ("settings", "repository_storage") => return "default".into(),
        ("settings", "mirror_user_id") => return 1.into(),
        ("settings", "ci_id_token_sub_claim_components") => {
            return pick(json!(["project_path", "ref"]), json!(["project_path"]));
        }
        ("settings", "ci_delete_pipelines_in_seconds") => {
            return pick(86_400.into(), 604_800.into());
        }
        // A hidden variable stays hidden.
        ("variables", "masked_and_hidden") => return pick(false.into(), true.into()),
        // The real service accepts 10 minutes to 1 month.
        ("settings", "build_timeout") => return pick(3600.into(), 7200.into()),
        ("hooks", "token") | ("external_status_checks", "shared_secret") => {
            return json!({"env": "HOOK_TOKEN"});
        }
        ("hooks", "url") => {
            return format!("https://{}.example.org/x", if first { "a" } else { "b" }).into();
        }
        ("hooks", "custom_headers") => {
            return json!([{"key": pick("X-A".into(), "X-B".into()), "value": {"env": "HOOK_TOKEN"}}]);
        }
        ("hooks", "previously") => return json!(["https://a.example.org/x"]),
        ("hooks", "push_events_branch_filter") => return pick("main".into(), "release/*".into()),
        (INTEGRATIONS, "jira_auth_type") => return pick(1.into(), 0.into()),
        (INTEGRATIONS, name) if spec.field.secrecy() == Secrecy::Reference => {
            return json!({"env": name.to_uppercase()});
        }
        (INTEGRATIONS, _) if spec.field.secrecy() == Secrecy::Address => {
            return example(spec, usize::from(!first));
        }
        _ if spec.field.is_level() => return pick("developer".into(), 40.into()),
        ("pipeline_schedules", "ref") => return pick("main".into(), "refs/heads/next".into()),
        ("pipeline_schedules", "cron") => return pick("0 4 * * *".into(), "30 5 * * 1".into()),
        ("pipeline_schedules", "cron_timezone") => {
            return pick("Europe/Berlin".into(), "America/New_York".into());
        }
        ("approval_rules", "users") => return pick(json!(["bob"]), json!(["alice"])),
        ("approval_rules", "groups") => return pick(json!(["acme/security"]), json!(["acme"])),
        ("approval_rules", "protected_branches") => {
            return pick(json!(["main"]), json!(["release/*"]));
        }
        ("approval_rules", "rule_type") => return "regular".into(),
        ("protected_tags", "allowed_to_create") => {
            return json!([{"access_level": pick("maintainer".into(), "no_access".into())}]);
        }
        ("protected_branches", "allowed_to_push" | "allowed_to_merge") => {
            return json!([{"access_level": pick("maintainer".into(), "no_access".into())}]);
        }
        ("protected_branches", "allowed_to_unprotect") => {
            return json!([{"access_level": pick("developer".into(), "admin".into())}]);
        }
        ("members" | "shares", "expires_at") => {
            return pick("2099-01-31".into(), "2098-12-31".into());
        }
        ("variables" | "pipeline_schedule_variables", "value") => {
            return pick("first-value".into(), json!({"env": "VALUE"}));
        }
        ("pipeline_schedules", "inputs") => {
            let value = pick(true.into(), json!(["a", "b"]));
            let other = pick("one".into(), "two".into());
            return json!([{"name": "kept", "value": value}, {"name": other}]);
        }
        ("archived", _) => return first.into(),
        _ => {}
    }
    let schema = &spec.schema;
    if let Some(options) = schema["enum"].as_array() {
        // Entries only edited have the first word.
        let at = usize::from(!first) + usize::from(kind.is_only_edited());
        return options
            .iter()
            .filter(|option| !option.is_null())
            .nth(at)
            .unwrap_or(&options[0])
            .clone();
    }
    let types = [&schema["type"], &schema["type"][0]];
    match types.iter().find_map(|t| t.as_str()) {
        Some("boolean") => first.into(),
        Some("integer") => pick(7.into(), 9.into()),
        Some("array") if spec.has_rows() => example(spec, usize::from(!first)),
        Some("array") => json!(if first { vec!["beta", "alpha"] } else { vec!["gamma"] }),
        Some("string") if is_described(kind) => example(spec, usize::from(!first)),
        Some("string") => pick("first text".into(), "second text".into()),
        other => panic!("no sample of {}.{}: {other:?}", kind.section, spec.name),
    }
}

/// An example of a text: from its schema, or the default of a new entry, or a word; for rows, a single
/// one.
fn example(spec: &FieldSpec, at: usize) -> Json {
    if spec.has_rows() {
        let level = ["maintainer", "developer"][at];
        return json!([{"access_level": level}]);
    }
    let usual = [&spec.field.default.create, &spec.field.default.service].into_iter().flatten();
    let examples = spec.schema["examples"].as_array().into_iter().flatten();
    let words = spec.schema["enum"].as_array().into_iter().flatten();
    let all: Vec<_> = examples.chain(usual).chain(words).cloned().collect();
    all.get(at).cloned().unwrap_or(["first text", "second text"][at].into())
}

/// An entry that can be created, without the field under test. `at` makes it unique, because the
/// service may share an object between all projects that have it.
pub(crate) fn base_entry(kind: Section, at: usize) -> Json {
    match kind.section {
        "variables" => json!({"key": "KEY", "value": "a-plain-value"}),
        "members" => json!({"user": "bob", "access_level": "guest"}),
        "hooks" => json!({"name": "ci", "url": "https://a.example.org/x"}),
        "push_rule" => json!({"member_check": true}),
        "shares" => json!({"group": "acme/security", "group_access": "guest"}),
        "protected_branches" => json!({"name": "main"}),
        "protected_tags" => json!({"name": "v*"}),
        "pipeline_schedules" => {
            json!({"description": "nightly", "ref": "main", "cron": "0 4 * * *"})
        }
        "approval_rules" => json!({"name": "Security", "approvals_required": 1}),
        "registry_protection_rules" => {
            json!({"repository_path_pattern": {"text": "{path}/*"}, "minimum_access_level_for_push": "owner"})
        }
        "remote_mirrors" => json!({"url": "https://user:hidden@a.example.org/x.git"}),
        INTEGRATIONS => kind.example_siblings(kind.identity[0]).into(),
        // For described kinds, the examples.
        _ => {
            // Of two fields that exclude each other, the first.
            let excludes =
                |one: &&str, other: &str| kind.field(one).relations.not_with == Some(other);
            let needed = kind.identity.iter().chain(kind.required_fields);
            let needed = needed.filter(|name| !kind.identity.iter().any(|one| excludes(one, name)));
            let example = |name: &&str| {
                let spec = kind.table().get(name).unwrap();
                let known = spec.schema["examples"].as_array().map_or(1, Vec::len);
                example(spec, at % known)
            };
            needed.map(|name| ((*name).to_owned(), example(name))).collect()
        }
    }
}

/// The fields depend on the entries.
const INTEGRATIONS: &str = "integrations";

/// True if it comes from a description file, or from one like it.
fn is_described(kind: Section) -> bool {
    let mut described = catalogue::registry().described_operations().iter();
    kind.section == INTEGRATIONS
        || described.any(|op| op.row().fields.is_some_and(|((_, name), _)| name == kind.section))
}

/// Every kind with a section in manifests, in every scope.
fn sections() -> impl Iterator<Item = Section> {
    catalogue::all_sections().filter(|section| section.shape != Shape::Container)
}

/// Fields of a kind in one scope that are tested in one group or project.
struct Case {
    section: Section,
    specs: Vec<&'static FieldSpec>,
    document: Json,
}

impl Case {
    fn name(&self, spec: &FieldSpec) -> String {
        format!("{:?}.{}", self.section, spec.name)
    }

    fn path(&self) -> &str {
        self.document["path"].as_str().unwrap()
    }

    /// True if `plan` has a step for the field.
    fn is_planned(&self, spec: &FieldSpec, plan: &Plan) -> bool {
        let mut steps = plan.steps.iter().filter(|step| &*step.address.path == self.path());
        // A step for a single-field section counts for that field.
        steps.any(|step| {
            self.specs.len() == 1 || step.changes.iter().any(|change| *change.field == *spec.name)
        })
    }
}

/// The sharing of containers by fields.
#[derive(Clone, Copy, PartialEq)]
enum Grouping {
    /// None.
    Alone,
    /// Fields without a relation to each other.
    Together,
}

/// True if a service of `release` has the field, and it is not tested elsewhere.
fn is_tested(section: Section, spec: &FieldSpec, release: Release) -> bool {
    let name = format!("{}.{}", section.section, spec.name);
    let of_group = section.scoped_kind.scope == Scope::Group;
    let is_apart = TESTED_APART.iter().any(|(apart, _)| *apart == name)
        && !(of_group && name == "settings.default_branch");
    let is_identity = section.identity.contains(&spec.name) && name != "hooks.url";
    !is_identity
        && !is_apart
        && spec
            .field
            .available
            .since
            .is_none_or(|since| !since.is_after_reference() || since <= release)
        && spec.field.available.until.is_none_or(|until| until > release)
}

/// The fields that a field is related to.
fn related_fields(field: &Field) -> impl Iterator<Item = &str> {
    let switches = [
        field.relations.switch_field(),
        field.relations.limits,
        field.relations.at_most,
        field.replacement_name(),
        field.relations.not_with,
        field.relations.reset_by,
        field.relations.hidden_by,
    ];
    switches.into_iter().flatten()
}

/// The fields that a change of this one may affect: itself, those that it names, and those that
/// name it.
fn affected_fields(section: Section, spec: &'static FieldSpec) -> BTreeSet<&'static str> {
    let specs = section.table().specs().iter();
    let naming = specs.filter(|other| related_fields(other.field).any(|name| name == spec.name));
    let naming = naming.map(|other| other.name);
    std::iter::once(spec.name).chain(related_fields(spec.field)).chain(naming).collect()
}

/// True if a field is related to something outside its entry.
fn is_special(section: Section, spec: &FieldSpec) -> bool {
    let field = &spec.field;
    let name = format!("{}.{}", section.section, spec.name);
    field.names.is_some()
        || field.relations.names_entries.is_some()
        || field.is_upload()
        || field.compare == Equality::Rows
        || field.secrecy() != Secrecy::Open
        || section.identity.contains(&spec.name)
        || TOP_LEVEL_FIELDS.contains(&spec.name)
        || SHOWN_AS_NULL.contains(&&*name)
        // With another address and a user, Jenkins needs the password again.
        || ["mirror", "visibility", "jenkins_url"].contains(&spec.name)
}

/// Fields of a section, with their positions in the table.
type Specs = Vec<(usize, &'static FieldSpec)>;

/// The fields of `section`, grouped by the container that tests them.
fn groups(section: Section, release: Release, tried: Grouping) -> Vec<Specs> {
    let specs = section.table().specs().iter().enumerate();
    let specs = specs.filter(|(_, spec)| is_tested(section, spec, release));
    let (alone, others): (Specs, Specs) =
        specs.partition(|(_, spec)| tried == Grouping::Alone || is_special(section, spec));
    let mut groups: Vec<(BTreeSet<&str>, Specs)> = Vec::new();
    for (at, spec) in others {
        let touched = affected_fields(section, spec);
        // Not every entry can have every field.
        let beside = |spec: &FieldSpec| section.example_siblings(spec.name);
        let fits = |specs: &Specs| beside(specs[0].1) == beside(spec);
        let mut known = groups.iter_mut();
        match known.find(|(known, specs)| known.is_disjoint(&touched) && fits(specs)) {
            Some((known, specs)) => {
                known.extend(touched);
                specs.push((at, spec));
            }
            None => groups.push((touched, vec![(at, spec)])),
        }
    }
    alone.into_iter().map(|spec| vec![spec]).chain(groups.into_iter().map(|(_, it)| it)).collect()
}

/// Fields that the service shows as null once they are off.
const SHOWN_AS_NULL: &[&str] =
    &["push_rule.commit_committer_check", "push_rule.reject_unsigned_commits"];

/// The groups and projects of a part, each named after its kind and first field.
fn cases(part: usize, form: Phase, release: Release, tried: Grouping) -> Vec<Case> {
    // `UNDRIFT_KIND` selects a single kind, for its developers.
    let only = std::env::var("UNDRIFT_KIND").ok();
    let chosen =
        sections().filter(|section| only.as_deref().is_none_or(|kind| kind == section.section));
    let groups = chosen.flat_map(|section| {
        groups(section, release, tried).into_iter().map(move |specs| (section, specs))
    });
    items_of_part(part, groups).filter_map(|(section, specs)| case(section, &specs, form)).collect()
}

/// A group or project for those of `specs` that have this form, each with its position in the
/// table.
fn case(section: Section, specs: &[(usize, &'static FieldSpec)], form: Phase) -> Option<Case> {
    let (at, first) = specs[0];
    let name = format!("{}.{}", section.section, first.name);
    let of_group = section.scoped_kind.scope == Scope::Group;
    let specs: Vec<_> = specs.iter().map(|(_, spec)| *spec).collect();
    let has_form = |spec: &&'static FieldSpec| form != Phase::Clear || spec.field.nullable;
    let specs: Vec<_> = specs.into_iter().filter(has_form).collect();
    if specs.is_empty() {
        return None;
    }
    let beside = section.example_siblings(first.name);
    let mut entry = if beside.is_empty() { base_entry(section, at) } else { beside.into() };
    for spec in &specs {
        entry[spec.name] = sample(section, spec, form);
        if let Some(switch) = spec.field.relations.sent_with
            && spec.name != "mirror"
        {
            entry[switch] = true.into();
        }
        let level = entry[spec.name].clone();
        let others = section.table().specs().iter();
        for narrower in others.filter(|s| s.field.relations.at_most == Some(spec.name)) {
            entry[&narrower.name] = level.clone();
        }
    }
    if entry["mirror"] == true {
        entry["import_url"] = json!({"env": "IMPORT_URL"});
    }
    let value = match section.shape {
        Shape::List => json!([entry]),
        Shape::Switch => entry[&first.name].clone(),
        Shape::Mapping | Shape::Container => entry,
    };
    let noun = section.scoped_kind.scope.noun();
    let is_top =
        of_group && (TOP_LEVEL_FIELDS.contains(&first.name) || section.is_only_top_level());
    let above = if is_top { "" } else { "acme/" };
    let path = format!("{above}{noun}-{}", name.replace(['.', '_'], "-"));
    let mut document = project(&path, json!({"create": true, section.section: value}));
    if let Some(parent) = section.scoped_kind.parent {
        let of = catalogue::find_section(section.scoped_kind.scope, parent.section).unwrap();
        document[parent.section] = json!([base_entry(of, 0)]);
    }
    // The service looks up the branch of a schedule.
    if document.get("pipeline_schedules").is_some() {
        document["create"] = json!({"initialize_with_readme": true});
    }
    document["kind"] = section.scoped_kind.scope.document_kind().into();
    // Only members may approve.
    if name == "approval_rules.users" {
        document["members"] = ["alice", "bob"]
            .map(|user| json!({"user": user, "access_level": "developer"}))
            .into_iter()
            .collect();
    }
    if name == "approval_rules.protected_branches" {
        document["protected_branches"] = json!([{"name": "main"}, {"name": "release/*"}]);
    }
    if name == "hooks.url" && form == Phase::Change {
        document["hooks"][0]["previously"] = json!(["https://a.example.org/x"]);
    }
    Some(Case { section, specs, document })
}

const LOGO: [u8; 8] = [0x89, b'P', b'N', b'G', 13, 10, 26, 10];

/// A service with what the samples name.
async fn prepared_world(profile: Profile) -> World {
    let mut seed = seed(&[]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/security"}));
    add_live_objects(&mut seed);
    let mut world = World::new(profile, seed).await;
    // With it the limit of job tokens cannot be switched off.
    let enforced = json!({"enforce_ci_inbound_job_token_scope_enabled": false});
    world.call("PUT", "/application/settings", Some(enforced)).await;
    world.set_variable("IMPORT_URL", "https://user:hidden@git.example.org/x.git");
    world.set_variable("HOOK_TOKEN", "hook-token-value");
    world.set_variable("WEBHOOK", "https://chat.example.org/hook");
    for name in ["API_KEY", "PASSWORD", "TOKEN", "USER_KEY"] {
        world.set_variable(name, "secret-of-an-integration");
    }
    world.set_variable("VALUE", "value-from-environment");
    world.tweak = |settings| settings.guard_limits.count = usize::MAX;
    world.acknowledged = vec!["protection:**", "visibility:**"];
    std::fs::write(world.root().join("logo.png"), LOGO).unwrap();
    world
}

async fn check_profile(part: usize, profile: Profile, name: &str, tried: Grouping) {
    let (release, drops_nulls) = (profile.release, profile.drop_null_keys);
    let world = prepared_world(profile).await;
    for form in [Phase::Create, Phase::Change, Phase::Clear] {
        let mut cases = cases(part, form, release, tried);
        // If nulls are dropped, the difference is invisible.
        cases.retain(|case| {
            let is_unseen = |name: String| SHOWN_AS_NULL.contains(&&*name);
            let name = |spec: &FieldSpec| format!("{}.{}", case.section.section, spec.name);
            !(drops_nulls && form == Phase::Change && is_unseen(name(case.specs[0])))
        });
        // A part or a single kind may be of a later release, and may have nothing to clear.
        if cases.is_empty() {
            continue;
        }
        world.declare(&cases.iter().map(|case| case.document.clone()).collect::<Vec<_>>());
        let plan = world.converge(&format!("{name}, {form:?}")).await;
        // Every visible field must be planned; otherwise nothing was tested.
        for (case, spec) in cases.iter().flat_map(|case| case.specs.iter().map(move |s| (case, s)))
        {
            let is_readable = spec.field.read != Readback::Never;
            let is_fixed = spec.schema["enum"].as_array().is_some_and(|options| options.len() < 2);
            // For a picture the service only shows that there is one.
            let unseen = spec.name == "avatar" && form == Phase::Change;
            // In later releases clearing it means `false`.
            let is_false = spec.name == "emails_disabled" && form == Phase::Clear;
            let is_unchanged = (is_false && release > REFERENCE)
                || matches!(spec.name, "repository_storage" | "mirror_user_id" | "rule_type")
                || is_fixed
                || unseen;
            let is_shown =
                case.section.section == INTEGRATIONS || spec.field.read != Readback::IfPresent;
            if form == Phase::Create || (is_readable && !is_unchanged && is_shown) {
                let name = format!("{name}, {form:?}: {}", case.name(spec));
                assert!(case.is_planned(spec, &plan), "{name} was not planned");
            }
        }
    }
    check_requests(&world);
}

/// Fields whose changes an export to watch cannot see although answers show them, with the reason.
const UNWATCHED: &[(&str, &str)] = &[
    ("Change Group.variables.value", SECRET_REASON),
    ("Change Project.remote_mirrors.enabled", SECRET_REASON),
    ("Change Project.remote_mirrors.keep_divergent_refs", SECRET_REASON),
    ("Change Project.remote_mirrors.only_protected_branches", SECRET_REASON),
    (
        "Change Project.settings.approvals_before_merge",
        "the service makes a rule of it, whose change is seen",
    ),
    ("Change Project.variables.value", SECRET_REASON),
    ("Create Project.settings.mirror_overwrites_diverged_branches", MIRROR_REASON),
    ("Create Project.settings.mirror_user_id", MIRROR_REASON),
    ("Create Project.settings.only_mirror_protected_branches", MIRROR_REASON),
];

const SECRET_REASON: &str = "an export leaves out what may be a secret";
const MIRROR_REASON: &str = "it is shown from the change of `mirror` on, which is seen";

/// Each field of each kind is changed after an `export --watch`; the next plan shows it.
#[tokio::test]
async fn every_manual_change_after_a_watch_export_is_detected() {
    let world = &mut prepared_world(Profile::default()).await;
    let how = |caller: &Caller| ExportSettings {
        includes_defaults: true,
        marks_watched: true,
        ..export_settings(SecretHandling::Plain)(caller)
    };
    let restore = |world: &World, documents: &[Json]| {
        std::fs::remove_dir_all(world.root()).unwrap();
        std::fs::create_dir(world.root()).unwrap();
        std::fs::write(world.root().join("logo.png"), LOGO).unwrap();
        world.declare(documents);
    };
    let token = world.sandbox.token().to_owned();
    let all = |form| -> Vec<Case> {
        (0..PARTS).flat_map(|part| cases(part, form, REFERENCE, Grouping::Together)).collect()
    };
    let documents =
        |cases: &[Case]| -> Vec<Json> { cases.iter().map(|case| case.document.clone()).collect() };
    let mut before = documents(&all(Phase::Create));
    for (document, case) in before.iter_mut().zip(all(Phase::Create)) {
        document.as_object_mut().unwrap().remove(case.section.section);
    }
    let mut unseen = BTreeSet::new();
    for form in [Phase::Create, Phase::Change] {
        let cases = all(form);
        restore(world, &before);
        world.converge(&format!("before {form:?}")).await;
        let (written, _) = world.export_as(&token, &["*"], how).await;
        before = documents(&cases);
        restore(world, &before);
        let changed = world.converge(&format!("{form:?}")).await;
        world.adopt(&written);
        let plan = world.plan().await;
        assert_eq!(plan.problems.len(), 0, "{:#?}", plan.problems);
        for (case, spec) in cases.iter().flat_map(|case| case.specs.iter().map(move |s| (case, s)))
        {
            let is_shown = spec.field.is_always_shown()
                && !spec.field.is_upload()
                && case.is_planned(spec, &changed);
            let mut steps = plan.watched.iter().filter(|step| &*step.address.path == case.path());
            let is_step = steps.any(|step| {
                step.address.section == Some(case.section.section)
                    && (step.action != Action::Update
                        || spec.field.replacement_name().is_some()
                        || step.changes.iter().any(|change| *change.field == *spec.name))
            });
            let is_note = plan
                .notes
                .iter()
                .any(|note| note.reason == Reason::Unlisted && &*note.address.path == case.path());
            if is_shown && !is_step && !is_note {
                unseen.insert(format!("{form:?} {}", case.name(spec)));
            }
        }
    }
    assert_eq!(unseen, UNWATCHED.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// Adds what no request creates: the runner of the examples, which another project owns, and an entry
/// for each field of kinds that are only edited.
fn add_live_objects(seed: &mut Json) {
    let projects = seed["projects"].as_array_mut().unwrap();
    projects.push(json!({"path": "acme/machines"}));
    for section in catalogue::sections(Scope::Project).filter(|section| section.is_only_edited()) {
        let (name, key) = (section.section, &base_entry(section, 0)[section.identity[0]]);
        let fields = section.specs().iter().map(|spec| spec.name);
        for field in fields.filter(|name| !section.identity.contains(name)) {
            let path = format!("acme/project-{name}-{field}").replace('_', "-");
            projects.push(json!({"path": path, (name): [key]}));
        }
    }
    seed["runners"] = json!([{"description": "builder", "projects": ["acme/machines"]}]);
}

/// Described objects are removed too, also if the service requires another step first.
#[tokio::test]
async fn described_objects_are_created_and_removed() {
    let mut seed = seed(&[json!({"path": "acme/shop"}), json!({"path": "acme/tools"})]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    add_live_objects(&mut seed);
    let mut world = World::new(Profile::default().with_release(NEWEST), seed).await;
    world.acknowledged = vec!["protection:**", "removals:**"];
    for is_absent in [false, true] {
        let document = |scope: Scope| {
            // Those below entries of another section are in `nested`.
            let is_plain = |of: &Section| {
                is_described(*of) && of.allows_unlisted() && of.scoped_kind.parent.is_none()
            };
            let described = catalogue::sections(scope).filter(is_plain);
            let entry = |section: Section| {
                let mut entry = base_entry(section, 0);
                if is_absent {
                    let entry = entry.as_object_mut().unwrap();
                    entry.retain(|name, _| section.identity.contains(&name.as_str()));
                    entry.insert("state".into(), "absent".into());
                }
                (section.section.to_owned(), json!([entry]))
            };
            described.map(entry).collect::<serde_json::Map<_, _>>()
        };
        let team = group("acme/team", document(Scope::Group).into());
        world.declare(&[project("acme/shop", document(Scope::Project).into()), team]);
        let plan = world.converge(&format!("absent: {is_absent}")).await;
        let all = document(Scope::Project).len() + document(Scope::Group).len();
        assert_eq!(plan.steps.len(), all);
    }
}

/// The service refuses a push mirror with two fields that exclude each other, whatever their
/// values, and a freeze period without a time zone.
#[tokio::test]
async fn fields_are_sent_together_or_apart_as_required() {
    for release in [REFERENCE, NEWEST] {
        let there = [json!({"path": "acme/shop"})];
        let mut world = World::new(Profile::default().with_release(release), seed(&there)).await;
        world.acknowledged = vec!["protection:**"];
        for (only, regex) in [(false, "^m"), (true, ""), (false, "^x"), (false, "")] {
            let mut mirror = json!({"url": "https://git.example.org/x.git", "enabled": true});
            if release == NEWEST {
                mirror["mirror_branch_regex"] = regex.into();
            }
            mirror["only_protected_branches"] = only.into();
            let freeze = json!({"freeze_start": "0 23 * * 5", "freeze_end": "0 8 * * 1"});
            let sections = json!({"remote_mirrors": [mirror], "freeze_periods": [freeze]});
            world.declare(&[project("acme/shop", sections)]);
            world.converge(&format!("{release} {only} {regex}")).await;
        }
        let response = world.get("/projects/acme%2Fshop/freeze_periods").await;
        assert_eq!(response[0]["cron_timezone"], "UTC");
    }
}

/// The plan reports refusals that depend on other objects.
#[tokio::test]
async fn rules_that_the_service_would_refuse_are_problems() {
    let mut seed = seed(&[json!({"path": "acme/shop"})]);
    let groups = seed["groups"].as_array_mut().unwrap();
    groups.extend([json!({"path": "acme/security"}), json!({"path": "team"})]);
    let world = World::new(Profile::default(), seed).await;
    let people = json!([{"user": "alice", "access_level": "maintainer"}]);
    let problems = async |sections: Json| {
        world.declare(&[project("acme/shop", sections)]);
        let plan = world.plan().await;
        plan.problems.iter().map(|p| format!("{} {}", p.address, p.code)).collect::<Vec<_>>()
    };
    let unprotect = json!([{"name": "main", "allowed_to_unprotect": [{"user": "alice"}]}]);
    let found = problems(json!({"members": people, "protected_branches": unprotect})).await;
    assert_eq!(found, ["acme/shop#protected_branches/main locked-out"]);
    // The token's user is in the first group through the group above, and not in the second.
    for (group, expected) in [
        ("acme/security", &[][..]),
        ("team", &["acme/shop#protected_branches/main locked-out"][..]),
    ] {
        let unprotect = json!([{"name": "main", "allowed_to_unprotect": [{"group": group}]}]);
        let shares = json!([{"group": group, "group_access": "developer"}]);
        assert_eq!(
            problems(json!({"shares": shares, "protected_branches": unprotect})).await,
            expected
        );
    }
    let rows = json!([{"group": "acme/security"}]);
    let rules = |level: &str| {
        json!({
            "shares": [{"group": "acme/security", "group_access": level}],
            "protected_branches": [{"name": "main", "allowed_to_push": rows}],
            "protected_tags": [{"name": "v*", "allowed_to_create": rows}],
        })
    };
    let without = || {
        let mut rules = rules("developer");
        rules.as_object_mut().unwrap().remove("shares");
        rules
    };
    // A declared share that is too low is a fault of `check`.
    let group = world.get("/groups/acme%2Fsecurity").await["id"].clone();
    let share = json!({"group_id": group, "group_access": 20});
    world.call("POST", "/projects/acme%2Fshop/share", Some(share)).await;
    let low =
        ["acme/shop#protected_branches/main low-share", "acme/shop#protected_tags/v* low-share"];
    let mut unlisted = without();
    unlisted["shares"] = json!([]);
    assert_eq!(problems(unlisted).await, low);
    assert_eq!(problems(rules("developer")).await, [] as [&str; 0]);
    // Equal to live state.
    world.converge("shared").await;
    assert_eq!(problems(without()).await, [] as [&str; 0]);
}

/// Every request only contains parameters that the page of operations lists.
fn check_requests(world: &World) {
    let is_known = |request: &str| {
        let (method, path) = request.split_once(' ').unwrap();
        let path = path.split('?').next().unwrap().trim_start_matches("/api/v4");
        let fits = |row: &Operation| {
            let pattern: Vec<_> = row.path.split('/').collect();
            let segments: Vec<_> = path.split('/').collect();
            row.method.as_str() == method
                && pattern.len() == segments.len()
                && pattern.iter().zip(segments).all(|(p, s)| p.starts_with(':') || *p == s)
        };
        let rows = operations::all_operations().map(AnyOp::row).filter(|row| fits(row));
        rows.into_iter().any(|row| reach(row) != Reach::Calling)
    };
    let by_test = |request: &str| request == "PUT /api/v4/application/settings";
    let sent = world.requests().into_iter().filter(|request| !by_test(request));
    let unknown: Vec<_> = sent.filter(|request| !is_known(request)).collect();
    assert_eq!(unknown, [] as [String; 0]);
}

/// The faithful service and one with all dialects, both of the reference's and of the later release, which
/// has settled some. All tests have halves of the dialects too, and each field alone in the faithful service
/// of the later release; `UNDRIFT_EXHAUSTIVE` tests each field alone in more of these.
fn profiles() -> Vec<(String, Profile, Grouping)> {
    let faithful = ("faithful".to_owned(), Profile::default());
    let mut halves = halves(&[switches(), hostile()].concat());
    if !crate::sample::plays_all() {
        halves.truncate(1);
    }
    let profiles: Vec<_> = std::iter::once(faithful).chain(halves).collect();
    let is_all = std::env::var_os("UNDRIFT_EXHAUSTIVE").is_some();
    let tried = |alone| if alone { Grouping::Alone } else { Grouping::Together };
    let later = |at: usize| {
        let (name, profile) = &profiles[at];
        let is_alone = is_all || (at == 0 && crate::sample::plays_all());
        (format!("{NEWEST}, {name}"), profile.clone().with_release(NEWEST), tried(is_alone))
    };
    let later = [later(0), later(1)];
    let named = profiles.iter().enumerate();
    let all = named
        .map(|(at, (name, profile))| (name.clone(), profile.clone(), tried(at == 0 && is_all)));
    let all = all.chain(later);
    if crate::sample::plays_all() {
        return all.collect();
    }
    // The dialects in the release of the reference, and the faithful later one.
    all.skip(1).take(2).collect()
}

in_parts!(every_field_of_every_kind_converges_in_every_form);

fn every_field_of_every_kind_converges_in_every_form(part: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, profile, tried) in profiles() {
        runtime.block_on(check_profile(part, profile, &name, tried));
    }
}

/// The later tested release has every field, and lacks removed ones.
#[test]
fn every_field_is_tried_in_some_release() {
    let specs = || sections().flat_map(|section| section.table().specs());
    assert!(specs().all(|spec| spec.field.available.since.is_none_or(|since| since <= NEWEST)));
    assert!(specs().any(|spec| spec.field.available.since > Some(REFERENCE)));
    assert!(specs().any(|spec| spec.field.available.until.is_some_and(|until| until <= NEWEST)));
}

#[test]
fn fields_that_responses_never_show_are_listed() {
    let specs =
        || sections().flat_map(|of| of.table().specs().iter().map(move |spec| (of.section, spec)));
    let never: BTreeSet<_> = specs()
        .filter(|(_, spec)| spec.field.read == Readback::Never)
        .map(|(section, spec)| format!("{section}.{}", spec.name))
        .collect();
    assert_eq!(never.iter().map(String::as_str).collect::<Vec<_>>(), NEVER_READ);
    assert!(specs().all(|(_, spec)| {
        spec.field.secrecy() != Secrecy::Reference || spec.field.read == Readback::Never
    }));
}

#[tokio::test]
async fn an_attribute_that_is_accepted_and_dropped_is_named() {
    let profile = Profile { drop_attribute: Some("merge_method".into()), ..Profile::default() };
    let world = World::new(profile, seed(&[json!({"path": "acme/shop"})])).await;
    world.declare(&[project(
        "acme/shop",
        json!({"settings": {"merge_method": "ff", "description": "kept"}}),
    )]);
    let applied = world.apply().await.applied.unwrap();
    assert!(!applied.is_complete());
    let mismatches: Vec<_> =
        applied.mismatches.iter().map(|u| (u.address.to_string(), u.fields.clone())).collect();
    assert_eq!(mismatches, [("acme/shop#settings".to_owned(), vec!["merge_method".to_owned()])]);
}

#[tokio::test]
async fn a_default_branch_is_set_with_the_readme() {
    let world = World::new(Profile::default(), seed(&[])).await;
    world.declare(&[project("acme/shop", json!({"create": {"initialize_with_readme": true}, "settings": {"default_branch": "trunk"}}))]);
    world.converge("default branch").await;
    assert_eq!(world.get("/projects/acme%2Fshop").await["default_branch"], "trunk");
}

#[tokio::test]
async fn archived_projects_are_skipped_unarchived_and_archived() {
    for release in [REFERENCE, NEWEST] {
        archived_projects(Profile::default().with_release(release)).await;
    }
}

async fn archived_projects(profile: Profile) {
    let archived =
        json!({"path": "acme/old", "archived": true, "settings": {"description": "old"}});
    let world = World::new(profile, seed(&[archived, json!({"path": "acme/neo"})])).await;
    let documents = |old: Json| {
        let new = project(
            "acme/neo",
            json!({"archived": true, "settings": {"description": "new"}, "variables": [{"key": "A", "value": "x"}], "labels": [{"name": "bug", "color": "#FF0000"}]}),
        );
        [project("acme/old", old), new]
    };
    world.declare(&documents(json!({"archived": true, "settings": {"description": "changed"}})));
    world.converge("archived stays archived").await;
    assert_eq!(world.get("/projects/acme%2Fold").await["description"], "old");
    assert_eq!(world.get("/projects/acme%2Fneo").await["archived"], true);
    world.declare(&documents(json!({
        "archived": false,
        "settings": {"description": "changed"},
        "variables": [{"key": "A", "value": "x"}],
        "labels": [{"name": "bug", "color": "#FF0000"}],
        "protected_branches": [{"name": "main"}],
    })));
    world.converge("opened").await;
    assert_eq!(world.get("/projects/acme%2Fold").await["description"], "changed");
}

#[tokio::test]
async fn a_default_branch_waits_until_the_repository_has_a_branch() {
    let empty_has_no_branch = Profile { empty_has_no_branch: true, ..Profile::default() };
    for profile in [Profile::default(), empty_has_no_branch] {
        let shown = if profile.empty_has_no_branch { Json::Null } else { json!("main") };
        let old = |path: &str| json!({"path": path, "settings": {"description": "old"}});
        let world = World::new(profile, seed(&[old("acme/empty"), old("acme/same")])).await;
        let with = |branch: &str, create: bool| json!({"create": create, "settings": {"default_branch": branch, "description": "new"}});
        world.declare(&[
            project("acme/empty", with("trunk", false)),
            project("acme/fresh", with("trunk", true)),
            project("acme/same", with("main", false)),
        ]);
        let waiting = |plan: &Plan| {
            plan.notes.iter().filter(|note| matches!(note.reason, Reason::Waits { .. })).count()
        };
        // The shown value matches and needs no note.
        let (all, same) = if shown.is_null() { (3, 1) } else { (2, 0) };
        let plan = world.converge("empty repositories").await;
        assert_eq!(waiting(&plan), all, "{:#?}", plan.notes);
        for path in ["acme%2Fempty", "acme%2Ffresh", "acme%2Fsame"] {
            let response = world.get(&format!("/projects/{path}")).await;
            let found = (&response["description"], &response["default_branch"]);
            assert_eq!(found, (&json!("new"), &shown), "{path}");
        }
        assert_eq!(waiting(&world.plan().await), all, "a note, and nothing to do");
        let repository = "/projects/acme%2Fempty/repository";
        for (rest, body) in [
            ("files/a.txt", json!({"branch": "main", "content": "x", "commit_message": "x"})),
            ("branches", json!({"branch": "trunk", "ref": "main"})),
        ] {
            world.call("POST", &format!("{repository}/{rest}"), Some(body)).await;
        }
        let plan = world.converge("the branch is there").await;
        assert_eq!((plan.steps.len(), waiting(&plan)), (1, 1 + same));
        assert_eq!(world.get("/projects/acme%2Fempty").await["default_branch"], "trunk");
    }
}
