//! Finds where a goal is declared: in which document, and what to edit there.

use std::{borrow::Cow, rc::Rc};

use super::{
    Manifest, Manifests, Mode, Refusal,
    drift::{EXTRA, FieldValues, Goal, GoalChange},
    edit::{Edit, New, PathStep, Pointer, written_entries, written_entry},
    templates,
};
use crate::{
    catalogue,
    desired::{Container, Entry},
    diagnostic::FileName,
    kind::{Section, Shape},
    origin::{Layer, Origin},
    value::{Json, Value},
    yaml::write::{Item, nest},
    yaml::{Data, Node},
};

/// Keys of a document that come after its sections.
const LAST: [&str; 2] = ["unlisted", "undeclared_projects"];

/// Why a declaration is not edited that is elsewhere.
const LOST: &str = "it is not written where it was found";

/// Edits with their files.
pub(super) type Edits = Vec<(FileName, Edit)>;

/// Why something cannot be edited, and the place concerned.
type NoEdit = (String, Option<Origin>);

/// The edits with which `container` declares the goal. An entry that is `covered` is also declared
/// by a lower layer, so its removal is declared with `state: absent`.
///
/// # Errors
/// Why it cannot be edited.
pub(super) fn locate_edits(
    goal: &Goal,
    container: &Container,
    mode: Mode,
    covered: bool,
    texts: &mut Manifests<'_>,
) -> Result<Edits, Refusal> {
    let Some(of) = catalogue::section(container.scope, goal.section) else { return Ok(Vec::new()) };
    let entry = container.entry(goal.section, &goal.key);
    let locator = Locator { goal, of, container, entry };
    match (mode, entry, &goal.what) {
        (Mode::AtSource, Some(entry), GoalChange::Fields(fields)) => {
            locator.fields_at_source(entry, fields, texts)
        }
        (Mode::AtSource, Some(entry), _) => {
            locator.edits(&entry.origin, |found| locator.spot_at_source(found), false, texts)
        }
        _ => locator.edits(
            &container.origin,
            |found| locator.spot_in_document(found),
            covered,
            texts,
        ),
    }
}

struct Locator<'a> {
    goal: &'a Goal,
    of: Section,
    container: &'a Container,
    entry: Option<&'a Entry>,
}

/// A place in a manifest.
struct SourcePoint {
    text: Rc<Manifest>,
    offset: usize,
}

/// Where a section is, or is to be written.
struct Spot<'t> {
    /// The mapping with its key.
    at: Pointer,
    map: &'t Node,
    key: String,
    /// The position of the entry in a list, if it is there.
    item: Option<usize>,
}

