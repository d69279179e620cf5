//! A schedule of faults: what goes wrong, and when. It is written by hand, made from a seed, or
//! made for every request in turn.
//!
//! A run depends on nothing but its [`Schedule`]. It is data, so a failing one can be made smaller,
//! kept as a file, and played again.

use serde::{Deserialize, Serialize};

use crate::{numbers::Numbers, spoil::Spoil};

/// One run: the declarations, the conditions, and the faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Schedule {
    /// The scenario, by name.
    pub(crate) scenario: String,
    /// The dialect of the service, by name.
    pub(crate) dialect: String,
    /// The seed of latencies and jitter.
    pub(crate) seed: u64,
    /// How far the service's clock is ahead of the machine's, in seconds.
    #[serde(default)]
    pub(crate) skew: i64,
    /// The time limit of the run, in seconds.
    #[serde(default)]
    pub(crate) deadline: Option<u64>,
    /// True if the run trusts the live state of its plan while it is recent, instead of reading it
    /// again before it writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) trusts: bool,
    /// True if a second run of the same starts at the same time; the seed decides the order of
    /// their requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) crossed: bool,
    /// The fault at each request of the run, counted from 0.
    pub(crate) faults: Vec<(usize, Fault)>,
}

/// A fault at a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// It does not reach the service.
    NotSent,
    /// The connection breaks before it is carried out.
    DropBefore,
    /// It is carried out, and the connection breaks.
    DropAfter,
    /// The connection breaks, and the request is carried out this many seconds later.
    Late(u64),
    /// It is carried out after this many seconds, and answered then.
    Slow(u64),
    /// It is carried out, and answered after this many seconds.
    SlowResponse(u64),
    /// It is not carried out, and answered with this status.
    StatusBefore(u16),
    /// It is carried out, and answered with this status.
    StatusAfter(u16),
    /// It is carried out, and the response breaks off.
    Truncated,
    /// It is carried out, and the response has no body.
    Empty,
    /// A proxy answers with a page of HTML.
    Html,
    /// It is carried out, and answered with a page of HTML.
    HtmlAfter,
    /// It is carried out, and answered with `{}`.
    Object,
    /// It is not carried out; the service asks to wait.
    Throttled(Throttle),
    /// It is not carried out, because the object is locked by another request.
    Locked,
    /// From here on the token is revoked.
    Revoked,
    /// It is forbidden, once.
    Forbidden,
    /// It is not carried out; the service refuses it and quotes the whole body.
    Refused,
    /// It and everything else at its path is forbidden from here on.
    ForbiddenFromHere,
    /// It is answered with 404.
    NotFound(Missing),
    /// A proxy redirects it.
    Redirect,
    /// Its response, a list, is damaged.
    List(Damage),
    /// Its response lacks some of its fields.
    FieldsMissing,
    /// Its response is JSON that no service sends.
    Spoiled(Spoil),
    /// The service does something else than requested, without an error.
    Surprise(Surprise),
    /// Somebody else makes a change just before it arrives.
    Foreign(Act),
    /// The same for the container of the document at this position.
    Elsewhere(usize, Act),
    /// Another run of the same starts just before it arrives.
    Second,
    /// The run is interrupted just before it arrives.
    Interrupt,
    /// The run is killed just before it arrives.
    KillBefore,
    /// The run is killed just after it was carried out.
    KillAfter,
}

/// Rate-limit answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Throttle {
    /// `Retry-After` in seconds.
    Seconds(u64),
    /// `Retry-After` as a date.
    Date(u64),
    /// `RateLimit-Reset` only.
    Reset(u64),
    /// Without a time, in plain text.
    Silent,
    /// A day.
    Absurd,
    /// Neither a number nor a date.
    Nonsense,
}

/// The missing object of a 404.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Missing {
    /// The project.
    Project,
    /// The object.
    Thing,
    /// The route.
    Route,
    /// The feature, which is switched off or not licensed.
    Feature,
}

