//! One line for each finding, for editors and `grep`: `file:line:col: code: message`.

use super::model::{Item, Report};
use crate::{secret::Secrets, text::escape};

/// The findings of `report`, without `secrets`; empty if there are none.
pub fn report(report: &Report<'_>, secrets: &Secrets) -> String {
    report.items().iter().map(|item| line(item, report.manifests, secrets)).collect()
}

fn line(item: &Item<'_>, manifests: &str, secrets: &Secrets) -> String {
    let place = match item.place {
        Some((file, Some((line, column)))) => format!("{file}:{line}:{column}"),
        Some((file, None)) => file.to_owned(),
        None => manifests.to_owned(),
    };
    let about = item.address.map(|address| format!("{address}: ")).unwrap_or_default();
    let text = format!("{place}: {}: {about}{}", item.code, item.message);
    escape(&secrets.redact(&text)).into_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::testing::World, secret::Secret};

    #[test]
    fn each_finding_is_a_line_with_its_place_and_code() {
        let written = |name: &str| {
            World::new().written(name, |report| super::report(report, &Secrets::default()))
        };
        insta::assert_snapshot!(written("plan"), @r#"
        shop.yaml:17:3: guard-visibility: acme/shop#hooks: visibility: would remove 6 entries of 8; the limit is 5
        shop.yaml:17:3: guard-removals: acme/shop#hooks: removals: would remove 6 entries of 8; the limit is 5
        shop.yaml:2:3: missing-project: acme/shop: the project `acme/shop` does not exist
        shop.yaml:3:1: unknown-field: unknown field `visiblity`
        ./manifests: not-read: acme/shop#variables: variable-list: answered 403
        ./manifests: deprecated: `wiki_enabled` is deprecated
        "#);
        assert_eq!(
            written("failed").lines().next(),
            Some("./manifests: failed: no service address given")
        );
    }

    #[test]
    fn no_secret_is_in_a_line() {
        let mut secrets = Secrets::default();
        secrets.also_redact(Secret::new("would remove 6 entries"));
        World::new().each(|name, report| {
            let text = super::report(report, &secrets);
            assert!(!text.contains("would remove"), "{name}: {text}");
        });
    }
}
