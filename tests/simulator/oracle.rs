//! The rules that hold for every run, whatever went wrong.
//!
//! The oracle sees the true state before and after, all requests, and the output of the run; it
//! never asks undrift.

use std::{collections::BTreeSet, time::Duration};

use base64::Engine as _;
use undrift::{
    apply::{StepOutcome, StepResult},
    diff::{Action, Reason, ShownCall},
    plan::Plan,
};

use crate::{
    identity,
    people::ForeignChange,
    scenario::{LIVE_VALUE, MAINTAINER, SECRETS, TOKEN},
    schedule::{Act, Fault, Missing, Throttle},
    service::{RunRole, SentRequest, State, World},
    truth::{FIELD_PREFIX, Truth, entries},
    undrift::{RunResult, writes},
};

/// A violation: which rule, and how it was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) details: String,
}

/// The facts about a finished simulation.
pub(crate) struct Evidence<'e> {
    pub(crate) world: &'e World,
    pub(crate) before: &'e Truth,
    /// The state after the first run.
    pub(crate) after: &'e Truth,
    /// The state after all delayed requests were carried out.
    pub(crate) settled: &'e Truth,
    /// The state after a run without faults.
    pub(crate) healed: &'e Truth,
    /// The first run; `None` if it was killed.
    pub(crate) first: Option<&'e RunResult>,
    pub(crate) second: Option<&'e RunResult>,
    pub(crate) clean: &'e RunResult,
    pub(crate) again: &'e RunResult,
}

