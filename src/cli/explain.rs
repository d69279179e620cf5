//! `undrift explain`: what a code means, what a field is.

use super::{
    Context,
    exit::{Exit, Failure, Outcome},
};
use crate::{
    diagnostic::codes,
    manifest::schema,
    report::terminal::explain,
    text::{alternatives, nearest},
};

const EXAMPLES: &str = "Examples:
  undrift explain settings.merge_method           a field
  undrift explain 'group settings.visibility'     a field of one kind of document
  undrift explain variables                       a section
  undrift explain masked-value                    the code of a message";

/// The options of `explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Field, section or kind of manifests, or the code of a message
    #[arg(value_name = "NAME")]
    what: String,
}

/// Runs it.
pub(super) fn run(args: &Args, cx: &Context) -> Outcome {
    let style = cx.output.style;
    let mut known = schema::known(&args.what);
    if let ([], [one]) = (&known[..], &schema::with_last_name(&args.what)[..]) {
        known = schema::known(one);
    }
    let code = explain::code(&args.what, style);
    let field = (!known.is_empty()).then(|| explain::fields(&known, style));
    // Some words are both.
    let texts: Vec<_> = code.into_iter().chain(field).collect();
    if texts.is_empty() {
        return Err(unknown(&args.what));
    }
    cx.output.print(&texts.join("\n"))?;
    Ok(Exit::Success)
}

/// Nothing is called `what`; something may be called nearly so.
fn unknown(what: &str) -> Failure {
    let failure = Failure::usage(format!("nothing is called `{what}`"));
    let several = schema::with_last_name(what);
    if !several.is_empty() {
        return failure.help(format!("did you mean {}?", alternatives(&several)));
    }
    let names = schema::names();
    let codes = codes::CODES.iter().map(|(code, _)| *code);
    match nearest(what, codes.chain(names.iter().map(String::as_str))) {
        Some(near) => failure.help(format!("did you mean `{near}`?")),
        None => failure.help(
            "name a field as `settings.merge_method`, or the code that stands in the brackets of a message",
        ),
    }
}
