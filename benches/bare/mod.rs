//! A lower bound for undrift: the least program that does the same job on the benchmark's manifests
//! with the least calls. It ignores faults, limits and changing lists, compares nothing, and finds
//! either everything or nothing in place.

use std::{collections::BTreeMap, error::Error, fs, path::Path};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize as _;
use serde_json::{Value as Json, json};

use crate::{Job, process::TOKEN};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The collections of each project. Each entry of a list is written by one call.
const PARTS: [&str; 4] = ["variables", "members", "hooks", "push_rule"];

/// Does a job on the manifests in a folder.
pub(crate) fn run(job: Job, manifests: &Path, url: &str, in_flight: usize) -> Fallible<()> {
    let projects = read(manifests)?;
    if job == Job::Check {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client { http: http_client()?, url };
        client.get("user").await?;
        let mut ids = BTreeMap::new();
        // Pages by number end after 50,000 projects.
        let mut last = json!(0);
        for _page in 0..=projects.len() / 100 {
            let list = "projects?per_page=100&pagination=keyset&order_by=id&sort=asc";
            let list = format!("{list}&id_after={last}");
            for project in client.get(&list).await?.as_array().into_iter().flatten() {
                last = project["id"].clone();
                ids.insert(project["path_with_namespace"].to_string(), last.clone());
            }
        }
        let mut users = BTreeMap::new();
        if job == Job::Apply {
            for member in projects.iter().filter_map(|p| p["members"].as_array()).flatten() {
                let name = member["user"].as_str().unwrap_or_default();
                if !users.contains_key(name) {
                    let found = client.get(&format!("users?username={name}")).await?;
                    users.insert(name, found[0]["id"].clone());
                }
            }
        }
        let (client, users) = (&client, &users);
        let each = projects.iter().map(|project| {
            let id = &ids[&project["path"].to_string()];
            async move {
                for part in PARTS {
                    client.get(&format!("projects/{id}/{part}?per_page=100&page=1")).await?;
                }
                if job == Job::Apply {
                    client.write("PUT", &format!("projects/{id}"), &project["settings"]).await?;
                    for part in PARTS {
                        let one = std::slice::from_ref(&project[part]);
                        for entry in project[part].as_array().map_or(one, Vec::as_slice) {
                            let path = format!("projects/{id}/{part}");
                            client.write("POST", &path, &sent(entry, users)).await?;
                        }
                    }
                }
                Ok::<_, Box<dyn Error>>(())
            }
        });
        stream::iter(each).buffer_unordered(in_flight).try_collect().await
    })
}

/// Reads all documents of a folder.
fn read(folder: &Path) -> Fallible<Vec<Json>> {
    let mut documents = Vec::new();
    for file in fs::read_dir(folder)? {
        let text = fs::read_to_string(file?.path())?;
        for document in serde_yaml::Deserializer::from_str(&text) {
            documents.push(Json::deserialize(document)?);
        }
    }
    Ok(documents)
}

/// An entry in the form in which it is sent.
fn sent(entry: &Json, users: &BTreeMap<&str, Json>) -> Json {
    let Some(user) = entry["user"].as_str() else { return entry.clone() };
    let levels = [("reporter", 20), ("developer", 30), ("maintainer", 40)];
    let level = levels.iter().find(|(word, _)| entry["access_level"] == *word);
    json!({"user_id": users[user], "access_level": level.map(|(_, number)| number)})
}

struct Client<'a> {
    http: reqwest::Client,
    url: &'a str,
}

impl Client<'_> {
    async fn get(&self, path: &str) -> Fallible<Json> {
        Self::answer(self.http.get(format!("{}/api/v4/{path}", self.url))).await
    }

    async fn write(&self, method: &str, path: &str, body: &Json) -> Fallible<Json> {
        let url = format!("{}/api/v4/{path}", self.url);
        let request = self.http.request(method.parse()?, url);
        let request = request.header("content-type", "application/json");
        Self::answer(request.body(body.to_string())).await
    }

    async fn answer(request: reqwest::RequestBuilder) -> Fallible<Json> {
        let response = request.header("PRIVATE-TOKEN", TOKEN).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&response.bytes().await?)?)
    }
}

/// A client without certificates, for plain HTTP to this machine.
fn http_client() -> Fallible<reqwest::Client> {
    let provider = rustls::crypto::ring::default_provider();
    let tls = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?)
}
