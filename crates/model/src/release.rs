//! Releases of the service: the release that a field needs, and the detected release of the
//! service.

pub use undrift_release::{REFERENCE, Release, time_zone};

/// The release of the service, if it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DetectedRelease {
    /// The release was not requested yet.
    #[default]
    NotRequested,
    /// The service does not show its release.
    Hidden,
    /// The release is known.
    Known(Release),
}

impl DetectedRelease {
    /// The release, if it is known.
    pub const fn release(self) -> Option<Release> {
        if let Self::Known(release) = self { Some(release) } else { None }
    }

    /// True if the release of the service is known and at least `release`.
    pub fn is_at_least(self, release: Release) -> bool {
        matches!(self, Self::Known(detected) if detected >= release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_release_is_new_enough() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        assert!(DetectedRelease::Known(release("16.9")).is_at_least(release("16.9")));
        assert!(
            !DetectedRelease::Known(release("16.8")).is_at_least(release("16.9"))
                && !DetectedRelease::Hidden.is_at_least(REFERENCE)
        );
    }
}
