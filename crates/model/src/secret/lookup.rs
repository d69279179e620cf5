//! Resolves secrets from the environment and files. A manifest may refer to fewer variables and
//! files than a command line.

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeMap,
    fmt,
    io::Read as _,
    ops::Range,
    path::{Component, Path, PathBuf},
};

use serde_json::Value as Json;

use crate::{
    field::Secrecy,
    text::{encode, replace_ranges},
};

use super::{
    AllowedVariables, Reference, Secret, TextPiece, judge,
    matcher::{SECRET_MARK, SecretMatcher},
    names::{JOB_TOKEN_VARIABLE, OWN_TOKEN_VARIABLES},
    needs_encoding,
};

/// The maximum size of a file that a manifest refers to.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The maximum size of a file on a command line: the limit of the service for attachments.
const MAX_COMMAND_FILE_BYTES: u64 = 10 << 20;

/// The reason why a reference could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnresolvedReference {
    /// The environment variable is not set, or is not text.
    #[error("environment variable `{0}` is not set")]
    Env(String),
    /// The value is empty. An empty value is treated as missing.
    #[error("`{0}` is empty")]
    Empty(Reference),
    /// The name belongs to the CI system or to undrift.
    #[error(
        "environment variable `{0}` belongs to the CI system or to undrift and must not be a value, unless `--allow-env` names it"
    )]
    Reserved(String),
    /// Manifests may only name certain environment variables, and this variable is not one of them.
    #[error("environment variable `{0}` must not be a value: `--allow-env` does not allow it")]
    NotAllowed(String),
    /// The value is or contains undrift's own token.
    #[error("`{0}` holds undrift's own token and must not be a value")]
    OwnToken(Reference),
    /// The value is or contains the token of the CI job.
    #[error(
        "`{0}` holds the token of the CI job and must not be a value, unless `--allow-env` names CI_JOB_TOKEN"
    )]
    JobToken(Reference),
    /// The file cannot be read.
    #[error("cannot read `{path}`: {why}")]
    File {
        /// The path as written.
        path: String,
        /// The error of the system, or the broken rule for files.
        why: String,
    },
}

impl UnresolvedReference {
    /// True if the reference must never be used as a value.
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Reserved(_) | Self::OwnToken(_) | Self::JobToken(_))
    }

    /// The advice; `None` if the message already contains it. `is_sandbox` is true in a run with
    /// `--sandbox`.
    pub fn help(&self, is_sandbox: bool) -> Option<String> {
        Some(match self {
            Self::Empty(_) => {
                "give it a value where undrift runs; for an empty value, write `''` in the manifest"
                    .to_owned()
            }
            Self::Env(name) if is_sandbox => format!(
                "set it where undrift runs, or write `{name}='...'` into `sandbox.env` next to the manifests"
            ),
            Self::Env(_) => "set it where undrift runs".to_owned(),
            _ => return None,
        })
    }

    /// The code of the diagnostic.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Reserved(_) => "reserved-variable",
            Self::OwnToken(_) | Self::JobToken(_) => "own-token",
            Self::Env(_) | Self::Empty(_) | Self::NotAllowed(_) | Self::File { .. } => {
                "missing-secret"
            }
        }
    }
}

/// A store of resolved secrets. Resolves references, and redacts the secrets in texts.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The folder that contains all files; `None` if files may be anywhere.
    root: Option<PathBuf>,
    environment: BTreeMap<String, Secret>,
    allowed_variables: AllowedVariables,
    own_token: Option<OwnToken>,
    /// Recognises the token of the CI job.
    job_token_matcher: SecretMatcher,
    results: BTreeMap<Reference, Result<Secret, UnresolvedReference>>,
    matcher: SecretMatcher,
    /// If true, only known secrets are redacted, and other credentials stay visible.
    shows_credentials: bool,
}

