//! `--sandbox`: runs the sandbox inside this process.

use std::{
    error::Error as _,
    io::Write as _,
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    CommandError, Endpoint, Environment, Exit, Output, Result, RunContext, input, rehearsed,
    sandbox_file_hint,
};
use crate::{
    api::ServiceAddress,
    diagnostic::Diagnostics,
    manifest::{self, is_manifest_name},
    sandbox::{self, DataLocation, Model, RunningSandbox, Seed, ServiceOptions, StartError},
    secret::Secret,
    text,
    value::Json,
    yaml::{self, Node},
};

/// The file with the initial data of the sandbox, in the folder of the manifests.
const SEED_FILE: &str = "sandbox.yaml";
/// The maximum sizes of the seed and of the environment file, in bytes.
const MAX_SEED_BYTES: u64 = 16 << 20;
const MAX_ENVIRONMENT_BYTES: u64 = 64 << 10;
/// The file with values for the secrets, in the folder of the manifests.
const ENVIRONMENT_FILE: &str = "sandbox.env";
/// The folder for the data of the sandbox, in the folder of the manifests.
const STATE_FOLDER: &str = ".undrift";
/// The value of `--sandbox` that keeps the data in memory.
const MEMORY_NAME: &str = ":memory:";

/// Starts the sandbox for the manifests in `root`, unless it already runs. `file` keeps the data of
/// the sandbox; if `file` is empty, the default file does.
///
/// # Errors
/// If the seed, the environment file or the data file is not valid, or another run uses the data
/// file.
pub(super) async fn start_once(file: &str, root: &Path, cx: &RunContext) -> Result<Endpoint> {
    let running_sandbox =
        cx.sandbox.get_or_try_init(|| launch_with_file(file, root, &cx.output)).await?;
    sandbox_endpoint(
        running_sandbox,
        cx.env.clone().with_variables(read_environment(&root.join(ENVIRONMENT_FILE))?),
    )
}

/// The address and the token of the running sandbox.
///
/// # Errors
/// If the address of the sandbox is not a valid URL. This cannot happen while the sandbox runs.
pub(super) fn sandbox_endpoint(
    running_sandbox: &RunningSandbox,
    environment: Environment,
) -> Result<Endpoint> {
    let service = ServiceAddress::parse(&running_sandbox.url(), false)
        .map_err(|error| CommandError::new(Exit::Internal, error))?;
    let token = Secret::new(running_sandbox.token());
    Ok(Endpoint { service, token, token_file: None, environment, is_embedded: true })
}

async fn launch_with_file(file: &str, root: &Path, output: &Output) -> Result<RunningSandbox> {
    let data = match file {
        MEMORY_NAME => DataLocation::Memory,
        file if is_manifest_name(file.as_ref()) => {
            let message = format!("`{file}` is a YAML file, not the state of a sandbox");
            return Err(CommandError::usage(message).help(sandbox_file_hint(file)));
        }
        "" => DataLocation::File(prepare_default_file(root)?),
        file => DataLocation::File(file.into()),
    };
    let path = root.join(SEED_FILE);
    let seed = if is_file(&path)? { Some(read_seed(&path, output)?) } else { None };
    let is_new = matches!(&data, DataLocation::File(file) if !file.exists());
    if seed.is_none() && is_new {
        let path = path.strip_prefix(".").unwrap_or(&path).display();
        output.eprint(&format!("note: the sandbox starts empty; write its initial users, groups and projects to `{path}` (see `undrift schema sandbox`)\n"));
    }
    launch(sandbox::SandboxConfig { data, seed, ..sandbox::SandboxConfig::default() }, output).await
}

/// Starts the sandbox with the collections that users describe, and prints its notes.
///
/// # Errors
/// If the sandbox does not start.
pub(super) async fn launch(
    config: sandbox::SandboxConfig,
    output: &Output,
) -> Result<RunningSandbox> {
    let config =
        sandbox::SandboxConfig { collections: rehearsed::described_collections(), ..config };
    let running_sandbox = sandbox::start(config).await.map_err(|error| {
        let is_internal = matches!(error, StartError::Database { .. } | StartError::Memory(_));
        CommandError::new(if is_internal { Exit::Internal } else { Exit::Usage }, error)
    })?;
    for note in running_sandbox.notes() {
        output.eprint(&format!("note: {note}\n"));
    }
    Ok(running_sandbox)
}

