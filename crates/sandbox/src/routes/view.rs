//! Projects in responses: the simple and the full form (reference 1, 2.8).
//!
//! The attributes of a [`ProjectView`] come from `project_view`. This module adds names, URLs, and
//! values that are counted or read from other tables. The URLs depend on the host that the client
//! used.

use super::super::project_view::ProjectView;
use super::prelude::*;

/// A JSON object that is written to a text, field by field. A page has a hundred projects with
/// sixty fields each. The fields are therefore not collected in a map first.
#[derive(Debug, Default)]
pub(crate) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    /// Starts a field. The caller writes the value after this. Names need no escapes.
    fn start_field(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.extend_from_slice(&[b"\"", name.as_bytes(), b"\":"].concat());
        &mut self.0
    }

    fn set_field(&mut self, name: &str, value: impl Serialize) -> Result<()> {
        serde_json::to_writer(self.start_field(name), &value)
            .map_err(|error| ErrorResponse::internal(&error))
    }

    fn set_field_if(&mut self, is_shown: bool, name: &str, value: impl Serialize) -> Result<()> {
        if is_shown { self.set_field(name, value) } else { Ok(()) }
    }

    fn set_object(&mut self, name: &str, value: Self) {
        self.start_field(name).extend_from_slice(&value.into_text());
    }

    /// Ends the object, which must have a field, and returns its text.
    pub(crate) fn into_text(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    pub(crate) fn into_value(self) -> Result<Value> {
        serde_json::from_slice(&self.into_text()).map_err(|error| ErrorResponse::internal(&error))
    }
}

/// The optional fields of a response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExtraFields {
    /// The caller's roles, which only reads of projects show.
    pub(crate) permissions: bool,
    /// The error of a failed import, which only responses for single projects show.
    pub(crate) import_error: bool,
    pub(crate) license: bool,
    pub(crate) statistics: bool,
    pub(crate) custom_attributes: bool,
}

impl ExtraFields {
    /// The default for reads, with `license`, `statistics` and `with_custom_attributes` from the
    /// call. Custom attributes are only for administrators.
    pub(crate) fn from_call(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            permissions: true,
            import_error: false,
            license: call.is_true("license")?,
            statistics: call.is_true("statistics")?,
            custom_attributes: call.is_true("with_custom_attributes")? && call.is_administrator(),
        })
    }

    /// The optional fields in the response to a create or an edit.
    pub(crate) fn for_saved_project() -> Self {
        Self { import_error: true, ..Self::default() }
    }
}

/// The attributes of a project, with the values that it inherits from its groups.
fn effective_attributes(call: &Call<'_>, project: &Project) -> Result<Object> {
    let mut attributes = serde_json::from_str(&project.attributes_json).unwrap_or_default();
    group_settings::add_inherited_attributes(call, project, &mut attributes)?;
    Ok(attributes)
}

impl Project {
    /// Writes the simple form of a project.
    pub(crate) fn simple_form(&self, call: &Call<'_>, extras: ExtraFields) -> Result<ObjectWriter> {
        let attributes = effective_attributes(call, self)?;
        let level = call.caller_level_in_project(self)?;
        let view = ProjectView {
            call,
            project: self,
            attributes: &attributes,
            caller_level: level,
            extras,
        };
        let mut body = view.write_simple_fields()?;
        body.set_field_if(call.is_at_least(18, 2), "visibility", &self.visibility)?;
        if call.is_observed_release_or_later() {
            view.add_repository_fields(&mut body)?;
            let storage = &attributes["repository_storage"];
            body.set_field_if(call.is_administrator(), "repository_storage", storage)?;
            view.add_custom_attributes(&mut body)?;
        }
        Ok(body)
    }

