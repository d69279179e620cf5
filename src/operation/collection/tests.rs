use super::*;

/// A collection of badges.
pub(crate) fn badges(path: &str) -> Collection {
    Collection {
        below: SubPath::parse(path).unwrap(),
        section: "badges",
        noun: "odd badge",
        entry: entry("badge_id", "The badge."),
        parent: None,
        read: None,
        query: vec![query_parameter("own", Type::Boolean, "Whether own ones count.")],
        edit_parameters: Vec::new(),
        edit: Some(Method::Put),
        read_alone: true,
        is_document: false,
        is_put: false,
        only_edits: false,
        before_removal: None,
        is_unique: false,
        write_returns_entry: true,
        denies_with_401: false,
        unpaged: false,
        empty_as: None,
        entry_query: Vec::new(),
        tier: Tier::Premium,
        since: Some(Release::new(16, 2)),
    }
}

#[test]
fn a_collection_has_five_operations_and_reads_only_with_get() {
    let made = badges("/groups/:id/odd_badges").operations();
    let rows: Vec<_> = made.all().map(|op| (op.effect(), op.row())).collect();
    let shown: Vec<_> = rows
        .iter()
        .map(|(effect, row)| {
            format!("{effect} {} {} {}: {}", row.id, row.method, row.path, row.purpose)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "read group-odd-badge-list GET /groups/:id/odd_badges: list a group's odd badges",
            "read group-odd-badge-get GET /groups/:id/odd_badges/:badge_id: get a group's odd badge",
            "write group-odd-badge-create POST /groups/:id/odd_badges: create an odd badge of a group",
            "write group-odd-badge-edit PUT /groups/:id/odd_badges/:badge_id: edit a group's odd badge",
            "write group-odd-badge-delete DELETE /groups/:id/odd_badges/:badge_id: delete a group's odd badge",
        ]
    );
    assert_eq!(made.create.unwrap().row().again, Again::Second);
    assert!(made.create.unwrap().row().shows && !made.delete.unwrap().row().shows);
    assert!(rows.iter().all(|(_, row)| row.tier == Tier::Premium && row.since.is_some()));
    let only_added = Collection { edit: None, is_unique: true, ..badges("/projects/:id/x") };
    let made = only_added.operations();
    assert_eq!((made.all().count(), made.create.unwrap().row().again), (4, Again::Refused));
    assert_eq!(made.create.unwrap().row().id, "odd-badge-create");
}

#[test]
fn a_path_is_below_one_container() {
    for path in ["/projects/:id/badges", "/groups/:id/a/b_2", "/projects/:id/a/b/:entry/c/d"] {
        assert_eq!(SubPath::parse(path).map(|below| below.path()).as_deref(), Ok(path));
    }
    let below = SubPath::parse("/projects/:id/pipeline_schedules/:entry/variables").unwrap();
    assert_eq!(below.parent().as_deref(), Some("/projects/:id/pipeline_schedules"));
    let named = below.clone().of_entry("pipeline_schedule_id");
    assert_eq!(named.path(), "/projects/:id/pipeline_schedules/:pipeline_schedule_id/variables");
    assert!(!below.shares_ground_with(super::super::SCHEDULE_UPDATE.row()));
    let other = SubPath::parse("/projects/:id/pipeline_schedules/:entry/take_ownership").unwrap();
    assert!(other.shares_ground_with(super::super::SCHEDULE_TAKE.row()));
    for path in [
        "",
        "badges",
        "/user",
        "/projects",
        "/projects/:id",
        "/projects/:id/",
        "/projects/:idx/badges",
        "/projects/7/badges",
        "/projects/:id/badges/",
        "/projects/:id//badges",
        "/projects/:id/../../user",
        "/projects/:id/%2e%2e",
        "/projects/:id/badges?sudo=1",
        "/projects/:id/badges#x",
        "/projects/:id/badges/:other",
        "/projects/:id/:entry/badges",
        "/projects/:id/badges/:entry",
        "/projects/:id/a/:entry/b/:entry/c",
        "/projects/:id/badges/1",
        "/groups/:id/Badges",
        "https://h/projects/:id/badges",
    ] {
        assert!(SubPath::parse(path).is_err(), "{path}");
    }
    let below = SubPath::parse("/projects/:id/hooks/all").unwrap();
    assert!(below.shares_ground_with(super::super::HOOK_CREATE.row()));
    assert!(!below.shares_ground_with(super::super::GROUP_HOOK_CREATE.row()));
    assert!(!below.shares_ground_with(super::super::PROJECT_GET.row()));
}
