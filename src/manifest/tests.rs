#[test]
fn scratch() {
    let (text, code) = super::check_report(std::path::Path::new("/tmp/m1"), crate::diagnostic::Style::default());
    panic!("{code}\n{text}");
}
