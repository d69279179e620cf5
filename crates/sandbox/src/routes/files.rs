//! Files of a repository. Each change of a file is one commit. The reference does not describe
//! files. This module follows the real service.

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD};

use super::prelude::*;
use super::repository::{new_commit, readable_project};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/repository/tree", list_tree),
    get("/projects/{id}/repository/files/{path}", show_file),
    get("/projects/{id}/repository/files/{path}/raw", show_raw),
    post("/projects/{id}/repository/files/{path}", write_file),
    put("/projects/{id}/repository/files/{path}", write_file),
    delete("/projects/{id}/repository/files/{path}", write_file),
];

const LENIENT_BASE64: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::STANDARD, NO_PAD.with_decode_allow_trailing_bits(true));

/// The path of the file, which must be below the root of the repository.
fn file_path<'a>(call: &'a Call<'_>) -> Result<&'a str> {
    let path = call.segment("path");
    let are_valid_segments =
        path.split('/').all(|segment| !matches!(segment, "" | "." | ".." | ".git"));
    let is_valid = are_valid_segments && !path.contains(['\0', '\\']);
    refuse_if(!is_valid, || {
        ErrorResponse::parameter_error("file_path", "should be a valid file path")
    })?;
    Ok(path)
}

impl Repository<'_> {
    /// The `ref` in the call and its commit. Fails with 404 for `noun` if the commit does not
    /// exist.
    fn requested_commit(self, noun: &str) -> Result<(String, Commit)> {
        let reference = match self.call.text("ref")?.filter(|name| !name.is_empty()) {
            Some(reference) if reference != "HEAD" => reference,
            _ => self.default_branch()?,
        };
        let commit = self.resolve_commit(&reference)?;
        Ok((reference, commit.or_not_found(noun)?))
    }

    /// The file that a call names, with the commit and the `ref`.
    fn requested_file(self, path: &str) -> Result<(RepositoryFile, Commit, String)> {
        let (reference, commit) = self.requested_commit("Commit")?;
        let file = self.find_file(&commit.id, path)?;
        Ok((file.or_not_found("File")?, commit, reference))
    }
}

/// The bytes of a file.
fn show_raw(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let (file, ..) = Repository { call, project: &project }.requested_file(file_path(call)?)?;
    let mut answer = Answer::with_json_text(StatusCode::OK, file.content);
    answer.headers.push(("content-type", "text/plain; charset=utf-8".to_owned()));
    Ok(answer)
}

/// The file as JSON. Headers have the same values, because HEAD returns only headers.
fn show_file(call: &Call<'_>) -> Result<Answer> {
    let (project, path) = (readable_project(call)?, file_path(call)?);
    call.require(&["ref"])?;
    let (file, commit, reference) = Repository { call, project: &project }.requested_file(path)?;
    let body = file_json(&file, path, &reference, &commit.id);
    let mut answer = Answer::ok(&body)?;
    for (header, name) in [
        ("x-gitlab-blob-id", "blob_id"),
        ("x-gitlab-commit-id", "commit_id"),
        ("x-gitlab-content-sha256", "content_sha256"),
        ("x-gitlab-encoding", "encoding"),
        ("x-gitlab-execute-filemode", "execute_filemode"),
        ("x-gitlab-file-name", "file_name"),
        ("x-gitlab-file-path", "file_path"),
        ("x-gitlab-last-commit-id", "last_commit_id"),
        ("x-gitlab-ref", "ref"),
        ("x-gitlab-size", "size"),
    ] {
        let value = body[name].as_str().map_or_else(|| body[name].to_string(), str::to_owned);
        // Leave out values that a header cannot contain: a name may have any character.
        if value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            answer.headers.push((header, value));
        }
    }
    Ok(answer)
}

/// The files and folders in a folder, with the folders first. With `recursive`, the list also has
/// everything below them.
fn list_tree(call: &Call<'_>) -> Result<Answer> {
    let project = readable_project(call)?;
    let repository = Repository { call, project: &project };
    let (_, commit) = repository.requested_commit("Tree")?;
    let folder = call.text("path")?.unwrap_or_default();
    let prefix = match folder.trim_matches('/') {
        "" => String::new(),
        folder => format!("{folder}/"),
    };
    let is_recursive = call.is_true("recursive")?;
    let (mut folders, mut files) = (BTreeMap::new(), Vec::new());
    for (path, blob_id, executable) in repository.list_files(&commit.id)? {
        let Some(relative_path) = path.strip_prefix(&prefix) else { continue };
        for (slash_position, _) in
            relative_path.match_indices('/').take(if is_recursive { usize::MAX } else { 1 })
        {
            let folder = format!("{prefix}{}", &relative_path[..slash_position]);
            let id = digest_id(&[commit.id.as_bytes(), folder.as_bytes()]);
            folders
                .entry(folder.clone())
                .or_insert_with(|| entry_json(&id, "tree", &folder, "040000"));
        }
        if is_recursive || !relative_path.contains('/') {
            let mode = if executable { "100755" } else { "100644" };
            files.push(entry_json(&blob_id, "blob", &path, mode));
        }
    }
    let is_unknown = folders.is_empty() && files.is_empty() && !prefix.is_empty();
    refuse_if(is_unknown, || ErrorResponse::not_found("Tree"))?;
    page::list_page(call, folders.into_values().chain(files))
}