impl Locator<'_> {
    fn refuse(&self, reason: impl Into<String>, origin: &Origin) -> Refusal {
        Refusal { origin: Some(origin.clone()), ..Refusal::new(&self.goal.address, reason) }
    }

    fn open(&self, origin: &Origin, texts: &mut Manifests<'_>) -> Result<SourcePoint, Refusal> {
        let text = texts.get(&origin.file).map_err(|reason| self.refuse(reason, origin))?;
        Ok(SourcePoint { offset: text.offset(origin), text })
    }

    /// The edits at the spot that `locate` finds from `origin`, or why there is none.
    fn edits(
        &self,
        origin: &Origin,
        locate: impl Fn(&SourcePoint) -> Result<Spot<'_>, &'static str>,
        covered: bool,
        texts: &mut Manifests<'_>,
    ) -> Result<Edits, Refusal> {
        let found = self.open(origin, texts)?;
        let spot = locate(&found).map_err(|reason| self.refuse(reason, origin))?;
        let is_entry = self.of.shape == Shape::List && !self.goal.key.is_empty();
        let edits =
            if is_entry { self.edit_list(&spot, covered) } else { self.edit_section(&spot) };
        let edits =
            edits.map_err(|(reason, at)| self.refuse(reason, at.as_ref().unwrap_or(origin)))?;
        Ok(edits.into_iter().map(|edit| (found.text.file.clone(), edit)).collect())
    }

    /// The section in the document of the container itself, which was `found`.
    fn spot_in_document<'t>(&self, found: &'t SourcePoint) -> Result<Spot<'t>, &'static str> {
        let is_own = |node: &&Node| {
            written_entry(node, "path").is_some_and(|(key, _)| key.span.start == found.offset)
        };
        let documents = &found.text.parsed.documents;
        let document = documents.iter().position(|node| is_own(&node));
        let document = document.ok_or("its document is not where it was")?;
        let (map, key) = (&documents[document], self.of.section.to_owned());
        let origin = self.entry.map(|entry| &entry.origin).filter(|origin| {
            let is_here = origin.layer >= Layer::Group && origin.file == found.text.file;
            is_here && self.of.shape == Shape::List
        });
        let item = origin.and_then(|origin| {
            // It counts the lines of the text: once, not for each item.
            let offset = found.text.offset(origin);
            map.get(&key)?.1.items().iter().position(|item| item.beginning() == offset)
        });
        Ok(Spot { at: Pointer { document, steps: Vec::new() }, map, key, item })
    }

    /// The section with the declaration that was `found`, in whichever layer it is.
    fn spot_at_source<'t>(&self, found: &'t SourcePoint) -> Result<Spot<'t>, &'static str> {
        let spot = if self.of.shape == Shape::List { find_item(found) } else { find_key(found) };
        spot.ok_or(LOST)
    }

    /// Edits an entry of a list. One that is `covered` is removed by a declaration of its absence.
    fn edit_list(&self, spot: &Spot<'_>, covered: bool) -> Result<Vec<Edit>, NoEdit> {
        let Spot { at, map, key, item } = spot;
        let push = |entry: Vec<Item>, about: Option<String>| {
            let (at, key) = (at.clone(), key.clone());
            Edit::Push { at, key, entry, about, order: self.sections() }
        };
        let remove = item.map(|item| Edit::Remove { at: at.clone(), key: key.clone(), item });
        let remove = remove.into_iter();
        match (&self.goal.what, *item) {
            (GoalChange::Fields(fields), Some(item)) => {
                let steps = vec![PathStep::Key(key.clone()), PathStep::Item(item)];
                let entry = map.get(key).and_then(|(_, list)| list.items().get(item));
                self.set_fields(&Pointer { steps, ..at.clone() }, entry, fields)
            }
            (GoalChange::Fields(fields), None) => {
                let mut items = self.identity()?;
                add_fields(&mut items, fields);
                Ok(vec![push(items, None)])
            }
            (GoalChange::Entry(fields, about), _) => {
                Ok(remove.chain([push(to_items(fields), about.clone())]).collect())
            }
            (GoalChange::Gone, Some(_)) if !covered => Ok(remove.collect()),
            (GoalChange::Gone, _) => {
                let mut items = self.identity()?;
                items.push(Item::value("state", "absent"));
                Ok(remove.chain([push(items, None)]).collect())
            }
        }
    }

    /// Edits a section that is not a list, or makes a list empty.
    fn edit_section(&self, spot: &Spot<'_>) -> Result<Vec<Edit>, NoEdit> {
        let Spot { at, map, key, .. } = spot;
        let put = |to: New| {
            let (at, names) = (at.clone(), vec![key.clone()]);
            Edit::Put { at, names, to, order: self.sections() }
        };
        let section = written_entry(map, key).map(|(_, node)| node);
        let edit = match &self.goal.what {
            _ if self.of.shape == Shape::List => put(New::Value(Json::Array(Vec::new()))),
            GoalChange::Fields(fields) | GoalChange::Entry(fields, _)
                if self.of.shape == Shape::Switch =>
            {
                let values = fields.iter().map(|(_, value)| put(New::Value(value.clone())));
                return Ok(values.collect());
            }
            GoalChange::Fields(fields)
                if section.is_some_and(|it| matches!(it.data, Data::Map(_))) =>
            {
                let steps = vec![PathStep::Key(key.clone())];
                return self.set_fields(&Pointer { steps, ..at.clone() }, section, fields);
            }
            GoalChange::Fields(fields) | GoalChange::Entry(fields, _) => {
                put(New::Map(to_items(fields)))
            }
            GoalChange::Gone => put(New::Value(Json::Null)),
        };
        Ok(vec![edit])
    }

    /// Sets `fields` in the mapping `map` at `at`.
    fn set_fields(
        &self,
        at: &Pointer,
        map: Option<&Node>,
        fields: &FieldValues,
    ) -> Result<Vec<Edit>, NoEdit> {
        let specs = self.of.table().specs().iter();
        let order: Vec<_> =
            specs.map(|spec| spec.name.to_owned()).chain([EXTRA.to_owned()]).collect();
        let mut edits = Vec::new();
        for (names, value) in fields {
            let put = |names: Vec<String>, to: Json| Edit::Put {
                at: at.clone(),
                names,
                to: New::Value(to),
                order: order.clone(),
            };
            let node = map.and_then(|map| templates::node_at(map, names));
            let Some((node, reason)) =
                node.and_then(|node| Some((node, templates::expression_kind(node)?)))
            else {
                edits.push(put(names.clone(), value.clone()));
                continue;
            };
            let name = names.iter().find(|name| *name != EXTRA);
            let field = name.and_then(|name| self.entry?.fields.get(name));
            let lists = field.as_ref().and_then(|field| {
                templates::change(node, field.value.plain()?.as_array()?, value.as_array()?)
            });
            let origin = field.map(|field| field.origin);
            let stuck = || (format!("`{}` is written {reason}", names.join(".")), origin);
            edits.extend(lists.ok_or_else(stuck)?.into_iter().map(|(key, list)| {
                put(names.iter().cloned().chain([key.to_owned()]).collect(), list.into())
            }));
        }
        Ok(edits)
    }

    /// Edits each of `fields` where it is declared, in whichever layer that is.
    fn fields_at_source(
        &self,
        entry: &Entry,
        fields: &FieldValues,
        texts: &mut Manifests<'_>,
    ) -> Result<Edits, Refusal> {
        let edit = |(names, value): &(Vec<String>, Json)| {
            let name = names.iter().find(|name| *name != EXTRA);
            let origin = name.and_then(|name| entry.fields.origin(name));
            let origin = origin.unwrap_or_else(|| entry.origin.clone());
            let found = self.open(&origin, texts)?;
            let names = names.iter().skip_while(|name| *name == EXTRA).skip(1);
            let edit =
                key_edit(&found, names, value).map_err(|reason| self.refuse(reason, &origin))?;
            Ok((origin.file.clone(), edit))
        };
        fields.iter().map(edit).collect()
    }

    /// The sections of a document in order, then the keys after them.
    fn sections(&self) -> Vec<String> {
        let sections = catalogue::sections(self.container.scope).map(|section| section.section);
        sections.chain(LAST).map(str::to_owned).collect()
    }

    /// The identity of the entry as written in a document.
    fn identity(&self) -> Result<Vec<Item>, NoEdit> {
        let Some(entry) = self.entry else { return Ok(Vec::new()) };
        let mut items = Vec::new();
        for name in self.of.identity {
            let Some(field) = entry.fields.get(name) else { continue };
            let Value::Plain(value) = field.value else {
                let reason = "its identity is a reference".to_owned();
                return Err((reason, Some(field.origin)));
            };
            let spec = self.of.table().get(name);
            if spec.and_then(|spec| spec.schema.get("default")) != Some(&value) {
                items.push(Item::value(*name, value));
            }
        }
        Ok(items)
    }
}

