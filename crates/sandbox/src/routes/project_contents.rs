//! The source of the contents of a new project: a URL, a template, or a first commit.

use super::prelude::*;

const PROJECT_TEMPLATES: [&str; 8] =
    ["rails", "spring", "express", "iosswift", "dotnetcore", "android", "gomicro", "hugo"];

/// The contents of a new project.
pub(super) struct InitialContents {
    /// True if the contents come from a URL, in the background.
    pub(super) is_imported: bool,
    pub(super) is_empty: bool,
    pub(super) has_readme: bool,
    /// The project whose contents are copied; `None` if no contents are copied.
    pub(super) source_project: Option<Project>,
}

impl InitialContents {
    /// The contents that the parameters of a call request. A URL is only checked, and nothing is
    /// fetched.
    pub(super) fn from_call(call: &Call<'_>, route: WriteRoute, params: &Params) -> Result<Self> {
        let has_readme = params.is_true("initialize_with_readme")?;
        let url = params.text("import_url")?.filter(|url| !url.is_empty());
        let (has_template, template_project) = find_template(call, route, params)?;
        let is_empty = match url {
            Some(_) => call.profile().import_failure.is_some(),
            None => !has_readme && !has_template,
        };
        let is_conflict = has_readme && (url.is_some() || has_template);
        refuse_if(is_conflict, || ErrorResponse::field_error("base", "not a git repository"))?;
        check_url(url.as_deref())?;
        let source_project = match &url {
            Some(url) => import_source(call, url)?,
            None => template_project,
        };
        let copied_project = source_project.filter(|source| !is_empty && !source.empty_repo);
        Ok(Self {
            is_imported: url.is_some(),
            is_empty,
            has_readme,
            source_project: copied_project,
        })
    }
}

/// Returns a flag and a project. The flag is true if the call names a template; the project is the
/// template with the requested id. Unknown ids and unknown names of the service's own templates are
/// refused. Any name of a custom template is accepted. In the sandbox, a project from a named
/// template has one commit.
fn find_template(
    call: &Call<'_>,
    route: WriteRoute,
    params: &Params,
) -> Result<(bool, Option<Project>)> {
    let template_error = |template: &str| {
        ErrorResponse::field_error("template_name", format!("'{template}' is unknown or invalid"))
    };
    let is_custom = params.is_true("use_custom_template")? && call.is_premium();
    params.integer("group_with_project_templates_id")?;
    // An id takes precedence over a name.
    if let Some(id) =
        params.integer("template_project_id")?.filter(|_| is_custom && route == WriteRoute::Create)
    {
        return match Project::find_by_id(call.db, id)? {
            Some(project) if call.may_see_project(&project)? => Ok((true, Some(project))),
            _ => Err(template_error(&id.to_string())),
        };
    }
    match params.text("template_name")?.filter(|name| !name.is_empty()) {
        Some(name) if !is_custom && !PROJECT_TEMPLATES.contains(&name.as_str()) => {
            Err(template_error(&name))
        }
        None if is_custom => Err(ErrorResponse::field_error(
            "use_custom_template",
            "must be used with template_name or template_project_id",
        )),
        name => Ok((name.is_some(), None)),
    }
}

/// The public project of this sandbox that an import URL names; `None` for any other URL. Nothing
/// is fetched from other hosts.
fn import_source(call: &Call<'_>, url: &str) -> Result<Option<Project>> {
    let path = url.strip_prefix(&call.base_url).and_then(|path| path.strip_prefix('/'));
    let Some(path) = path else { return Ok(None) };
    let project = Project::find_by_path(call.db, path.strip_suffix(".git").unwrap_or(path))?;
    Ok(project.filter(|project| project.visibility == "public"))
}

/// Refuses a URL from which no import is possible. An empty URL is ignored.
pub(super) fn check_url(url: Option<&str>) -> Result<()> {
    let schemes = ["http://", "https://", "git://"];
    let url = url.unwrap_or_default();
    let is_valid = url.is_empty() || schemes.iter().any(|scheme| url.starts_with(scheme));
    refuse_if(!is_valid, || {
        ErrorResponse::invalid_record(
            "Unable to access repository with the URL and credentials provided",
        )
    })
}