/// Unexpected answers to writes, as seen from the service's own code. Other writes are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Surprise {
    /// Nothing of an edit is saved, and the response is 200 with `null`.
    Null,
    /// Nothing of an edit is saved, and the response shows the object as it was.
    Ignored,
    /// One attribute of a write is ignored, as if the service did not know it.
    Dropped,
    /// A text is saved in another spelling.
    Normalised,
    /// A visibility is lowered.
    Lowered,
    /// An edit of one attribute is refused, because it must not be sent alone.
    Alone,
}

impl Surprise {
    const ALL: [Self; 6] =
        [Self::Null, Self::Ignored, Self::Dropped, Self::Normalised, Self::Lowered, Self::Alone];
}

/// The damage of a list's page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Damage {
    /// It has no rows.
    NoRows,
    /// It lacks its last row.
    Short,
    /// Its last row has only its id or its key.
    Bare,
    /// Its first row appears twice.
    Repeated,
    /// It repeats the page before.
    PageBefore,
    /// The total is one too high.
    TotalMore,
    /// The total is one too low.
    TotalLess,
    /// The next page is named as the one after it.
    NextSkips,
    /// A link names a next page, on another host.
    LinkElsewhere,
    /// It has the number of another page.
    OtherPage,
    /// It has no headers about pages.
    NoHeaders,
}

/// A change by somebody else to the first container of a scenario; if groups do not have it, to the
/// first project.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// Changes the description and the merge method.
    Settings,
    /// Adds an undeclared variable.
    AddVariable,
    /// Rotates the value of the first variable.
    RotateVariable,
    /// Removes the first variable.
    RemoveVariable,
    /// Adds an undeclared hook.
    AddHook,
    /// Removes the first hook.
    RemoveHook,
    /// Adds somebody who is not declared as a member.
    AddMember,
    /// Makes the first member a reporter.
    DemoteMember,
    /// Changes the push rule.
    PushRule,
    /// Removes the share with the first group.
    RemoveShare,
    /// Removes the protection of the first branch.
    Unprotect,
    /// Lets people force-push to the first protected branch.
    ForcePush,
    /// Archives the project.
    Archive,
    /// Unarchives it.
    Unarchive,
    /// Renames it.
    Rename,
    /// Deletes it.
    Delete,
    /// Swaps its path with that of another in its group.
    Swap,
    /// Deletes it, and creates another at its path.
    Recreate,
    /// Creates the first missing declared container, without its declared parts.
    Create,
}

impl Act {
    pub(crate) const ALL: [Self; 19] = [
        Self::Settings,
        Self::AddVariable,
        Self::RotateVariable,
        Self::RemoveVariable,
        Self::AddHook,
        Self::RemoveHook,
        Self::AddMember,
        Self::DemoteMember,
        Self::PushRule,
        Self::RemoveShare,
        Self::Unprotect,
        Self::ForcePush,
        Self::Archive,
        Self::Unarchive,
        Self::Rename,
        Self::Delete,
        Self::Swap,
        Self::Recreate,
        Self::Create,
    ];

    /// True if the project is another one afterwards, so that further runs cannot reach the
    /// declared state.
    pub(crate) const fn is_lasting(self) -> bool {
        matches!(self, Self::Archive | Self::Rename | Self::Delete)
    }

    /// True if its path belongs to another container afterwards, or to none.
    pub(crate) const fn frees_path(self) -> bool {
        matches!(self, Self::Rename | Self::Delete | Self::Swap | Self::Recreate)
    }
}

