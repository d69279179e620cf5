//! Texts on command lines: globs, selections, acknowledgements, holds, addresses of services.

use undrift::{
    address::{Address, Glob, Selector},
    api::ServiceAddress,
    desired::{Acknowledgement, Moves},
    plan::Holds,
    secret::AllowedVariables,
};

use super::run_inputs;

const SAMPLES: [&str; 14] = [
    "acme/**",
    "**#variables/TOKEN@*",
    "{acme{/old,/web},other}/*",
    "acme/s?[xyz]*",
    r"a\*b[!a-z]{c,d}",
    "removals:acme/shop#members",
    "protection:acme/shop#protected_branches/main",
    "acme/shop#members@2030-01-03",
    "**#variables/A@prod%2F*@2030-01-03",
    "SHOP_*",
    "*",
    "https://gitlab.example.org/api",
    "http://[::1]:8080/gitlab/api/v4/",
    "hook_list",
];

/// A refusal has a text, not much longer than its subject. Callers escape it when they print it.
fn check_refusal(why: &str, text: &str) {
    assert!(!why.is_empty() && why.len() <= 600 + 8 * text.len(), "{text:?}: {why:?}");
}

#[test]
fn arguments_are_read_or_refused() {
    let address =
        Address::container("acme/shop".into()).with_section("variables").with_entry("A@prod/*");
    let today = jiff::civil::date(2030, 1, 1);
    let mut selectors = 0;
    let is_usual = run_inputs("arguments", 500, |chance| {
        let text = match chance.below(4) {
            0 => chance.noise(),
            1 => {
                let (one, other) = (chance.pick(&SAMPLES), chance.pick(&SAMPLES));
                let bytes = chance.splice(one.as_bytes(), other.as_bytes());
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => {
                let sample = chance.pick(&SAMPLES);
                chance.text(sample)
            }
        };
        match Selector::parse(&text) {
            Ok(selector) => {
                selectors += 1;
                assert_eq!(selector.pattern(), text);
                // A selector for an entry also matches some object in its section and project.
                if selector.matches(&address) {
                    assert!(
                        selector.matches_path(&address.path) && selector.matches_section(&address)
                    );
                }
            }
            Err(why) => check_refusal(&why, &text),
        }
        for glob in [Glob::for_paths(&text), Glob::for_names(&text)] {
            match glob {
                Ok(glob) => drop(glob.matches("acme/shop")),
                Err(why) => check_refusal(&why, &text),
            }
        }
        let name = Glob::exact(&text);
        assert!(name.matches(&text) && !name.matches(&format!("{text}x")));
        // A name as a glob matches itself.
        if let Ok(glob) = Glob::for_names(name.pattern()) {
            assert!(glob.matches(&text), "{text:?}");
        }
        match Acknowledgement::parse(&text) {
            Ok(acknowledgement) => assert_eq!(acknowledgement.to_string(), text),
            Err(why) => check_refusal(&why, &text),
        }
        match Holds::parse([text.as_str()], today) {
            Ok((holds, _)) => drop(holds.held_until(&address, &Moves::default())),
            Err(why) => check_refusal(&why, &text),
        }
        if let Err(why) = AllowedVariables::from_globs([&text]) {
            check_refusal(&why, &text);
        }
        for insecure in [true, false] {
            if let Err(why) = ServiceAddress::parse(&text, insecure) {
                check_refusal(&why.to_string(), &text);
            }
        }
    });
    assert!(!is_usual || selectors > 120, "{selectors} selectors");
}
