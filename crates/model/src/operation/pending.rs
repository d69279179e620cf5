//! Placeholders for ids of objects that the same run creates.
//!
//! A plan refers to such an object by path. A request contains an [`id_placeholder`] instead of the
//! id until the request is sent.

use serde_json::json;

use crate::value::Json;

const PLACEHOLDER_KEY: &str = "id_of";

/// A placeholder for the id of the container that is created at `path`.
pub fn id_placeholder(path: &str) -> Json {
    json!({ PLACEHOLDER_KEY: path })
}

/// The path in the placeholder `json`; `None` if `json` is not a placeholder.
pub fn placeholder_path(json: &Json) -> Option<&str> {
    json.as_object().filter(|object| object.len() == 1)?.get(PLACEHOLDER_KEY)?.as_str()
}

/// The paths of all placeholders in `json`.
pub(super) fn placeholder_paths(json: &Json) -> Vec<&str> {
    match json {
        Json::Array(items) => items.iter().flat_map(placeholder_paths).collect(),
        Json::Object(object) => match placeholder_path(json) {
            Some(path) => vec![path],
            None => object.values().flat_map(placeholder_paths).collect(),
        },
        _ => Vec::new(),
    }
}

/// Replaces placeholders by ids. If the id of a path is unknown, the path is the error.
pub(super) fn fill_placeholders(
    json: &mut Json,
    find_id: &impl Fn(&str) -> Option<u64>,
) -> Result<(), String> {
    if let Some(path) = placeholder_path(json) {
        *json = find_id(path).ok_or_else(|| path.to_owned())?.into();
        return Ok(());
    }
    match json {
        Json::Array(items) => {
            items.iter_mut().try_for_each(|item| fill_placeholders(item, find_id))
        }
        Json::Object(object) => {
            object.values_mut().try_for_each(|value| fill_placeholders(value, find_id))
        }
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
    fn a_container_is_sent_by_id_and_shown_by_path() {
        let fork_request = |id| PROJECT_FORK.request().with_argument_by_path("id", "acme/up", id);
        let known_request = fork_request(Some(7));
        assert_eq!(
            (known_request.path(), known_request.awaited_containers().count()),
            ("/projects/7/fork".to_owned(), 0)
        );
        let pending_request = fork_request(None);
        assert_eq!(pending_request.awaited_containers().collect::<Vec<_>>(), ["acme/up"]);
        assert_eq!(pending_request.display_target(), known_request.display_target());
        assert_eq!(pending_request.clone().with_ids(None, |_| None).unwrap_err(), "acme/up");
        assert_eq!(
            pending_request.with_ids(None, |_| Some(7)).unwrap().path(),
            known_request.path()
        );
    }

    #[test]
    fn a_new_container_gets_its_id_on_sending() {
        let request_for = |id| VARIABLE_CREATE.request().with_container("acme/new", id);
        assert_eq!(
            request_for(Some(7)).with_ids(Some(8), |_| None).unwrap().path(),
            "/projects/7/variables"
        );
        let pending_request = request_for(None);
        assert_eq!(pending_request.display_target(), "/projects/acme%2Fnew/variables");
        assert_eq!(pending_request.awaited_containers().count(), 0);
        assert_eq!(pending_request.clone().with_ids(None, |_| Some(9)).unwrap_err(), "acme/new");
        assert_eq!(
            pending_request.with_ids(Some(7), |_| Some(9)).unwrap().path(),
            "/projects/7/variables"
        );
        let path_request = VARIABLE_CREATE.request().with_argument("id", "acme/new");
        assert!(path_request.with_ids(Some(7), |_| Some(9)).is_err());
    }

    #[test]
    fn an_entry_of_the_same_container_is_shown_by_its_name() {
        let request_for = |id| {
            let request = SCHEDULE_UPDATE.request().with_container("acme/shop", Some(7));
            request.with_argument_by_path(
                "pipeline_schedule_id",
                "acme/shop#pipeline_schedules/a%2Fb@c",
                id,
            )
        };
        let (known_request, pending_request) = (request_for(Some(3)), request_for(None));
        assert_eq!(known_request.display_target(), "/projects/7/pipeline_schedules/a%2Fb@c");
        assert_eq!(pending_request.display_target(), known_request.display_target());
        assert_eq!(known_request.path(), "/projects/7/pipeline_schedules/3");
        assert_eq!(
            pending_request.awaited_containers().collect::<Vec<_>>(),
            ["acme/shop#pipeline_schedules/a%2Fb@c"]
        );
        assert_eq!(
            pending_request.with_ids(Some(7), |_| Some(3)).unwrap().path(),
            known_request.path()
        );
    }

    #[test]
    fn a_request_waits_for_its_awaited_path() {
        let import = IMPORT_EXTGIT.request().with_awaited_path("acme/neo");
        assert_eq!(import.awaited_containers().collect::<Vec<_>>(), ["acme/neo"]);
        assert!(import.with_ids(None, |_| None).is_ok(), "nothing is filled in");
    }

    #[test]
    fn ids_are_only_filled_into_id_fields() {
        let rows = json!([{"group_id": id_placeholder("acme/neo")}, {"access_level": 40}]);
        let make_body = |rows: &Json, id: &Json, other: Json| {
            let fields = [("rows", rows.clone()), ("group_id", id.clone()), ("other", other)];
            Fields::from(fields.map(|(name, value)| (name.to_owned(), value.into())))
        };
        let id_fields = ["rows", "group_id"].map(str::to_owned);
        let other_id = id_placeholder("acme/other");
        let request = SHARE_CREATE.request().with_argument("id", 7);
        let request_without_id_fields = request.clone().with_fields(make_body(
            &rows,
            &id_placeholder("acme/x"),
            other_id.clone(),
        ));
        let waiting_request = request_without_id_fields.with_id_fields(id_fields);
        let awaited_paths: Vec<_> = waiting_request.awaited_containers().collect();
        assert_eq!(awaited_paths, ["acme/neo", "acme/x"]);

        let find_id = |path: &str| match path {
            "acme/neo" => Some(4),
            _ => Some(5),
        };
        let rows = json!([{"group_id": 4}, {"access_level": 40}]);
        let filled_request = request.with_fields(make_body(&rows, &5.into(), other_id));
        let body = waiting_request.clone().with_ids(None, find_id).unwrap().body;
        assert!(body == filled_request.body);
        assert_eq!(waiting_request.with_ids(None, |_| None).unwrap_err(), "acme/neo");
        assert_eq!(filled_request.awaited_containers().count(), 0);
    }
}