impl Fault {
    /// Every fault of a single request, with relevant numbers.
    pub(crate) fn all() -> Vec<Self> {
        use Fault::{Surprise as Surprising, *};
        let mut all = vec![
            NotSent, DropBefore, DropAfter, Truncated, Empty, Html, HtmlAfter, Object, Locked,
            Revoked, Forbidden, Refused,
        ];
        all.extend([
            ForbiddenFromHere,
            Redirect,
            FieldsMissing,
            Second,
            Interrupt,
            KillBefore,
            KillAfter,
        ]);
        all.extend([1, 3, 20, 60].map(Late));
        all.extend([10, 30, 59].map(Slow));
        all.extend([10, 30, 70, 200].map(SlowResponse));
        all.extend([500, 502, 504].map(StatusBefore));
        all.extend([500, 503].map(StatusAfter));
        use Throttle::*;
        all.extend(
            [Seconds(2), Seconds(40), Date(7), Reset(5), Silent, Absurd, Nonsense].map(Throttled),
        );
        all.extend(
            [Missing::Project, Missing::Thing, Missing::Route, Missing::Feature].map(NotFound),
        );
        use Damage::*;
        all.extend(
            [
                NoRows,
                Short,
                Bare,
                Repeated,
                PageBefore,
                TotalMore,
                TotalLess,
                NextSkips,
                LinkElsewhere,
                OtherPage,
                NoHeaders,
            ]
            .map(List),
        );
        all.extend(Spoil::ALL.map(Spoiled));
        all.extend(self::Surprise::ALL.map(Surprising));
        all.extend(Act::ALL.map(Foreign));
        if let Ok(only) = std::env::var("UNDRIFT_FAULTS") {
            all.retain(|fault| fault.name().starts_with(&only));
        }
        all
    }

    /// True if the request or its response is lost or damaged on its way, or the run is killed there.
    pub(crate) const fn is_of_connection(&self) -> bool {
        use Fault::*;
        matches!(
            self,
            DropBefore
                | DropAfter
                | StatusBefore(502)
                | StatusAfter(503)
                | Truncated
                | Empty
                | Html
                | HtmlAfter
                | Redirect
                | KillBefore
                | KillAfter
        )
    }

    /// A short name for counting.
    pub(crate) fn name(&self) -> String {
        let json = serde_json::to_value(self).unwrap();
        let parts = json.as_object().and_then(|object| object.iter().next());
        match (json.as_str(), parts.map(|(name, value)| (name, value.as_str()))) {
            (Some(name), _) => name.to_owned(),
            (None, Some((name, None))) => name.clone(),
            (None, Some((name, Some(value)))) => format!("{name} {value}"),
            (None, None) => unreachable!("a fault is a name, or an object of one member"),
        }
    }
}

/// A run without faults.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultlessRun {
    pub(crate) scenario: String,
    /// Its number of requests.
    pub(crate) requests: usize,
    /// The positions of its writes.
    pub(crate) writes: Vec<usize>,
    /// The number of declared groups and projects.
    pub(crate) documents: usize,
}

/// The schedule for `seed`.
pub(crate) fn random(seed: u64, courses: &[FaultlessRun], dialects: &[String]) -> Schedule {
    let mut numbers = Numbers::new(seed);
    let FaultlessRun { scenario, requests, writes, documents } = numbers.pick(courses).clone();
    let dialect =
        if numbers.below(3) == 0 { numbers.pick(dialects).clone() } else { "faithful".to_owned() };
    let all = Fault::all();
    let count = [1, 1, 2, 2, 3, 5][numbers.below(6)];
    let mut faults: Vec<_> = (0..count)
        .map(|_| {
            // Writes are the most critical. Faults make a run longer.
            let write = (numbers.below(3) == 0)
                .then(|| numbers.below(writes.len()))
                .and_then(|index| writes.get(index).copied());
            let at = write.unwrap_or_else(|| numbers.below(requests + requests / 2 + 2));
            let fault = match numbers.pick(&all).clone() {
                Fault::Foreign(act) => match numbers.below(documents) {
                    0 => Fault::Foreign(act),
                    at => Fault::Elsewhere(at, act),
                },
                fault => fault,
            };
            (at, fault)
        })
        .collect();
    // An outage: the same fault for several requests in a row.
    if numbers.below(8) == 0 {
        let (at, fault) = faults[0].clone();
        faults.extend((1..4 + numbers.below(12)).map(|more| (at + more, fault.clone())));
    }
    faults.sort_by_key(|(at, _)| *at);
    let skew = if numbers.below(6) == 0 { *numbers.pick(&[-86_400, -3, 3, 7_200]) } else { 0 };
    let deadline = (numbers.below(12) == 0).then(|| *numbers.pick(&[1, 5, 30, 120]));
    let trusts = numbers.below(2) == 0;
    Schedule { scenario, dialect, seed, skew, deadline, trusts, crossed: false, faults }
}