    /// Writes the full form of a project.
    pub(crate) fn full_form(&self, call: &Call<'_>, extras: ExtraFields) -> Result<ObjectWriter> {
        let attributes = effective_attributes(call, self)?;
        let level = call.caller_level_in_project(self)?;
        let view = ProjectView {
            call,
            project: self,
            attributes: &attributes,
            caller_level: level,
            extras,
        };
        let mut body = view.write_simple_fields()?;
        view.add_repository_fields(&mut body)?;
        let holder = Some(Holder::Project(self.id)).filter(|_| self.shared);
        let shares = holder.map(|holder| shares::invitations_json(call, holder)).transpose()?;
        let image_path = self.full_path.to_lowercase();
        body.set_field("creator_id", self.creator_id)?;
        body.set_field("visibility", &self.visibility)?;
        body.set_field("archived", call.is_archived(self)?)?;
        body.set_field("empty_repo", self.empty_repo)?;
        let host = client_host(call);
        body.set_field("container_registry_image_prefix", format_args!("{host}/{image_path}"))?;
        body.set_field("import_status", self.import_status_at(call.time_text()))?;
        body.set_object("_links", view.links_json()?);
        body.set_field("shared_with_groups", shares.unwrap_or_default())?;
        if let Some(user) = call.caller.as_ref().filter(|_| extras.permissions) {
            body.set_field("permissions", view.permissions_json(user)?)?;
        }
        for (name, value) in view.full_form_only_fields() {
            body.set_field(name, value)?;
        }
        // A project sends no e-mails if its own setting, or the setting of a group above, disables
        // them.
        if call.is_at_least(16, 3) {
            let name = "emails_disabled";
            let is_off = attributes.get(name) == Some(&Value::Bool(true))
                || call.is_set_in_hierarchy(&self.namespace, name, true)?;
            body.set_field(name, is_off)?;
        }
        body.set_field_if(call.is_observed_release_or_later(), "updated_at", &self.updated_at)?;
        body.set_field_if(
            call.is_observed_release_or_later(),
            "description_html",
            description_html(&attributes),
        )?;
        view.add_maintainer_fields(&mut body)?;
        view.add_optional_fields(&mut body)?;
        view.add_requested_fields(&mut body)?;
        Ok(body)
    }
}

