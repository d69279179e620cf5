//! Plain collections: an entry is one row of a table, and all collections share the same functions.
//! A [`Collection`] describes the differences.
//!
//! The sandbox's own collections are its reading of the service. A caller may describe others
//! ([`Config::collections`](crate::Config::collections)), of which the sandbox knows nothing else.
//!
//! To add one, define a constant in [`collections`](super::collections) and add it to the list there.

use http::Method;

use super::Handler;
use super::prelude::*;
use super::registry::all_collections;

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
    /// Whether it has at most one entry, which has no name in its path.
    pub is_single: bool,
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
    /// How many entries a project, and a group, has at most, with the word for them and the refusal.
    pub(super) most: Option<Most>,
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

type Most = (&'static str, [i64; 2], fn(String) -> Failure);

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
            is_single: false,
            is_silent: false,
            is_put: false,
            only_edited: false,
            is_idempotent: false,
            rows: Records(path.split_at(above.len()).1),
            most: None,
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

    pub(super) fn routes(&'static self) -> impl Iterator<Item = Route> {
        let is_list = !self.is_document;
        let one = match is_list && !self.is_single {
            true => format!("{}/{{{}}}", self.path, self.entry).leak(),
            false => self.path,
        };
        let has_list = is_list && !self.is_single && self.within.is_empty();
        let edit = if self.is_patched { Method::PATCH } else { Method::PUT };
        let route = move |is_there: bool, method, path, verb| {
            is_there.then_some(Route { method, path, handler: Handler::Row(self, verb) })
        };
        [
            route(has_list, Method::GET, self.path, Verb::List),
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
                self.check_number(call, &scope)?;
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
                self.rows.remove(call, &row)?;
                Ok(Answer::no_content())
            }
        }
    }

    /// Refuses a new entry if there are too many with it.
    fn check_number(&self, call: &Call<'_>, scope: &Scope) -> Result<()> {
        let Some((noun, [of_project, of_group], refused)) = self.most else { return Ok(()) };
        let most = scope.either(of_project, of_group);
        refuse_if(self.rows.count(call, scope.holder())? > most, || {
            refused(format!("Maximum number of {} {noun} ({most}) exceeded", scope.name()))
        })
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
        if let Scope::Project(project) = &scope {
            let is_closed = any(self.closed_by, |set| call.are_off(project, set))?;
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
        let found = above.rows.find(call, scope.holder(), call.segment_id(self.below)?)?;
        found.map(|_| ()).ok_or_else(Failure::no_record)
    }

    /// The place's own rows; for a collection with parents, those of the parent in the path.
    pub(super) fn stored(&self, call: &Call<'_>, scope: &Scope) -> Result<Vec<Record>> {
        let rows = self.rows.all(call, scope.holder())?;
        let mut rows = try_filter(rows, |row| self.is_known(call, row))?;
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
        Ok(self.rows.save(call, scope.holder(), row)?)
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
