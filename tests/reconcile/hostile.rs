//! Whatever somebody else says, it is read or refused, and never a panic: a fixed number of inputs for
//! each reader, mutated from good ones, by a chance that is the same in each run.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value as Json, json};
use undrift::{
    address::{Address, Glob, Selector},
    api::{
        HttpOptions, HttpTransport, ReadClient, SendError, Service, Transport, WireRequest,
        WireResponse, budget::Told, limit::asked_wait,
    },
    desired::{Acknowledgement, Roster},
    diagnostic::{Diagnostics, Style},
    digest::Key,
    manifest::{self, Surroundings, descriptions},
    operation::HOOK_LIST,
    page::{Pager, Rows},
    plan::{Holds, saved::Sealed},
    sandbox::Seed,
    secret::{Allowed, Secret},
    snapshot::{Offline, Snapshot},
    value::Object,
    yaml,
};

use crate::{
    random,
    saved::Run,
    world::{World, hasty, project},
};

/// Texts that readers may stumble over.
const TOKENS: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "- ",
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "? ",
    "|\n",
    ">-\n",
    "\t",
    "\r",
    "\u{feff}",
    "\u{0}",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    "'",
    "\"",
    "\\",
    "%",
    "#",
    "@",
    "`",
    "**",
    "/",
    "//",
    "../",
    "?",
    "[!",
    "{a,b}",
    "{{",
    "}}",
    "null",
    "~",
    "-0",
    "1e999",
    "18446744073709551616",
    "0x1F",
    "9999-99-99",
    "é",
    "𝒳",
];

/// Chance that is the same for the same number (SplitMix64).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; zero if there is none.
    fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { usize::try_from(self.next() % end as u64).unwrap() }
    }

    fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.below(of.len())]
    }

    /// `sample` with a few parts put in, left out, doubled or changed.
    fn bytes(&mut self, sample: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..=self.below(5) {
            let from = self.below(bytes.len() + 1);
            let to = from + self.below((bytes.len() - from).min(60) + 1);
            match self.below(7) {
                0 => drop(bytes.drain(from..to)),
                1 => bytes.truncate(from),
                2 => {
                    let part = bytes[from..to].repeat(1 + self.below(40));
                    bytes.splice(from..from, part);
                }
                3 => {
                    let token = self.one(&TOKENS).repeat(1 + self.below(3) * self.below(200));
                    bytes.splice(from..to, token.into_bytes());
                }
                4 => {
                    if let Some(byte) = bytes.get_mut(from) {
                        *byte = u8::try_from(self.below(256)).unwrap();
                    }
                }
                5 => {
                    let other = self.below(bytes.len() + 1);
                    let part = bytes[from..to].to_vec();
                    bytes.splice(other..other, part);
                }
                _ => bytes.splice(from..to, self.one(&TOKENS).bytes()).for_each(drop),
            }
        }
        bytes
    }

    fn text(&mut self, sample: &str) -> String {
        String::from_utf8_lossy(&self.bytes(sample.as_bytes())).into_owned()
    }

    /// A text of tokens and letters alone.
    fn noise(&mut self) -> String {
        if self.below(8) == 0 {
            let (open, close) = self.pair();
            let depth = self.below(400);
            return open.repeat(depth) + "a" + &close.repeat(depth);
        }
        let length = self.below(40);
        (0..length)
            .map(|_| match self.below(3) {
                0 => char::from(b'a' + u8::try_from(self.below(26)).unwrap()).to_string(),
                _ => self.one(&TOKENS).to_owned(),
            })
            .collect()
    }

    /// What may be within itself.
    fn pair(&mut self) -> (&'static str, &'static str) {
        let pairs = [("{a,", "}"), ("[", "]"), ("{a: ", "}"), ("- ", ""), ("(", ")"), ("**/", "")];
        pairs[self.below(pairs.len())]
    }

    /// Changes something in `value`, at any depth.
    fn spoil(&mut self, value: &mut Json) {
        let deeper = self.below(16) != 0;
        match value {
            Json::Object(fields) if deeper && !fields.is_empty() => {
                let at = self.below(fields.len());
                let name = fields.keys().nth(at).unwrap().clone();
                if self.below(12) == 0 {
                    fields.remove(&name);
                } else {
                    self.spoil(&mut fields[&name]);
                }
            }
            Json::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(12) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    _ => self.spoil(&mut items[at]),
                }
            }
            value => *value = self.extreme(),
        }
    }

    fn extreme(&mut self) -> Json {
        let nested = (0..100).fold(Json::Null, |inner, _| json!([inner]));
        let mut values = vec![
            Json::Null,
            json!(true),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e308),
            json!(0.5),
            json!([]),
            json!({}),
            json!([null]),
            json!([[], {}]),
            json!({"": {"": ""}}),
            json!({"id": 1}),
            nested,
            json!("x".repeat(5000)),
            json!("https://[::"),
            json!("0000-00-00T99:99:99Z"),
            json!(" "),
            json!("."),
        ];
        match self.below(3) {
            0 => json!(self.noise()),
            _ => values.swap_remove(self.below(values.len())),
        }
    }

    /// Headers that an answer may have, with values that none should.
    fn headers(&mut self, headers: &mut HeaderMap) {
        const NAMES: [&str; 14] = [
            "link",
            "x-page",
            "x-per-page",
            "x-total",
            "x-total-pages",
            "x-next-page",
            "retry-after",
            "ratelimit-reset",
            "ratelimit-limit",
            "ratelimit-remaining",
            "date",
            "etag",
            "content-type",
            "x-request-id",
        ];
        const VALUES: [&str; 16] = [
            "",
            "0",
            "-1",
            "1",
            "2",
            "18446744073709551615",
            "18446744073709551616",
            "1.5",
            "soon",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "4000000060",
            "<https://a/?page=2>; rel=\"next\"",
            "<>; rel=next, <",
            "<?page=99999999999999999999>; rel=next",
            "application/json; charset",
        ];
        for _ in 0..=self.below(3) {
            let name = HeaderName::from_static(self.one(&NAMES));
            let value = match self.below(4) {
                0 => {
                    let value = self.one(&VALUES);
                    self.bytes(value.as_bytes())
                }
                1 => self.bytes(
                    b"<https://gitlab.example.org/api/v4/x?page=2&per_page=100>; rel=\"next\"",
                ),
                _ => self.one(&VALUES).as_bytes().to_vec(),
            };
            let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
            if self.below(2) == 0 {
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
    }
}

/// Says which input it was if a reader panics.
struct Input<'n>(&'n str, u64);

