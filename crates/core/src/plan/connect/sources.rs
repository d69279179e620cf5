//! Orders steps around the project that a step forks, or whose members or deploy keys it shares.

use std::collections::HashMap;

use super::{StepRelations, addresses_by_path, map_by_path};
use crate::{
    address::Address,
    catalogue::{fork_of::FORK_OF, source::MEMBERS_FROM_FIELD},
    diff::{Action, Step},
    kind::Capability,
};

/// The setting of a project that allows forks.
const FORKING_FIELD: &str = "forking_access_level";
/// The expiry of a deploy key.
const EXPIRY_FIELD: &str = "expires_at";

/// Orders the steps. Members are copied after the members of the source change, and branches after
/// the branches of the source are created. A fork comes before the setting of its source that
/// forbids forks, or after the setting that allows them.
pub(super) fn order_sources(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let [member_steps, branch_steps] = ["members", "branches"]
        .map(|section| addresses_by_path(steps, |step| step.address.section == Some(section)));
    let forking_steps =
        map_by_path(steps, |index, step| Some((index, text_after(step, FORKING_FIELD)?)));
    for (index, step) in steps.iter().enumerate() {
        let find_source = |field| Some(text_after(step, field)?.to_lowercase());
        let copied_branches = find_source(FORK_OF).filter(|_| step.provides(Capability::Exists));
        let copies = [
            (find_source(MEMBERS_FROM_FIELD), &member_steps, "its members are copied"),
            (copied_branches, &branch_steps, "its branches are copied"),
        ];
        for (source_path, source_steps, reason) in copies {
            let addresses = source_path.and_then(|path| source_steps.get(&path));
            for address in addresses.into_iter().flatten() {
                relations.add_edge(index, address, reason);
            }
        }
        match find_source(FORK_OF).and_then(|path| forking_steps.get(&path)) {
            Some((setting_index, "disabled")) => {
                relations.add_edge(*setting_index, &step.address, "it forbids forks afterwards");
            }
            Some((setting_index, _)) => {
                let setting_address = &steps[*setting_index].address;
                relations.add_edge(index, setting_address, "the source must allow forks");
            }
            None => {}
        }
    }
    relations
}

/// Orders the additions of one deploy key to several projects. The projects share the expiry, which
/// only the first addition sets, and the title, which only an edit changes.
pub(super) fn order_shared_keys(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let expiry_addresses = steps_setting_key(steps, Action::Create, EXPIRY_FIELD);
    let title_addresses = steps_setting_key(steps, Action::Update, "title");
    for (index, step) in key_steps(steps, Action::Create) {
        if let Some(first_addition) = expiry_addresses.get(&step.address.entry)
            && text_after(step, EXPIRY_FIELD).is_none()
        {
            relations.add_edge(index, first_addition, "only a new key can get an expiry");
        }
        if let Some(rename) = title_addresses.get(&step.address.entry) {
            relations.add_edge(index, rename, "the key gets its title first");
        }
    }
    relations
}

/// The steps with this `action` for deploy keys, each with its position.
fn key_steps(steps: &[Step], action: Action) -> impl Iterator<Item = (usize, &Step)> {
    steps.iter().enumerate().filter(move |(_, step)| {
        step.action == action && step.address.section == Some("deploy_keys")
    })
}

/// The addresses of the steps with this `action` that set `field` of a deploy key, by the key.
fn steps_setting_key<'s>(
    steps: &'s [Step],
    action: Action,
    field: &str,
) -> HashMap<&'s Option<String>, &'s Address> {
    let setting_steps =
        key_steps(steps, action).filter(|(_, step)| text_after(step, field).is_some());
    setting_steps.map(|(_, step)| (&step.address.entry, &step.address)).collect()
}

/// The text that `field` has after the step; `None` if the step does not change the field to a text.
fn text_after<'s>(step: &'s Step, field: &str) -> Option<&'s str> {
    step.change(field)?.after.value()?.as_str()
}
