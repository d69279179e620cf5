//! Tests of the options and the job variables of `undrift comment`.

use super::*;

fn env(pairs: &[(&str, &str)]) -> Environment {
    Environment::default()
        .with_variables(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn args(project: Option<&str>, merge_request: Option<u64>) -> Args {
    Args {
        report: Vec::new(),
        project: project.map(str::to_owned),
        merge_request,
        config: None,
        connect: ConnectArgs::default(),
    }
}

#[test]
fn options_for_the_merge_request_override_job_variables() {
    let (merge_request_project, job_project) =
        (("CI_MERGE_REQUEST_PROJECT_ID", "12"), ("CI_PROJECT_ID", "34"));
    let number = ("CI_MERGE_REQUEST_IID", "7");
    for (project, merge_request, job_variables, expected) in [
        (None, None, vec![merge_request_project, job_project, number], Ok(("12", 7))),
        (None, None, vec![job_project, number], Ok(("34", 7))),
        (None, Some(8), vec![merge_request_project, number], Ok(("12", 8))),
        (Some("acme/shop"), Some(8), vec![merge_request_project, number], Ok(("acme/shop", 8))),
        (Some(" "), Some(8), vec![merge_request_project, number], Err(3)),
        (None, None, vec![merge_request_project, job_project], Err(3)),
        (None, None, vec![number], Err(3)),
        (None, Some(8), vec![], Err(3)),
    ] {
        let target = args(project, merge_request).target(&env(&job_variables));
        let actual = target.map_err(|failure| failure.exit.code());
        let expected = expected.map(|(project, merge_request)| MergeRequestRef {
            project: project.to_owned(),
            merge_request,
        });
        assert_eq!(actual, expected, "{project:?} {merge_request:?} {job_variables:?}");
    }
}

#[test]
fn invalid_variables_of_the_job_are_refused() {
    for value in ["0", "-1", "+7", "7/../8", "7 ", "x", "1e3", "99999999999999999999999", "\u{661}"]
    {
        for name in ["CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID", "CI_MERGE_REQUEST_IID"] {
            let mut job_variables = vec![("CI_PROJECT_ID", "1"), ("CI_MERGE_REQUEST_IID", "2")];
            job_variables.retain(|(other, _)| *other != name);
            job_variables.push((name, value));
            let failure = args(None, None).target(&env(&job_variables)).unwrap_err();
            let text = failure.error.unwrap().to_string();
            assert!(failure.exit == Exit::Usage && text.contains(name), "{name}={value}: {text}");
        }
    }
}

#[test]
fn only_reports_written_by_undrift_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.md");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        read_report(&path).map_err(|failure| failure.error.unwrap().to_string())
    };
    let marker = "plan".parse::<Marker>().unwrap();
    let good = format!("{marker}\nplan: nothing\n// no command\n /close neither\n");
    assert_eq!(read(good.as_bytes()), Ok((marker.clone(), good)));
    let report_above_limit = |extra_chars: usize| {
        let start = format!("{marker}\n");
        let char_count = MAX_BODY_CHARS - start.chars().count() + extra_chars;
        start + &"ü".repeat(char_count)
    };
    assert!(read(report_above_limit(0).as_bytes()).is_ok());
    for (bytes, words) in [
        (report_above_limit(1).into_bytes(), "more than 1000000 characters"),
        (vec![b'x'; 4 * MAX_BODY_CHARS + 1], "more than 1000000 characters"),
        (b"plan: nothing\n".to_vec(), "not a marker"),
        (Vec::new(), "not a marker"),
        (vec![0xff], "not UTF-8"),
        (format!("{marker}\na\n/merge\n").into_bytes(), "plan.md`:3:"),
    ] {
        let reason = read(&bytes).unwrap_err();
        assert!(reason.contains(words), "{words}: {reason}");
    }
    assert!(read_report(&folder.path().join("missing")).is_err());
}

#[test]
fn several_reports_become_one_comment() {
    let folder = tempfile::tempdir().unwrap();
    let marker = "plan".parse::<Marker>().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let first_file = file("one.md", format!("{marker}\n### one\n"));
    let second_file = file("two.md", format!("{marker}\n### two\n"));
    let other_file = file("other.md", "<!-- undrift:other -->\n### other\n".to_owned());
    let half_file = file("half.md", format!("{marker}\n{}\n", "x".repeat(MAX_BODY_CHARS / 2)));
    let read = |paths: &[&PathBuf]| {
        let paths: Vec<_> = paths.iter().map(|path| (*path).clone()).collect();
        let read = read_reports(&paths).map(|(marker, texts)| (marker, texts.concat()));
        read.map_err(|failure| failure.error.unwrap().to_string())
    };
    let joined_text = format!("{marker}\n### one\n\n### two\n");
    assert_eq!(read(&[&first_file, &second_file]), Ok((marker, joined_text)));
    for (wrong, words) in [
        ([&first_file, &other_file], "other.md` has another marker"),
        ([&half_file, &half_file], "the reports together: more than 1000000 characters"),
    ] {
        let reason = read(&wrong).unwrap_err();
        assert!(reason.contains(words), "{words}: {reason}");
    }
}
