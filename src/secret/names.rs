//! Which environment variables a manifest may name.

use crate::address::Glob;

/// The beginnings of the names that belong to the CI system and to undrift. Some of them hold
/// tokens.
const RESERVED: [&str; 3] = ["CI_", "GITLAB_", "UNDRIFT_"];

/// The environment variables that hold undrift's own token. No command line sends them anywhere.
pub(super) const TOKEN_NAMES: [&str; 3] =
    ["UNDRIFT_TOKEN", "GITLAB_TOKEN", "UNDRIFT_SANDBOX_TOKEN"];

/// Whether `name` belongs to the CI system or to undrift, so that no manifest may name it.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.iter().any(|beginning| name.starts_with(beginning))
}

/// The environment variables that manifests may name, besides what is reserved: some, by globs, or
/// all.
#[derive(Clone, Debug, Default)]
pub struct Allowed(Option<Vec<Glob>>);

impl Allowed {
    /// Only those that one of `globs` matches.
    ///
    /// # Errors
    /// What is wrong with a glob, as text.
    pub fn only<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let glob = |written: S| {
            Glob::over_names(written.as_ref())
                .map_err(|why| format!("`{}`: {why}", written.as_ref()))
        };
        globs.into_iter().map(glob).collect::<Result<_, _>>().map(|globs| Self(Some(globs)))
    }

    /// Whether `name` is one of them.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_others_is_reserved() {
        for name in
            ["CI_JOB_TOKEN", "GITLAB_USER_LOGIN", "UNDRIFT_TOKEN"].into_iter().chain(TOKEN_NAMES)
        {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["CI", "CIRCLE_TOKEN", "MY_CI_TOKEN", "GITLABTOKEN", "DEPLOY_TOKEN"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn globs_allow_what_they_match_and_nothing_else() {
        let allowed = Allowed::only(["SHOP_*", "{A,B}_TOKEN"]).unwrap();
        let held = ["SHOP_KEY", "SHOP_", "shop_key", "MY_SHOP_KEY", "B_TOKEN", "C_TOKEN"]
            .map(|name| allowed.holds(name));
        assert_eq!(held, [true, true, false, false, true, false]);
        assert!(
            Allowed::default().holds("ANYTHING")
                && !Allowed::only([""; 0]).unwrap().holds("ANYTHING")
        );
        assert!(Allowed::only(["SHOP_["]).unwrap_err().starts_with("`SHOP_[`: "));
    }
}
