//! The possible differences from the real service: dialects and faults, for tests.
//!
//! Sometimes neither the reference nor the real service shows how the service behaves. Then the
//! sandbox has two behaviours. The second behaviour is a dialect, and a client must work with both
//! behaviours. Faults are single failures, each for certain calls. Dialects and faults cannot be
//! set over the network.

use crate::prelude::*;

/// The release whose code was tested. Facts that contradict the reference and are known only from
/// this code hold from this release on. The release in which the behaviour really changed is not
/// known.
pub const OBSERVED_RELEASE: Release = Release::new(18, 9);

/// The differences from a faithful service. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The release. Setting it does not change the dialects; [`Profile::with_release`] sets both.
    pub release: Release,
    /// The maximum length of a page, even if `per_page` is larger.
    pub page_cap: Option<usize>,
    /// Every object in a response has an additional key that the reference does not name.
    pub unknown_extra_keys: bool,
    /// Keys with the value null are missing from objects.
    pub drop_null_keys: bool,
    /// PUT of a hook or variable resets the flags that the request does not contain to their
    /// defaults.
    pub put_resets_omitted_flags: bool,
    /// The response to deleting a hook or push rule that does not exist.
    pub absent_delete: AbsentDelete,
    /// Topics come in reverse order instead of sorted.
    pub reverse_topics: bool,
    /// Every new project gets a bot among its members.
    pub bots_among_members: bool,
    /// The name of a project attribute that is accepted with 200 and ignored. The attribute cannot
    /// be the name, the path, the visibility or the avatar.
    pub drop_attribute: Option<String>,
    /// The full form of a project has only the attributes in the reference (1, 2.8).
    pub unlisted_attributes_hidden: bool,
    /// PUT of a variable needs no `value`, as in newer releases.
    pub optional_variable_value: bool,
    /// PUT of a group's variable respects the filter by environment scope, as in 16.9 and later
    /// releases.
    pub group_variable_filter: bool,
    /// DELETE of a project or group only marks the object. The object can be restored for this many
    /// days. Before 18.0 this needs Premium. From 16.0 on, `None` means the default delay of the
    /// release.
    pub deletion_delay: Option<u32>,
    /// The duration of forks and imports, by the sandbox's clock.
    pub import_delay: Duration,
    /// The error with which forks, imports and pulls by mirrors fail; `None` if they succeed.
    pub import_failure: Option<String>,
    /// The time from the creation of the first branch until the service protects the branch.
    pub protection_delay: Duration,
    /// The time until housekeeping can be started again.
    pub housekeeping_lease: Duration,
    /// True if gists can be imported; in the reference this is off by default (1, 9).
    pub gists: bool,
    /// Groups show `shared_runners_setting`, as in 16.2 and later releases.
    pub runners_setting_shown: bool,
    /// Starring and unstarring answer with 200 instead of 201.
    pub star_answers_ok: bool,
    /// Importing members answers with 201, as the real service does. The reference has 200 (2,
    /// 4.4).
    pub import_members_created: bool,
    /// Archiving a project that is archived already fails with 400, as in 18.9. The reference calls
    /// archiving idempotent.
    pub archive_twice_refused: bool,
    /// POST /projects accepts only the attributes in the reference's table, and ignores eight more
    /// that the real service accepts.
    pub accepts_only_reference_attributes: bool,
    /// An empty project has no default branch, as in a recording of 2020.
    pub empty_has_no_branch: bool,
    /// Calls for settings, hooks, members and push rules of an archived project fail with 403, like
    /// calls for its variables.
    pub archived_read_only: bool,
    /// Maintainers of a project may add owners to it.
    pub maintainer_grants_owner: bool,
    /// Maintainers may set and remove the relation of a fork.
    pub maintainer_relates_forks: bool,
    /// PUT of a member without `expires_at` clears the expiry date.
    pub put_clears_expiry: bool,
    /// Removing the last owner fails with 400 instead of 403.
    pub last_owner_bad_request: bool,
    /// `owner` of a project has only the three fields of the reference (1, 2.8).
    pub owner_has_three_fields: bool,
    /// Failed calls for forks, push rules and deploy keys have the response bodies of 17.0 and later
    /// releases.
    pub errors_as_after_16: bool,
    /// The value of a masked variable may contain only the characters that the reference lists for
    /// masked values. Without this switch, raw variables may contain other characters.
    pub raw_values_need_plain_alphabet: bool,
    /// A call for a feature that needs a higher licence fails with 403 instead of 404.
    pub unlicensed_forbidden: bool,
    /// Developers may read protected branches also before 16.0.
    pub developers_read_protections: bool,
    /// Protected tags accept only a level and ignore `allowed_to_create`. The behaviour before 16.1
    /// is not known.
    pub tag_allowed_to_create_ignored: bool,
    /// PATCH of a protected branch that does not contain `code_owner_approval_required` does not change
    /// this field, as in 18.9. The first release with this behaviour is not known.
    pub code_owner_approval_kept: bool,
    /// The level of a member can be overridden only if the member comes from a directory. Other
    /// calls fail with 403. No member of the sandbox comes from a directory.
    pub override_needs_directory: bool,
    /// The service refuses `public` as `requirements_access_level`. The reference both allows and
    /// forbids this value (2, 4.3).
    pub requirements_never_public: bool,
    /// Calls with the former path of a moved project still work, as before 16.4. Otherwise reads
    /// redirect to the project's id, and writes are refused.
    pub former_paths_answer: bool,
    /// Some values are stored in another spelling. URLs of hooks get their host in lower case, and
    /// a `/` for an empty path. Names and descriptions lose the spaces at their ends.
    pub normalizes_values: bool,
    /// Every refusal in JSON quotes the whole body of its request.
    pub echoes_input: bool,
    /// Failures of connections; a [`Model`](super::Model) has no connections and ignores them.
    pub faults: Vec<InjectedFault>,
}