/// A mapping with `fields`, each at its keys.
fn to_items(fields: &[(Vec<String>, Json)]) -> Vec<Item> {
    let mut items = Vec::new();
    add_fields(&mut items, fields);
    items
}

/// Adds fields to a mapping, each at its keys.
fn add_fields(items: &mut Vec<Item>, fields: &[(Vec<String>, Json)]) {
    fields.iter().for_each(|(names, value)| nest(items, names, Item::value("", value.clone())));
}

/// Sets the value of the key that was `found`, or of `within` below it.
fn key_edit<'n>(
    found: &SourcePoint,
    within: impl Iterator<Item = &'n String>,
    value: &Json,
) -> Result<Edit, Cow<'static, str>> {
    let Spot { at, map, key, .. } = find_key(found).ok_or(LOST)?;
    let names: Vec<_> = std::iter::once(key).chain(within.cloned()).collect();
    let node = templates::node_at(map, &names).ok_or("several layers declare parts of it")?;
    if let Some(reason) = templates::expression_kind(node) {
        return Err(format!("it is written {reason}").into());
    }
    Ok(Edit::Put { at, names, to: New::Value(value.clone()), order: Vec::new() })
}

/// The found key.
fn find_key(found: &SourcePoint) -> Option<Spot<'_>> {
    found.text.parsed.documents.iter().enumerate().find_map(|(document, root)| {
        let (mut steps, map, key) = find_key_below(root, found.offset)?;
        steps.reverse();
        Some(Spot { at: Pointer { document, steps }, map, key, item: None })
    })
}

/// The steps to the mapping with the key at `offset`, the last one first.
fn find_key_below(node: &Node, offset: usize) -> Option<(Vec<PathStep>, &Node, String)> {
    if let Some((key, _)) = written_entries(node).find(|(key, _)| key.span.start == offset) {
        return Some((Vec::new(), node, key.name.clone()));
    }
    let entries =
        written_entries(node).map(|(key, value)| (PathStep::Key(key.name.clone()), value));
    let items = node.items().iter().enumerate().map(|(at, item)| (PathStep::Item(at), item));
    entries.chain(items).find_map(|(step, inner)| {
        let (mut steps, map, name) = find_key_below(inner, offset)?;
        steps.push(step);
        Some((steps, map, name))
    })
}

/// The section with the found entry.
fn find_item(found: &SourcePoint) -> Option<Spot<'_>> {
    found.text.parsed.documents.iter().enumerate().find_map(|(document, map)| {
        written_entries(map).find_map(|(key, list)| {
            let item = list.items().iter().position(|item| item.beginning() == found.offset);
            let (at, key) = (Pointer { document, steps: Vec::new() }, key.name.clone());
            item.map(|item| Spot { at, map, key, item: Some(item) })
        })
    })
}
