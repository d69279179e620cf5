use super::*;

#[test]
fn a_path_is_below_one_container() {
    for (path, collection, argument) in [
        ("/projects/:id/badges/:badge_id", "/projects/:id/badges", Some("badge_id")),
        ("/projects/:id/badges", "/projects/:id/badges", None),
        ("/groups/:id/a/b_2", "/groups/:id/a/b_2", None),
        ("/projects/:id/a/b/:one/c/d", "/projects/:id/a/b/:one/c/d", None),
        ("/projects/:id/a/:one/b/:two", "/projects/:id/a/:one/b", Some("two")),
    ] {
        let path = EntryPath::parse(path).unwrap();
        assert_eq!((&*path.collection_path(), path.argument), (collection, argument));
    }
    let path = "/projects/:id/pipeline_schedules/:pipeline_schedule_id/variables/:key";
    let path = EntryPath::parse(path).unwrap();
    let parent = ("/projects/:id/pipeline_schedules".to_owned(), "pipeline_schedule_id");
    assert_eq!(path.parent_path(), Some(parent));
    assert!(!path.starts_with_same_segment_as(super::super::SCHEDULE_UPDATE.row()));
    let other = EntryPath::parse("/projects/:id/pipeline_schedules/:one/take_ownership").unwrap();
    assert!(other.starts_with_same_segment_as(super::super::SCHEDULE_TAKE.row()));
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
        "/projects/:id/badges?sudo",
        "/projects/:id/badges?a=1&a=:b",
        "/projects/:id/badges?sudo=",
        "/projects/:id/badges?/../user=1",
        "/projects/:id/badges#x",
        "/projects/:id/:entry",
        "/projects/:id/:entry/badges",
        "/projects/:id/badges/:",
        "/projects/:id/a/:one/:two",
        "/projects/:id/a/:one/b/:two/c",
        "/projects/:id/badges/1",
        "/groups/:id/Badges",
        "https://h/projects/:id/badges",
    ] {
        assert!(EntryPath::parse(path).is_err(), "{path}");
    }
    let hooks = EntryPath::parse("/projects/:id/hooks/all").unwrap();
    assert!(hooks.starts_with_same_segment_as(super::super::HOOK_CREATE.row()));
    assert!(!hooks.starts_with_same_segment_as(super::super::GROUP_HOOK_CREATE.row()));
    assert!(!hooks.starts_with_same_segment_as(super::super::PROJECT_GET.row()));
}

/// A query parameter with a field addresses an entry. A query parameter with a value belongs to the
/// list request.
#[test]
fn a_query_addresses_entries_or_lists_them() {
    let path =
        EntryPath::parse("/groups/:id/links?name=:cn&filter[scope]=:scope&deep=false").unwrap();
    assert_eq!(path.collection_path(), "/groups/:id/links");
    assert_eq!(path.address_query, [("name", "cn"), ("filter[scope]", "scope")]);
    assert_eq!(path.list_query, [("deep", "false")]);
}