/// undrift's own token, with the data to recognise it in values.
#[derive(Clone)]
struct OwnToken {
    token: Secret,
    matcher: SecretMatcher,
    /// The canonical path of the token's file, if the token comes from a file.
    token_file: Option<PathBuf>,
}

impl OwnToken {
    /// True if `value` is the token or contains it in any form.
    fn is_contained_in(&self, value: &[u8]) -> bool {
        let value = String::from_utf8_lossy(value);
        value.trim() == self.token.expose().trim()
            || !self.matcher.find_known_secrets(&value).is_empty()
    }

    fn is_token_file(&self, path: &Path) -> bool {
        self.token_file.is_some() && self.token_file == path.canonicalize().ok()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("references", &self.results.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Secrets {
    /// Creates a resolver for the references of manifests. They can name files below `root`, and
    /// variables in `environment` that are not reserved.
    pub fn new(
        root: impl Into<PathBuf>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let environment: BTreeMap<_, _> =
            environment.into_iter().map(|(name, value)| (name, Secret(value))).collect();
        let mut job_token_matcher = SecretMatcher::default();
        if let Some(token) = environment.get(JOB_TOKEN_VARIABLE) {
            job_token_matcher.add(token.expose());
        }
        Self { root: Some(root.into()), environment, job_token_matcher, ..Self::default() }
    }

    /// Creates a resolver for the references of a command line. They can name any file, and all
    /// variables in `environment` except undrift's own token.
    pub fn for_command_line(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { root: None, ..Self::new("", environment) }
    }

    /// Refuses undrift's own `token` and its `file` as values, and redacts the token.
    #[must_use]
    pub fn with_service_token(mut self, token: Secret, file: Option<&Path>) -> Self {
        let mut matcher = SecretMatcher::default();
        matcher.add(token.expose());
        self.add_redaction(token.clone());
        self.own_token = Some(OwnToken {
            token,
            matcher,
            token_file: file.and_then(|file| file.canonicalize().ok()),
        });
        self
    }

    /// Restricts manifests to the environment variables in `allowed_variables`.
    #[must_use]
    pub fn with_allowed_variables(self, allowed_variables: AllowedVariables) -> Self {
        Self { allowed_variables, ..self }
    }

    /// Also redacts `secret`.
    pub fn add_redaction(&mut self, secret: Secret) {
        self.matcher.add(secret.expose());
    }

    /// Also redacts each run of `length` characters of `secret`.
    pub fn add_piece_redactions(&mut self, secret: &Secret, length: usize) {
        self.matcher.add_pieces(secret.expose(), length);
    }

    /// Resolves each of `references` once.
    pub fn resolve(&mut self, references: impl IntoIterator<Item = impl Borrow<Reference>>) {
        for reference in references {
            let reference = reference.borrow();
            if !self.results.contains_key(reference) {
                let result = self.resolve_reference(reference);
                self.results.insert(reference.clone(), result);
            }
        }
    }

    /// Searches the files at the paths `uploads` for tokens that must not be a value, and refuses the
    /// files that contain one.
    pub fn check_uploads(&mut self, uploads: impl IntoIterator<Item = impl AsRef<str>>) {
        for path in uploads {
            let path = path.as_ref();
            if let Err(refusal) = self.read_file(path)
                && refusal.is_refused()
            {
                self.results.insert(Reference::File(path.to_owned()), Err(refusal));
            }
        }
    }

    /// The secret of a resolved reference; `None` if it is missing or was not requested.
    pub fn get(&self, reference: &Reference) -> Option<&Secret> {
        self.results.get(reference)?.as_ref().ok()
    }

    /// The value of `reference`, whose parts were resolved, as requests contain it: a text, or
    /// data.
    pub fn request_value(&self, reference: &Reference) -> Option<Json> {
        let cached_result = self.results.get(reference).cloned();
        let secret = cached_result.unwrap_or_else(|| self.compose_value(reference)).ok()?;
        match reference {
            Reference::Data(_) => serde_json::from_str(secret.expose()).ok(),
            _ => Some(secret.expose().into()),
        }
    }

    /// The reason why `reference` could not be resolved, if it could not.
    pub fn unresolved_reason(&self, reference: &Reference) -> Option<&UnresolvedReference> {
        let mut references = [reference].into_iter().chain(reference.sources());
        references.find_map(|source| self.results.get(source)?.as_ref().err())
    }

    /// Every reference that could not be resolved, with the reason.
    pub fn unresolved_references(
        &self,
    ) -> impl Iterator<Item = (&Reference, &UnresolvedReference)> {
        self.results
            .iter()
            .filter_map(|(reference, result)| Some((reference, result.as_ref().err()?)))
    }

    /// The bytes of the file at `path`, which is to be uploaded. It must be a regular file of at
    /// most 10 MiB. If there is a root, the file must be inside the root, must not be a symbolic
    /// link, and can have at most 1 MiB.
    ///
    /// # Errors
    /// [`UnresolvedReference::File`] with the reason; [`UnresolvedReference::OwnToken`] if the file
    /// contains undrift's token.
    pub fn read_file(&self, path: &str) -> Result<Vec<u8>, UnresolvedReference> {
        let bytes = self.read_bytes(path)?;
        self.refuse_token(&Reference::File(path.to_owned()), &bytes)?;
        Ok(bytes)
    }

    /// Resolves `reference`. From now on the value is redacted, even if it is refused.
    fn resolve_reference(&mut self, reference: &Reference) -> Result<Secret, UnresolvedReference> {
        let secret = self.read_reference(reference)?;
        if secret.expose().is_empty() {
            return Err(UnresolvedReference::Empty(reference.clone()));
        }
        self.add_redaction(secret.clone());
        self.refuse_token(reference, secret.expose().as_bytes())?;
        Ok(secret)
    }

    /// Composes a text or data of resolved secrets. In a URL, secrets are percent-encoded where
    /// necessary.
    fn compose_value(&self, reference: &Reference) -> Result<Secret, UnresolvedReference> {
        let resolve_source = |source: &Reference| match self.results.get(source) {
            Some(result) => Ok(result.clone()?),
            None => self.compose_value(source),
        };
        let text = match reference {
            Reference::Env(name) => return Err(UnresolvedReference::Env(name.clone())),
            Reference::File(path) => return Err(file_fault(path, "it was not read")),
            Reference::Data(data) => data
                .to_json(&mut |reference| Ok(resolve_source(reference)?.expose().into()))?
                .to_string(),
            Reference::Text(pieces) => pieces
                .iter()
                .enumerate()
                .map(|(index, piece): (usize, &TextPiece)| match piece {
                    TextPiece::Shown(shown_text) => Ok(shown_text.clone()),
                    TextPiece::Secret(reference) if needs_encoding(pieces, index) => {
                        Ok(encode(resolve_source(reference)?.expose()).to_string())
                    }
                    TextPiece::Secret(reference) => {
                        Ok(resolve_source(reference)?.expose().to_owned())
                    }
                })
                .collect::<Result<String, _>>()?,
        };
        self.refuse_token(reference, text.as_bytes())?;
        Ok(Secret(text))
    }

    fn read_reference(&mut self, reference: &Reference) -> Result<Secret, UnresolvedReference> {
        match reference {
            Reference::Env(name) => {
                self.check_variable_name(name)?;
                let value = self.environment.get(name).cloned();
                value.ok_or_else(|| UnresolvedReference::Env(name.clone()))
            }
            Reference::File(path) => match String::from_utf8(self.read_bytes(path)?) {
                Ok(text) => Ok(Secret::new(strip_newline(&text))),
                Err(_) => Err(file_fault(path, "it is not UTF-8 text")),
            },
            Reference::Text(_) | Reference::Data(_) => {
                self.resolve(reference.sources());
                self.compose_value(reference)
            }
        }
    }

    fn read_bytes(&self, path: &str) -> Result<Vec<u8>, UnresolvedReference> {
        let result = match &self.root {
            Some(root) => read_in_root(root, path),
            None => read_regular_file(Path::new(path), MAX_COMMAND_FILE_BYTES),
        };
        result.map_err(|why| file_fault(path, why))
    }

    /// Refuses a `value`, from `reference`, that is or contains undrift's own token. Manifests
    /// must not name the token of the CI job either.
    fn refuse_token(&self, reference: &Reference, value: &[u8]) -> Result<(), UnresolvedReference> {
        let root = self.root.as_deref().unwrap_or(Path::new(""));
        let is_token = self.own_token.as_ref().is_some_and(|token| {
            token.is_contained_in(value)
                || matches!(reference, Reference::File(path) if token.is_token_file(&root.join(path)))
        });
        if is_token {
            return Err(UnresolvedReference::OwnToken(reference.clone()));
        }
        let is_job_token =
            !self.job_token_matcher.find_known_secrets(&String::from_utf8_lossy(value)).is_empty();
        if is_job_token && self.root.is_some() {
            return Err(UnresolvedReference::JobToken(reference.clone()));
        }
        Ok(())
    }

    /// Checks that the environment variable may be used. A command line may use more variables than
    /// a manifest.
    fn check_variable_name(&self, name: &str) -> Result<(), UnresolvedReference> {
        match self.root {
            None if OWN_TOKEN_VARIABLES.contains(&name) => {
                Err(UnresolvedReference::OwnToken(Reference::Env(name.to_owned())))
            }
            None => Ok(()),
            Some(_) if self.allowed_variables.refuses_reserved(name) => {
                Err(UnresolvedReference::Reserved(name.to_owned()))
            }
            Some(_) if !self.allowed_variables.matches_globs(name) => {
                Err(UnresolvedReference::NotAllowed(name.to_owned()))
            }
            Some(_) => Ok(()),
        }
    }

    /// The byte ranges of secrets in `text`, in any form, ordered and merged.
    pub fn find_known_secrets(&self, text: &str) -> Vec<Range<usize>> {
        self.matcher.find_known_secrets(text)
    }

    /// A copy that hides only known secrets: its [`Self::redact`] shows other credentials.
    #[must_use]
    pub fn with_visible_credentials(&self) -> Self {
        Self { shows_credentials: true, ..self.clone() }
    }

    /// Redacts every known secret in `text`, and masks every credential that the [judge] finds. A
    /// second redaction changes nothing.
    pub fn redact(&self, text: &str) -> String {
        let text = self.redact_values(text);
        match judge::mask_text(&text, Secrecy::Open) {
            _ if self.shows_credentials => text.into_owned(),
            Cow::Borrowed(_) => text.into_owned(),
            Cow::Owned(masked) => masked,
        }
    }

    /// Redacts every known secret in `text`, also if the secret is escaped or encoded. Returns
    /// `text` itself if it contains no secret.
    pub fn redact_values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        replace_ranges(text, &self.find_known_secrets(text), SECRET_MARK)
    }
}

fn file_fault(path: &str, why: impl Into<String>) -> UnresolvedReference {
    UnresolvedReference::File { path: path.to_owned(), why: why.into() }
}

fn read_in_root(root: &Path, path: &str) -> Result<Vec<u8>, String> {
    let relative_path = Path::new(path);
    let mut components = relative_path.components();
    if path.is_empty() || !components.all(|c| matches!(c, Component::Normal(_) | Component::CurDir))
    {
        return Err("it must be a path below the manifest folder, without `..`".into());
    }
    let mut full_path = root.to_owned();
    for component in relative_path.components() {
        // The clone of a CI job has the token of the job in `.git/config`.
        if component.as_os_str().eq_ignore_ascii_case(".git") {
            return Err("files of Git are not read".into());
        }
        full_path.push(component);
        let file_type =
            std::fs::symlink_metadata(&full_path).map_err(|e| io_message(&e))?.file_type();
        if file_type.is_symlink() {
            return Err("symbolic links are not followed".into());
        }
    }
    read_regular_file(&full_path, MAX_FILE_BYTES)
}

/// The bytes of a regular file of at most `max_bytes`, which are whole MiB.
fn read_regular_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    // Check the type before opening the file, because opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(|e| io_message(&e))?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a folder" } else { "not a regular file" };
        return Err(format!("it is {kind}"));
    }
    let file = std::fs::File::open(path).map_err(|e| io_message(&e))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|e| io_message(&e))?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is larger than {} MiB", max_bytes >> 20));
    }
    Ok(bytes)
}