impl Drop for Input<'_> {
    #[expect(clippy::print_stderr, reason = "it only says what failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("hostile input {} of {}", self.1, self.0);
        }
    }
}

/// So many inputs for one reader.
fn each(name: &str, inputs: u64, mut read: impl FnMut(&mut Chance)) {
    for number in 0..inputs {
        let _input = Input(name, number);
        read(&mut Chance(number.wrapping_mul(0x5851_f42d_4c95_7f2d)));
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts of the files of `folder` that end in `.yaml`.
fn samples(folder: &str) -> Vec<String> {
    let folder =
        fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        folder.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files.into_iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn around(folder: &Path) -> Surroundings {
    Surroundings { folder: folder.to_owned(), today: jiff::civil::date(2030, 1, 1) }
}

#[test]
fn manifests_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = samples("tests/corpus");
    samples.push(fs::read_to_string(repository().join("examples/acme/groups.yaml")).unwrap());
    let configs = [
        fs::read_to_string(repository().join("examples/acme/undrift.yaml")).unwrap(),
        "version: 1\nmanages: [{path: acme/**, except: [x]}]\nguards: {removals: {count: 1, share: 0.5}}\n"
            .to_owned(),
    ];
    each("manifests", 600, |chance| {
        let sample = &samples[chance.below(samples.len())];
        let other = &samples[chance.below(samples.len())];
        let text = match chance.below(3) {
            0 => chance.bytes(format!("{sample}\n---\n{other}").as_bytes()),
            1 => chance.noise().into_bytes(),
            _ => chance.bytes(sample.as_bytes()),
        };
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        let config = folder.path().join("undrift.yaml");
        if chance.below(4) == 0 {
            let sample = &configs[chance.below(configs.len())];
            fs::write(config, chance.bytes(sample.as_bytes())).unwrap();
        } else {
            let _ = fs::remove_file(config);
        }
        let style = Style { colour: false, width: 20 + chance.below(100) };
        manifest::check_report(folder.path(), &around(folder.path()), style);
    });
}

#[test]
fn seeds_are_read_or_refused() {
    let sample = fs::read_to_string(repository().join("examples/acme/sandbox.yaml")).unwrap();
    each("seeds", 400, |chance| {
        let parsed = yaml::parse(&chance.text(&sample));
        if let [document] = &parsed.documents[..] {
            let _ = Seed::from_json(document.to_json());
        }
        let parsed = yaml::parse(&sample);
        let mut json = parsed.documents[0].to_json();
        (0..=chance.below(3)).for_each(|_| chance.spoil(&mut json));
        let _ = Seed::from_json(json);
    });
}

#[test]
fn arguments_are_read_or_refused() {
    const SAMPLES: [&str; 10] = [
        "acme/**",
        "**#variables/TOKEN@*",
        "{acme{/old,/web},other}/*",
        "acme/s?[xyz]*",
        r"a\*b[!a-z]{c,d}",
        "removals:acme/shop#members",
        "acme/shop#members@2030-01-03",
        "SHOP_*",
        "https://gitlab.example.org/api",
        "hook_list",
    ];
    let address = Address::container("acme/shop".into()).section("variables").entry("A@prod/*");
    each("arguments", 1500, |chance| {
        let text = match chance.below(2) {
            0 => chance.noise(),
            _ => {
                let sample = chance.one(&SAMPLES);
                chance.text(sample)
            }
        };
        if let Ok(selector) = Selector::parse(&text) {
            let _ = (selector.matches(&address), selector.touches_section(&address));
        }
        for glob in [Glob::over_paths(&text), Glob::over_names(&text)].into_iter().flatten() {
            glob.matches("acme/shop");
        }
        assert!(Glob::name(&text).matches(&text));
        let _ = Acknowledgement::parse(&text);
        let _ = Holds::parse([text.as_str()], jiff::civil::date(2030, 1, 1));
        let _ = Allowed::only([&text]);
        let _ = (Service::parse(&text, true), Service::parse(&text, false));
    });
}

#[test]
fn descriptions_of_kinds_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kind.yaml");
    let samples = samples("src/kinds/described");
    each("descriptions", 250, |chance| {
        let sample = &samples[chance.below(samples.len())];
        // Other names than those that are there already, so that more of it is read.
        let sample = sample.replace("section: ", "section: my_").replace("/:id/", "/:id/my_");
        fs::write(&path, chance.bytes(sample.as_bytes())).unwrap();
        let mut diagnostics = Diagnostics::default();
        descriptions::load(
            std::slice::from_ref(&path),
            None,
            &around(folder.path()),
            &mut diagnostics,
        );
        diagnostics.render(Style { colour: false, width: 80 });
    });
}

#[test]
fn headers_are_read_or_say_nothing() {
    each("headers", 1500, |chance| {
        let mut headers = HeaderMap::new();
        chance.headers(&mut headers);
        let wall = SystemTime::UNIX_EPOCH
            + Duration::from_secs([0, 4_000_000_000, 253_402_300_799][chance.below(3)]);
        for status in [200, 429, 503] {
            let _ = asked_wait(status, &headers, wall);
        }
        let _ = Told::read(&headers, wall);
        let mut pager = Pager::new(HOOK_LIST.request().arg("id", 1), Rows::with_id(&[])).unwrap();
        while pager.next().is_some() {
            let rows: Vec<Object> = (0..chance.below(4))
                .map(|_| {
                    let mut row = json!({"id": chance.below(3), "url": "https://a.example.org"});
                    chance.spoil(&mut row);
                    row.as_object().cloned().unwrap_or_default()
                })
                .collect();
            if pager.accept(&headers, rows).is_err() || chance.below(3) == 0 {
                break;
            }
            chance.headers(&mut headers);
        }
        let _ = pager.finish();
    });
}

/// Manifests of every sort of section, and a service that has some of it.
async fn world() -> World {
    let world = random::world().await;
    let sections = json!({
        "settings": {"description": "new", "merge_method": "ff", "topics": ["a"]},
        "variables": [{"key": "A", "value": "x"}, {"key": "B", "environment_scope": "prod", "value": "y"}],
        "labels": [{"name": "a", "color": "#ff0000"}],
        "members": [{"user": "alice", "access_level": "developer"}],
        "hooks": [{"name": "ci", "url": "https://a.example.org/x"}],
        "protected_branches": [{"name": "main"}],
        "push_rule": {"member_check": true},
        "shares": [{"group": "acme/security", "group_access": "guest"}],
        "unlisted": {"variables": "delete", "labels": "delete"},
    });
    let mut created = project("acme/shop", sections.clone());
    created["create"] = json!(true);
    let mut rule =
        json!({"kind": "Defaults", "match": {"path": "acme/**"}, "undeclared": "include"});
    rule["settings"] = json!({"merge_method": "ff"});
    world.declare(std::slice::from_ref(&created));
    world.apply().await;
    created["settings"]["description"] = json!("newer");
    created["variables"] = json!([{"key": "C", "value": "z"}]);
    let group = json!({"kind": "Group", "path": "acme", "settings": {"description": "x"}});
    world.declare(&[created, group, rule]);
    world
}

/// A service whose answers somebody spoils.
#[derive(Debug)]
struct Spoiled {
    inner: HttpTransport,
    chance: Mutex<Chance>,
}

impl Transport for Spoiled {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(async move {
            let mut response = self.inner.send(request).await?;
            let mut chance = self.chance.lock().unwrap();
            if chance.below(3) == 0 {
                response.body = response.body.map(|body| chance.body(&body).into());
            }
            if chance.below(8) == 0 {
                chance.headers(&mut response.headers);
            }
            if chance.below(40) == 0 {
                let statuses = [0_u16, 204, 301, 401, 404, 412, 429, 500, 999];
                response.status = statuses[chance.below(statuses.len())];
            }
            Ok(response)
        })
    }
}

