//! Every command in the book works, and prints what the page shows.

use std::{fs, thread};

use crate::{
    file, is_updating, pages, root,
    shown::{self, PageResult, Workspace},
};

#[test]
fn every_command_of_the_book_works() {
    let mut pages = pages();
    // Those are generated, and contain undrift's output.
    pages.retain(|page| !page.starts_with("docs/reference/"));
    let read: Vec<PageResult> = thread::scope(|scope| {
        let runs: Vec<_> = pages
            .iter()
            .map(|page| scope.spawn(|| shown::read(&file(page), &mut Workspace::new())))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let mut faults = Vec::new();
    let (mut commands, mut passed_over) = (0, 0);
    for (page, read) in pages.iter().zip(read) {
        faults.extend(read.faults.iter().map(|fault| format!("{page}:{fault}")));
        commands += read.counts.shown + read.counts.used;
        passed_over += read.counts.skipped;
        if is_updating() {
            fs::write(root().join(page), &read.fresh).unwrap();
        } else if read.fresh != file(page) {
            faults.push(format!("{page} shows something else than\n{}", read.fresh));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(commands > 60, "{commands} commands were run");
    assert_eq!(passed_over, 3, "blocks that are not run");
}

/// The conventions of [`shown`] on a small page.
#[test]
fn a_page_that_is_wrong_is_found() {
    let faults = |page: &str| shown::read(page, &mut Workspace::new()).faults.join("\n");
    assert_eq!(faults("```sh\ntrue\n```\n"), "");
    assert!(faults("\n```sh\ntrue && false\n```\n").starts_with("3: `true && false`: exit"));
    assert!(faults("```yaml\na: b\n```\n").contains("begins with its name"));
    assert!(faults("```text\nundrift plan\n```\n").contains("belong into"));
    assert!(faults("```console\nls\n```\n").contains("begins with `$ `"));
    assert!(faults("```sh\ntrue").contains("does not end"));
    assert_eq!(faults("<!-- not run: so -->\n```sh\nfalse\n```\n"), "");
    let page = "```yaml\n# a/b.yaml\nx: 1\n```\n```console\n$ cd a; export Y=2\n$ cat b.yaml; echo $Y\n```\n";
    let fresh = shown::read(page, &mut Workspace::new()).fresh;
    assert!(fresh.ends_with("$ cat b.yaml; echo $Y\nx: 1\n2\n```\n"), "{fresh}");
}
