//! Finds where a goal is declared: in which document, and what to edit there.

use std::rc::Rc;

use super::{
    Mode, Refusal, Text, Texts,
    drift::{Content, EXTRA, Fields, Goal},
    edit::{Edit, New, Pointer, Step, own, own_entries},
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

/// Edits with their files.
pub(super) type Edits = Vec<(FileName, Edit)>;

/// Why something cannot be edited, and the place concerned.
type NoEdit = (String, Option<Origin>);

/// The edits with which `container` declares the goal. An entry that is `covered` is also declared
/// by a lower layer, so its removal is declared with `state: absent`.
///
/// # Errors
/// Why it cannot be edited.
pub(super) fn place(
    goal: &Goal,
    container: &Container,
    mode: Mode,
    covered: bool,
    texts: &mut Texts<'_>,
) -> Result<Edits, Refusal> {
    let Some(of) = catalogue::section(container.scope, goal.section) else { return Ok(Vec::new()) };
    let entry = container.entry(goal.section, &goal.key);
    let locator = Locator { goal, of, container, entry };
    match (mode, entry) {
        (Mode::AtSource, Some(entry)) => locator.at_source(entry, texts),
        _ => locator.in_own(covered, texts),
    }
}

struct Locator<'a> {
    goal: &'a Goal,
    of: Section,
    container: &'a Container,
    entry: Option<&'a Entry>,
}

/// A place in a manifest.
struct Found {
    text: Rc<Text>,
    offset: usize,
}