impl Evidence<'_> {
    /// All violations.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let state = self.world.state();
        let mut found = Vec::new();
        self.check_duplicates(&state, &mut found);
        self.check_undeclared(&state, &mut found);
        self.check_honesty(&state, &mut found);
        self.check_vanished(&state, &mut found);
        self.check_visibility(&state, &mut found);
        self.check_planned(&state, &mut found);
        identity::check_targets(&state, self.documents(), &mut found);
        self.check_secrets(&mut found);
        self.check_obedience(&state, &mut found);
        self.check_freshness(&state, &mut found);
        self.check_convergence(&state, &mut found);
        self.check_empty_plan(&state, &mut found);
        found
    }

    pub(crate) fn documents(&self) -> &[serde_json::Value] {
        self.world.prepared.documents()
    }

    /// True if a project is declared archived.
    fn is_archived(&self) -> bool {
        self.documents().iter().any(|document| document["archived"] == true)
    }

    /// True if CI/CD of a project is declared off, so that its variables cannot be read.
    fn is_ci_off(&self) -> bool {
        let level = |document: &serde_json::Value| {
            document["settings"]["builds_access_level"] == "disabled"
        };
        self.documents().iter().any(level)
    }

    fn has_fault(&self, fault: impl Fn(&Fault) -> bool) -> bool {
        self.world.schedule.faults.iter().any(|(_, planned)| fault(planned))
    }

    /// No declared hook exists twice. Two runs at once may both see that it is absent; the next one
    /// removes the copy.
    fn check_duplicates(&self, state: &State, violations: &mut Vec<Violation>) {
        let before = self.before.duplicates(self.documents());
        let two_at_once = self.second.is_some();
        let all = [
            ("after the run", self.after),
            ("when all had settled", self.settled),
            ("after a clean run", self.healed),
        ];
        let skipped = match two_at_once {
            false => 0,
            // Nobody reads a project that somebody archived.
            true if self.is_archived()
                || state.changes.iter().any(|deed| deed.act == Act::Archive) =>
            {
                3
            }
            true => 2,
        };
        for (when, truth) in all.into_iter().skip(skipped) {
            let twice = truth.duplicates(self.documents());
            for (hook, count) in twice
                .iter()
                .filter(|(hook, count)| before.get(*hook).is_none_or(|were| were < count))
            {
                violations.push(Violation {
                    rule: "no duplicate",
                    details: format!("{count} times {hook} {when}"),
                });
            }
        }
    }

    /// Undeclared entries are unchanged, unless somebody else changed them.
    fn check_undeclared(&self, state: &State, violations: &mut Vec<Violation>) {
        let documents = self.documents();
        let as_declared = |truth: &Truth| truth.as_declared(self.before, documents);
        let deleted = |line: &String| {
            let gone = documents.iter().filter(|document| document["state"] == "absent");
            let mut deleted_paths = gone.filter_map(|document| document["path"].as_str());
            deleted_paths.any(|path| line.starts_with(&format!("{path}#")))
        };
        let mut before: BTreeSet<_> = as_declared(self.before).undeclared(documents);
        before.retain(|line| !deleted(line));
        // An object that a replacement removed and could not put back is created by the next run,
        // as far as it is declared; see `check_vanished`.
        let lacking =
            [self.after, self.settled].map(|truth| as_declared(truth).missing_entries(documents));
        let replaced: BTreeSet<_> = lacking
            .iter()
            .flatten()
            .map(|(path, section, name)| format!("{path}#{section}/{name}/"))
            .collect();
        let touches = |act: &Act| !matches!(act, Act::AddVariable | Act::AddHook | Act::AddMember);
        let somebody_else = state.changes.iter().any(|deed| touches(&deed.act));
        for truth in [self.after, self.settled, self.healed].into_iter().filter(|_| !somebody_else)
        {
            let mut after = as_declared(truth).undeclared(documents);
            after.retain(|line| !deleted(line));
            let gone = |line: &&String| {
                let rest = line.strip_prefix(FIELD_PREFIX);
                rest.is_some_and(|rest| {
                    replaced.iter().any(|entry| rest.starts_with(&**entry))
                        || self.is_replaced_twice(rest)
                })
            };
            for lost in before.difference(&after).filter(|line| !gone(line)) {
                violations.push(Violation {
                    rule: "nothing else changed",
                    details: format!("lost: {lost}"),
                });
            }
            let of_new = |line: &str| {
                !self.before.0.keys().any(|path| line.starts_with(&format!("{path}#")))
            };
            let foreign =
                |line: &str| line.to_lowercase().contains("foreign") || line.contains("/dave ");
            let gained = after
                .difference(&before)
                .filter(|line| !line.starts_with(FIELD_PREFIX) && !of_new(line) && !foreign(line));
            // A new push rule also has values for undeclared fields.
            for gained in gained.filter(|line| !line.contains("#push_rule/")) {
                violations.push(Violation {
                    rule: "nothing else changed",
                    details: format!("gained: {gained}"),
                });
            }
        }
        for ForeignChange { at: when, act, .. } in &state.changes {
            let kept = match act {
                Act::RotateVariable => continue, // See `read_anew`.
                Act::AddVariable => "FOREIGN@*",
                Act::AddHook => "foreign.example.org",
                _ => continue,
            };
            let is_removed_later = state.changes.iter().any(|ForeignChange { at, act, .. }| {
                let removes = matches!(act, Act::RemoveVariable | Act::RemoveHook);
                at >= when && (removes || act.frees_path())
            });
            // An entry added to a project that is declared absent is deleted with it.
            let unlisted = documents.iter().any(|document| {
                document.get("unlisted").is_some() || document["state"] == "absent"
            });
            let is_created = !self.before.0.is_empty();
            let is_live = self.healed.undeclared(documents).iter().any(|line| line.contains(kept));
            if is_created
                && !is_removed_later
                && !unlisted
                && !is_live
                && !self
                    .world
                    .schedule
                    .faults
                    .iter()
                    .any(|(_, f)| matches!(f, Fault::Foreign(act) | Fault::Elsewhere(_, act) if act.is_lasting()))
            {
                // It may have been refused, for example by an archived project.
                let archived = self.before.0.values().any(|project| project.archived)
                    || self.healed.0.values().any(|project| project.archived);
                if !archived {
                    violations.push(Violation {
                        rule: "nothing else changed",
                        details: format!("lost what somebody else added: {kept}"),
                    });
                }
            }
        }
    }

    /// True if one of two runs at once may have added anew, from the declaration alone, what the
    /// other one had just removed to replace it. That one reports it, unless it was killed.
    fn is_replaced_twice(&self, line: &str) -> bool {
        let runs = [self.first, self.second].into_iter().flatten();
        let mut steps = runs.flat_map(|ran| &ran.applied).flat_map(|applied| &applied.steps);
        let is_it = |step: &StepResult| {
            let address = &step.address;
            let (section, entry) = (address.section.unwrap_or_default(), address.entry.as_deref());
            let entry = entry.unwrap_or_default();
            let cause = step.outcome.cause().map(ToString::to_string).unwrap_or_default();
            !step.outcome.is_success()
                && !cause.starts_with("the old object was restored")
                && line.starts_with(&format!("{}#{section}/{entry}/", address.path))
        };
        self.second.is_some() && (self.first.is_none() || steps.any(is_it))
    }

    /// Everything that the run reports as done is done, and success means that everything is.
    fn check_honesty(&self, state: &State, violations: &mut Vec<Violation>) {
        for (ran, who) in [(self.first, RunRole::First), (self.second, RunRole::Second)] {
            let Some(ran) = ran else { continue };
            let mut unmet = self.after.unmet(self.documents());
            unmet.retain(|what| {
                !self.is_excused(what, who, state) && !is_noted(what, ran, &Reason::NotReturned)
            });
            if ran.exit == 0 && !unmet.is_empty() {
                violations.push(Violation {
                    rule: "honest exit",
                    details: format!("{who:?} exits with 0 although not met: {unmet:?}"),
                });
            }
            let applied = ran.applied.as_ref();
            for step in applied
                .into_iter()
                .flat_map(|applied| &applied.steps)
                .filter(|step| step.outcome.is_success())
            {
                let named = applied.is_some_and(|applied| {
                    applied.mismatches.iter().any(|mismatch| concerns(&mismatch.address, step))
                });
                let bad: Vec<_> = unmet.iter().filter(|what| is_about(what, step)).collect();
                if !named && !bad.is_empty() {
                    let outcome =
                        if step.outcome == StepOutcome::Done { "done" } else { "already so" };
                    violations.push(Violation {
                        rule: "honest steps",
                        details: format!("{}: {outcome}, but {bad:?}", step.address),
                    });
                }
            }
        }
    }

    /// A live share, protection or variable that the manifest wants does not disappear silently: a
    /// failed replacement reports it, and does not exit with success.
    fn check_vanished(&self, state: &State, violations: &mut Vec<Violation>) {
        let Some(ran) = self.first.filter(|_| self.second.is_none() && state.changes.is_empty())
        else {
            return;
        };
        let lacking = |truth: &Truth| {
            truth.as_declared(self.before, self.documents()).missing_entries(self.documents())
        };
        let before = lacking(self.before);
        let (after, settled) = (lacking(self.after), lacking(self.settled));
        for (path, section, name) in after.union(&settled).filter(|lost| !before.contains(*lost)) {
            let is_it = |address: &undrift::address::Address| {
                *address.path == **path
                    && address.section == Some(*section)
                    && address.entry.as_ref().is_none_or(|entry| entry == name)
            };
            let applied = ran.applied.as_ref();
            let named = applied.is_some_and(|applied| {
                let mut failed = applied.steps.iter().filter(|step| !step.outcome.is_success());
                failed.any(|step| is_it(&step.address))
                    || applied.mismatches.iter().any(|mismatch| is_it(&mismatch.address))
            });
            // While the run continues, it at least tries to put back what it removed.
            let list = match *section {
                "shares" => "/share",
                "variables" => "/variables",
                _ => "/protected_branches",
            };
            let mut adds = state.sent.iter().filter(|sent| {
                sent.who == RunRole::First && sent.method == "POST" && sent.target.ends_with(list)
            });
            let is_continuing = ran.exit == 6
                && state.interrupted.is_none()
                && self.world.schedule.deadline.is_none()
                && !self.has_fault(|fault| *fault == Fault::Throttled(Throttle::Absurd))
                && applied.is_some_and(|applied| applied.fatal_error.is_none());
            let is_left = adds.clone().count() == 1 && adds.all(|sent| sent.answered.is_some());
            if is_continuing && is_left {
                violations.push(Violation {
                    rule: "never less without a word",
                    details: format!("{path}#{section}/{name} was removed and not put back"),
                });
            }
            // It cannot have removed something from a project that it created.
            if self.before.0.contains_key(path) && (ran.exit == 0 || !named) {
                violations.push(Violation {
                    rule: "never less without a word",
                    details: format!("{path}#{section}/{name} is gone, exit {}", ran.exit),
                });
            }
        }
    }

    /// New containers are never more visible than declared.
    fn check_visibility(&self, state: &State, violations: &mut Vec<Violation>) {
        if !state.changes.is_empty() {
            return;
        }
        for truth in [self.after, self.settled, self.healed] {
            for path in truth.too_visible(self.documents(), self.before) {
                violations.push(Violation { rule: "never wider than declared", details: path });
            }
        }
    }

    /// True if nobody could have known: somebody else did it after the run's last look, or archived
    /// the project, so that the run does not change it.
    fn is_excused(&self, what: &str, who: RunRole, state: &State) -> bool {
        let archived = |deed: &ForeignChange| deed.act == Act::Archive;
        // A 404 is believed where the object may be absent.
        let is_false_404 = |fault: &Fault| *fault == Fault::NotFound(Missing::Thing);
        // A run that was ended may only have the responses to its writes.
        let is_cut_short = who == RunRole::First
            && (state.refused.is_some()
                || state.interrupted.is_some()
                || self.world.schedule.deadline.is_some());
        if state.changes.iter().any(archived)
            || (is_cut_short || section_of(what) == Some("push_rule"))
                && self.has_fault(is_false_404)
        {
            return true;
        }
        let section = section_of(what);
        let path = what.split('#').next().unwrap_or_default();
        // An entry that names a group contains its id, whatever its path is.
        let lost_its_name = |deed: &ForeignChange| deed.act.frees_path() && deed.is_group;
        let is_of = |deed: &ForeignChange| deed.paths.iter().any(|own| own == path);
        if state.changes.iter().any(|deed| lost_its_name(deed) && !is_of(deed)) {
            return true;
        }
        // A project is written and read by id. Another one at its path is not read.
        let is_swapped =
            |deed: &ForeignChange| deed.act.frees_path() && is_of(deed) && !deed.is_group;
        if state.changes.iter().any(is_swapped) && self.is_met_elsewhere(what, path, who, state) {
            return true;
        }
        let is_group = [self.before, self.after]
            .iter()
            .any(|truth| truth.0.get(path).is_some_and(|there| there.is_group));
        let scope = if is_group { "groups" } else { "projects" };
        let project = format!("/{scope}/{}", path.replace('/', "%2F"));
        let writes = |sent: &&SentRequest| {
            sent.who == who && sent.method != "GET" && sent.answered.is_some()
        };
        let wrote = state.sent.iter().filter(writes).map(|sent| sent.at).min();
        let reads = |sent: &&SentRequest| {
            let target = self.by_path(&sent.target);
            let path = target.split('?').next().unwrap_or_default();
            let own = match section {
                Some("settings" | "archived" | "shares") | None => path == project,
                Some(section) => {
                    let rest = path.strip_prefix(&*project);
                    rest.is_some_and(|rest| rest.starts_with('/') && rest.ends_with(section))
                }
            };
            // After its first write, a run reads known containers by id, and only others by path.
            let by_id = |sent: &SentRequest| {
                sent.target.split(['/', '?']).nth(2).is_some_and(|id| id.parse::<u64>().is_ok())
            };
            let own = own && (by_id(sent) || wrote.is_none_or(|wrote| sent.arrived <= wrote));
            // A list is as old as its first page.
            let first = !sent.target.contains("page=") || sent.target.ends_with("page=1");
            sent.who == who && sent.method == "GET" && sent.answered.is_some() && own && first
        };
        // After a project is archived, by any run, only that is read.
        let closes =
            |sent: &&SentRequest| sent.method == "POST" && sent.target.ends_with("/archive");
        let closed = state.sent.iter().filter(closes).map(|sent| sent.arrived).min();
        let open = |arrived: &Duration| {
            closed.is_none_or(|closed| *arrived < closed) || section == Some("archived")
        };
        let last_read = state.sent.iter().filter(reads).map(|sent| sent.arrived).filter(open).max();
        // Before its first write a run reads one object after the other, or none if it trusts its
        // plan.
        let last = match is_cut_short {
            true => wrote.map(|index| last_read.map_or(index, |l| l.min(index))),
            false => last_read,
        };
        let since = |when: Duration| last.is_none_or(|last| when >= last);
        let other_run = |sent: &SentRequest| {
            sent.who != who
                && sent.who != RunRole::Clean
                && sent.method != "GET"
                && since(sent.arrived)
        };
        state.changes.iter().any(|deed| since(deed.at)) || state.sent.iter().any(other_run)
    }

    /// True if `what` holds for a project that the run found at `path`, whatever its path is now.
    fn is_met_elsewhere(&self, what: &str, path: &str, who: RunRole, state: &State) -> bool {
        let documents = self.documents();
        identity::found_at(state, documents, who, path).into_iter().any(|id| {
            let mut truth = self.after.clone();
            self.after.get(id).is_some_and(|found| {
                truth.0.insert(path.to_owned(), found.clone());
                !truth.unmet(documents).contains(what)
            })
        })
    }

    /// Every write is in the plan of its run, with the same target and fields.
    fn check_planned(&self, state: &State, violations: &mut Vec<Violation>) {
        let killed = self.first.is_none();
        for (ran, who) in [(self.first, RunRole::First), (self.second, RunRole::Second)] {
            if killed && who == RunRole::First {
                continue; // Its plan went with it.
            }
            let shown = ran.and_then(|ran| ran.plan.as_ref()).map(writes).unwrap_or_default();
            let shown: Vec<_> = shown
                .into_iter()
                .map(|(method, path, names)| (method, self.by_path(&path), names))
                .collect();
            for sent in state.sent.iter().filter(|sent| sent.who == who && sent.method != "GET") {
                let target = self.by_path(&sent.target);
                let fits = |names: &Vec<String>| sent.body.keys().all(|name| names.contains(name));
                // The path of a new container means nothing once somebody takes it.
                let own = sent.containers.first();
                let is_new = own.is_some_and(|id| self.before.get(*id).is_none());
                let gone = is_new && state.changes.iter().any(|deed| deed.act.frees_path());
                // A container that moves in this run may be shown at either path.
                let own =
                    |path: &str| identity::declared_at(self.documents(), &path.replace("%2F", "/"));
                // Once somebody takes a path, the run wrote to what it found there before.
                let is_path_taken = state.changes.iter().any(|deed| deed.act.frees_path());
                let is_found_at = |shown: &str, id: &str| {
                    let id = id.parse().ok().map(|id| match sent.target.starts_with("/groups/") {
                        true => identity::Id::namespace(id),
                        false => identity::Id::project(id),
                    });
                    own(shown).iter().any(|path| {
                        let found = identity::found_at(state, self.documents(), who, path);
                        id.is_some_and(|id| found.contains(&id))
                    })
                };
                let same = |path: &str| {
                    let segments = |target: &str| target.split('/').map(str::to_owned).collect();
                    let [shown, said, sent]: [Vec<String>; 3] =
                        [path, &target, &sent.target].map(segments);
                    let is_one = |at: usize| {
                        let is_path = at == 2 || at == 4 && SECOND_PROJECT.contains(&&*shown[3]);
                        shown[at] == said[at]
                            || at == 4 && self.is_new_schedule(&shown)
                            || is_path && is_path_taken && is_found_at(&shown[at], &sent[at])
                            || at == 2 && (gone || !own(&shown[at]).is_disjoint(&own(&said[at])))
                    };
                    shown.len() == said.len() && (0..shown.len()).all(is_one)
                };
                let foreseen = ran
                    .and_then(|ran| ran.plan.as_ref())
                    .is_some_and(|plan| self.is_foreseen(plan, sent.method, &target));
                if !foreseen
                    && !shown.iter().any(|(method, path, names)| {
                        *method == sent.method && same(path) && fits(names)
                    })
                {
                    let names: Vec<_> = sent.body.keys().collect();
                    let what = format!("{who:?}: {} {target} with {names:?}", sent.method);
                    violations.push(Violation { rule: "only what the plan shows", details: what });
                }
            }
        }
    }

    /// True if a plan shows the path below a schedule that the run creates: by its description, because
    /// nobody knows its id.
    fn is_new_schedule(&self, path: &[String]) -> bool {
        let schedules =
            self.documents().iter().flat_map(|document| entries(document, "pipeline_schedules"));
        path.len() > 5
            && path[3] == "pipeline_schedules"
            && schedules.map(|schedule| &schedule["description"]).any(|name| *name == path[4])
    }

    /// True if a write edits what `plan` meant to create, because the run could not know that it
    /// exists: it became readable only after a step of the run, or the service itself added it to a
    /// new project. In the first case nothing is ever removed.
    fn is_foreseen(&self, plan: &Plan, method: &str, target: &str) -> bool {
        plan.steps.iter().any(|step| {
            let section = step.address.section.unwrap_or_default();
            // A single object is identified by its section.
            let entry = step.address.entry.as_deref().unwrap_or(section);
            let mut others = plan.steps.iter();
            let is_new = others.any(|other| {
                other.address.section.is_none() && other.address.path == step.address.path
            });
            let is_allowed = match method {
                "PUT" | "PATCH" => step.possible.is_some() || is_new,
                // A replacement adds the object with all its fields.
                "DELETE" | "POST" => is_new && step.address.section == Some("protected_branches"),
                _ => false,
            };
            let is_it = |call: &ShownCall| {
                let path = self.by_path(&call.path);
                let parts = |path: &str, from| {
                    path.split(['/', '?']).skip(from).take(2).map(str::to_owned).collect::<Vec<_>>()
                };
                let name = entry.split('@').next().unwrap_or_default();
                // A new project may have got another path since.
                let same = is_new || parts(&path, 1) == parts(target, 1);
                let section = path.split('/').nth(3).unwrap_or_default();
                // The plan could not know the id of this hook.
                let shown = parts(target, 3);
                same && (shown == [section, name]
                    || step.address.entry.is_none() && shown == [section]
                    || method == "POST" && shown == [section]
                    || section == "hooks" && shown.len() == 2 && shown[0] == section)
            };
            is_allowed && step.calls.iter().any(is_it)
        })
    }

    /// A target with the paths of projects in place of their ids.
    pub(crate) fn by_path(&self, target: &str) -> String {
        let is_group = target.starts_with("/groups/");
        let scope = if is_group { "/groups/" } else { "/projects/" };
        let Some(rest) = target.strip_prefix(scope) else { return target.to_owned() };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (id, tail) = rest.split_at(end);
        let all = [self.before, self.after, self.settled, self.healed];
        let path_of = |id: &str, is_group: bool| {
            let mut known = all.iter().flat_map(|truth| &truth.0);
            let path = known
                .find(|(_, project)| project.is_group == is_group && project.id.to_string() == id)
                .map(|(path, _)| path);
            path.map_or_else(|| id.to_owned(), |path| path.replace('/', "%2F"))
        };
        // Some targets name a second project.
        let tail = SECOND_PROJECT.iter().find_map(|part| {
            let other = tail.strip_prefix('/')?.strip_prefix(part)?.strip_prefix('/')?;
            Some(format!("/{part}/{}", path_of(other, false)))
        });
        let tail = tail.unwrap_or_else(|| rest[end..].to_owned());
        format!("{scope}{}{tail}", path_of(id, is_group))
    }

    fn check_secrets(&self, violations: &mut Vec<Violation>) {
        let outputs = [self.first, self.second, Some(self.clean), Some(self.again)]
            .into_iter()
            .flatten()
            .map(|ran| &ran.output);
        let mut canaries: Vec<String> =
            SECRETS.iter().flat_map(|(_, secret)| secret.lines()).map(str::to_owned).collect();
        canaries.extend([TOKEN, MAINTAINER, LIVE_VALUE, "rotated-canary-99"].map(str::to_owned));
        for output in outputs {
            for canary in &canaries {
                let encoded = base64::engine::general_purpose::STANDARD.encode(canary);
                for form in [canary.as_str(), &encoded] {
                    if output.contains(form) {
                        violations.push(Violation {
                            rule: "no secret in any output",
                            details: form.to_owned(),
                        });
                    }
                }
            }
        }
    }

    /// Nothing is sent while the service asks to wait, after an interruption, or with a token that
    /// was refused.
    fn check_obedience(&self, state: &State, violations: &mut Vec<Violation>) {
        let first = || state.sent.iter().filter(|sent| sent.who == RunRole::First);
        for (from, to) in &state.pauses {
            for sent in first().filter(|sent| sent.at > *from && sent.at < *to) {
                violations.push(Violation {
                    rule: "waits when asked to",
                    details: format!("{} {} at {:?}", sent.method, sent.target, sent.at),
                });
            }
        }
        for (rule, since) in
            [("stops at a signal", state.interrupted), ("stops at a 401", state.refused)]
        {
            for sent in first().filter(|sent| since.is_some_and(|since| sent.at > since)) {
                violations.push(Violation {
                    rule,
                    details: format!("{} {} at {:?}", sent.method, sent.target, sent.at),
                });
            }
        }
        if first().count() > 5_000 {
            violations.push(Violation {
                rule: "comes to an end",
                details: format!("{} requests", first().count()),
            });
        }
    }

    /// A run without faults that ends with 0 leaves an empty plan.
    fn check_empty_plan(&self, state: &State, violations: &mut Vec<Violation>) {
        let is_alone =
            self.second.is_none() && state.changes.is_empty() && state.triggered.is_empty();
        let ends_well = self.first.is_some_and(|first| first.exit == 0);
        if !is_alone || !ends_well || !self.world.prepared.scenario.resend.is_empty() {
            return;
        }
        let steps = self.clean.plan.iter().flat_map(|plan| &plan.steps);
        let addresses: Vec<_> = steps.map(|step| step.address.to_string()).collect();
        if !addresses.is_empty() || self.clean.exit > 0 {
            let what = format!("exit {}, left: {addresses:?}", self.clean.exit);
            violations.push(Violation { rule: "success leaves nothing to do", details: what });
        }
    }

    /// A run without faults, after everything has settled, reaches the declared state, and the next
    /// one plans nothing.
    fn check_convergence(&self, state: &State, violations: &mut Vec<Violation>) {
        let lasting = state.changes.iter().any(|deed| deed.act.is_lasting());
        // Together with what somebody else removed, the run may remove all entries.
        let removes = |document: &serde_json::Value| {
            document.get("unlisted").is_some() || document.to_string().contains("absent")
        };
        let may_be_guarded = !state.changes.is_empty() && self.documents().iter().any(removes);
        let missing = self.world.prepared.scenario.name == "missing";
        // Entries visible only after opening are removed by the next run.
        let later = self.world.prepared.scenario.name == "unarchive-remove";
        let mut unmet = self.healed.unmet(self.documents());
        // Write-only fields are sent with a create and on request; a later run can only report that
        // it cannot verify them.
        unmet.retain(|what| !is_noted(what, self.again, &Reason::CannotVerify));
        // A project that somebody changed just before it was archived, or archived themselves,
        // stays unchanged.
        let closed = self.is_archived() || self.is_ci_off();
        let foreign = state.changes.iter().any(|deed| closed || deed.act == Act::Archive);
        let left_alone = foreign || self.second.is_some() && self.is_archived();
        let expected = match self.clean.exit {
            0 => unmet.is_empty() || left_alone,
            // Entries that others removed may be impossible to recreate, such as a variable
            // without its value.
            3 => lasting || missing || !state.changes.is_empty(),
            4 => may_be_guarded,
            6 if later => true,
            // A group whose path somebody took is declared nowhere, and stays unchanged.
            6 => lasting || state.changes.iter().any(|d| d.is_group && d.act.frees_path()),
            _ => lasting,
        };
        if !expected {
            let what = format!(
                "a clean run exits with {}; not met: {unmet:?}; {}",
                self.clean.exit,
                last_lines(&self.clean.output)
            );
            violations.push(Violation { rule: "a clean run converges", details: what });
        }
        let steps = self.again.plan.as_ref().map_or(0, |plan| plan.steps.len());
        if self.clean.exit == 0 && (self.again.exit != 0 || steps > 0) {
            let what = format!(
                "planned again: exit {} with {steps} steps; {}",
                self.again.exit,
                last_lines(&self.again.output)
            );
            violations.push(Violation { rule: "then nothing is planned", details: what });
        }
    }
}