impl Profile {
    /// The profile for a release, with the dialects that are certain for it.
    pub fn with_release(self, release: Release) -> Self {
        let is_at_least = |major, minor| release >= Release::new(major, minor);
        // Facts from tests of the code of 18.9.
        let is_observed_release_or_later = release >= OBSERVED_RELEASE;
        Self {
            release,
            // The behaviour is known from 16.1 on.
            tag_allowed_to_create_ignored: self.tag_allowed_to_create_ignored
                && !is_at_least(16, 1),
            import_members_created: self.import_members_created || is_observed_release_or_later,
            last_owner_bad_request: self.last_owner_bad_request && !is_observed_release_or_later,
            maintainer_grants_owner: self.maintainer_grants_owner && !is_observed_release_or_later,
            maintainer_relates_forks: self.maintainer_relates_forks && !is_at_least(16, 5),
            override_needs_directory: self.override_needs_directory || is_observed_release_or_later,
            put_clears_expiry: self.put_clears_expiry && !is_observed_release_or_later,
            runners_setting_shown: self.runners_setting_shown || is_at_least(16, 2),
            group_variable_filter: self.group_variable_filter || is_at_least(16, 9),
            errors_as_after_16: self.errors_as_after_16 || is_at_least(17, 0),
            // From 17.4 on, variables can be hidden. A client cannot read the value of a hidden
            // variable, so it cannot repeat the value in a PUT.
            optional_variable_value: self.optional_variable_value || is_at_least(17, 4),
            archive_twice_refused: self.archive_twice_refused || is_observed_release_or_later,
            code_owner_approval_kept: self.code_owner_approval_kept || is_observed_release_or_later,
            absent_delete: if is_observed_release_or_later {
                AbsentDelete::NotFound
            } else {
                self.absent_delete
            },
            put_resets_omitted_flags: self.put_resets_omitted_flags
                && !is_observed_release_or_later,
            raw_values_need_plain_alphabet: self.raw_values_need_plain_alphabet
                && !is_observed_release_or_later,
            requirements_never_public: self.requirements_never_public
                || is_observed_release_or_later,
            unlisted_attributes_hidden: self.unlisted_attributes_hidden
                && !is_observed_release_or_later,
            accepts_only_reference_attributes: self.accepts_only_reference_attributes
                && !is_observed_release_or_later,
            archived_read_only: self.archived_read_only && !is_observed_release_or_later,
            former_paths_answer: self.former_paths_answer && !is_at_least(16, 4),
            star_answers_ok: self.star_answers_ok && !is_observed_release_or_later,
            empty_has_no_branch: self.empty_has_no_branch && !is_observed_release_or_later,
            ..self
        }
    }

