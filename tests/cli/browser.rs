//! The page of a report in a real browser, also with hostile names.
//!
//! The browser is Chromium, headless and with a profile of its own: `UNDRIFT_CHROMIUM`, or one in
//! the path. `.ci/run` installs Debian's. Without one, each test reports that it did not run.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::Value;
use tempfile::TempDir;

/// The browser, if there is one.
static BROWSER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let named = std::env::var_os("UNDRIFT_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = || {
        std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|program| program.is_file())
    };
    named.or_else(found)
});

/// Reports on standard error that a test does not run, if there is no browser.
fn has_browser(test: &str) -> bool {
    if BROWSER.is_none() {
        // Without the captured macros, so that it is also visible without `--nocapture`.
        let _ = writeln!(
            std::io::stderr(),
            "not run: {test}, because there is no chromium (see .ci/run)"
        );
    }
    BROWSER.is_some()
}

/// The effect of a hostile script; without quotes, because it is put inside some.
const CANARY: &str = "document.title=/canary/;document.documentElement.dataset.canary=1";

/// Manifests with names and values that try to break out, in a folder with a live state.
fn manifests() -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write(
        "<script>document.title=1<script>.yaml",
        format!(
            r#"
kind: Project
path: acme/shop
settings:
  visibility: private
  description: |
    <script>{CANARY}</script>
    </script></pre></details><script>{CANARY}</script>
    new
  topics: ['"><svg onload={CANARY}>', '<!--']
variables:
  - {{key: MODE, value: 'x" onmouseover="{CANARY}" autofocus onfocus="{CANARY}'}}
  - {{key: LINK, value: "javascript:{CANARY}"}}
labels:
  - {{name: '<img src=x onerror={CANARY}>', color: '#FF0000', description: "</template></noscript><script>{CANARY}</script>"}}
  - {{name: '</title><script>{CANARY}</script>', color: '#00FF00'}}
hooks:
  - {{url: 'https://ci.example.org/x', push_events: true}}
unlisted: {{variables: delete, labels: delete}}
---
kind: Project
path: acme/none
settings: {{visibility: private}}
"#
        ),
    );
    write(
        "sandbox.yaml",
        format!(
            r#"
groups: [{{path: acme, visibility: public}}]
projects:
  - path: acme/shop
    settings: {{visibility: internal, description: "old\n<script>{CANARY}</script>"}}
    variables: [{{key: GONE, value: a}}]
"#
        ),
    );
    folder
}

/// The page and the JSON that `undrift` writes with these arguments.
fn write_page(folder: &Path, arguments: &[&str]) -> Value {
    let mut undrift = Command::new(env!("CARGO_BIN_EXE_undrift"));
    undrift.args(arguments).args(["--out", "html=page.html", "--out", "json=page.json"]);
    let output = undrift.current_dir(folder).env_clear().output().unwrap();
    let text = fs::read_to_string(folder.join("page.json"));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{error}: {output:?}"))).unwrap()
}

/// Opens the page in `folder` at `fragment` with these arguments for the browser.
fn open_page(folder: &Path, fragment: &str, arguments: &[&str]) -> Vec<u8> {
    let profile = TempDir::new().unwrap();
    let mut browser = Command::new(BROWSER.as_ref().unwrap());
    browser
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--disable-dev-shm-usage", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}#{fragment}", folder.join("page.html").display()))
        .env("HOME", profile.path())
        .stdin(Stdio::null());
    let output = browser.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// The page after its script has run.
fn page_dom(folder: &Path, fragment: &str) -> String {
    String::from_utf8(open_page(folder, fragment, &["--dump-dom"])).unwrap()
}

/// Fails if anything hostile ran, or became an element.
fn assert_harmless(dom: &str) {
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
    assert!(title.starts_with("undrift ") && !title.contains("canary"), "{title}");
    let root = dom.split("<html").nth(1).and_then(|rest| rest.split('>').next()).unwrap();
    assert!(!root.contains("canary"), "{root}");
    assert_eq!(dom.matches("<script").count(), 1, "only the page's own");
    for element in ["<img", "<svg", "<iframe", "<template", "<!--", "<link", "<object"] {
        assert!(!dom.contains(element), "{element}");
    }
    // The form is visible because the policy allowed the page's own script.
    let form = dom.split("id=\"filters\"").nth(1).map(|rest| rest.split('>').next().unwrap());
    assert!(form.is_none_or(|form| !form.contains("hidden")), "{form:?}");
}

/// The page's text about how much is shown.
fn shown_count(dom: &str) -> &str {
    let output = dom.split("id=\"shown\"").nth(1).unwrap();
    output.split('>').nth(1).unwrap().split('<').next().unwrap()
}