/// The end of an output, for a message.
fn last_lines(output: &str) -> String {
    let lines: Vec<_> = output.lines().filter(|line| !line.starts_with([' ', '{', '}'])).collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}

/// True if a result for `address` also concerns `step`.
fn concerns(address: &undrift::address::Address, step: &StepResult) -> bool {
    address.path == step.address.path
        && (address.section.is_none()
            || step.address.section.is_none()
            || address.section == step.address.section)
}

/// Fields that every row has. If one is missing, the row is damaged, and "not returned" is no
/// excuse.
const ALWAYS_RETURNED: [&str; 2] = ["allowed_to_push", "allowed_to_merge"];

/// True if the run reported that it could not compare this.
fn is_noted(what: &str, ran: &RunResult, reason: &Reason) -> bool {
    let mut notes =
        ran.plan.iter().flat_map(|plan| &plan.notes).filter(|note| note.reason == *reason);
    notes.any(|note| {
        let always = |field: &String| ALWAYS_RETURNED.contains(&field.as_str());
        section_of(what) == note.address.section
            && what.starts_with(&*note.address.path)
            && !note.fields.iter().any(always)
    })
}

/// The section of an address of [`Truth::unmet`].
fn section_of(what: &str) -> Option<&str> {
    what.split('#').nth(1).map(|rest| rest.split('/').next().unwrap_or_default())
}

/// True if an address of [`Truth::unmet`] concerns a step.
fn is_about(what: &str, step: &StepResult) -> bool {
    let (path, rest) = what.split_once('#').unwrap_or((what, ""));
    let section = rest.split('/').next().unwrap_or_default();
    let entry = rest.split_once('/').map(|(_, entry)| entry);
    if path != &*step.address.path {
        return false;
    }
    match (step.address.section, &step.address.entry) {
        // A project is created with its settings, and moved without.
        (None, _) => section.is_empty() || section == "settings" && step.action == Action::Create,
        (Some(own), Some(name)) => own == section && entry == Some(name.as_str()),
        (Some(own), None) => own == section,
    }
}

/// The segments before a second project in a path.
const SECOND_PROJECT: [&str; 2] = ["fork", "import_project_members"];
