//! Plain collections: an entry is one row of a table, and all collections share the same functions.
//! A [`Collection`] describes the differences.
//!
//! The sandbox's own collections are its reading of the service. A caller may describe others
//! ([`Config::collections`](crate::Config::collections)), of which the sandbox knows nothing else.
//!
//! To add one, define a constant in [`collections`] and add it to the list there.

use std::collections::BTreeMap;

use http::Method;
use matchit::Router;
use rusqlite::Connection;

use super::environments::{changed, next_grant};
use super::prelude::*;
use super::{
    Handler, Operation, access_requests, approval_rules, badges, collections, environments,
    freeze_periods, group_links, hooks, labels, pipeline_schedules, protected_tags, remote_mirrors,
    variables,
};

/// Every collection that the sandbox has.
const COLLECTIONS: &[&[Collection]] = &[
    access_requests::COLLECTIONS,
    &[approval_rules::RULES],
    collections::COLLECTIONS,
    environments::COLLECTIONS,
    &[freeze_periods::PERIODS],
    group_links::COLLECTIONS,
    hooks::COLLECTIONS,
    labels::COLLECTIONS,
    &[pipeline_schedules::SCHEDULES],
    &[protected_tags::TAGS],
    &[remote_mirrors::MIRRORS],
    badges::COLLECTIONS,
    variables::COLLECTIONS,
];

/// Their operations.
pub(super) fn routes() -> impl Iterator<Item = Route> {
    own().flat_map(Collection::routes)
}

/// Every collection that the service has.
fn all_collections(call: &Call<'_>) -> impl Iterator<Item = &'static Collection> {
    own().chain(call.service.told.iter().flat_map(|told| told.collections))
}

fn own() -> impl Iterator<Item = &'static Collection> {
    COLLECTIONS.iter().copied().flatten()
}

/// Whether the sandbox itself has a collection at a path, such as `/projects/:id/milestones`, and does
/// not only read it.
pub fn serves(path: &str) -> bool {
    let path = format!("/api/v4{}", path.replace(":id", "1"));
    let one = format!("{path}/1");
    let writes = [Method::POST, Method::PUT, Method::PATCH];
    writes.iter().any(|of| [&path, &one].iter().any(|at| super::find(None, of, at).is_ok()))
}

/// Collections described by the caller. They live as long as the program, like the sandbox's own.
#[derive(Debug)]
pub(crate) struct Described {
    collections: &'static [Collection],
    pub(super) table: Router<Vec<Operation>>,
}

impl Described {
    /// The described collections that the sandbox does not have itself; `None` if there are none.
    pub(crate) fn new(mut collections: Vec<Collection>) -> Option<&'static Self> {
        collections.retain(|one| !serves(&one.path.replace("{id}", ":id")));
        for one in &mut collections {
            one.rows = Records(
                format!("told_{}", one.rows.0.replace('/', "__").replace(['{', '}'], "_")).leak(),
            );
        }
        let collections: &'static [Collection] = collections.leak();
        let routes: &'static [Route] =
            collections.iter().flat_map(Collection::routes).collect::<Vec<_>>().leak();
        let mut paths: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, route) in (super::all().count()..).zip(routes) {
            let path = format!("/api/v4{}", route.path);
            paths.entry(path).or_default().push(Operation { number, route });
        }
        let mut table = Router::new();
        // A collection at an impossible path is not found; no two are at the same path.
        paths.into_iter().for_each(|(path, of)| drop(table.insert(path, of)));
        let told = || &*Box::leak(Box::new(Self { collections, table }));
        (!collections.is_empty()).then(told)
    }
}

/// Creates missing tables for all collections, for projects, groups, or both.
pub(crate) fn make_room(db: &Connection, told: Option<&Described>) -> Result<(), rusqlite::Error> {
    let mut holders: BTreeMap<_, [bool; 2]> = BTreeMap::new();
    for of in own().chain(told.iter().flat_map(|told| told.collections)) {
        let [projects, groups] = holders.entry(of.rows.0).or_default();
        let is_of_groups = of.path.starts_with("/groups/");
        *projects |= !is_of_groups;
        *groups |= is_of_groups;
    }
    for (name, holders) in holders {
        let held = match holders {
            [true, true] => "(group_id IS NULL) <> (project_id IS NULL)",
            [_, true] => "group_id IS NOT NULL AND project_id IS NULL",
            _ => "group_id IS NULL AND project_id IS NOT NULL",
        };
        db.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {name} (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
                project_id INTEGER REFERENCES projects ON DELETE CASCADE,
                settings TEXT NOT NULL,
                created_at TEXT NOT NULL,
                updated_at TEXT NOT NULL,
                CHECK ({held})
            );
            CREATE INDEX IF NOT EXISTS {name}_by_project ON {name} (project_id)
                WHERE project_id IS NOT NULL;
            CREATE INDEX IF NOT EXISTS {name}_by_group ON {name} (group_id)
                WHERE group_id IS NOT NULL;"
        ))?;
    }
    Ok(())
}