impl ProjectView<'_> {
    /// Adds the fields that only maintainers see.
    fn add_maintainer_fields(&self, body: &mut ObjectWriter) -> Result<()> {
        let Self { call, project, .. } = self;
        if self.caller_level < MAINTAINER {
            return Ok(());
        }
        body.set_field("runners_token", &project.runners_token)?;
        body.set_field("import_url", import_url(self.attributes))?;
        body.set_field_if(call.is_at_least(15, 9), "import_type", Value::Null)?;
        let error = project.import_error_at(call.time_text());
        body.set_field_if(self.extras.import_error, "import_error", error)
    }

    /// Writes the fields of the simple form.
    fn write_simple_fields(&self) -> Result<ObjectWriter> {
        let Self { call, project, .. } = self;
        let host = client_host(call);
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let (base, path) = (call.base_url.as_str(), project.full_path.as_str());
        let mut body = ObjectWriter::default();
        body.set_field("id", project.id)?;
        body.set_field("name", &project.name)?;
        body.set_field("name_with_namespace", project.full_name())?;
        body.set_field("path", &project.path)?;
        body.set_field("path_with_namespace", path)?;
        body.set_field("created_at", &project.created_at)?;
        body.set_field("ssh_url_to_repo", format_args!("git@{name}:{path}.git"))?;
        body.set_field("http_url_to_repo", format_args!("{base}/{path}.git"))?;
        body.set_field("web_url", format_args!("{base}/{path}"))?;
        body.set_field("avatar_url", avatar_url(call, project))?;
        body.set_field("star_count", project.star_count)?;
        body.set_field("last_activity_at", &project.last_activity_at)?;
        body.set_field("namespace", project.namespace.brief_json(base))?;
        self.simple_form_fields().try_for_each(|(name, value)| body.set_field(name, value))?;
        Ok(body)
    }

    /// Adds the fields for callers who may read the repository.
    fn add_repository_fields(&self, body: &mut ObjectWriter) -> Result<()> {
        let Self { call, project, .. } = self;
        if self.may_read_code() {
            let readme = format!("{}/{}/-/blob/HEAD/README.md", call.base_url, project.full_path);
            body.set_field("forks_count", project.forks_count)?;
            body.set_field("readme_url", (!project.empty_repo).then_some(readme))?;
        }
        Ok(())
    }

    /// Adds the fields that only some projects or callers have.
    fn add_optional_fields(&self, body: &mut ObjectWriter) -> Result<()> {
        let Self { call, project, .. } = self;
        if let Some(id) = project.namespace.owner_id {
            body.set_field("owner", owner_json(call, id, &project.namespace)?)?;
        }
        for name in ["marked_for_deletion_at", "marked_for_deletion_on"] {
            body.set_field_if(call.shows_deletion_day(), name, &project.marked_for_deletion_on)?;
        }
        if let Some(upstream_id) = project.forked_from_id
            && let Some(upstream) = upstream_json(call, upstream_id, self.extras)?
        {
            body.set_object("forked_from_project", upstream);
        }
        Ok(())
    }

    /// Adds the fields that the call requests.
    fn add_requested_fields(&self, body: &mut ObjectWriter) -> Result<()> {
        for name in ["license_url", "license"] {
            body.set_field_if(self.extras.license, name, Value::Null)?;
        }
        if self.extras.statistics && self.caller_level >= REPORTER {
            let registry =
                self.call.is_observed_release_or_later().then_some("container_registry_size");
            let sizes = STATISTICS.split(' ').chain(registry).map(|name| (name, 0));
            body.set_field("statistics", sizes.collect::<BTreeMap<_, _>>())?;
        }
        self.add_custom_attributes(body)
    }

    fn add_custom_attributes(&self, body: &mut ObjectWriter) -> Result<()> {
        if self.extras.custom_attributes {
            let custom_attributes =
                custom_attributes::list_json(self.call, Holder::Project(self.project.id))?;
            body.set_field("custom_attributes", custom_attributes)?;
        }
        Ok(())
    }

    /// The URLs of a project's parts.
    fn links_json(&self) -> Result<ObjectWriter> {
        let api_url = format!("{}/api/v4/projects/{}", self.call.base_url, self.project.id);
        let mut links = ObjectWriter::default();
        links.set_field("self", &api_url)?;
        links.set_field("repo_branches", format_args!("{api_url}/repository/branches"))?;
        for name in ["issues", "merge_requests", "labels", "events", "members", "cluster_agents"] {
            let is_feature = ["issues", "merge_requests"].contains(&name);
            if !is_feature || self.may_use_feature(&format!("{name}_access_level")) {
                links.set_field(name, format_args!("{api_url}/{name}"))?;
            }
        }
        Ok(links)
    }

    /// The caller's direct role and inherited role; null for a missing role.
    fn permissions_json(&self, caller: &User) -> Result<Value> {
        let Self { call, project, .. } = self;
        let direct_level = call.direct_level(caller.id, project.id)?;
        let inherited_level = call.memberships()?.level_in_namespace(&project.namespace.traversal);
        // The notification level is the default, because nobody can change it in the sandbox.
        let role_json = |level: i64| json!({ "access_level": level, "notification_level": 3 });
        let inherited_role = (inherited_level > 0).then(|| role_json(inherited_level));
        Ok(json!({ "project_access": direct_level.map(role_json), "group_access": inherited_role }))
    }
}

/// The URL of an import or a mirror, without credentials.
fn import_url(attributes: &Object) -> Option<String> {
    let url = attributes.get("import_url")?.as_str()?;
    let Some((scheme, after_scheme)) = url.split_once("://") else {
        return Some(url.to_owned());
    };
    let authority_end = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
    let host_start = after_scheme[..authority_end].rfind('@').map_or(0, |index| index + 1);
    Some(format!("{scheme}://{}", &after_scheme[host_start..]))
}

