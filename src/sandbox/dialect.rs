//! What a [`Profile`] changes about all answers alike.

use serde_json::{Value, json};

use super::answer::Answer;
use super::profile::Profile;

/// Changes an answer into that of the profile.
pub(crate) fn distort(profile: &Profile, answer: &mut Answer) {
    if !profile.changes_answers() {
        return;
    }
    let Some(mut body) = answer.body.as_deref().and_then(|text| serde_json::from_slice(text).ok()) else { return };
    vary(profile, &mut body);
    answer.body = Some(body.to_string().into_bytes());
}

fn vary(profile: &Profile, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| vary(profile, item)),
        Value::Object(members) => {
            if profile.drop_null_keys {
                members.retain(|_, value| !value.is_null());
            }
            for (key, value) in members.iter_mut() {
                match value {
                    Value::Array(topics) if profile.shuffle_topics && (key == "topics" || key == "tag_list") => {
                        topics.reverse();
                    }
                    _ => vary(profile, value),
                }
            }
            if profile.unknown_extra_keys {
                members.insert("x_unknown".to_owned(), json!({ "since": "later" }));
            }
        }
        _ => {}
    }
}
