//! Tests of acknowledgements.

use super::*;
use crate::desired::Guard;

#[test]
fn an_acknowledgement_is_read_as_written() {
    let text = "\
kind: Project
path: acme/shop
---
kind: Acknowledge
guard: last-owner
at: acme/*#members
at_most: 2
until: 2030-01-01
reason: INC-123
---
kind: Acknowledge
guard: visibility
at: acme/shop
";
    let loaded = load_files(&[("a.yaml", text)]);
    assert!(loaded.diagnostics.is_empty(), "{}", loaded.diagnostics.render(TextStyle::default()));
    let acknowledgements = loaded.desired.unwrap().acknowledgements;
    let texts: Vec<_> = acknowledgements.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["last-owner:acme/*#members", "visibility:acme/shop"]);
    assert_eq!(
        (
            acknowledgements[0].guard,
            acknowledgements[0].max_objects,
            acknowledgements[0].until,
            acknowledgements[0].reason.as_deref()
        ),
        (Guard::LastOwner, Some(2), Some(jiff::civil::date(2030, 1, 1)), Some("INC-123"))
    );
    assert_eq!(
        (
            acknowledgements[1].max_objects,
            acknowledgements[1].until,
            acknowledgements[1].reason.as_deref()
        ),
        (None, None, None)
    );
    assert_eq!(acknowledgements[0].origin.as_ref().unwrap().to_string(), "a.yaml:6:1");
}

#[test]
fn an_expired_acknowledgement_is_a_warning() {
    let document_until = |until: &str| {
        format!(
            "kind: Project\npath: a/b\n---\nkind: Acknowledge\nguard: removals\nat: a/b\nuntil: {until}\n"
        )
    };
    assert_eq!(faults(&[("a.yaml", &document_until("2029-12-31"))]), [("date", 7)]);
    assert!(load_files(&[("a.yaml", &document_until("2029-12-31"))]).desired.is_some());
    assert_eq!(faults(&[("a.yaml", &document_until("2030-01-01"))]), []);
    assert_eq!(faults(&[("a.yaml", &document_until("2030-13-01"))]), [("date", 7)]);
    assert!(load_files(&[("a.yaml", &document_until("2030-13-01"))]).desired.is_none());
}

#[test]
fn every_guard_can_be_acknowledged() {
    for guard in Guard::ALL {
        let text =
            format!("kind: Project\npath: a/b\n---\nkind: Acknowledge\nguard: {guard}\nat: '**'\n");
        let desired = load_files(&[("a.yaml", &text)]).desired.unwrap();
        assert_eq!(desired.acknowledgements[0].to_string(), format!("{guard}:**"));
    }
}

/// U+212A, the Kelvin sign, has fewer bytes in lower case. A byte offset in the written text may be
/// invalid in the text in lower case.
#[test]
fn an_address_that_shrinks_in_lower_case_is_read() {
    let document = "kind: Acknowledge\nat: \"acme/sho\u{212a}/x\"\nguard: removals\n";
    let text = format!("kind: Project\npath: acme/shok\n---\n{document}");
    let loaded = load_files(&[("a.yaml", &text)]);
    assert!(!loaded.diagnostics.has_errors());
}