impl Chance {
    /// A body of JSON that is spoiled in its values, or else in its bytes.
    fn body(&mut self, body: &[u8]) -> Vec<u8> {
        match serde_json::from_slice::<Json>(body) {
            Ok(mut json) if self.below(10) != 0 => {
                (0..=self.below(3)).for_each(|_| self.spoil(&mut json));
                json.to_string().into_bytes()
            }
            _ => self.bytes(body),
        }
    }
}

impl World {
    /// A plan through another way to the service; what it is made of may be refused.
    async fn plan_through(&self, transport: Arc<dyn Transport>) -> Option<String> {
        let desired = self.desired();
        let (_, secrets) = self.client_as(self.sandbox.token(), &desired);
        let service = Service::parse(&self.sandbox.url(), false).unwrap();
        let client = ReadClient::new(service, transport, Arc::clone(&secrets), hasty());
        let (observer, settings) = self.connect_by(client, secrets, &desired).await.ok()?;
        let plan =
            self.plan_beside(Roster::default(), &observer, &desired, &settings).await.ok()?;
        Some(serde_json::to_string(&plan).unwrap())
    }
}

#[test]
fn answers_are_read_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(world());
    let url = Service::parse(&world.sandbox.url(), false).unwrap();
    let mut plans = 0;
    each("answers", 80, |chance| {
        let token = Secret::new(world.sandbox.token());
        let inner = HttpTransport::new(&url, &token, &HttpOptions::default()).unwrap();
        // The first answers say who asks: without them nothing else is read.
        let chance = Mutex::new(Chance(chance.next()));
        let plan = runtime.block_on(world.plan_through(Arc::new(Spoiled { inner, chance })));
        plans += usize::from(plan.is_some());
    });
    assert!(plans >= 5, "only {plans} plans came of it");
}

