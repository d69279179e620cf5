//! Reads files named by an argument or a variable completely, up to a limit, so that no path can
//! fill the memory.

use std::{fs::File, io::Read as _, path::Path};

use super::exit::Failure;

/// The bytes of the file at `path`, at most `most`.
///
/// # Errors
/// If it cannot be read or is larger; neither quotes its content.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))?;
    if bytes.len() as u64 > most {
        let path = path.display();
        return Err(Failure::usage(format!("`{path}` is larger than {} KiB", most >> 10)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0; 2048]).unwrap();
        assert_eq!(read(file.path(), 2048).unwrap().len(), 2048);
        for (path, why) in
            [(file.path(), "larger than 1 KiB"), (Path::new("/nonexistent"), "cannot")]
        {
            let failure = read(path, 1024).unwrap_err();
            assert!(format!("{:#}", failure.error.unwrap()).contains(why), "{why}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_never_ends_is_too_large() {
        assert!(read(Path::new("/dev/zero"), 64 << 10).is_err());
    }
}