/// A file or folder in a list.
fn entry_json(id: &str, entry_type: &str, path: &str, mode: &str) -> Value {
    json!({ "id": id, "name": path.rsplit('/').next(), "type": entry_type, "path": path, "mode": mode })
}

fn file_json(file: &RepositoryFile, path: &str, reference: &str, commit_id: &str) -> Value {
    let content_digest = format!("{:x}", Sha256::digest(&file.content));
    json!({
        "file_name": path.rsplit('/').next(),
        "file_path": path,
        "size": file.content.len(),
        "encoding": "base64",
        "content_sha256": content_digest,
        "ref": reference,
        "blob_id": file.blob_id,
        "commit_id": commit_id,
        "last_commit_id": file.last_commit_id,
        "execute_filemode": file.executable,
        "content": STANDARD.encode(&file.content),
    })
}

/// Creates, changes or removes a file. The first file of an empty project also creates its default
/// branch.
fn write_file(call: &Call<'_>) -> Result<Answer> {
    let (is_create, is_removal) = (call.method == Method::POST, call.method == Method::DELETE);
    let project = call.require_project(DEVELOPER)?;
    let path = file_path(call)?;
    let mut required_params = vec!["branch", "content", "commit_message"];
    required_params.retain(|name| !is_removal || *name != "content");
    call.require(&required_params)?;
    let branch = call.text("branch")?.unwrap_or_default();
    let message = call.text("commit_message")?.unwrap_or_default();
    let content = read_content(call)?;
    let repository = Repository { call, project: &project };
    let (start_commit_id, file) = prepare_write(repository, &branch, path)?;
    let last_commit_id = call.text("last_commit_id")?;
    if last_commit_id
        .is_some_and(|commit_id| file.as_ref().is_some_and(|file| file.last_commit_id != commit_id))
    {
        return Err(
            "You are attempting to update a file that has changed since you started editing it."
                .into(),
        );
    }
    let executable = call.flag("execute_filemode")?;
    let executable = executable.unwrap_or_else(|| file.is_some_and(|file| file.executable));
    let edit = CommitEdit { path, content: (!is_removal).then_some((&content[..], executable)) };
    if let Some(start_commit_id) = start_commit_id {
        repository.set_branch(&branch, &start_commit_id)?;
    }
    let read_non_empty =
        |name| Ok::<_, ErrorResponse>(call.text(name)?.filter(|text| !text.is_empty()));
    let mut commit = new_commit(call, &message);
    commit.author_name = read_non_empty("author_name")?.unwrap_or(commit.author_name);
    commit.author_email = read_non_empty("author_email")?.unwrap_or(commit.author_email);
    repository.commit(&branch, commit, &[edit])?;
    if project.empty_repo {
        repository.set_first_branch(&branch)?;
        protected_branches::protect_default_branch(
            call,
            project.id,
            call.protection_time().as_deref(),
        )?;
    }
    let body = json!({ "file_path": path, "branch": branch });
    match is_create {
        true => Answer::created(&body),
        false if is_removal => Ok(Answer::no_content()),
        false => Answer::ok(&body),
    }
}

/// The new content in a call.
fn read_content(call: &Call<'_>) -> Result<Vec<u8>> {
    let text = call.text("content")?.unwrap_or_default();
    let encoding = call.allowed_text("encoding", &["text", "base64"])?;
    let is_base64 = encoding.is_some_and(|encoding| encoding == "base64");
    Ok(if is_base64 { decode_leniently(&text) } else { text.into_bytes() })
}

/// Decodes base64 as the service does: invalid characters and an incomplete end are ignored.
fn decode_leniently(text: &str) -> Vec<u8> {
    let text = text.split('=').next().unwrap_or_default();
    let mut digits: Vec<u8> = text
        .bytes()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
        .collect();
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    LENIENT_BASE64.decode(digits).unwrap_or_default()
}

/// Checks that a change of the file is possible. Returns the start commit if the call creates a
/// branch, and the existing file.
fn prepare_write(
    repository: Repository<'_>,
    branch: &str,
    path: &str,
) -> Result<(Option<String>, Option<RepositoryFile>)> {
    let Repository { call, project } = repository;
    let is_create = call.method == Method::POST;
    if project.empty_repo && is_create {
        return Ok((None, None));
    }
    let requested_start = call.text("start_branch")?.filter(|name| !name.is_empty());
    let is_new_branch = requested_start.as_ref().is_some_and(|name| name != branch);
    let start_branch = requested_start.as_deref().unwrap_or(branch);
    let Some(head_branch) = repository.find_ref(BRANCHES, start_branch)? else {
        return Err("You can only create or edit files when you are on a branch".into());
    };
    if is_new_branch && repository.find_ref(BRANCHES, branch)?.is_some() {
        return Err(format!(
            "A branch called '{branch}' already exists. Switch to that branch in order to make changes"
        ).into());
    }
    if is_new_branch && !is_valid_ref_name(branch) {
        return Err(format!(
            "Something went wrong when we tried to create '{branch}' for you: Branch name is invalid"
        ).into());
    }
    let may_push = repository.may_push(branch)?;
    refuse_if(!may_push, || "You are not allowed to push into this branch".into())?;
    let file = repository.find_file(&head_branch.commit.id, path)?;
    refuse_if(is_create == file.is_some(), || {
        let problem = if is_create { "already exists" } else { "doesn't exist" };
        format!("A file with this name {problem}").into()
    })?;
    Ok((is_new_branch.then_some(head_branch.commit.id), file))
}
