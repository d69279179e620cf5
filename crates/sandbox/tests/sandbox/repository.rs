//! Branches, tags and files of a repository, and what protects them.

use serde_json::{Value, json};

use super::client::{Row, World, leak};
use super::facts::{Fact, fact};

const NO: Value = Value::Null;
const CODE: &str = "/projects/acme%2Fcode";
const BRANCHES: &str = "/projects/acme%2Fcode/repository/branches";
const TAGS: &str = "/projects/acme%2Fcode/repository/tags";

/// A path below the repository of the project.
fn at(rest: &str) -> &'static str {
    leak(format!("{CODE}/repository/{rest}"))
}

fn by_dan(
    fact: &'static Fact,
    method: &'static str,
    path: &'static str,
    body: Value,
    status: u16,
    expected: Value,
) -> Row {
    (fact, "dan", method, path, body, status, expected)
}

fn says(text: &str) -> Value {
    json!({ "message": text })
}

/// A private project with a readme, and the users of the usual world.
async fn world() -> World {
    let world = World::usual().await;
    let acme_id = world.get("mia", "/groups/acme").await.body["id"].clone();
    let new = json!({"path": "code", "namespace_id": acme_id, "initialize_with_readme": true});
    assert_eq!(world.call("mia", "POST", "/projects", &new).await.status, 201);
    world
}