    /// True if the profile changes the responses of handlers.
    pub(crate) fn changes_answers(&self) -> bool {
        self.unknown_extra_keys || self.drop_null_keys || self.reverse_topics
    }
}

/// The response to deleting an object that does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AbsentDelete {
    /// 204: the reference calls these deletes idempotent (reference 2, 4.5 and 4.6).
    #[default]
    NoContent,
    /// 404, as the real service does.
    NotFound,
}

/// One failure, and the calls that it affects.
#[derive(Clone, Debug)]
pub struct InjectedFault {
    /// The method of the affected calls; `None` for any method.
    pub method: Option<Method>,
    /// A text that the path and query of the affected calls contain, as sent.
    pub path_contains: String,
    /// The number of the affected call among the matching calls, from 1; 0 for all matching calls.
    pub nth: u32,
    /// The effect on these calls.
    pub effect: FaultEffect,
}

/// The effect of a fault on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEffect {
    /// The connection is closed, and the call is not executed.
    DropBefore,
    /// The call is executed, then the connection is closed without a response.
    CommitThenDrop,
    /// The response has this status and an error body. The call is not executed.
    StatusBefore(u16),
    /// The response is 400, as if another call had just created the same topic. The call is not
    /// executed.
    DuplicateTopic,
    /// The call is executed, then answered with this status and an error body.
    StatusAfter(u16),
    /// The response is 429 with this `Retry-After`, if set. The call is not executed.
    TooManyRequests(Option<String>),
    /// The response is 200 with a page of HTML, as from a proxy. The call is not executed.
    Html200,
    /// The call is executed, and the connection is closed in the middle of the response.
    Truncate,
    /// The call is executed, and the response keeps the status but loses the body.
    EmptyBody,
    /// The response is 302 to this address. The call is not executed.
    Redirect(String),
}

/// The faults of a running service, each with the number of calls that matched.
#[derive(Debug, Default)]
pub(crate) struct InjectedFaults(Mutex<Vec<(InjectedFault, u32)>>);

impl InjectedFaults {
    pub(crate) fn new(faults: Vec<InjectedFault>) -> Self {
        Self(Mutex::new(faults.into_iter().map(|fault| (fault, 0)).collect()))
    }

    pub(crate) fn add(&self, fault: InjectedFault) {
        self.lock_faults().push((fault, 0));
    }

    /// Counts the call, and returns the effect of the first fault that affects it.
    pub(crate) fn match_call(&self, method: &Method, target: &str) -> Option<FaultEffect> {
        let mut effect = None;
        for (fault, match_count) in self.lock_faults().iter_mut() {
            let matches = fault.method.as_ref().is_none_or(|fault_method| fault_method == method)
                && target.contains(&fault.path_contains);
            if matches {
                *match_count += 1;
                if (fault.nth == 0 || fault.nth == *match_count) && effect.is_none() {
                    effect = Some(fault.effect.clone());
                }
            }
        }
        effect
    }

    fn lock_faults(&self) -> std::sync::MutexGuard<'_, Vec<(InjectedFault, u32)>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_affects_only_the_matching_call() {
        let faults = InjectedFaults::new(vec![InjectedFault {
            method: Some(Method::POST),
            path_contains: "/hooks".to_owned(),
            nth: 2,
            effect: FaultEffect::CommitThenDrop,
        }]);
        let calls = [
            (Method::POST, "/projects/1/hooks", false),
            (Method::GET, "/projects/1/hooks", false),
            (Method::POST, "/projects/1/variables", false),
            (Method::POST, "/projects/1/hooks", true),
            (Method::POST, "/projects/1/hooks", false),
        ];
        for (method, target, is_affected) in calls {
            assert_eq!(
                faults.match_call(&method, target).is_some(),
                is_affected,
                "{method} {target}"
            );
        }
    }
}
