//! The source of the contents of a new project: a URL, a template, or a first commit.

use super::prelude::*;

const TEMPLATES: [&str; 8] =
    ["rails", "spring", "express", "iosswift", "dotnetcore", "android", "gomicro", "hugo"];

/// The contents of a new project.
pub(super) struct InitialContents {
    /// True if it comes from a URL, in the background.
    pub(super) is_imported: bool,
    pub(super) is_empty: bool,
    pub(super) has_readme: bool,
    /// The project with the same contents.
    pub(super) source_project: Option<Project>,
}

impl InitialContents {
    /// The contents that the parameters of a call request. A URL is only checked: nothing is fetched.
    pub(super) fn from_call(call: &Call<'_>, accepts: Accepts, params: &Params) -> Result<Self> {
        let readme = params.is_set("initialize_with_readme")?;
        let url = params.text("import_url")?.filter(|url| !url.is_empty());
        let (is_template, template) = find_template(call, accepts, params)?;
        let is_empty = match url {
            Some(_) => call.service.profile.import_failure.is_some(),
            None => !readme && !is_template,
        };
        refuse_if(readme && (url.is_some() || is_template), || {
            ErrorResponse::model("base", "not a git repository")
        })?;
        check_url(url.as_deref())?;
        let source_project = match &url {
            Some(url) => import_source(call, url)?,
            None => template,
        };
        let copies = source_project.filter(|source| !is_empty && !source.empty_repo);
        Ok(Self {
            is_imported: url.is_some(),
            is_empty,
            has_readme: readme,
            source_project: copies,
        })
    }
}

/// Returns (has a template, the template's project). A template must exist. The service's
/// own templates are one commit here. Names of custom templates never exist, because groups have
/// none here.
fn find_template(
    call: &Call<'_>,
    accepts: Accepts,
    params: &Params,
) -> Result<(bool, Option<Project>)> {
    let unknown = |template: &str| {
        ErrorResponse::model("template_name", format!("'{template}' is unknown or invalid"))
    };
    let is_custom = params.is_set("use_custom_template")? && call.tier() >= AttributeTier::Premium;
    params.integer("group_with_project_templates_id")?;
    // An id takes precedence over a name.
    if let Some(id) =
        params.integer("template_project_id")?.filter(|_| is_custom && accepts == Accepts::Create)
    {
        return match Project::by_id(call.db, id)? {
            Some(project) if call.sees(&project)? => Ok((true, Some(project))),
            _ => Err(unknown(&id.to_string())),
        };
    }
    match params.text("template_name")?.filter(|name| !name.is_empty()) {
        Some(name) if !is_custom && !TEMPLATES.contains(&name.as_str()) => Err(unknown(&name)),
        None if is_custom => Err(ErrorResponse::model(
            "use_custom_template",
            "must be used with template_name or template_project_id",
        )),
        name => Ok((name.is_some(), None)),
    }
}

/// The project of this sandbox that an import URL names, if everybody may clone it. Nothing is
/// fetched from elsewhere.
fn import_source(call: &Call<'_>, url: &str) -> Result<Option<Project>> {
    let path = url.strip_prefix(&call.base_url).and_then(|path| path.strip_prefix('/'));
    let Some(path) = path else { return Ok(None) };
    let project = Project::by_path(call.db, path.strip_suffix(".git").unwrap_or(path))?;
    Ok(project.filter(|project| project.visibility == "public"))
}

/// Refuses a URL from which no import is possible; an empty one counts as not sent.
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