#[tokio::test]
async fn branches_are_created_from_a_ref_and_deleted() {
    let world = world().await;
    let new = |branch: &str, reference: &str| json!({"branch": branch, "ref": reference});
    let create = |body: Value, status, expected| {
        by_dan(fact("branch-create"), "POST", BRANCHES, body, status, expected)
    };
    world
        .check(vec![
            by_dan(
                fact("branches"),
                "GET",
                BRANCHES,
                NO,
                200,
                json!([{"name": "main", "default": true, "protected": true, "merged": false,
                    "commit": {"title": "Initial commit", "parent_ids": [], "author_name": "mia"}}]),
            ),
            create(new("next/one", "main"), 201, json!({"name": "next/one", "default": false, "can_push": true})),
            create(new("next/one", "main"), 400, says("Branch already exists")),
            create(new("other", "nowhere"), 400, says("Invalid reference name: nowhere")),
            create(new("a..b", "main"), 400, says("Branch name is invalid")),
            create(json!({"branch": "a"}), 400, json!({"error": "ref is missing"})),
            by_dan(fact("branches"), "GET", at("branches?search=^next"), NO, 200, json!([{"name": "next/one"}])),
            by_dan(fact("branches"), "GET", at("branches?search=in$"), NO, 200, json!([{"name": "main"}])),
            by_dan(fact("branches"), "GET", at("branches?regex=^n.xt/"), NO, 200, json!([{"name": "next/one"}])),
            by_dan(fact("branches"), "GET", at("branches?regex=("), NO, 400, NO),
            by_dan(fact("branches"), "GET", at("branches/next%2Fone"), NO, 200, json!({"name": "next/one"})),
            by_dan(fact("branch-delete"), "DELETE", at("branches/main"), NO, 405, says("Cannot remove HEAD branch")),
            by_dan(fact("branch-delete"), "DELETE", at("branches/next%2Fone"), NO, 204, NO),
            by_dan(
                fact("branch-delete"),
                "DELETE",
                at("branches/next%2Fone"),
                NO,
                404,
                says("404 Branch Not Found"),
            ),
            (fact("code-read"), "gus", "GET", BRANCHES, NO, 403, NO),
            (fact("code-read"), "rita", "GET", BRANCHES, NO, 200, NO),
            (fact("code-read"), "", "GET", "/projects/acme%2Fsite/repository/branches", NO, 200, json!([])),
        ])
        .await;
    let main = world.get("dan", at("branches/main")).await.body;
    let commit = main["commit"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(commit.len(), 40);
    world
        .check(vec![
            create(new("from-commit", &commit), 201, json!({"commit": {"id": commit}})),
            create(new("from-short", &commit[..8]), 201, json!({"commit": {"id": commit}})),
            create(new("too-short", &commit[..3]), 400, NO),
        ])
        .await;
}

#[tokio::test]
async fn protected_branches_and_tags_need_grants() {
    let world = world().await;
    let file = |branch: &str| json!({"branch": branch, "content": "x", "commit_message": "m"});
    let refused = says("You are not allowed to push into this branch");
    let branch = json!({"branch": "release/1", "ref": "main"});
    let protect = |name: &str| json!({"name": name, "push_access_level": 40});
    world
        .check(vec![
            by_dan(fact("branch-protected"), "POST", at("files/a"), file("main"), 400, refused),
            (fact("branch-protected"), "mia", "POST", at("files/a"), file("main"), 201, NO),
            (
                fact("branch-protected"),
                "mia",
                "POST",
                leak(format!("{CODE}/protected_branches")),
                protect("release/*"),
                201,
                NO,
            ),
            by_dan(fact("branch-protected"), "POST", BRANCHES, branch.clone(), 400, NO),
            (
                fact("branch-protected"),
                "mia",
                "POST",
                BRANCHES,
                branch,
                201,
                json!({"protected": true}),
            ),
            by_dan(
                fact("branch-protected"),
                "GET",
                at("branches/release%2F1"),
                NO,
                200,
                json!({"can_push": false}),
            ),
            (
                fact("branch-protected"),
                "mia",
                "POST",
                leak(format!("{CODE}/protected_branches")),
                json!({"name": "next/*", "push_access_level": 0, "merge_access_level": 30}),
                201,
                NO,
            ),
            by_dan(
                fact("branch-protected"),
                "POST",
                BRANCHES,
                json!({"branch": "next/1", "ref": "main"}),
                201,
                json!({"can_push": false}),
            ),
            by_dan(fact("branch-protected"), "POST", at("files/b"), file("next/1"), 400, NO),
            by_dan(fact("branch-protected"), "DELETE", at("branches/release%2F1"), NO, 400, NO),
            (fact("branch-protected"), "mia", "DELETE", at("branches/release%2F1"), NO, 204, NO),
        ])
        .await;
}

#[tokio::test]
async fn tags_are_created_read_and_removed() {
    let world = world().await;
    let new = |name: &str| json!({"tag_name": name, "ref": "main"});
    let create =
        |fact, body: Value, status, expected| by_dan(fact, "POST", TAGS, body, status, expected);
    let noted = json!({"tag_name": "v2", "ref": "v1", "message": "second"});
    world
        .check(vec![
            create(
                fact("tags"),
                new("v1"),
                201,
                json!({"name": "v1", "message": "", "protected": false, "release": null,
                    "commit": {"title": "Initial commit"}}),
            ),
            create(fact("tags"), noted, 201, json!({"message": "second"})),
            create(fact("tag-refused"), new("v1"), 400, says("Tag v1 already exists")),
            create(fact("tag-refused"), new("v 1"), 400, says("Tag name invalid")),
            create(
                fact("tag-refused"),
                json!({"tag_name": "v3", "ref": "x"}),
                400,
                says("Target x is invalid"),
            ),
            by_dan(fact("tags"), "GET", TAGS, NO, 200, json!([{"name": "v2"}, {"name": "v1"}])),
            by_dan(fact("tags"), "GET", at("tags/v2"), NO, 200, json!({"name": "v2"})),
            by_dan(fact("tags"), "GET", at("tags/v9"), NO, 404, says("404 Tag Not Found")),
            by_dan(fact("tags"), "DELETE", at("tags/v2"), NO, 204, NO),
            (
                fact("tag-protected"),
                "mia",
                "POST",
                leak(format!("{CODE}/protected_tags")),
                json!({"name": "v*"}),
                201,
                NO,
            ),
            create(
                fact("tag-protected"),
                new("v3"),
                400,
                says("You are not allowed to create this tag as it is protected."),
            ),
            (
                fact("tag-protected"),
                "mia",
                "POST",
                TAGS,
                new("v3"),
                201,
                json!({"protected": true}),
            ),
            by_dan(fact("tag-protected"), "DELETE", at("tags/v1"), NO, 400, NO),
            (fact("tag-protected"), "mia", "DELETE", at("tags/v1"), NO, 204, NO),
        ])
        .await;
}

#[tokio::test]
async fn files_are_created_changed_and_removed_by_commits() {
    let world = world().await;
    world.call("dan", "POST", BRANCHES, &json!({"branch": "work", "ref": "main"})).await;
    let file = |content: &str| json!({"branch": "work", "content": content, "commit_message": "m"});
    let encoded =
        json!({"branch": "work", "content": "aGk=", "encoding": "base64", "commit_message": "m"});
    let answer = json!({"file_path": "dir/a.txt", "branch": "work"});
    let row = |fact, method, path: &str, body, status, expected| {
        by_dan(fact, method, at(path), body, status, expected)
    };
    let invalid = json!({"error": "file_path should be a valid file path"});
    let no_branch = says("You can only create or edit files when you are on a branch");
    let elsewhere = json!({"branch": "none", "content": "", "commit_message": "m"});
    let start = fact("repository-file-start");
    let from = |start: &str, branch: &str| {
        json!({"branch": branch, "start_branch": start, "content": "x", "commit_message": "m",
            "author_name": "Ann", "author_email": "ann@example.org"})
    };
    world
        .check(vec![
            row(fact("repository-readme"),
                "GET",
                "files/README.md?ref=HEAD",
                NO,
                200,
                json!({"content": "IyBjb2RlCg==", "ref": "main"}),
            ),
            row(fact("repository-file-change"), "POST", "files/dir%2Fa.txt", encoded, 201, answer.clone()),
            row(fact("repository-file-refused"),
                "POST",
                "files/dir%2Fa.txt",
                file("x"),
                400,
                says("A file with this name already exists"),
            ),
            row(fact("repository-file-read"),
                "GET",
                "files/dir%2Fa.txt?ref=work",
                NO,
                200,
                json!({"file_name": "a.txt", "file_path": "dir/a.txt", "size": 2, "encoding": "base64", "content": "aGk=",
                    "content_sha256": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
                    "execute_filemode": false}),
            ),
            row(
                fact("repository-tree"),
                "GET",
                "tree?ref=work",
                NO,
                200,
                json!([{"path": "dir", "type": "tree", "mode": "040000"}, {"path": "README.md", "mode": "100644"}]),
            ),
            row(
                fact("repository-tree"),
                "GET",
                "tree?ref=work&path=dir",
                NO,
                200,
                json!([{"path": "dir/a.txt", "name": "a.txt", "type": "blob"}]),
            ),
            row(
                fact("repository-tree"),
                "GET",
                "tree?ref=work&path=none",
                NO,
                404,
                says("404 Tree Not Found"),
            ),
            row(
                fact("repository-tree"),
                "GET",
                "tree?ref=work&recursive=true&per_page=2&page=2",
                NO,
                200,
                json!([{"path": "dir/a.txt"}]),
            ),
            row(fact("repository-file-read"), "GET", "files/dir%2Fa.txt?ref=main", NO, 404, says("404 File Not Found")),
            row(fact("repository-file-read"), "GET", "files/dir%2Fa.txt?ref=none", NO, 404, says("404 Commit Not Found")),
            row(fact("repository-file-read"), "GET", "files/dir%2Fa.txt", NO, 400, json!({"error": "ref is missing"})),
            row(fact("repository-file-read"), "GET", "files/..%2Fa?ref=work", NO, 400, invalid.clone()),
            row(fact("repository-file-change"), "POST", "files/%2Fetc", file("x"), 400, invalid),
            row(fact("repository-file-change"), "POST", "files/b", elsewhere, 400, no_branch),
            row(fact("repository-file-change"), "PUT", "files/dir%2Fa.txt", file("new"), 200, answer),
            row(fact("repository-file-change"),
                "PUT",
                "files/dir%2Fa.txt",
                json!({"branch": "work", "content": "x", "commit_message": "m", "last_commit_id": "0".repeat(40)}),
                400,
                NO,
            ),
            row(fact("repository-file-refused"),
                "PUT",
                "files/none",
                file("x"),
                400,
                says("A file with this name doesn't exist"),
            ),
            row(fact("repository-file-change"),
                "DELETE",
                "files/dir%2Fa.txt?branch=work&commit_message=m",
                NO,
                204,
                NO,
            ),
            row(fact("repository-file-change"), "GET", "files/dir%2Fa.txt?ref=work", NO, 404, NO),
            row(start, "POST", "files/s", from("main", "next"), 201, json!({"file_path": "s", "branch": "next"})),
            row(start, "GET", "branches/next", NO, 200, json!({"commit": {"author_name": "Ann", "author_email": "ann@example.org"}})),
            row(start, "GET", "files/s?ref=main", NO, 404, NO),
            row(start, "GET", "files/README.md?ref=next", NO, 200, NO),
            row(start, "PUT", "files/s", from("next", "next"), 200, NO),
            row(start, "PUT", "files/s", from("main", "next"), 400,
                says("A branch called 'next' already exists. Switch to that branch in order to make changes")),
            row(start, "POST", "files/s", from("nowhere", "other"), 400,
                says("You can only create or edit files when you are on a branch")),
            row(start, "POST", "files/s", from("main", "a..b"), 400,
                says("Something went wrong when we tried to create 'a..b' for you: Branch name is invalid")),
            row(start, "POST", "files/README.md", from("main", "taken"), 400, says("A file with this name already exists")),
            row(start, "GET", "branches/taken", NO, 404, NO),
        ])
        .await;
    let head = world.call("dan", "HEAD", at("files/README.md?ref=main"), &NO).await;
    let headers = ["x-gitlab-size", "x-gitlab-file-path", "x-gitlab-ref"];
    assert_eq!(headers.map(|name| head.header(name)), ["7", "README.md", "main"]);
}

#[tokio::test]
async fn invalid_base64_is_cut_off_and_content_is_returned_unchanged() {
    let world = world().await;
    for (sent, kept_as) in [
        ("aGk=", "aGk="),
        ("aGk", "aGk="),
        ("aG k\n", "aGk="),
        ("content", "content="),
        ("%%%", ""),
        ("aGkx=aGkx", "aGkx"),
        ("aGkxa", "aGkx"),
    ] {
        let body =
            json!({"branch": "main", "encoding": "base64", "content": sent, "commit_message": "m"});
        let (rule, file) = (fact("repository-file-base64"), at("files/b"));
        assert_eq!(world.call("mia", "POST", file, &body).await.status, 201, "{rule}: {sent}");
        let got = world.get("mia", at("files/b?ref=main")).await;
        // An incomplete end is ignored.
        let got = got.body["content"].as_str().expect("text").to_owned();
        let digits = |text: &str| text.trim_end_matches('=').len();
        assert_eq!(digits(&got), digits(kept_as), "{rule}: {sent} {got}");
        let gone = json!({"branch": "main", "commit_message": "m"});
        assert_eq!(world.call("mia", "DELETE", file, &gone).await.status, 204);
    }
    let text = json!({"branch": "main", "content": "{\"a\": 1}", "commit_message": "m"});
    assert_eq!(world.call("mia", "POST", at("files/j"), &text).await.status, 201);
    let rule = fact("repository-file-raw");
    for end in ["", "?ref=main", "?ref=HEAD"] {
        let reply = world.get("dan", at(&format!("files/j/raw{end}"))).await;
        assert_eq!((reply.status, reply.body["a"].clone()), (200, json!(1)), "{rule}");
    }
    let none = world.get("dan", at("files/none/raw")).await;
    assert_eq!((none.status, none.body), (404, says("404 File Not Found")), "{rule}");
}

#[tokio::test]
async fn branches_are_protected_in_the_old_way_too() {
    let world = world().await;
    let rule = fact("branch-protect");
    let levels = |push: i64, merge: i64| json!({"push_access_levels": [{"access_level": push}], "merge_access_levels": [{"access_level": merge}]});
    let by_mia =
        |method, path, body, status, expected| (rule, "mia", method, path, body, status, expected);
    let protection = leak(format!("{CODE}/protected_branches/next%2Fone"));
    let (on, off) = (at("branches/next%2Fone/protect"), at("branches/next%2Fone/unprotect"));
    world
        .check(vec![
            by_mia("POST", BRANCHES, json!({"branch": "next/one", "ref": "main"}), 201, NO),
            by_mia("PUT", on, NO, 200, json!({"protected": true, "developers_can_push": false})),
            by_mia("GET", protection, NO, 200, levels(40, 40)),
            by_mia(
                "PUT",
                on,
                json!({"developers_can_merge": true}),
                200,
                json!({"developers_can_merge": true}),
            ),
            by_mia("GET", protection, NO, 200, levels(40, 30)),
            by_mia(
                "PUT",
                on,
                json!({"developers_can_push": true, "developers_can_merge": false}),
                200,
                NO,
            ),
            by_mia("GET", protection, NO, 200, levels(30, 40)),
            by_mia("PUT", off, NO, 200, json!({"protected": false})),
            by_mia("PUT", off, NO, 200, json!({"protected": false})),
            by_mia("GET", protection, NO, 404, NO),
            by_mia("PUT", at("branches/none/protect"), NO, 404, says("404 Branch Not Found")),
            (rule, "dan", "PUT", on, NO, 403, NO),
        ])
        .await;
}

#[tokio::test]
async fn tags_are_listed_in_the_order_that_is_asked_for() {
    let world = world().await;
    for (name, content) in [("v2", "a"), ("v1", "b"), ("v3", "c")] {
        let body = json!({"branch": "work", "start_branch": "main", "content": content, "commit_message": "m"});
        let first = json!({"branch": "work", "content": content, "commit_message": "m"});
        let body = if name == "v2" { body } else { first };
        let file = at(&format!("files/{name}"));
        assert_eq!(world.call("dan", "POST", file, &body).await.status, 201);
        let tag = json!({"tag_name": name, "ref": "work"});
        assert_eq!(world.call("dan", "POST", TAGS, &tag).await.status, 201);
    }
    let rule = fact("tag-order");
    for (query, expected) in [
        ("", ["v3", "v1", "v2"]),
        ("?sort=asc", ["v2", "v1", "v3"]),
        ("?order_by=name", ["v3", "v2", "v1"]),
        ("?order_by=name&sort=asc", ["v1", "v2", "v3"]),
    ] {
        let answer = world.get("dan", &format!("{TAGS}{query}")).await.body;
        let names: Vec<_> =
            answer.as_array().expect("a list").iter().map(|tag| &tag["name"]).collect();
        assert_eq!(names, expected, "{rule}: {query}");
    }
    let reply = world.get("dan", &format!("{TAGS}?order_by=size")).await;
    assert_eq!(reply.status, 400, "{rule}");
}

#[tokio::test]
async fn an_import_from_here_and_a_template_bring_their_files() {
    let world = world().await;
    let rule = fact("project-import-contents");
    let mut sources = Vec::new();
    for (path, visibility) in [("open", "public"), ("closed", "private")] {
        let new = json!({"path": path, "visibility": visibility});
        let answer = world.call("dan", "POST", "/projects", &new).await.body;
        let file = json!({"branch": "trunk", "commit_message": "m", "content": "x"});
        let files = leak(format!("/projects/{}/repository/files/a.txt", answer["id"]));
        assert_eq!(world.call("dan", "POST", files, &file).await.status, 201, "{rule}");
        sources.push(answer);
    }
    let elsewhere = json!("https://x.example/dan/open.git");
    for (path, body, has_file) in [
        ("a", json!({"import_url": sources[0]["http_url_to_repo"]}), true),
        ("b", json!({"import_url": sources[1]["http_url_to_repo"]}), false),
        ("c", json!({"import_url": elsewhere}), false),
        ("d", json!({"template_project_id": sources[1]["id"], "use_custom_template": true}), true),
    ] {
        let mut new = body;
        new["path"] = path.into();
        let reply = world.call("dan", "POST", "/projects", &new).await;
        assert_eq!(reply.status, 201, "{rule}: {}", reply.body);
        let branch = if has_file { "trunk" } else { "main" };
        assert_eq!(reply.body["default_branch"], branch, "{rule}: {path}");
        let file = format!("/projects/{}/repository/files/a.txt?ref={branch}", reply.body["id"]);
        let status = world.get("dan", &file).await.status;
        assert_eq!(status, if has_file { 200 } else { 404 }, "{rule}: {path}");
    }
}

#[tokio::test]
async fn a_fork_has_what_its_upstream_has() {
    let world = world().await;
    let forked = world.call("dan", "POST", "/projects/acme%2Fcode/fork", &NO).await;
    assert_eq!(forked.status, 201, "{}", forked.body);
    let file = world.get("dan", "/projects/dan%2Fcode/repository/files/README.md?ref=main").await;
    assert_eq!(
        (file.status, &file.body["size"]),
        (200, &json!(7)),
        "{}",
        fact("repository-readme")
    );
}

#[tokio::test]
async fn clients_poll_the_status_of_an_import() {
    let world = world().await;
    let waiting = json!({"path": "brought", "import_url": "https://git.example/a.git"});
    world
        .check(vec![
            by_dan(
                fact("project-import-status"),
                "GET",
                leak(format!("{CODE}/import")),
                NO,
                200,
                json!({"import_status": "none", "import_type": null, "failed_relations": [], "path": "code"}),
            ),
            by_dan(fact("project-import-status"), "POST", "/projects", waiting, 201, NO),
            by_dan(
                fact("project-import-status"),
                "GET",
                "/projects/dan%2Fbrought/import",
                NO,
                200,
                json!({"import_type": "git", "import_error": null}),
            ),
            by_dan(
                fact("project-statistics"),
                "GET",
                leak(format!("{CODE}/statistics")),
                NO,
                200,
                json!({"fetches": {"total": 0, "days": []}}),
            ),
            (fact("project-statistics"), "rita", "GET", leak(format!("{CODE}/statistics")), NO, 403, NO),
        ])
        .await;
}
