use super::*;

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