/// The error of the system without its number.
fn io_message(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// The content `text` of a file, without one newline at its end.
pub fn strip_newline(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::{super::ValueWithSecrets, *};

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let mut secrets =
            Secrets::new("/nowhere", pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let references: Vec<_> =
            pairs.iter().map(|(n, _)| Reference::Env((*n).to_owned())).collect();
        secrets.resolve(&references);
        secrets
    }

    #[test]
    fn help_for_a_missing_variable_says_where_to_set_it() {
        let missing = UnresolvedReference::Env("TOKEN".into());
        let sandbox_help = "set it where undrift runs, or write `TOKEN='...'` into `sandbox.env` next to the manifests";
        assert_eq!(missing.help(true).as_deref(), Some(sandbox_help));
        assert_eq!(missing.help(false).as_deref(), Some("set it where undrift runs"));
        let empty = UnresolvedReference::Empty(Reference::Env("TOKEN".into())).help(true).unwrap();
        assert!(empty.ends_with("write `''` in the manifest"), "{empty}");
        let refused = UnresolvedReference::Reserved("CI_JOB_TOKEN".into());
        assert_eq!(refused.help(true), None, "the message says what is allowed");
    }

    #[test]
    fn a_text_is_composed_and_encoded_where_a_url_needs_it() {
        let token = Reference::Env("TOKEN".into());
        let make_text = |before: &str, after: &str| {
            let [before, after] = [before, after].map(|text| TextPiece::Shown(text.into()));
            Reference::Text(vec![before, TextPiece::Secret(token.clone()), after])
        };
        for (before, after, is_encoded) in [
            ("https://bot:", "@h/x", true),
            ("https://", ":@h", true),
            ("https://h/x?token=", "&a=b", true),
            ("https://h/x?a=b", "", true),
            ("https://", "/x@y", false),
            ("https://h/", "/x", false),
            ("https://h/in/", "?a=b@c", false),
            ("bot:", "@h/x", false),
        ] {
            let mut secrets = secrets(&[("TOKEN", "s3cret/@value")]);
            let reference = make_text(before, after);
            secrets.resolve([&reference]);
            let value = if is_encoded { "s3cret%2F%40value" } else { "s3cret/@value" };
            let expected = format!("{before}{value}{after}");
            assert_eq!(
                secrets.get(&reference).map(Secret::expose),
                Some(&*expected),
                "{reference}"
            );
            let redacted = secrets.redact(&format!("{value} is shown"));
            assert_eq!(redacted, format!("{SECRET_MARK} is shown"), "{reference}");
        }
        let mut empty_secrets = secrets(&[]);
        let reference = make_text("https://bot:", "@h/x");
        empty_secrets.resolve([&reference]);
        assert_eq!(
            empty_secrets.unresolved_reason(&reference),
            Some(&UnresolvedReference::Env("TOKEN".into()))
        );
        let mut reserved_secrets = Secrets::new("/nowhere", [("CI_JOB_TOKEN".into(), "x".into())]);
        let reference =
            Reference::Text(vec![TextPiece::Secret(Reference::Env("CI_JOB_TOKEN".into()))]);
        reserved_secrets.resolve([&reference]);
        assert_eq!(
            reserved_secrets.unresolved_reason(&reference),
            Some(&UnresolvedReference::Reserved("CI_JOB_TOKEN".into()))
        );
    }

    /// A text or data can be composed after its secrets were resolved.
    #[test]
    fn texts_and_data_are_made_of_resolved_secrets() {
        let reference = Reference::Env("A".into());
        let secrets = secrets(&[("A", "a \"quoted\" secret"), ("HALF", "glpat-token/")])
            .with_service_token(Secret::new(TOKEN), None);
        let row = ValueWithSecrets::Map(vec![(
            "value".into(),
            ValueWithSecrets::Secret(Box::new(reference.clone())),
        )]);
        let data =
            Reference::Data(ValueWithSecrets::List(vec![row, ValueWithSecrets::Plain("5".into())]));
        let expected = serde_json::json!([{"value": "a \"quoted\" secret"}, 5]);
        assert_eq!(secrets.request_value(&data), Some(expected));
        let text = |shown: &str, variable: &str| {
            let secret = TextPiece::Secret(Reference::Env(variable.into()));
            Reference::Text(vec![secret, TextPiece::Shown(shown.into())])
        };
        assert_eq!(secrets.request_value(&text("!", "A")), Some("a \"quoted\" secret!".into()));
        assert_eq!(secrets.request_value(&text("of+undrift", "HALF")), None, "its own token");
        assert_eq!(secrets.request_value(&text("!", "NOT_RESOLVED")), None);
    }

    #[test]
    fn a_secret_cannot_be_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2hunter2")), "[secret]");
        assert!(!format!("{:?}", secrets(&[("A", "hunter2hunter2")])).contains("hunter2"));
    }

    #[test]
    fn a_secret_is_redacted_in_every_form() {
        let secrets = secrets(&[("A", "p@ss \"w0rd\"/é")]);
        let base64 = "eHggcEBzcyAidzByZCIvw6kgeXk="; // of `xx SECRET yy`
        for text in [
            "is p@ss \"w0rd\"/é",
            "?t=p%40ss%20%22w0rd%22%2F%C3%A9",
            r#"{"t":"p@ss \"w0rd\"/é"}"#,
            base64,
        ] {
            let redacted = secrets.redact(text);
            assert!(redacted.contains("[secret]"), "{text} -> {redacted}");
            assert!(
                !redacted.contains("w0rd") && !redacted.contains("InczByZ"),
                "{text} -> {redacted}"
            );
        }
    }

    const TOKEN: &str = "glpat-token/of+undrift";

    /// The reason why `reference` is missing below `folder`, if the environment contains
    /// `variables` and the token comes from the file `token`.
    fn refusal_reason(
        folder: &Path,
        reference: &Reference,
        variables: &[(&str, &str)],
    ) -> Option<UnresolvedReference> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut secrets = Secrets::new(folder, variables)
            .with_service_token(Secret::new(TOKEN), Some(&folder.join("token")));
        secrets.resolve([reference]);
        assert_eq!(
            secrets.get(reference).is_some(),
            secrets.unresolved_reason(reference).is_none()
        );
        secrets.unresolved_reason(reference).cloned()
    }

    #[test]
    fn the_own_token_is_never_a_value_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let alias = Reference::Env("ADMIN".into());
        let own_token_error = Some(UnresolvedReference::OwnToken(alias.clone()));
        for value in [
            TOKEN,
            " glpat-token/of+undrift\n",
            "https://oauth2:glpat-token/of+undrift@gitlab.example.org/a.git",
            "https://oauth2:glpat-token%2Fof%2Bundrift@gitlab.example.org/a.git",
            "{\"auth\": \"b2F1dGgyOmdscGF0LXRva2VuL29mK3VuZHJpZnQ=\"}", // of `oauth2:TOKEN`
        ] {
            assert_eq!(
                refusal_reason(folder.path(), &alias, &[("ADMIN", value)]),
                own_token_error,
                "{value}"
            );
        }
        for value in ["glpat-token-of-another", "glpat-token", SECRET_MARK] {
            assert_eq!(refusal_reason(folder.path(), &alias, &[("ADMIN", value)]), None, "{value}");
        }
        let mut short_secrets = Secrets::new(
            "/nowhere",
            [("ADMIN".to_owned(), "abc".to_owned()), ("OTHER".to_owned(), "abcd".to_owned())],
        )
        .with_service_token(Secret::new("abc"), None);
        short_secrets.resolve([&alias, &Reference::Env("OTHER".into())]);
        assert_eq!(
            short_secrets.unresolved_references().collect::<Vec<_>>(),
            [(&alias, &UnresolvedReference::OwnToken(alias.clone()))],
            "a short token is compared as a whole"
        );
    }

    #[test]
    fn the_file_of_the_own_token_is_never_a_value_under_any_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("token"), "rotated meanwhile\n").unwrap();
        std::fs::write(folder.path().join("sub/copy"), format!("token: {TOKEN}\n")).unwrap();
        std::fs::write(folder.path().join("sub/other"), "another\n").unwrap();
        for (path, is_own_token) in
            [("token", true), ("./token", true), ("sub/copy", true), ("sub/other", false)]
        {
            let reference = Reference::File(path.into());
            assert_eq!(
                refusal_reason(folder.path(), &reference, &[]),
                is_own_token.then(|| UnresolvedReference::OwnToken(reference.clone())),
                "{path}"
            );
            let secrets = Secrets::new(folder.path(), [])
                .with_service_token(Secret::new(TOKEN), Some(&folder.path().join("sub/../token")));
            assert_eq!(secrets.read_file(path).is_err(), is_own_token, "an upload of {path}");
        }
    }

    #[test]
    fn the_job_token_is_refused_in_values_of_manifests() {
        let (folder, job_token) = (tempfile::tempdir().unwrap(), "glcbt-64_token-of-the-job");
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        let url = format!("url = https://gitlab-ci-token:{job_token}@git.example.org/a/b.git\n");
        std::fs::write(folder.path().join(".git/config"), &url).unwrap();
        std::fs::write(folder.path().join("netrc"), &url).unwrap();
        let environment =
            || [("CI_JOB_TOKEN", job_token), ("COPY", job_token), ("OTHER", "other value")];
        let file = |path: &str| Reference::File(path.into());
        let (netrc, copy) = (file("netrc"), Reference::Env("COPY".into()));
        let git_refusal = |path: &str| UnresolvedReference::File {
            path: path.into(),
            why: "files of Git are not read".into(),
        };
        for (reference, refusal) in [
            (&file(".git/config"), Some(git_refusal(".git/config"))),
            (&file("./.GIT/config"), Some(git_refusal("./.GIT/config"))),
            (&netrc, Some(UnresolvedReference::JobToken(netrc.clone()))),
            (&copy, Some(UnresolvedReference::JobToken(copy.clone()))),
            (&Reference::Env("OTHER".into()), None),
        ] {
            assert_eq!(refusal_reason(folder.path(), reference, &environment()), refusal);
        }
        let environment = environment().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut secrets = Secrets::for_command_line(environment);
        secrets.resolve([&copy]);
        assert_eq!(
            secrets.unresolved_references().count(),
            0,
            "a command line may name all variables"
        );
    }

    #[test]
    fn manifests_only_name_allowed_variables() {
        let nowhere = Path::new("/nowhere");
        for name in ["CI_JOB_TOKEN", "GITLAB_TOKEN", "UNDRIFT_TOKEN"] {
            let refusal = refusal_reason(
                nowhere,
                &Reference::Env(name.into()),
                &[(name, "a value of some length")],
            );
            assert_eq!(refusal, Some(UnresolvedReference::Reserved(name.into())));
        }
        let make_environment = || {
            ["SHOP_KEY", "OTHER_KEY", "CI_KEY"]
                .map(|name| (name.to_owned(), "a value of some length".to_owned()))
        };
        let mut secrets = Secrets::new(nowhere, make_environment())
            .with_allowed_variables(AllowedVariables::from_globs(["SHOP_*", "*I_KEY"]).unwrap());
        let references =
            ["SHOP_KEY", "OTHER_KEY", "CI_KEY"].map(|name| Reference::Env(name.into()));
        secrets.resolve(&references);
        let reasons: Vec<_> =
            secrets.unresolved_references().map(|(_, missing)| missing.clone()).collect();
        assert_eq!(
            reasons,
            [
                UnresolvedReference::Reserved("CI_KEY".into()),
                UnresolvedReference::NotAllowed("OTHER_KEY".into())
            ]
        );
        let mut secrets = Secrets::new(nowhere, make_environment())
            .with_allowed_variables(AllowedVariables::from_globs(["*_KEY", "CI_K*"]).unwrap());
        secrets.resolve(&references);
        assert_eq!(
            secrets.unresolved_references().count(),
            0,
            "a glob with the same prefix allows a reserved name"
        );
        let mut secrets = Secrets::for_command_line(make_environment());
        secrets.resolve(&references);
        assert_eq!(
            secrets.unresolved_references().count(),
            0,
            "a command line may name all variables"
        );
    }

    #[test]
    fn a_refused_value_is_redacted_too() {
        let value = format!("machine gitlab.example.org password {TOKEN} login somebody-else");
        let mut secrets = Secrets::new("/nowhere", [("NETRC".to_owned(), value.clone())])
            .with_service_token(Secret::new(TOKEN), None);
        secrets.resolve([&Reference::Env("NETRC".into())]);
        assert_eq!(secrets.redact(&format!("is {value}, {TOKEN}")), "is [secret], [secret]");
    }

    #[test]
    fn an_empty_secret_is_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("nothing", ""), ("newline", "\n"), ("space", " \n")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut secrets = Secrets::new(folder.path(), [("EMPTY".to_owned(), String::new())]);
        let [env, nothing, newline, space] = [
            Reference::Env("EMPTY".into()),
            Reference::File("nothing".into()),
            Reference::File("newline".into()),
            Reference::File("space".into()),
        ];
        secrets.resolve([&env, &nothing, &newline, &space]);
        let messages: Vec<_> =
            secrets.unresolved_references().map(|(_, missing)| missing.to_string()).collect();
        assert_eq!(
            messages,
            ["`env:EMPTY` is empty", "`file:newline` is empty", "`file:nothing` is empty"]
        );
        assert_eq!(secrets.get(&space).unwrap().expose(), " ");
    }

    #[test]
    fn one_newline_is_stripped_and_a_file_cannot_be_outside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "line\n\n").unwrap();
        let mut secrets = Secrets::new(folder.path(), []);
        let key_file = Reference::File("key".into());
        secrets.resolve([&key_file]);
        assert_eq!(secrets.get(&key_file).unwrap().expose(), "line\n");
        for path in ["../key", "/etc/hostname", "", ".", "absent", "a/../../key"] {
            let reference = Reference::File(path.into());
            secrets.resolve([&reference]);
            assert_eq!(secrets.get(&reference), None, "{path}");
        }
    }

    #[test]
    fn a_command_line_may_name_any_regular_file_up_to_ten_megabytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let secrets = Secrets::for_command_line([]);
        for (size, fits) in [(2 << 20, true), (10 << 20, true), ((10 << 20) + 1, false)] {
            std::fs::write(&path, vec![b'x'; size]).unwrap();
            assert_eq!(secrets.read_file(path.to_str().unwrap()).is_ok(), fits, "{size}");
            assert!(Secrets::new(folder.path(), []).read_file("large").is_err(), "{size}");
        }
        assert!(secrets.read_file(folder.path().to_str().unwrap()).is_err(), "a folder");
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("key"), folder.path().join("link")).unwrap();
        assert!(Secrets::new(folder.path(), []).read_file("link").is_err());
    }
}
