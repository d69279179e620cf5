//! Holds: changes made by hand in an emergency are kept until a day.
#![cfg(feature = "sandbox")]

use jiff::{Span, Timestamp, tz::TimeZone};

use crate::harness::Workspace;

const SEED: &str = "users: [{username: alice}, {username: bob}]
groups: [{path: acme}]
projects: [{path: acme/shop, settings: {description: old}, members: [{user: bob, access_level: maintainer}]}]
";
const SHOP: &str = "kind: Project
path: acme/shop
members: [{user: alice, access_level: developer}]
unlisted: {members: delete}
";

/// The day `days` from now. The exact day does not matter, because a hold may end on any of
/// the next days.
fn day_from_now(days: i32) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    today.saturating_add(Span::new().days(days)).to_string()
}

fn exit_code(text: &str) -> &str {
    text.trim_end().rsplit(' ').next().unwrap()
}

#[test]
fn held_differences_are_shown_and_kept_until_the_last_day() {
    let until = day_from_now(3);
    let place = Workspace::new()
        .file("sandbox.yaml", SEED)
        .file("a.yaml", &(SHOP.to_owned() + "settings: {description: new}\n"))
        .env("UNDRIFT_HOLD", &format!("acme/shop#members@{until}"));
    let story = [
        "plan --sandbox",
        "apply --sandbox --yes",
        "drift --sandbox",
        "drift --sandbox --strict",
        "explain acme/shop#members/alice --sandbox",
    ];
    let story = story.map(|arguments| place.run(arguments).replace(&until, "[DAY]"));
    insta::assert_snapshot!(story.join("\n"));
    let json = place.run("drift --sandbox --out json=-");
    assert!(json.contains(&format!("\"until\": \"{until}\"")), "{json}");
    // After the hold, everything is as before.
    let place = place.env("UNDRIFT_HOLD", &format!("acme/shop#members@{}", day_from_now(-3)));
    let over = place.run("drift --sandbox");
    assert!(over.contains("warning[hold]") && over.contains("has expired"), "{over}");
    assert_eq!(exit_code(&over), "2");
}

#[test]
fn an_invalid_hold_is_refused_and_one_without_a_match_is_not() {
    let soon = day_from_now(2);
    for (hold, code, said) in [
        ("acme/shop#members".to_owned(), "3", "UNDRIFT_HOLD: `acme/shop#members` has no end"),
        (format!("acme/shop@{}", day_from_now(30)), "3", "is too long"),
        (format!("acme/shop@{soon}, acme/shop"), "3", "has no end"),
        (format!("acme/shop@{soon}\nother/*@{soon}"), "0", "matches no declared or live object"),
        (format!("**#members@{soon}"), "0", "2 differences"),
    ] {
        let place = Workspace::new()
            .file("sandbox.yaml", SEED)
            .file("a.yaml", SHOP)
            .env("UNDRIFT_HOLD", &hold);
        let text = place.run("drift --sandbox");
        assert!(text.contains(said), "{hold}: {text}");
        assert_eq!(exit_code(&text), code, "{hold}: {text}");
    }
    // Holds come from the environment only.
    let place = Workspace::new().file("a.yaml", &(SHOP.to_owned() + "hold: 2027-01-10\n"));
    assert_eq!(exit_code(&place.run("check")), "3");
}

#[test]
fn containers_that_depend_on_a_hold_are_left_out() {
    let place = Workspace::new()
        .file("a.yaml", "kind: Group\npath: acme\ncreate: true\n")
        .file("b.yaml", "kind: Project\npath: acme/shop\ncreate: true\n")
        .env("UNDRIFT_HOLD", &format!("acme@{}", day_from_now(1)));
    let text = place.run("apply --sandbox --yes");
    assert!(text.contains("error[missing-namespace]"), "{text}");
    assert!(text.contains("held, not written:\n\nacme\n"), "{text}");
    assert_eq!(exit_code(&text), "3");
}

/// Holds, exclusions and acknowledgements name a renamed entry by its old name or by its new one.
#[test]
fn a_renamed_entry_matches_by_its_old_and_its_new_name() {
    const SERVICE: &str = "tier: premium
users: [{username: alice}]
projects: [{path: acme/shop, members: [{user: alice, access_level: developer}]}]
";
    let manifest =
        |rule: &str| format!("kind: Project\npath: acme/shop\napproval_rules: [{rule}]\n");
    let seeded = manifest("{name: old, approvals_required: 2, users: [alice]}");
    let renamed = manifest("{name: new, previously: [old], approvals_required: 1, users: [alice]}");
    let until = day_from_now(2);
    for (name, counts) in [("old", true), ("new", true), ("other", false)] {
        let address = format!("acme/shop#approval_rules/{name}");
        let place = Workspace::new().file("sandbox.yaml", SERVICE).file("a.yaml", &seeded);
        assert_eq!(place.exit_code("apply --sandbox=s.db --yes"), 0);
        let place = place.file("a.yaml", &renamed);
        assert_eq!(place.exit_code("apply --sandbox=s.db --yes"), 4, "{name}");
        let is_hidden = |text: &str| text.contains("no changes");
        let excluded = place.run(&format!("plan --sandbox=s.db --exclude {address}"));
        assert_eq!(is_hidden(&excluded), counts, "{name}: {excluded}");
        let document = format!(
            "kind: Acknowledge\nguard: protection\nat: {address}\nuntil: 2099-01-31\nreason: INC-1\n"
        );
        let acknowledged = place.run(&format!("plan --sandbox=s.db --ack protection:{address}"));
        assert_eq!(!acknowledged.contains("error[guard]"), counts, "{name}: {acknowledged}");
        let place = place.env("UNDRIFT_HOLD", &format!("{address}@{until}"));
        let held = place.run("plan --sandbox=s.db");
        assert_eq!(!held.contains("error[guard]"), counts, "{name}: {held}");
        let place = place.env("UNDRIFT_HOLD", "").file("ack.yaml", &document);
        assert_eq!(place.exit_code("apply --sandbox=s.db --yes"), if counts { 0 } else { 4 });
    }
}