#[test]
fn snapshots_are_read_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(world());
    let text = runtime.block_on(world.snapshot_with(None));
    let lines: Vec<&str> = text.lines().collect();
    let (mut read, mut plans) = (0, 0);
    each("snapshots", 300, |chance| {
        let _ = Snapshot::read(&chance.bytes(text.as_bytes()));
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        for _ in 0..=chance.below(3) {
            let at = chance.below(lines.len());
            let Ok(mut json) = serde_json::from_str::<Json>(&lines[at]) else { continue };
            chance.spoil(&mut json);
            lines[at] = json.to_string();
        }
        if let Ok(snapshot) = Snapshot::read((lines.join("\n") + "\n").as_bytes()) {
            read += 1;
            let offline = Arc::new(Offline::new(snapshot, None));
            plans += usize::from(runtime.block_on(world.plan_through(offline)).is_some());
        }
    });
    assert!(read >= 10 && plans >= 10, "{read} were read, {plans} plans came of it");
}

#[test]
fn saved_plans_are_read_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(world());
    let key = Key::new(&Secret::new("a key that is long enough for it"));
    let text = runtime.block_on(async { Run::of(&world).await.save(&key).await.1 });
    each("saved plans", 1000, |chance| {
        let bytes = match serde_json::from_str::<Json>(&text) {
            Ok(mut json) if chance.below(2) == 0 => {
                (0..=chance.below(3)).for_each(|_| chance.spoil(&mut json));
                json.to_string().into_bytes()
            }
            _ => chance.bytes(text.as_bytes()),
        };
        if let Ok(saved) = Sealed::read(&bytes) {
            let _ = (saved.to_text(), saved.plan.shown(), saved.check_seal(Some(&key)));
        }
    });
}