/// The first course without faults.
pub(crate) fn faultless(seed: u64, courses: &[FaultlessRun], _: &[String]) -> Schedule {
    Schedule {
        scenario: courses[0].scenario.clone(),
        dialect: "faithful".to_owned(),
        seed,
        skew: 0,
        deadline: None,
        trusts: false,
        crossed: false,
        faults: Vec::new(),
    }
}

/// Two runs at once, and in every other schedule also a fault.
pub(crate) fn crossed(seed: u64, courses: &[FaultlessRun], dialects: &[String]) -> Schedule {
    let mut schedule = random(seed, courses, dialects);
    schedule.faults.retain(|(_, fault)| *fault != Fault::Second);
    schedule.faults.truncate(usize::try_from(seed % 2).unwrap());
    Schedule { crossed: true, skew: 0, deadline: None, ..schedule }
}

/// The smallest schedule that is still `bad`, found by removing and weakening faults.
pub(crate) fn shrink(schedule: &Schedule, is_failing: impl Fn(&Schedule) -> bool) -> Schedule {
    let mut best = schedule.clone();
    loop {
        let smaller = simpler_schedules(&best).into_iter().find(|candidate| is_failing(candidate));
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Slightly simpler schedules.
fn simpler_schedules(schedule: &Schedule) -> Vec<Schedule> {
    let mut candidates = Vec::new();
    for at in 0..schedule.faults.len() {
        let mut faults = schedule.faults.clone();
        faults.remove(at);
        candidates.push(Schedule { faults, ..schedule.clone() });
    }
    if schedule.dialect != "faithful" {
        candidates.push(Schedule { dialect: "faithful".to_owned(), ..schedule.clone() });
    }
    if schedule.skew != 0 {
        candidates.push(Schedule { skew: 0, ..schedule.clone() });
    }
    if schedule.deadline.is_some() {
        candidates.push(Schedule { deadline: None, ..schedule.clone() });
    }
    if schedule.crossed {
        candidates.push(Schedule { crossed: false, ..schedule.clone() });
    }
    if schedule.trusts {
        candidates.push(Schedule { trusts: false, ..schedule.clone() });
    }
    candidates
}

#[test]
fn a_schedule_reads_back_from_json() {
    let courses = [FaultlessRun {
        scenario: "one-hook".to_owned(),
        requests: 8,
        writes: vec![5],
        documents: 2,
    }];
    for seed in 0..200 {
        let schedule = random(seed, &courses, &["faithful".to_owned()]);
        let text = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
        assert_eq!(random(seed, &courses, &["faithful".to_owned()]), schedule);
    }
}

#[test]
fn a_failing_schedule_is_minimised() {
    let faults =
        vec![(0, Fault::Html), (3, Fault::DropAfter), (4, Fault::Locked), (9, Fault::Second)];
    let schedule = Schedule {
        scenario: "x".into(),
        dialect: "y".into(),
        seed: 1,
        skew: 3,
        deadline: Some(1),
        trusts: true,
        crossed: true,
        faults,
    };
    let small = shrink(&schedule, |schedule| {
        schedule.faults.iter().any(|(_, fault)| *fault == Fault::DropAfter)
    });
    let faults = vec![(3, Fault::DropAfter)];
    assert_eq!(
        small,
        Schedule {
            dialect: "faithful".into(),
            skew: 0,
            deadline: None,
            trusts: false,
            crossed: false,
            faults,
            ..schedule
        }
    );
}
