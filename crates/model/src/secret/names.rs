//! The environment variables that a manifest may name.

use crate::address::Glob;

/// Prefixes of variables that belong to the CI system and to undrift. Some of these variables
/// contain tokens.
pub const RESERVED_PREFIXES: [&str; 3] = ["CI_", "GITLAB_", "UNDRIFT_"];

/// The variable in which the CI system stores the token of the job.
pub const JOB_TOKEN_VARIABLE: &str = "CI_JOB_TOKEN";

/// All variables of the CI system whose value is or contains the token of the job.
const JOB_TOKEN_VARIABLES: [&str; 5] = [
    JOB_TOKEN_VARIABLE,
    "CI_REGISTRY_PASSWORD",
    "CI_REPOSITORY_URL",
    "CI_BUILD_TOKEN",
    "CI_DEPENDENCY_PROXY_PASSWORD",
];

/// The reserved prefixes of variables that the caller of undrift may allow.
const ALLOWABLE_PREFIXES: [&str; 2] = ["CI_", "GITLAB_"];

/// The environment variables with undrift's own token. Their values are never sent to the service,
/// even if a command line names them.
pub(super) const OWN_TOKEN_VARIABLES: [&str; 3] =
    ["UNDRIFT_TOKEN", "GITLAB_TOKEN", "UNDRIFT_SANDBOX_TOKEN"];

/// True if `name` belongs to the CI system or undrift, so that manifests must not name it by default.
pub fn is_reserved(name: &str) -> bool {
    RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The prefix of a reserved name that the caller of undrift may allow; `None` if nobody may allow
/// the name.
pub fn allowable_prefix(name: &str) -> Option<&'static str> {
    let is_token = OWN_TOKEN_VARIABLES.contains(&name)
        || JOB_TOKEN_VARIABLES.contains(&name)
        || name.starts_with("CI_JOB_JWT");
    ALLOWABLE_PREFIXES.into_iter().find(|prefix| !is_token && name.starts_with(prefix))
}

/// The environment variables that manifests may name. These are the variables that match a glob.
/// Without globs, they are all variables that are not reserved.
#[derive(Clone, Debug, Default)]
pub struct AllowedVariables(Option<Vec<Glob>>);

impl AllowedVariables {
    /// Allows only names that one of `globs` matches.
    ///
    /// # Errors
    /// If a glob is invalid: the reason.
    pub fn from_globs<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, String> {
        let globs = globs.into_iter().map(|glob| {
            let glob = glob.as_ref();
            Glob::for_names(glob).map_err(|reason| format!("`{glob}`: {reason}"))
        });
        globs.collect::<Result<_, _>>().map(|globs| Self(Some(globs)))
    }

    /// True if `name` is reserved and not allowed. A glob allows a reserved name only if the glob
    /// starts with the same prefix. For example, `*` allows no reserved name.
    pub fn refuses_reserved(&self, name: &str) -> bool {
        let mut globs = self.0.iter().flatten();
        let is_allowed = allowable_prefix(name).is_some_and(|prefix| {
            globs.any(|glob| glob.pattern().starts_with(prefix) && glob.matches(name))
        });
        is_reserved(name) && !is_allowed
    }

    /// The globs, as written.
    pub fn patterns(&self) -> Vec<&str> {
        self.0.iter().flatten().map(Glob::pattern).collect()
    }

    /// True if a glob matches `name`, or if there are no globs.
    pub fn matches_globs(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|globs| globs.iter().any(|glob| glob.matches(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_ci_system_and_undrift_are_reserved() {
        for name in ["CI_JOB_TOKEN", "GITLAB_USER_LOGIN", "UNDRIFT_TOKEN"]
            .into_iter()
            .chain(OWN_TOKEN_VARIABLES)
        {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["CI", "CIRCLE_TOKEN", "MY_CI_TOKEN", "GITLABTOKEN", "DEPLOY_TOKEN"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn globs_allow_only_matching_names() {
        let allowed_variables = AllowedVariables::from_globs(["SHOP_*", "{A,B}_TOKEN"]).unwrap();
        let allowed_names = ["SHOP_KEY", "SHOP_", "shop_key", "MY_SHOP_KEY", "B_TOKEN", "C_TOKEN"]
            .map(|name| allowed_variables.matches_globs(name));
        assert_eq!(allowed_names, [true, true, false, false, true, false]);
        assert!(
            AllowedVariables::default().matches_globs("ANYTHING")
                && !AllowedVariables::from_globs([""; 0]).unwrap().matches_globs("ANYTHING")
        );
        let reserved_globs =
            AllowedVariables::from_globs(["*", "CI_DEPLOY_*", "CI_JOB_*", "GITLAB_*", "UNDRIFT_*"])
                .unwrap();
        let refusals =
            ["CI_DEPLOY_KEY", "GITLAB_BOT", "SHOP", "CI_JOB_TOKEN", "GITLAB_TOKEN", "UNDRIFT_URL"]
                .map(|name| reserved_globs.refuses_reserved(name));
        assert_eq!(refusals, [false, false, false, true, true, true]);
        assert!(
            AllowedVariables::default().refuses_reserved("CI_DEPLOY_KEY")
                && !AllowedVariables::default().refuses_reserved("SHOP")
        );
        assert!(AllowedVariables::from_globs(["SHOP_["]).unwrap_err().starts_with("`SHOP_[`: "));
    }
}
