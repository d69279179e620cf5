#[test]
fn scratch() {
    let start = std::time::Instant::now();
    let loaded = super::load(std::path::Path::new("/tmp/big"));
    eprintln!("{:?} {} {:?}", start.elapsed(), loaded.files.len(), loaded.diagnostics.summary());
}
