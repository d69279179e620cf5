//! A lower bound for the duration of a plan: a program that makes the same calls as a plan of the
//! benchmark, parses each answer, and drops it. It ignores faults, limits and changing lists.

use std::error::Error;

use futures_util::{TryStreamExt as _, stream};
use serde_json::Value as Json;

use crate::process::TOKEN;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The collections that are read for each project, in addition to the project.
const PARTS: [&str; 4] = [
    "variables?per_page=100&page=1",
    "members?per_page=100&page=1",
    "hooks?per_page=100&page=1",
    "push_rule",
];

/// The arguments of [`run`], as one text.
pub(crate) fn arguments(url: &str, concurrency: usize, settings_only: bool) -> String {
    format!("{url} {concurrency} {}", if settings_only { 0 } else { PARTS.len() })
}

/// Reads everything that a plan reads.
pub(crate) fn run(arguments: &str) -> Fallible<()> {
    let mut arguments = arguments.split(' ');
    let (Some(url), Some(concurrency), Some(parts)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("not the arguments of the bare program".into());
    };
    let (concurrency, parts) = (concurrency.parse::<usize>()?, &PARTS[..parts.parse()?]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client { http: http_client()?, url };
        client.get("user").await?;
        let pages = stream::try_unfold(Some(0), |after| {
            let client = &client;
            async move {
                let Some(after) = after else { return Ok::<_, Box<dyn Error>>(None) };
                let list = "projects?pagination=keyset&order_by=id&sort=asc&per_page=100";
                let list = client.get(&format!("{list}&id_after={after}")).await?;
                let ids: Vec<_> = list
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|p| p["id"].as_u64())
                    .collect();
                let next = ids.last().copied().filter(|_| ids.len() == 100);
                Ok(Some((ids, next)))
            }
        });
        let paths = pages.map_ok(|ids| {
            let paths = ids.into_iter().flat_map(|id| {
                parts
                    .iter()
                    .map(move |part| Ok::<_, Box<dyn Error>>(format!("projects/{id}/{part}")))
            });
            stream::iter(paths.collect::<Vec<_>>())
        });
        let reading = paths.try_flatten().map_ok(|path| {
            let client = &client;
            async move { client.get(&path).await.map(drop) }
        });
        reading.try_buffer_unordered(concurrency).try_for_each(|()| async { Ok(()) }).await
    })
}

struct Client<'a> {
    http: reqwest::Client,
    url: &'a str,
}

impl Client<'_> {
    async fn get(&self, path: &str) -> Fallible<Json> {
        let request = self.http.get(format!("{}/api/v4/{path}", self.url));
        let response = request.header("PRIVATE-TOKEN", TOKEN).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&response.bytes().await?)?)
    }
}

/// A client without certificates, for plain HTTP to this machine.
pub(crate) fn http_client() -> Fallible<reqwest::Client> {
    let provider = rustls::crypto::ring::default_provider();
    let tls = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?)
}
