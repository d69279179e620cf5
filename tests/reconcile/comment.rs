//! The one comment of a merge request: written once and then edited, also if answers are lost.

use serde_json::{Value as Json, json};
use undrift::{
    api::WriteClient,
    comment::{self, Comment, CommentError, CommentOutcome, MergeRequestRef},
    desired::Desired,
    report::marker::Marker,
    sandbox::{FaultEffect, InjectedFault, Profile},
};

use crate::world::World;

const NOTES: &str = "/projects/acme%2Fshop/merge_requests/1/notes";

/// Users without membership, merge requests on which everybody may comment, and `notes`.
async fn world(profile: Profile, notes: &[Json]) -> World {
    let user = |name: &str| json!({"username": name, "token": name});
    let seed = json!({
        "users": [user("ci"), user("eve")],
        "groups": [{"path": "acme", "visibility": "public"}],
        "projects": [{"path": "acme/shop", "settings": {"visibility": "public"}, "merge_requests": [
            {"title": "Change", "notes": notes},
            {"title": "Locked", "discussion_locked": true, "state": "merged"},
        ]}],
    });
    World::new(profile, seed).await
}

fn marker() -> Marker {
    "plan".parse::<Marker>().unwrap()
}

fn body(text: &str) -> String {
    format!("{}\n{text}\n", marker())
}

fn request_ref(merge_request: u64) -> MergeRequestRef {
    MergeRequestRef { project: "acme/shop".to_owned(), merge_request }
}

async fn post_comment(
    world: &World,
    place: &MergeRequestRef,
    text: &str,
) -> Result<Comment, CommentError> {
    let (observer, _) = world.connect_as("ci", &Desired::default()).await.unwrap();
    let client = WriteClient::new(observer.client().clone());
    comment::put_comment(&client, observer.caller().id, place, &marker(), &body(text)).await
}

/// The notes of the first merge request as administrators see them, oldest first.
async fn notes(world: &World) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for page in 1.. {
        let response = world.get(&format!("{NOTES}?sort=asc&per_page=100&page={page}")).await;
        let rows = response.as_array().unwrap();
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        all.extend(rows.iter().map(|row| (text(&row["author"]["username"]), text(&row["body"]))));
        if rows.len() < 100 {
            break;
        }
    }
    all
}

fn note(author: &str, body: &str) -> Json {
    json!({"author": author, "body": body})
}

#[tokio::test]
async fn the_comment_is_created_once_and_then_edited() {
    let world = world(Profile::default(), &[note("eve", "a question")]).await;
    let first = post_comment(&world, &request_ref(1), "one").await.unwrap();
    assert_eq!((first.outcome, &first.duplicate_ids[..]), (CommentOutcome::Written, &[][..]));
    let same = post_comment(&world, &request_ref(1), "one").await.unwrap();
    assert_eq!((same.outcome, same.note_id), (CommentOutcome::Unchanged, first.note_id));
    let edited = post_comment(&world, &request_ref(1), "two").await.unwrap();
    assert_eq!((edited.outcome, edited.note_id), (CommentOutcome::Edited, first.note_id));
    let one = format!("/api/v4{NOTES}/{}", first.note_id);
    assert_eq!(world.writes(), [format!("POST /api/v4{NOTES}"), format!("PUT {one}")]);
    // Somebody edits the comment: it is overwritten.
    let path = format!("{NOTES}/{}", first.note_id);
    let by_hand = json!({"body": format!("{} edited by hand", body("two"))});
    world.call("PUT", &path, Some(by_hand)).await;
    assert_eq!(
        post_comment(&world, &request_ref(1), "two").await.unwrap().outcome,
        CommentOutcome::Edited
    );
    // Somebody removes the marker: then it no longer counts as the report.
    world.call("PUT", &path, Some(json!({"body": "mine"}))).await;
    assert_eq!(
        post_comment(&world, &request_ref(1), "two").await.unwrap().outcome,
        CommentOutcome::Written
    );
    let expected =
        [("eve", "a question".to_owned()), ("ci", "mine".to_owned()), ("ci", body("two"))];
    assert_eq!(notes(&world).await, expected.map(|(author, body)| (author.to_owned(), body)));
}

#[tokio::test]
async fn no_other_note_counts_as_the_comment() {
    let other = format!("{}\nanother report", "drift".parse::<Marker>().unwrap());
    let others = [
        note("eve", &body("one")),
        note("ci", &other),
        note("ci", &format!("see\n{}", body("one"))),
        note("ci", &format!("> {}", body("one"))),
        json!({"author": "ci", "body": body("one"), "system": true}),
    ];
    let world = world(Profile::default(), &others).await;
    let written = post_comment(&world, &request_ref(1), "two").await.unwrap();
    assert_eq!((written.outcome, written.note_id), (CommentOutcome::Written, 6));
    assert_eq!(world.writes(), [format!("POST /api/v4{NOTES}")]);
}

