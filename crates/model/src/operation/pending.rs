//! Placeholders for ids that are unknown until the same run creates the objects.
//!
//! A plan refers to such objects by path. In a request, [`id_of`] takes the place of the id until
//! the request is sent.

use serde_json::json;

use crate::value::Json;

const ID_OF: &str = "id_of";

/// A placeholder for the id of the container that is created at `path`.
pub fn id_of(path: &str) -> Json {
    json!({ ID_OF: path })
}

/// The path in the placeholder `json`, if it is one.
pub fn created_at(json: &Json) -> Option<&str> {
    json.as_object().filter(|object| object.len() == 1)?.get(ID_OF)?.as_str()
}

/// The paths of all placeholders in `json`.
pub(super) fn paths(json: &Json) -> Vec<&str> {
    match json {
        Json::Array(items) => items.iter().flat_map(paths).collect(),
        Json::Object(object) => match created_at(json) {
            Some(path) => vec![path],
            None => object.values().flat_map(paths).collect(),
        },
        _ => Vec::new(),
    }
}

/// Replaces placeholders by ids. Fails with a path whose id is not known.
pub(super) fn fill_in(json: &mut Json, id: &impl Fn(&str) -> Option<u64>) -> Result<(), String> {
    if let Some(path) = created_at(json) {
        *json = id(path).ok_or_else(|| path.to_owned())?.into();
        return Ok(());
    }
    match json {
        Json::Array(items) => items.iter_mut().try_for_each(|item| fill_in(item, id)),
        Json::Object(object) => object.values_mut().try_for_each(|value| fill_in(value, id)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        operation::{IMPORT_EXTGIT, PROJECT_FORK, SCHEDULE_UPDATE, SHARE_CREATE, VARIABLE_CREATE},
        value::Fields,
    };

    #[test]
    fn a_named_thing_is_sent_by_its_id_and_shown_by_its_path() {
        let fork = |id| PROJECT_FORK.request().arg_of("id", "acme/up", id);
        let known = fork(Some(7));
        assert_eq!((known.path(), known.waits_for().count()), ("/projects/7/fork".to_owned(), 0));
        let pending = fork(None);
        assert_eq!(pending.waits_for().collect::<Vec<_>>(), ["acme/up"]);
        assert_eq!(pending.shown_target(), known.shown_target());
        assert_eq!(pending.clone().with_ids(None, |_| None).unwrap_err(), "acme/up");
        assert_eq!(pending.with_ids(None, |_| Some(7)).unwrap().path(), known.path());
    }

    #[test]
    fn a_created_thing_gets_its_id_when_the_request_is_sent() {
        let to = |id| VARIABLE_CREATE.request().of_container("acme/new", id);
        assert_eq!(
            to(Some(7)).with_ids(Some(8), |_| None).unwrap().path(),
            "/projects/7/variables"
        );
        let pending = to(None);
        assert_eq!(pending.shown_target(), "/projects/acme%2Fnew/variables");
        assert_eq!(pending.waits_for().count(), 0);
        assert_eq!(pending.clone().with_ids(None, |_| Some(9)).unwrap_err(), "acme/new");
        assert_eq!(pending.with_ids(Some(7), |_| Some(9)).unwrap().path(), "/projects/7/variables");
        let by_path = VARIABLE_CREATE.request().arg("id", "acme/new");
        assert!(by_path.with_ids(Some(7), |_| Some(9)).is_err());
    }

    #[test]
    fn an_entry_of_the_same_container_is_shown_by_its_name() {
        let of = |id| {
            let request = SCHEDULE_UPDATE.request().of_container("acme/shop", Some(7));
            request.arg_of("pipeline_schedule_id", "acme/shop#pipeline_schedules/a%2Fb@c", id)
        };
        let (known, pending) = (of(Some(3)), of(None));
        assert_eq!(known.shown_target(), "/projects/7/pipeline_schedules/a%2Fb@c");
        assert_eq!(pending.shown_target(), known.shown_target());
        assert_eq!(known.path(), "/projects/7/pipeline_schedules/3");
        assert_eq!(
            pending.waits_for().collect::<Vec<_>>(),
            ["acme/shop#pipeline_schedules/a%2Fb@c"]
        );
        assert_eq!(pending.with_ids(Some(7), |_| Some(3)).unwrap().path(), known.path());
    }

    #[test]
    fn a_thing_that_a_body_names_by_path_may_have_to_come_first() {
        let import = IMPORT_EXTGIT.request().awaiting("acme/neo");
        assert_eq!(import.waits_for().collect::<Vec<_>>(), ["acme/neo"]);
        assert!(import.with_ids(None, |_| None).is_ok(), "nothing is filled in");
    }

    #[test]
    fn an_id_is_only_filled_in_where_one_is_named() {
        let rows = json!([{"group_id": id_of("acme/neo")}, {"access_level": 40}]);
        let body = |rows: &Json, id: &Json, other: Json| {
            let fields = [("rows", rows.clone()), ("group_id", id.clone()), ("other", other)];
            Fields::from(fields.map(|(name, value)| (name.to_owned(), value.into())))
        };
        let naming = ["rows", "group_id"].map(str::to_owned);
        let other = id_of("acme/other");
        let request = SHARE_CREATE.request().arg("id", 7);
        let pending = request.clone().fields(body(&rows, &id_of("acme/x"), other.clone()));
        let pending = pending.naming(naming);
        let waits: Vec<_> = pending.waits_for().collect();
        assert_eq!(waits, ["acme/neo", "acme/x"]);

        let ids = |path: &str| match path {
            "acme/neo" => Some(4),
            _ => Some(5),
        };
        let rows = json!([{"group_id": 4}, {"access_level": 40}]);
        let filled = request.fields(body(&rows, &5.into(), other));
        let body = pending.clone().with_ids(None, ids).unwrap().body;
        assert!(body == filled.body);
        assert_eq!(pending.with_ids(None, |_| None).unwrap_err(), "acme/neo");
        assert_eq!(filled.waits_for().count(), 0);
    }
}
