//! Tests of pages without a browser. The tests in `tests/cli/browser.rs` use a browser.

use super::*;
use crate::{
    report::{terminal::tests::partly_shared_plan, testing::ReportFixture},
    secret::Secret,
};

fn render_report(report: &Report<'_>) -> String {
    super::render(report, &Secrets::default())
}

#[test]
fn a_page_loads_nothing_and_closes_its_elements() {
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
    // Browsers convert other line ends before they compute the digests, so the text must not
    // contain them.
    assert!(!SCRIPT.contains('\r') && !STYLE.contains('\r'));
    for reference in ["http:", "https:", "@import", "url("] {
        assert!(!SCRIPT.contains(reference) && !STYLE.contains(reference), "{reference}");
    }
    ReportFixture::new().labelled().for_each_report(|name, report| {
        let page = render_report(report);
        for element in [
            "details", "section", "article", "table", "tr", "td", "ul", "li", "code", "p", "span",
            "main",
        ] {
            let (open_count, close_count) = (
                page.matches(&format!("<{element}>")).count()
                    + page.matches(&format!("<{element} ")).count(),
                page.matches(&format!("</{element}>")).count(),
            );
            assert_eq!(open_count, close_count, "{element} in {name}");
        }
        assert_eq!(page, render_report(report), "the same bytes: {name}");
    });
}

#[test]
fn a_page_shows_the_result_and_the_acknowledgements() {
    let fixture = ReportFixture::new();
    let failed = fixture.render_named("failed", render_report);
    assert!(failed.contains("<h1>failed</h1>") && failed.contains("exit code 3"), "{failed}");
    assert!(fixture.render_named("unfinished", render_report).contains("<h1>not finished</h1>"));
    let plan = fixture.render_named("plan", render_report);
    let copied = "<code class=\"copied\">--ack &#39;removals:acme/shop#hooks&#39;</code>";
    assert!(plan.contains(copied) && plan.contains("acknowledged: INC-123"), "{plan}");
    let applied = fixture.render_named("apply", render_report);
    assert!(applied.contains("data-outcome=\"left out\""), "{applied}");
    assert!(
        applied.contains("<b>0</b> created") && applied.contains("<h1>partly applied: "),
        "{applied}"
    );
}

/// The filters count a folded step as often as it occurs.
#[test]
fn every_step_is_counted_once() {
    let mut fixture = ReportFixture::new();
    fixture.plan = partly_shared_plan();
    let page = fixture.render_named("plan", render_report);
    let step_count: usize = page
        .split("<article")
        .skip(1)
        .map(|article| {
            let times =
                article.strip_prefix(" data-times=\"").and_then(|rest| rest.split('"').next());
            let times: usize = times.map_or(1, |times| times.parse().unwrap());
            times * article.matches("<details class=\"step ").count()
        })
        .sum();
    assert_eq!(step_count, fixture.plan.steps.len(), "{page}");
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