/// The description as an HTML paragraph. The sandbox does not render Markdown.
fn description_html(attributes: &Object) -> String {
    let text = attributes.get("description").and_then(Value::as_str).unwrap_or_default();
    let Some(last_line_length) = text.lines().last().map(|line| line.chars().count()) else {
        return String::new();
    };
    let (lines, text) = (text.lines().count(), escape_html(text));
    format!(r#"<p data-sourcepos="1:1-{lines}:{last_line_length}" dir="auto">{text}</p>"#)
}

/// Escapes a text for HTML.
pub(super) fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The host that the client used, with its port.
fn client_host<'a>(call: &'a Call<'_>) -> &'a str {
    call.base_url.split_once("://").map_or("", |(_, host)| host)
}

/// The owner of a personal namespace, in the short form of a user. Before 16.5, the owner also has
/// the additional fields of the reference (1, 2.8).
fn owner_json(call: &Call<'_>, id: i64, namespace: &Namespace) -> Result<Value> {
    let user = User::find_by_id(call.db, id)?.map(|user| user.brief_json(call));
    if call.is_at_least(16, 5) {
        return Ok(user.into());
    }
    let mut body = json!({ "id": id, "name": namespace.name, "created_at": namespace.created_at });
    if !call.profile().owner_has_three_fields
        && let (Value::Object(body), Some(Value::Object(user))) = (&mut body, user)
    {
        body.extend(user);
    }
    Ok(body)
}

/// The upstream of a fork, if the caller may see it.
fn upstream_json(call: &Call<'_>, id: i64, extras: ExtraFields) -> Result<Option<ObjectWriter>> {
    let upstream = match Project::find_by_id(call.db, id)? {
        Some(upstream) if call.may_see_project(&upstream)? => upstream,
        _ => return Ok(None),
    };
    let mut body = upstream.simple_form(call, extras)?;
    if !call.is_observed_release_or_later() {
        body.set_field("forks_count", upstream.forks_count)?;
        body.set_field("license_url", Value::Null)?;
        body.set_field("license", Value::Null)?;
    }
    Ok(Some(body))
}

/// The keys of `statistics`. All values are 0 in the sandbox.
pub(super) const STATISTICS: &str = "commit_count storage_size repository_size wiki_size \
    lfs_objects_size job_artifacts_size pipeline_artifacts_size packages_size snippets_size \
    uploads_size";

/// The URL of the avatar; `None` if the project has no avatar.
pub(crate) fn avatar_url(call: &Call<'_>, project: &Project) -> Option<String> {
    let name = project.avatar.as_ref()?;
    Some(avatars::avatar_url(&call.base_url, Holder::Project(project.id), name))
}

/// The SQL condition for projects `p` in which a user is a member. The query binds `:user`,
/// `:least` (the minimum level) and `:today`. It binds `:namespaces` to a JSON array with the ids
/// of the namespaces in which the user has this level. It also binds `:everybody` (true to include
/// projects that all users may see).
pub(crate) const MEMBER_OF_SQL: &str = "((:everybody AND p.visibility <> 'private')
    OR p.namespace_id IN (SELECT id FROM namespaces WHERE owner_id = :user)
    OR p.namespace_id IN (SELECT value FROM json_each(:namespaces))
    OR p.id IN (SELECT m.project_id FROM members m WHERE m.user_id = :user AND m.project_id IS NOT NULL
                AND m.access_level >= :least AND m.state = 'active' AND (m.expires_at IS NULL OR m.expires_at >= :today))
    OR p.id IN (SELECT s.project_id FROM shares s WHERE s.project_id IS NOT NULL AND s.access_level >= :least
                AND s.invited_id IN (SELECT value FROM json_each(:namespaces))
                AND (s.expires_at IS NULL OR s.expires_at >= :today)))";
