//! Tests of pages without a browser; `tests/cli/browser.rs` uses one.

use super::*;
use crate::{
    report::{terminal::tests::partly_shared, testing::ReportFixture},
    secret::Secret,
};

fn render_report(report: &Report<'_>) -> String {
    super::render(report, &Secrets::default())
}

#[test]
fn a_page_brings_all_that_it_needs_and_ends_what_it_begins() {
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
    // The digests are of the text as browsers see it: they convert other line ends.
    assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'));
    for elsewhere in ["http:", "https:", "@import", "url("] {
        assert!(!SCRIPT.contains(elsewhere) && !STYLE.contains(elsewhere), "{elsewhere}");
    }
    ReportFixture::new().labelled().for_each_report(|name, report| {
        let page = render_report(report);
        for element in [
            "details", "section", "article", "table", "tr", "td", "ul", "li", "code", "p", "span",
            "main",
        ] {
            let (opened, closed) = (
                page.matches(&format!("<{element}>")).count()
                    + page.matches(&format!("<{element} ")).count(),
                page.matches(&format!("</{element}>")).count(),
            );
            assert_eq!(opened, closed, "{element} in {name}");
        }
        assert_eq!(page, render_report(report), "the same bytes: {name}");
    });
}

#[test]
fn a_page_shows_the_result_and_the_acknowledgements() {
    let world = ReportFixture::new();
    let failed = world.render_named("failed", render_report);
    assert!(failed.contains("<h1>failed</h1>") && failed.contains("exit code 3"), "{failed}");
    assert!(world.render_named("unfinished", render_report).contains("<h1>not finished</h1>"));
    let plan = world.render_named("plan", render_report);
    let copied = "<code class=\"copied\">--ack &#39;removals:acme/shop#hooks&#39;</code>";
    assert!(plan.contains(copied) && plan.contains("acknowledged: INC-123"), "{plan}");
    let applied = world.render_named("apply", render_report);
    assert!(applied.contains("data-outcome=\"left out\""), "{applied}");
    assert!(
        applied.contains("<b>0</b> created") && applied.contains("<h1>partly applied: "),
        "{applied}"
    );
}

/// The filters count a folded step as often as it occurs.
#[test]
fn every_step_is_counted_once() {
    let mut world = ReportFixture::new();
    world.plan = partly_shared();
    let page = world.render_named("plan", render_report);
    let counted: usize = page
        .split("<article")
        .skip(1)
        .map(|article| {
            let times =
                article.strip_prefix(" data-times=\"").and_then(|rest| rest.split('"').next());
            let times: usize = times.map_or(1, |times| times.parse().unwrap());
            times * article.matches("<details class=\"step ").count()
        })
        .sum();
    assert_eq!(counted, world.plan.steps.len(), "{page}");
    assert_eq!(page.matches("variables/COMPANY@*").count(), 1, "{page}");
    assert!(page.contains("the same in 4 more projects"), "{page}");
}

#[test]
fn no_secret_is_in_a_page() {
    let mut secrets = Secrets::default();
    for secret in ["would remove 6 entries", "Where customers buy", "What should have"] {
        secrets.add_redaction(Secret::new(secret));
    }
    ReportFixture::new().for_each_report(|name, report| {
        let page = super::render(report, &secrets);
        for secret in ["would remove", "customers", "should have"] {
            assert!(!page.contains(secret), "{name}: {page}");
        }
    });
}
