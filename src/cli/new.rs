//! `undrift new`: writes the document of a new project, after checking it together with the
//! existing manifests. Portals and scripts use it.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use super::{CommandError, CommandResult, Exit, Result, RunContext, write_failure};
use crate::{
    desired::Desired,
    diagnostic::FileName,
    field::Scope,
    manifest::{self, LoadOptions, LoadedManifests, is_manifest_name},
    text::escape,
    value::{Json, Object},
    yaml::write::{self as yaml, MapItem, OutputNode},
};

/// The name, in messages, of a document that is only printed.
const UNNAMED_FILE: &str = "new document";

/// The options of `new`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/new.txt"))]
pub(super) struct Args {
    /// Full path of the project
    #[arg(value_name = "PATH")]
    path: String,
    /// Profiles that the project uses, separated by commas; later ones take precedence
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    uses: Vec<String>,
    /// Parameter that a profile needs; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = param)]
    params: Vec<(String, String)>,
    /// Allow undrift to create the project (`create: true`)
    #[arg(long)]
    create: bool,
    /// Folder of manifests to check the document with
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Write the document to this file, which must not exist, instead of printing it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn param(assignment: &str) -> Result<(String, String), String> {
    let (name, value) = assignment.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command.
pub(super) fn run(args: &Args, cx: &RunContext) -> CommandResult {
    let load_environment = cx.make_load_environment(&[])?;
    let text = document_text(args);
    let loaded = manifest::load(&args.dir, &load_environment);
    if let Some(file) = &args.output {
        check_file(file, &loaded)?;
    }
    // A folder without manifests is the usual start of a first project.
    let mut diagnostics = loaded.diagnostics.sorted().into_iter();
    let has_no_manifests = diagnostics.all(|diagnostic| diagnostic.code == "no-manifests");
    if loaded.diagnostics.has_errors() && !has_no_manifests {
        cx.output.eprint_diagnostics(&loaded.diagnostics);
        return Err(CommandError::usage(
            "cannot check the document: the existing manifests have errors",
        ));
    }
    if let Some(desired) = &loaded.desired {
        check_path(&args.path, desired)?;
    }
    let name = args.output.as_ref().map_or(UNNAMED_FILE.into(), |file| file.to_string_lossy());
    let name: FileName = name.into();
    let new_texts = BTreeMap::from([(name.clone(), text.clone())]);
    let options = LoadOptions { replaced_texts: Some(&new_texts), ..LoadOptions::default() };
    let loaded_with_new = manifest::load_with_options(&args.dir, &load_environment, &options);
    if loaded_with_new.desired.is_none() {
        cx.output.eprint_diagnostics(&loaded_with_new.diagnostics);
        return Err(CommandError::usage("the document would not be valid; nothing was written"));
    }
    match &args.output {
        None => cx.output.print(&text)?,
        Some(file) => {
            let write_result = fs::File::create_new(file).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
            write_result.map_err(|error| write_failure(file, &error))?;
            cx.output.eprint(&format!("wrote `{name}`\n"));
        }
    }
    Ok(Exit::Success)
}

/// The text of the document.
fn document_text(args: &Args) -> String {
    let mut items = vec![
        MapItem::value("kind", Scope::Project.document_kind()),
        MapItem::value("path", &*args.path),
    ];
    items.extend(args.create.then(|| MapItem::value("create", true)));
    if !args.uses.is_empty() {
        items.push(MapItem::new("uses", OutputNode::Value(args.uses.clone().into())));
    }
    if !args.params.is_empty() {
        let params = args.params.iter().map(|(name, value)| (name.clone(), Json::from(&**value)));
        items.push(MapItem::value("params", params.collect::<Object>()));
    }
    yaml::render_document(&items)
}

/// Refuses a path that is already declared.
fn check_path(path: &str, desired: &Desired) -> Result<()> {
    match desired.container(path) {
        None => Ok(()),
        Some(declared) => {
            let message = format!("`{}` is declared already, at {}", escape(path), declared.origin);
            Err(CommandError::usage(message).help("edit that document"))
        }
    }
}

/// Refuses a file that exists, or would not be read as a manifest.
fn check_file(file: &Path, loaded: &LoadedManifests) -> Result<()> {
    let name = file.display();
    if file.symlink_metadata().is_ok() {
        return Err(
            CommandError::usage(format!("`{name}` already exists")).help("choose another file")
        );
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new(".")).canonicalize();
    let folder = folder.map_err(|error| write_failure(file, &error))?;
    let root = loaded.root.canonicalize().unwrap_or_else(|_| loaded.root.clone());
    if !is_manifest_name(file) || !folder.starts_with(root) {
        let message = format!("`{name}` would not be a manifest");
        return Err(CommandError::usage(message)
            .help("name a file `*.yaml` in the folder of the manifests"));
    }
    Ok(())
}
