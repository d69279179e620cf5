//! The size of the sample that slow tests play: faults × requests, fields × dialects.

/// True to play all of it (`UNDRIFT_TESTS=all`), or the fixed sample of `tests/README.md`.
pub(crate) fn plays_all() -> bool {
    std::env::var_os("UNDRIFT_TESTS").is_some_and(|tests| tests == "all")
}