/// Returns `.undrift/sandbox.db` in `root`. Creates the folder `.undrift` if it is missing. Only
/// the user can read the new folder, and Git ignores it.
fn prepare_default_file(root: &Path) -> Result<PathBuf> {
    let folder = root.join(STATE_FOLDER);
    create_state_folder(&folder).map_err(|error| {
        let failure = CommandError::usage(format!(
            "cannot keep the sandbox in `{}`: {error}",
            folder.display()
        ));
        failure.help("pass another file with `--sandbox=FILE`, or use `--sandbox=:memory:`")
    })?;
    Ok(default_path(root))
}

/// The default data file of the sandbox for the manifests in `root`.
pub(super) fn default_path(root: &Path) -> PathBuf {
    root.strip_prefix(".").unwrap_or(root).join(STATE_FOLDER).join("sandbox.db")
}

fn create_state_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let builder = &mut std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    builder.create(folder)?;
    std::fs::File::create_new(folder.join(".gitignore"))?.write_all(b"*\n")
}

/// Reads a seed.
///
/// # Errors
/// If the file cannot be read, or the seed is not valid.
pub(super) fn read_seed(path: &Path, output: &Output) -> Result<Seed> {
    let text = read_text(path, MAX_SEED_BYTES)?;
    let name = path.display().to_string();
    output.refuse_errors(&find_seed_faults(&text, &name))?;
    let parsed = yaml::parse(&text);
    let seed = match &parsed.documents[..] {
        [document] => Seed::from_json(document.to_json()).ok(),
        _ => None,
    };
    seed.ok_or_else(|| {
        CommandError::usage(format!(
            "`{name}` is not valid initial data for the sandbox; see `undrift schema sandbox`"
        ))
    })
}

/// The faults of the seed in the folder `root`; empty if there is no seed that can be read.
pub(super) fn check_seed_in_folder(root: &Path) -> Diagnostics {
    let path = root.strip_prefix(".").unwrap_or(root).join(SEED_FILE);
    let text = path.is_file().then(|| read_text(&path, MAX_SEED_BYTES).ok()).flatten();
    text.map(|text| find_seed_faults(&text, &path.display().to_string())).unwrap_or_default()
}

fn find_seed_faults(seed: &str, name: &str) -> Diagnostics {
    let token_pointer = "/properties/users/items/properties/token";
    manifest::find_seed_faults(seed, name.into(), seed_schema(), token_pointer, find_refusal)
}

/// If the sandbox refuses the seed, returns the message, the help, and the range of the refused entry
/// or field in the text.
fn find_refusal(document: &Node) -> Option<(String, Option<String>, Range<usize>)> {
    let seed = Seed::from_json(document.to_json()).ok()?;
    let error = Model::new(&seed, "root", ServiceOptions::default()).err()?;
    let error_text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // The message begins with the path to the entry, such as `project acme/shop, hook 1: ...`.
    let (mut node, mut span) = (document.clone(), 0..0);
    for segment in error_text.split(": ").next()?.split(", ") {
        let Some((list, name)) = find_labelled_entry(&node, segment) else { break };
        let number = name.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let named_entry = list.items().iter().find(|item| has_name(item, &name));
        let Some(entry) = named_entry.or_else(|| list.items().get(number?)).cloned() else { break };
        span = entry.entries().first().map_or(entry.span.clone(), |(key, _)| key.span.clone());
        node = entry;
    }
    // The service calls the setting `visibility` differently in its messages.
    let refusal_text = error_text.replace(": visibility_level: ", ": visibility ");
    // After the path comes the name of the field, as in `...: push_access_level is invalid`, or the
    // name of an unknown user.
    let reason = refusal_text.split_once(": ").map_or(&*refusal_text, |(_, reason)| reason);
    let field = reason.split(' ').next();
    let unknown_name =
        reason.strip_prefix("there is no user `").and_then(|rest| rest.split('`').next());
    let settings = node.get("settings").map_or(&[][..], |(_, settings)| settings.entries());
    let refused_field = node.entries().iter().chain(settings).find(|(key, value)| {
        Some(&*key.name) == field || unknown_name.is_some() && value.text() == unknown_name
    });
    let span = refused_field.map_or(span, |(_, value)| value.span.clone());
    let Some((message, alternative_help)) =
        refusal_text.split_once("; ").filter(|_| unknown_name.is_some())
    else {
        let exceeds_group = field == Some("visibility") && reason.contains(" is not allowed in ");
        let help = "write the visibility of the group or a lower one, or raise that of the group";
        let help = exceeds_group.then(|| help.to_owned());
        return Some((refusal_text.trim_end_matches('.').to_owned(), help, span));
    };
    let users = document.get("users").map_or(&[][..], |(_, users)| users.items());
    let usernames = users.iter().filter_map(|user| user.get("username")?.1.text());
    let suggestion = text::did_you_mean(unknown_name.unwrap_or_default(), usernames);
    let help = suggestion.map_or(alternative_help.to_owned(), |question| {
        format!("{question} Otherwise {alternative_help}")
    });
    Some((message.to_owned(), Some(help), span))
}

