//! Selects the keys of responses that are kept.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

/// Selects the keys that are kept of the objects in a response. A project has 130 keys, but a plan
/// needs only a few of these keys. Nested values are kept whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyFilter {
    /// All keys.
    #[default]
    All,
    /// Only these keys.
    Keys(Arc<BTreeSet<Cow<'static, str>>>),
}

impl KeyFilter {
    /// A filter that only keeps `keys`.
    pub fn keys<K: Into<Cow<'static, str>>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self::Keys(Arc::new(keys.into_iter().map(Into::into).collect()))
    }

    /// Also keeps `keys`.
    #[must_use]
    pub fn with_keys(mut self, keys: &[&'static str]) -> Self {
        if let Self::Keys(kept_keys) = &mut self
            && !keys.iter().all(|key| kept_keys.contains(*key))
        {
            Arc::make_mut(kept_keys).extend(keys.iter().map(|key| Cow::Borrowed(*key)));
        }
        self
    }

    /// True if `key` is kept.
    pub fn keeps(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Keys(keys) => keys.contains(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_keys_are_kept_too() {
        let key_filter = KeyFilter::keys(["id", "path"]);
        let shared_filter = key_filter.clone();
        let wider_filter = key_filter.with_keys(&["id", "name"]);
        assert_eq!(
            ["id", "path", "name", "other"].map(|key| wider_filter.keeps(key)),
            [true, true, true, false]
        );
        assert!(!shared_filter.keeps("name"), "others who share it are not told");
        assert_eq!(KeyFilter::All.with_keys(&["id"]), KeyFilter::All);
        assert!(KeyFilter::All.keeps("anything"));
    }
}