/// The type of object that an id names.
#[derive(Clone, Copy, Debug)]
pub enum Named {
    /// A user.
    User,
    /// A group.
    Group,
    /// A project.
    Project,
}

impl Named {
    /// Its name; null if it no longer exists.
    fn shown(self, call: &Call<'_>, id: &Value) -> Result<Value> {
        let id = id.as_i64().unwrap_or_default();
        Ok(match self {
            Self::User => User::by_id(call.db, id)?.map(|user| user.username),
            Self::Group => Namespace::by_id(call.db, id)?.map(|group| group.full_path),
            Self::Project => Project::by_id(call.db, id)?.map(|project| project.full_path),
        }
        .into())
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Form {
    /// Text.
    Text,
    /// An integer.
    Integer,
    /// A boolean.
    Flag,
    /// A day.
    Day,
    /// A time, or the beginning of a day.
    Time,
    /// A day; another text counts as null.
    LooseDay,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Some of them.
    Words(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// A list of ids.
    Ids,
    /// The id of an object that answers show by its username or full path.
    Named(Named),
    /// A list of objects, each with one of these keys. Answers give each an id. An edit contains
    /// added ones, and by id those to change or, with `_destroy`, to remove. A create may send a
    /// single object with the first key under another name.
    Rows(&'static [&'static str], &'static str),
}

/// A field of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in requests.
    pub name: &'static str,
    /// Its name in answers; empty if they omit it.
    pub shown: &'static str,
    /// Its type.
    pub form: Form,
    /// Its value in a new entry that omits it, as JSON.
    pub preset: &'static str,
    /// Whether an edit ignores it.
    pub only_new: bool,
    /// Whether an edit that omits it resets it to its preset.
    pub resets: bool,
    /// Whether spaces around it are removed.
    pub trims: bool,
    /// The lowest licence with this field.
    pub tier: Tier,
    /// The first release with this field.
    pub since: Option<Release>,
    /// The first release without it again.
    pub until: Option<Release>,
}

impl Field {
    /// A field with the same name in requests and answers, null by default, and unchanged by an
    /// edit that omits it.
    pub const fn new(name: &'static str, form: Form) -> Self {
        Self {
            name,
            shown: name,
            form,
            preset: "null",
            only_new: false,
            resets: false,
            trims: false,
            tier: Tier::Free,
            since: None,
            until: None,
        }
    }

    fn is_there(&self, call: &Call<'_>) -> bool {
        call.tier() >= self.tier
            && self.since.is_none_or(|since| call.release() >= since)
            && self.until.is_none_or(|until| call.release() < until)
    }

    fn preset(&self) -> Value {
        serde_json::from_str(self.preset).unwrap_or_default()
    }

    /// Whether the call contains it.
    fn is_sent(&self, call: &Call<'_>, is_new: bool) -> bool {
        let alone = matches!(self.form, Form::Rows(_, alone) if is_new && call.params.has(alone));
        (call.params.has(self.name) || alone) && self.is_there(call)
    }

    /// The value in the call, given the stored one.
    fn sent(&self, call: &Call<'_>, stored: Option<&Value>) -> Result<Value> {
        let (params, name) = (&call.params, self.name);
        Ok(match self.form {
            Form::Text if self.trims => {
                params.text(name)?.map(|text| text.trim().to_owned()).into()
            }
            Form::Text => params.text(name)?.into(),
            Form::Integer | Form::Named(_) => params.integer(name)?.into(),
            Form::Flag => params.flag(name)?.into(),
            Form::Day => params.date(name)?.flatten().map(|day| day.to_string()).into(),
            Form::Time => params.time_or_day(name)?.map(clock::spell).into(),
            Form::LooseDay => {
                let day = params.date(name).unwrap_or_default().flatten();
                day.map(|day| day.to_string()).into()
            }
            Form::Word(words) => params.one_of(name, words)?.into(),
            Form::Words(words) => {
                let sent = params.texts(name)?.unwrap_or_default();
                if sent.iter().any(|word| !words.contains(&word.as_str())) {
                    return Err(Failure::no_valid_value(name));
                }
                // They are stored as flags, so answers have the order of the list.
                let is_sent = |word: &&&str| sent.iter().any(|sent| sent == *word);
                words.iter().filter(is_sent).copied().collect()
            }
            Form::Texts => params.texts(name)?.unwrap_or_default().into(),
            Form::Ids => params.integers(name)?.unwrap_or_default().into(),
            Form::Rows(keys, alone) => {
                let row = |id, said: &Value| {
                    let mut row = json!({"id": if id == 0 { next_grant(call)? } else { id }});
                    keys.iter().for_each(|key| row[*key] = said[*key].clone());
                    Ok(Some(row))
                };
                let mut rows = changed(call, name, stored.cloned().unwrap_or_default(), row)?;
                if let (None, Some(level)) = (stored, params.get(alone)) {
                    rows.extend(row(0, &json!({ keys[0]: level }))?);
                }
                rows.into()
            }
        })
    }
}

/// A collection. Its rows use the names of requests for fields.
#[derive(Clone, Copy)]
pub struct Collection {
    /// Its path, with `{id}` for the project or group.
    pub path: &'static str,
    /// The name of the path segment that identifies an entry.
    pub entry: &'static str,
    /// The name of that segment in answers: `id`, a field, or a text that stands for the id.
    pub key: &'static str,
    /// The level needed to read, where `scope` checks it.
    pub reads: i64,
    /// The level needed to write.
    pub writes: i64,
    /// The lowest licence with this collection.
    pub tier: Tier,
    /// The first release with this collection.
    pub since: Option<Release>,
    /// The fields that a create needs.
    pub required: &'static [&'static str],
    /// The fields whose values must be unique.
    pub unique: &'static [&'static str],
    /// The fields.
    pub fields: &'static [Field],
    /// For a collection below the entries of another one: the path parameter for the id of the parent.
    pub below: &'static str,
    /// The field of the parent that contains the list, if there is no list request.
    pub within: &'static str,
    /// Further members in answers, as JSON.
    pub shows: &'static [(&'static str, &'static str)],
    /// Whether a single entry can be read.
    pub is_shown: bool,
    /// Whether entries can be edited.
    pub is_edited: bool,
    /// Whether an edit is a PATCH.
    pub is_patched: bool,
    /// Whether one answer has the whole list.
    pub unpaged: bool,
    /// Whether it is a single object that always exists, read and edited at the path.
    pub is_document: bool,
    /// Whether an edit answers 204.
    pub is_silent: bool,
    /// Whether an edit creates a missing entry with the name in its path; nothing else creates one.
    pub is_put: bool,
    /// Whether no request creates or removes an entry.
    pub only_edited: bool,
    /// Whether a project may remove an entry that does not exist, unless a dialect says otherwise.
    pub(super) is_idempotent: bool,
    /// The table of its rows, named after the end of its path.
    pub(super) rows: Records,
    /// Sets of settings of the project: while all of one set are `disabled`, everything is 403.
    pub(super) closed_by: &'static [&'static [&'static str]],
    /// The project or group, for callers who may do this.
    pub(super) scope: fn(&Self, &Call<'_>) -> Result<Scope>,
    /// Fields by which a list can be filtered.
    pub(super) filters: &'static [&'static str],
    /// Entries of other places shown here, each with `inherited`.
    pub(super) inherited: fn(&Self, &Call<'_>, &Scope) -> Result<Vec<Record>>,
    /// Further work of a write: it completes a row with the fields of the call, before the row
    /// joins or replaces the stored ones.
    pub(super) settle: fn(&Self, &Call<'_>, &Scope, &mut Record) -> Result<()>,
    /// Applies further filters and the order of a list.
    pub(super) narrow: fn(&Call<'_>, &mut Vec<Record>) -> Result<()>,
    /// Refuses to remove a row that cannot be removed.
    pub(super) kept: fn(&Call<'_>, &Scope, &Record) -> Result<()>,
    /// The place's own row that the call names.
    pub(super) find: fn(&Self, &Call<'_>, &Scope) -> Result<Record>,
    /// The answer about an entry that does not exist.
    pub(super) missing: fn() -> Failure,
    pub(super) json: fn(&Self, &Call<'_>, &Scope, &Record) -> Result<Value>,
}

/// Marks a row that belongs to another place.
pub(super) const INHERITED: &str = "inherited";

impl Collection {
    /// A collection at `path`, which starts with `/projects/{id}/` or `/groups/{id}/`: maintainers
    /// write and reporters read, without fields, with all operations.
    ///
    /// # Panics
    ///
    /// If it starts with something else.
    pub const fn new(path: &'static str) -> Self {
        let of_project = path.as_bytes()[1] == b'p';
        let above = if of_project { "/projects/{id}/" } else { "/groups/{id}/" };
        Self {
            path,
            entry: "entry",
            key: "id",
            reads: REPORTER,
            writes: MAINTAINER,
            tier: Tier::Free,
            since: None,
            required: &[],
            unique: &[],
            fields: &[],
            below: "",
            within: "",
            shows: &[],
            is_shown: true,
            is_edited: true,
            is_patched: false,
            unpaged: false,
            is_document: false,
            is_silent: false,
            is_put: false,
            only_edited: false,
            is_idempotent: false,
            rows: Records(path.split_at(above.len()).1),
            closed_by: &[],
            scope: |of, call| of.place(call, if call.writes { of.writes } else { of.reads }),
            filters: &[],
            inherited: |_, _, _| Ok(Vec::new()),
            settle: |of, call, scope, row| of.check_unique(row, &of.stored(call, scope)?),
            narrow: |_, _| Ok(()),
            kept: |call, _, row| call.check_unmodified(&row.updated_at),
            find: |of, call, scope| of.pick(call, of.stored(call, scope)?),
            missing: Failure::no_record,
            json: |of, call, _, row| of.with_names(call, row),
        }
    }

    fn routes(&'static self) -> impl Iterator<Item = Route> {
        let is_list = !self.is_document;
        let one = match is_list {
            true => format!("{}/{{{}}}", self.path, self.entry).leak(),
            false => self.path,
        };
        let edit = if self.is_patched { Method::PATCH } else { Method::PUT };
        let route = move |is_there: bool, method, path, verb| {
            is_there.then_some(Route { method, path, handler: Handler::Row(self, verb) })
        };
        [
            route(is_list && self.within.is_empty(), Method::GET, self.path, Verb::List),
            route(
                is_list && !self.is_put && !self.only_edited,
                Method::POST,
                self.path,
                Verb::Create,
            ),
            route(self.is_shown, Method::GET, one, Verb::Show),
            route(self.is_edited, edit, one, Verb::Update),
            route(is_list && !self.only_edited, Method::DELETE, one, Verb::Remove),
        ]
        .into_iter()
        .flatten()
    }

    pub(super) fn answer(&self, verb: Verb, call: &Call<'_>) -> Result<Answer> {
        refuse_if(self.since.is_some_and(|since| call.release() < since), Failure::no_route)?;
        let scope = self.scope(call)?;
        self.check_above(call, &scope)?;
        let body = |row: &Record| (self.json)(self, call, &scope, row);
        match verb {
            Verb::List => self.list(call, &scope),
            Verb::Show => {
                let row = self.found(call, &scope).or_else(|missing| {
                    let inherited = (self.inherited)(self, call, &scope)?;
                    self.pick(call, inherited).map_err(|_| missing)
                })?;
                let mut body = body(&row)?;
                for of in
                    all_collections(call).filter(|of| !of.within.is_empty() && of.is_below(self))
                {
                    let rows = of.stored(call, &scope)?;
                    let rows = rows.iter().map(|row| (of.json)(of, call, &scope, row));
                    body[of.within] = rows.collect::<Result<_>>()?;
                }
                Answer::ok(&body)
            }
            Verb::Create => {
                call.params.require(self.required)?;
                let mut row = Record::new(call.now());
                self.save(call, &scope, &mut row)?;
                Answer::created(&body(&row)?)
            }
            Verb::Update => {
                let mut row = match self.found(call, &scope) {
                    Err(_) if self.is_put => self.named(call)?,
                    found => found?,
                };
                self.save(call, &scope, &mut row)?;
                if self.is_silent { Ok(Answer::no_content()) } else { Answer::ok(&body(&row)?) }
            }
            Verb::Remove => {
                let row = match self.found(call, &scope) {
                    Err(failure) if self.may_be_absent(call, &scope, &failure) => {
                        return Ok(Answer::no_content());
                    }
                    found => found?,
                };
                (self.kept)(call, &scope, &row)?;
                self.rows.remove(call.db, &row)?;
                Ok(Answer::no_content())
            }
        }
    }

    /// Whether removing an entry that does not exist succeeds.
    fn may_be_absent(&self, call: &Call<'_>, scope: &Scope, failure: &Failure) -> bool {
        self.is_idempotent
            && failure.status == StatusCode::NOT_FOUND
            && matches!(scope, Scope::Project(_))
            && call.service.profile.absent_delete == AbsentDelete::NoContent
    }

    /// The project or group, for callers who may do this.
    pub(super) fn scope(&self, call: &Call<'_>) -> Result<Scope> {
        let scope = (self.scope)(self, call)?;
        if let Scope::Project(project) = &scope
            && !self.closed_by.is_empty()
        {
            let attributes = project.attributes(call.db)?;
            let is_off = |name: &&str| attributes.get(*name).is_some_and(|on| on == "disabled");
            let is_closed = self.closed_by.iter().any(|set| set.iter().all(is_off));
            refuse_if(is_closed, Failure::forbidden)?;
        }
        call.require_tier(self.tier).map(|()| scope)
    }

    /// The project or group, for callers with this level.
    pub(super) fn place(&self, call: &Call<'_>, level: i64) -> Result<Scope> {
        Scope::kept_by(call, [level, level])
    }

    /// Whether it is below the entries of `other`.
    fn is_below(&self, other: &Self) -> bool {
        let rest = self.path.strip_prefix(other.path);
        !self.below.is_empty() && rest.is_some_and(|rest| rest.starts_with("/{"))
    }

    /// Refuses a request below a parent that does not exist.
    fn check_above(&self, call: &Call<'_>, scope: &Scope) -> Result<()> {
        let Some(above) = all_collections(call).find(|other| self.is_below(other)) else {
            return Ok(());
        };
        let found = above.rows.find(call.db, scope.holder(), call.segment_id(self.below)?)?;
        found.map(|_| ()).ok_or_else(Failure::no_record)
    }

    /// The place's own rows; for a collection with parents, those of the parent in the path.
    pub(super) fn stored(&self, call: &Call<'_>, scope: &Scope) -> Result<Vec<Record>> {
        let mut rows = Vec::new();
        for row in self.rows.all(call.db, scope.holder())? {
            if self.is_known(call, &row)? {
                rows.push(row);
            }
        }
        if !self.below.is_empty() {
            let above = Value::from(call.segment_id(self.below)?);
            rows.retain(|row| row.value(self.below) == above);
        }
        Ok(rows)
    }

    /// Whether the object exists that identifies a row, if one does. Without it the row is gone.
    pub(super) fn is_known(&self, call: &Call<'_>, row: &Record) -> Result<bool> {
        Ok(match self.keyed() {
            Some(Field { form: Form::Named(of), name, .. }) => {
                !of.shown(call, &row.value(name))?.is_null()
            }
            _ => true,
        })
    }

    /// The place's own row that the call names.
    pub(super) fn found(&self, call: &Call<'_>, scope: &Scope) -> Result<Record> {
        (self.find)(self, call, scope)
    }

    /// A new row with the name in the path.
    fn named(&self, call: &Call<'_>) -> Result<Record> {
        call.params.require(self.required)?;
        let mut row = Record::new(call.now());
        row.set(self.keyed().map_or(self.key, |field| field.name), call.segment(self.entry));
        Ok(row)
    }

    /// The field in the path of an entry.
    fn keyed(&self) -> Option<&Field> {
        let is_it = |field: &&Field| match field.form {
            Form::Named(_) => field.name == self.key,
            _ => field.shown == self.key,
        };
        self.fields.iter().find(is_it)
    }

    pub(super) fn pick(&self, call: &Call<'_>, mut rows: Vec<Record>) -> Result<Record> {
        if self.is_document {
            return Ok(rows.pop().unwrap_or_else(|| Record::new(call.now())));
        }
        let named = call.segment(self.entry);
        let is_it = |value: &Value| match value.as_i64() {
            Some(id) => named.parse() == Ok(id),
            None => value.as_str() == Some(named),
        };
        let found = match self.keyed() {
            Some(field) => rows.into_iter().find(|row| is_it(&row.value(field.name))),
            None => {
                let id = call.segment_id(self.entry)?;
                rows.into_iter().find(|row| row.id == id)
            }
        };
        found.ok_or_else(self.missing)
    }

    /// All rows shown here, in the order of the list.
    fn all(&self, call: &Call<'_>, scope: &Scope) -> Result<Vec<Record>> {
        let mut all = self.stored(call, scope)?;
        let inherited = (self.inherited)(self, call, scope)?;
        if !inherited.is_empty() {
            all.extend(inherited);
            all.sort_by_key(|row| row.id);
        }
        Ok(all)
    }

    fn list(&self, call: &Call<'_>, scope: &Scope) -> Result<Answer> {
        let mut all = self.all(call, scope)?;
        for name in self.filters {
            let wanted = call.params.text(name)?;
            if let Some(wanted) =
                wanted.filter(|wanted| (*name, wanted.as_str()) != ("state", "all"))
            {
                all.retain(|row| row.text(name) == wanted);
            }
        }
        (self.narrow)(call, &mut all)?;
        let json = |row: &Record| (self.json)(self, call, scope, row);
        match self.unpaged {
            true => Answer::ok(&all.iter().map(json).collect::<Result<Vec<_>>>()?),
            false => page::list_of(call, &all, json),
        }
    }

    pub(super) fn save(&self, call: &Call<'_>, scope: &Scope, row: &mut Record) -> Result<()> {
        self.take(call, row)?;
        if !self.below.is_empty() {
            row.set(self.below, call.segment_id(self.below)?);
        }
        (self.settle)(self, call, scope, row)?;
        Ok(self.rows.save(call.db, scope.holder(), row, call.now())?)
    }

    /// Stores the fields in the call.
    pub(super) fn take(&self, call: &Call<'_>, row: &mut Record) -> Result<()> {
        let is_new = row.id == 0;
        for field in self.fields.iter().filter(|field| is_new || !field.only_new) {
            if field.is_sent(call, is_new) {
                row.set(field.name, field.sent(call, row.settings.get(field.name))?);
            } else if field.resets || (is_new && field.preset != "null") {
                row.set(field.name, field.preset());
            }
        }
        Ok(())
    }

    pub(super) fn check_unique(&self, row: &Record, stored: &[Record]) -> Result<()> {
        let Some(first) = self.unique.first() else { return Ok(()) };
        let is_same = |other: &Record| {
            self.unique.iter().all(|name| other.settings.get(*name) == row.settings.get(*name))
        };
        let is_taken = stored.iter().any(|other| other.id != row.id && is_same(other));
        let mut wrong = Complaints::default();
        wrong.add_if(is_taken, first, "has already been taken");
        wrong.settle()
    }

    /// A row with its fields, and with names in place of ids.
    fn with_names(&self, call: &Call<'_>, row: &Record) -> Result<Value> {
        let mut body = self.plain(call, row);
        for field in self.fields {
            if let Form::Named(of) = field.form {
                let id = row.value(field.name);
                body[field.shown] = of.shown(call, &id)?;
                set_if(&mut body, field.name == self.key, self.key, id);
            }
        }
        Ok(body)
    }

    /// A row with its fields.
    pub(super) fn plain(&self, call: &Call<'_>, row: &Record) -> Value {
        let mut body = Map::new();
        body.insert("id".to_owned(), row.id.into());
        let is_number = self.key.ends_with("id");
        let key = if is_number { row.id.into() } else { row.id.to_string().into() };
        body.insert(self.key.to_owned(), key);
        let json = |text: &str| serde_json::from_str(text).unwrap_or_default();
        for field in self.fields.iter().filter(|f| !f.shown.is_empty() && f.is_there(call)) {
            let value = row.settings.get(field.name).cloned().unwrap_or_else(|| field.preset());
            body.insert(field.shown.to_owned(), value);
        }
        body.extend(self.shows.iter().map(|(name, text)| ((*name).to_owned(), json(text))));
        body.insert("created_at".to_owned(), row.created_at.clone().into());
        body.insert("updated_at".to_owned(), row.updated_at.clone().into());
        Value::Object(body)
    }
}

impl std::fmt::Debug for Collection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Collection").field("path", &self.path).finish_non_exhaustive()
    }
}

/// An operation of a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    List,
    Show,
    Create,
    Update,
    Remove,
}

/// Whether another row has the same value.
pub(super) fn is_taken(stored: &[Record], row: &Record, name: &str) -> bool {
    stored.iter().any(|other| other.id != row.id && other.text(name) == row.text(name))
}
