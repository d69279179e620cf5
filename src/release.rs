//! Releases of the service: what a field needs, and what is known of the service at hand.

pub use undrift_release::{REFERENCE, Release, time_zone};

/// What is known of the release of the service at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// Nobody asked yet.
    #[default]
    NotAsked,
    /// The service does not tell.
    Hidden,
    /// It is this one.
    Is(Release),
}

impl Known {
    /// Whether the service is known to be of `release` or a later one.
    pub fn has(self, release: Release) -> bool {
        matches!(self, Self::Is(known) if known >= release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_release_has_what_it_brought() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        assert!(Known::Is(release("16.9")).has(release("16.9")));
        assert!(!Known::Is(release("16.8")).has(release("16.9")) && !Known::Hidden.has(REFERENCE));
    }
}