impl Locator<'_> {
    fn refuse(&self, why: impl Into<String>, origin: &Origin) -> Refusal {
        Refusal { origin: Some(origin.clone()), ..Refusal::new(&self.goal.address, why) }
    }

    fn open(&self, origin: &Origin, texts: &mut Texts<'_>) -> Result<Found, Refusal> {
        let text = texts.get(&origin.file).map_err(|why| self.refuse(why, origin))?;
        Ok(Found { offset: text.offset(origin), text })
    }

    /// Edits the document of the container itself.
    fn in_own(&self, covered: bool, texts: &mut Texts<'_>) -> Result<Edits, Refusal> {
        let found = self.open(&self.container.origin, texts)?;
        let is_own =
            |node: &&Node| own(node, "path").is_some_and(|(key, _)| key.span.start == found.offset);
        let documents = &found.text.parsed.documents;
        let document = documents.iter().position(|node| is_own(&node));
        let lost = || self.refuse("its document is not where it was", &self.container.origin);
        let document = document.ok_or_else(lost)?;
        let root = &documents[document];
        let at = Pointer { document, steps: Vec::new() };
        let edits = if self.of.shape == Shape::List && self.goal.key.is_empty() {
            let (names, none) = (vec![self.of.section.to_owned()], Json::Array(Vec::new()));
            Ok(vec![Edit::Put { at, names, to: New::Value(none), order: self.sections() }])
        } else if self.of.shape == Shape::List {
            let origin = self
                .entry
                .map(|entry| &entry.origin)
                .filter(|origin| origin.layer >= Layer::Group && origin.file == found.text.file);
            let item = origin.and_then(|origin| {
                // It counts the lines of the text: once, not for each item.
                let offset = found.text.offset(origin);
                let mut items = root.get(self.of.section)?.1.items().iter();
                items.position(|item| item.beginning() == offset)
            });
            self.in_list(at, root, item, covered)
        } else {
            self.in_mapping(at, root)
        };
        let edits = edits.map_err(|(why, origin)| {
            self.refuse(why, origin.as_ref().unwrap_or(&self.container.origin))
        })?;
        Ok(edits.into_iter().map(|edit| (found.text.file.clone(), edit)).collect())
    }

    /// Edits a list in the document `root`; `item` is the entry.
    fn in_list(
        &self,
        at: Pointer,
        root: &Node,
        item: Option<usize>,
        covered: bool,
    ) -> Result<Vec<Edit>, NoEdit> {
        let section = self.of.section.to_owned();
        let push = |fields: Vec<Item>, about: Option<String>| Edit::Push {
            at: at.clone(),
            key: section.clone(),
            entry: fields,
            about,
            order: self.sections(),
        };
        let remove = item.map(|item| Edit::Remove { at: at.clone(), key: section.clone(), item });
        match &self.goal.what {
            Content::Fields(fields) => {
                let Some(item) = item else {
                    let mut items = self.identity()?;
                    add(&mut items, fields);
                    return Ok(vec![push(items, None)]);
                };
                let steps = vec![Step::Key(section.clone()), Step::Item(item)];
                let map = root.get(&section).and_then(|(_, list)| list.items().get(item));
                self.put(&Pointer { steps, ..at.clone() }, map, fields)
            }
            Content::Entry(fields, about) => {
                Ok(remove.into_iter().chain([push(items(fields), about.clone())]).collect())
            }
            Content::Gone if item.is_some() && !covered => Ok(remove.into_iter().collect()),
            Content::Gone => {
                let mut items = self.identity()?;
                items.push(Item::value("state", "absent"));
                Ok(remove.into_iter().chain([push(items, None)]).collect())
            }
        }
    }

    /// Edits a section of the document `root` that is not a list.
    fn in_mapping(&self, at: Pointer, root: &Node) -> Result<Vec<Edit>, NoEdit> {
        let put = |to: New| Edit::Put {
            at: at.clone(),
            names: vec![self.of.section.to_owned()],
            to,
            order: self.sections(),
        };
        let section = own(root, self.of.section).map(|(_, node)| node);
        match &self.goal.what {
            Content::Fields(fields) | Content::Entry(fields, _)
                if self.of.shape == Shape::Switch =>
            {
                Ok(fields.iter().map(|(_, value)| put(New::Value(value.clone()))).collect())
            }
            Content::Fields(fields)
                if section.is_some_and(|it| matches!(it.data, Data::Map(_))) =>
            {
                let steps = vec![Step::Key(self.of.section.to_owned())];
                self.put(&Pointer { steps, ..at.clone() }, section, fields)
            }
            Content::Fields(fields) | Content::Entry(fields, _) => {
                Ok(vec![put(New::Map(items(fields)))])
            }
            Content::Gone => Ok(vec![put(New::Value(Json::Null))]),
        }
    }

    /// Sets `fields` in the mapping `map` at `at`.
    fn put(&self, at: &Pointer, map: Option<&Node>, fields: &Fields) -> Result<Vec<Edit>, NoEdit> {
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
            let node = map.and_then(|map| templates::written(map, names));
            let Some((node, why)) = node.and_then(|node| Some((node, templates::in_words(node)?)))
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
            let stuck = || (format!("`{}` is written {why}", names.join(".")), origin);
            edits.extend(lists.ok_or_else(stuck)?.into_iter().map(|(key, list)| {
                put(names.iter().cloned().chain([key.to_owned()]).collect(), list.into())
            }));
        }
        Ok(edits)
    }

    /// Edits the present declaration, in whichever layer it is.
    fn at_source(&self, entry: &Entry, texts: &mut Texts<'_>) -> Result<Edits, Refusal> {
        if let Content::Fields(fields) = &self.goal.what {
            let edit = |(names, value): &(Vec<String>, Json)| {
                let name = names.iter().find(|name| *name != EXTRA);
                let origin = name.and_then(|name| entry.fields.origin(name));
                let origin = origin.unwrap_or_else(|| entry.origin.clone());
                let found = self.open(&origin, texts)?;
                let names = names.iter().skip_while(|name| *name == EXTRA).skip(1);
                let edit = self.key_at(&found, &origin, names.cloned().collect(), value)?;
                Ok((origin.file.clone(), edit))
            };
            return fields.iter().map(edit).collect();
        }
        let origin = &entry.origin;
        let found = self.open(origin, texts)?;
        let lost = || self.refuse("it is not written where it was found", origin);
        if self.of.shape != Shape::List {
            let value = match &self.goal.what {
                Content::Entry(fields, _) => New::Map(items(fields)),
                _ => New::Value(Json::Null),
            };
            let (at, _, key) = key_in(&found).ok_or_else(lost)?;
            let put = Edit::Put { at, names: vec![key], to: value, order: Vec::new() };
            return Ok(vec![(origin.file.clone(), put)]);
        }
        let (document, key, item) = item_in(&found).ok_or_else(lost)?;
        let at = Pointer { document, steps: Vec::new() };
        let mut edits = vec![Edit::Remove { at: at.clone(), key: key.clone(), item }];
        if let Content::Entry(fields, about) = &self.goal.what {
            let (entry, about) = (items(fields), about.clone());
            edits.push(Edit::Push { at, key, entry, about, order: Vec::new() });
        }
        Ok(edits.into_iter().map(|edit| (origin.file.clone(), edit)).collect())
    }

    /// Sets the value of the key that was `found`, or of `names` below it.
    fn key_at(
        &self,
        found: &Found,
        origin: &Origin,
        names: Vec<String>,
        value: &Json,
    ) -> Result<Edit, Refusal> {
        let lost = || self.refuse("it is not written where it was found", origin);
        let (at, map, key) = key_in(found).ok_or_else(lost)?;
        let names: Vec<_> = std::iter::once(key).chain(names).collect();
        let node = templates::written(map, &names);
        let node = node.ok_or_else(|| self.refuse("several layers say parts of it", origin))?;
        if let Some(why) = templates::in_words(node) {
            return Err(self.refuse(format!("it is written {why}"), origin));
        }
        Ok(Edit::Put { at, names, to: New::Value(value.clone()), order: Vec::new() })
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
                let why = "its identity is a reference".to_owned();
                return Err((why, Some(field.origin)));
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
fn items(fields: &[(Vec<String>, Json)]) -> Vec<Item> {
    let mut items = Vec::new();
    add(&mut items, fields);
    items
}

/// Adds fields to a mapping, each at its keys.
fn add(items: &mut Vec<Item>, fields: &[(Vec<String>, Json)]) {
    fields.iter().for_each(|(names, value)| nest(items, names, Item::value("", value.clone())));
}

/// The mapping with the found key, and the key.
fn key_in(found: &Found) -> Option<(Pointer, &Node, String)> {
    let mut documents = found.text.parsed.documents.iter().enumerate();
    documents.find_map(|(document, root)| {
        let (mut steps, map, name) = key_below(root, found.offset)?;
        steps.reverse();
        Some((Pointer { document, steps }, map, name))
    })
}

/// The steps to the mapping with the key at `offset`, the last one first.
fn key_below(node: &Node, offset: usize) -> Option<(Vec<Step>, &Node, String)> {
    if let Some((key, _)) = own_entries(node).find(|(key, _)| key.span.start == offset) {
        return Some((Vec::new(), node, key.name.clone()));
    }
    let entries = own_entries(node).map(|(key, value)| (Step::Key(key.name.clone()), value));
    let items = node.items().iter().enumerate().map(|(at, item)| (Step::Item(at), item));
    entries.chain(items).find_map(|(step, inner)| {
        let (mut steps, map, name) = key_below(inner, offset)?;
        steps.push(step);
        Some((steps, map, name))
    })
}

/// The document, the section and the position of the found entry.
fn item_in(found: &Found) -> Option<(usize, String, usize)> {
    let mut documents = found.text.parsed.documents.iter().enumerate();
    documents.find_map(|(document, root)| {
        own_entries(root).find_map(|(key, list)| {
            let item = list.items().iter().position(|item| item.beginning() == found.offset)?;
            Some((document, key.name.clone(), item))
        })
    })
}