#[tokio::test]
async fn the_comment_is_found_after_short_and_empty_pages() {
    let internal_notes = |n: usize| (0..n).map(|_| json!({"body": "x", "internal": true}));
    let public_notes = |n: usize| (0..n).map(|_| json!({"body": "x"}));
    for (before, after) in [(0, 250), (100, 0), (350, 99), (199, 101)] {
        let mut all: Vec<Json> = internal_notes(before).collect();
        all.push(note("ci", &body("one")));
        all.extend(public_notes(after));
        let world = world(Profile::default(), &all).await;
        let found = post_comment(&world, &request_ref(1), "two").await.unwrap();
        assert_eq!((found.outcome, found.note_id), (CommentOutcome::Edited, before as u64 + 1));
    }
}

#[tokio::test]
async fn the_oldest_of_several_comments_is_edited_and_others_reported() {
    let all = [
        note("ci", &body("one")),
        note("eve", "x"),
        note("ci", &body("two")),
        note("ci", &body("two")),
    ];
    let world = world(Profile::default(), &all).await;
    let found = post_comment(&world, &request_ref(1), "two").await.unwrap();
    assert_eq!(
        (found.outcome, found.note_id, found.duplicate_ids),
        (CommentOutcome::Edited, 1, vec![3, 4])
    );
    assert_eq!(world.writes(), [format!("PUT /api/v4{NOTES}/1")]);
}

#[tokio::test]
async fn no_comment_is_written_if_a_page_of_notes_fails() {
    let all: Vec<Json> = (0..150).map(|_| json!({"body": "x"})).collect();
    for nth in [1, 2] {
        let fault = InjectedFault {
            method: Some("GET".parse().unwrap()),
            path_contains: "/notes".into(),
            nth,
            effect: FaultEffect::StatusBefore(403),
        };
        let world = world(Profile { faults: vec![fault], ..Profile::default() }, &all).await;
        let error = post_comment(&world, &request_ref(1), "one").await.unwrap_err();
        assert!(matches!(error, CommentError::Notes(_)), "{error:?}");
        assert_eq!(world.writes(), [""; 0]);
    }
}

#[tokio::test]
async fn lost_responses_never_cause_a_second_comment() {
    let applied = [
        FaultEffect::CommitThenDrop,
        FaultEffect::StatusAfter(500),
        FaultEffect::StatusAfter(502),
        FaultEffect::Truncate,
        FaultEffect::EmptyBody,
    ];
    let unsent = [FaultEffect::DropBefore, FaultEffect::StatusBefore(500), FaultEffect::Html200];
    let cases =
        applied.iter().map(|what| (what, true)).chain(unsent.iter().map(|what| (what, false)));
    for (what, is_there) in cases {
        for (method, before) in [("POST", vec![]), ("PUT", vec![note("ci", &body("old"))])] {
            let fault = InjectedFault {
                method: Some(method.parse().unwrap()),
                path_contains: "/notes".into(),
                nth: 1,
                effect: what.clone(),
            };
            let world = world(Profile { faults: vec![fault], ..Profile::default() }, &before).await;
            let first = post_comment(&world, &request_ref(1), "one").await;
            let case = format!("{method} {what:?}: {first:?}");
            // An edit is idempotent, so it is sent again.
            if is_there || method == "PUT" {
                assert!(first.is_ok(), "{case}");
            } else {
                assert!(first.unwrap_err().error().in_doubt_since().is_some(), "{case}");
            }
            let again = post_comment(&world, &request_ref(1), "one").await.unwrap();
            assert_eq!(again.duplicate_ids, [0; 0], "{case}");
            assert_eq!(notes(&world).await, [("ci".to_owned(), body("one"))], "{case}");
        }
    }
}

#[tokio::test]
async fn refused_comments_are_explained() {
    let world = world(Profile::default(), &[]).await;
    let error = post_comment(&world, &request_ref(2), "one").await.unwrap_err();
    assert!(matches!(error, CommentError::Write { discussion_locked: true, .. }), "{error:?}");
    assert!(error.error().is_forbidden());
    let error = post_comment(&world, &request_ref(3), "one").await.unwrap_err();
    assert!(matches!(error, CommentError::MergeRequest(_)) && error.error().is_not_found());
}