/// Finds the entry that a message calls `entry_label`. Returns the list in `node` that contains the
/// entry, and the name or number of the entry. For `hook 1`, these are the list `hooks` and `1`.
fn find_labelled_entry(node: &Node, entry_label: &str) -> Option<(Node, String)> {
    node.entries().iter().find_map(|(key, list)| {
        let nouns = ["s", "es"].into_iter().filter_map(|suffix| key.name.strip_suffix(suffix));
        let mut names = nouns.filter_map(|noun| entry_label.strip_prefix(&noun.replace('_', " ")));
        Some((list.clone(), names.find_map(|name| name.strip_prefix(' '))?.to_owned()))
    })
}

fn has_name(node: &Node, name: &str) -> bool {
    let mut names = ["username", "path", "user"].into_iter().filter_map(|key| node.get(key));
    node.text() == Some(name) || names.any(|(_, value)| value.text() == Some(name))
}

/// The schema of a seed.
pub(super) fn seed_schema() -> Json {
    crate::schema::inline_schema::<Seed>().to_value()
}

/// Reads the variables in a file. Returns no variables if the file does not exist.
fn read_environment(path: &Path) -> Result<Vec<(String, String)>> {
    if !is_file(path)? {
        return Ok(Vec::new());
    }
    parse_environment(&read_text(path, MAX_ENVIRONMENT_BYTES)?).map_err(|line| {
        let failure =
            CommandError::usage(format!("`{}` line {line} is not an assignment", path.display()));
        failure.help("write `NAME='value'`, as a shell reads it")
    })
}

/// True if `path` is a file, false if it does not exist. Anything else is an error, because
/// reading a pipe, for example, could wait forever.
fn is_file(path: &Path) -> Result<bool> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(CommandError::usage(format!("`{}` must be a regular file", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(input::read_failure(path, &error)),
    }
}

fn read_text(path: &Path, max_bytes: u64) -> Result<String> {
    String::from_utf8(input::read_file(path, max_bytes)?)
        .map_err(|_| CommandError::usage(format!("`{}` is not UTF-8 text", path.display())))
}

/// Reads lines of `NAME='value'`, `NAME="value"` or `NAME=value`. Refuses lines that a shell would
/// read differently.
///
/// # Errors
/// The number of the first line with another form. The line is not returned: it may contain a secret.
fn parse_environment(text: &str) -> Result<Vec<(String, String)>, usize> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let assignments = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    assignments.map(|(line, number)| parse_assignment(line).ok_or(number)).collect()
}

fn parse_assignment(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_bare = value.chars().all(|c| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c));
    let value = unquote(value, '\'')
        .or_else(|| unquote(value, '"').filter(|inner| !inner.contains(['$', '`', '\\'])))
        .or_else(|| is_bare.then_some(value))?;
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

fn unquote(value: &str, quote: char) -> Option<&str> {
    value.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read_as_a_shell_reads_them() {
        let text = "# values\n\nA='x y $z # {\"a\": 1}'\n export B=\"it's\"\nC=https://x.example/a\nD=\nE='a=b'\n";
        let pairs = [
            ("A", "x y $z # {\"a\": 1}"),
            ("B", "it's"),
            ("C", "https://x.example/a"),
            ("D", ""),
            ("E", "a=b"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse_environment(text), Ok(pairs.to_vec()));
    }

    #[test]
    fn assignments_that_a_shell_reads_differently_are_refused() {
        let lines = [
            "A",
            "=x",
            "1A='x'",
            "A B='x'",
            "A='x",
            "A=x y",
            "A='x' # y",
            "A='it'\\''s'",
            "A=\"$HOME\"",
            "A=\"`x`\"",
            "A=$x",
            "A=~/x",
            "A= 'x'",
        ];
        for line in lines {
            assert_eq!(parse_environment(&format!("OK='1'\n{line}\n")), Err(2), "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_folder_is_private_and_ignored() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            assert_eq!(
                prepare_default_file(root.path()).unwrap(),
                root.path().join(".undrift/sandbox.db")
            );
        }
        let folder = root.path().join(".undrift");
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_to_string(folder.join(".gitignore")).unwrap(), "*\n");
    }
}