#[test]
fn names_that_inject_are_text() {
    if !has_browser("names_that_inject_are_text") {
        return;
    }
    let folder = manifests();
    let report = write_page(folder.path(), &["plan", ".", "--sandbox"]);
    assert_eq!(report["status"], "finished", "{report:#}");
    let steps = report["steps"].as_array().unwrap();
    assert!(steps.len() >= 7, "{report:#}");
    let dom = page_dom(folder.path(), "");
    assert_harmless(&dom);
    assert_eq!(dom.matches("<details class=\"step ").count(), steps.len(), "all steps are there");
    assert_eq!(shown_count(&dom), format!("{} in all", steps.len()));
    assert!(dom.contains("&lt;/title&gt;&lt;script&gt;"), "and what they are called is shown");
    assert!(dom.contains("Problems to fix first"), "acme/none is missing");

    let failing = format!("</h1><script>{CANARY}</script>");
    let report = write_page(folder.path(), &["plan", ".", "--sandbox", "--only", &failing]);
    assert_eq!(report["status"], "failed", "{report:#}");
    let dom = self::page_dom(folder.path(), "");
    assert_harmless(&dom);
    assert!(dom.contains("<h1>failed</h1>"), "{dom}");
}

#[test]
fn the_fragment_names_filters() {
    if !has_browser("the_fragment_names_filters") {
        return;
    }
    let folder = manifests();
    let report = write_page(folder.path(), &["plan", ".", "--sandbox"]);
    let steps = report["steps"].as_array().unwrap();
    let of = |key: &str, value: &str| steps.iter().filter(|step| step[key] == value).count();
    let in_section = steps.iter().filter(|step| step["address"]["section"] == "labels").count();
    for (fragment, number) in [
        ("action=remove", of("action", "delete")),
        ("action=create,remove", of("action", "create") + of("action", "delete")),
        ("section=labels", in_section),
        ("q=ONERROR%3D", 1),
        ("q=acme%2Fshop+push_events", 1),
        ("q=nothing-has-this", 0),
        ("section=labels&action=remove", 0),
        // An unknown filter is ignored.
        ("action=<script>&section=x&q=", steps.len()),
    ] {
        let dom = page_dom(folder.path(), fragment);
        assert_harmless(&dom);
        let visible = dom
            .split("<details class=\"step ")
            .skip(1)
            .filter(|step| !step.split('>').next().unwrap().contains("hidden"))
            .count();
        assert_eq!(visible, number, "{fragment}");
        let all = steps.len();
        let expected = if number == all {
            format!("{all} in all")
        } else {
            format!("{number} of {all} shown")
        };
        assert_eq!(shown_count(&dom), expected, "{fragment}");
    }
}

/// A page that shows the number of colours in a picture, and its average brightness.
const COUNT_COLOURS: &str = r#"<img src="data:image/png;base64,PICTURE"><output id="shown"></output><script>
onload = () => {
    const picture = document.querySelector("img"), canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data, colours = new Set();
    let light = 0;
    for (let i = 0; i < bytes.length; i += 4) {
        colours.add(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
        light += bytes[i] + bytes[i + 1] + bytes[i + 2];
    }
    document.querySelector("output").textContent = `${colours.size} ${Math.floor(light / bytes.length * 4 / 3)}`;
};
</script>"#;

/// The number of colours in a picture of the page, and its average brightness, from 0 to 255.
fn measure_picture(folder: &Path, width: u32, dark: bool) -> (usize, u64) {
    let file = folder.join("picture.png");
    let picture = format!("--screenshot={}", file.display());
    let size = format!("--window-size={width},900");
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    open_page(folder, "", &[&picture, &size, &scheme]);
    // The browser also reads the picture, so that no crate has to.
    let picture = BASE64.encode(fs::read(&file).unwrap());
    let reader = TempDir::new().unwrap();
    let page = COUNT_COLOURS.replace("PICTURE", &picture);
    fs::write(reader.path().join("page.html"), page).unwrap();
    let dom = page_dom(reader.path(), "");
    let (colours, light) = shown_count(&dom).split_once(' ').unwrap();
    (colours.parse().unwrap(), light.parse().unwrap())
}

#[test]
fn the_page_is_not_blank_in_light_and_dark() {
    if !has_browser("the_page_is_not_blank_in_light_and_dark") {
        return;
    }
    let folder = manifests();
    let report = write_page(folder.path(), &["plan", ".", "--sandbox"]);
    assert_eq!(report["status"], "finished", "{report:#}");
    for width in [500, 1600] {
        let (colours, light) = measure_picture(folder.path(), width, false);
        let (dark_colours, dark) = measure_picture(folder.path(), width, true);
        assert!(colours > 50 && dark_colours > 50, "{colours} and {dark_colours} at {width}");
        assert!(light > 200 && dark < 80, "{light} and {dark} at {width}");
    }
}
