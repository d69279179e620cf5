//! Messages for syntax errors of YAML: data, in `syntax.yaml`.

use std::{borrow::Cow, sync::LazyLock};

use granit_parser::ErrorKind;
use serde::Deserialize;

/// The message for some errors of the parser.
#[derive(Deserialize)]
struct Message {
    /// The names of the errors.
    of: Vec<&'static str>,
    message: &'static str,
    help: &'static str,
    /// A text with one of the errors.
    #[cfg(test)]
    text: Option<&'static str>,
}

static MESSAGES: LazyLock<Vec<Message>> = LazyLock::new(|| super::built_in!("yaml/syntax"));

/// Whether the error is a tab. The parser reports it at the position of the token before, which may
/// be a line earlier.
pub(super) const fn is_tab(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::TabNotAllowed
            | ErrorKind::TabInBlockIndentation
            | ErrorKind::TabInIndentation
            | ErrorKind::TabInPlainScalar
    )
}

/// The message for a syntax error, and its usual cause.
pub(super) fn in_words(kind: &ErrorKind) -> (Cow<'static, str>, Option<&'static str>) {
    let name = format!("{kind:?}");
    let name = name.split(' ').next().unwrap_or_default();
    let Some(of) = MESSAGES.iter().find(|message| message.of.contains(&name)) else {
        return (kind.to_string().into(), None);
    };
    let message = match kind {
        ErrorKind::UnclosedFlowCollection { open } => {
            of.message.replace("{open}", &open.to_string()).into()
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            let message = of.message.replace("{open}", &open.to_string());
            message.replace("{close}", &close.to_string()).into()
        }
        _ => of.message.into(),
    };
    (message, Some(of.help))
}

#[cfg(test)]
mod tests {
    use granit_parser::Parser;

    use super::*;

    /// The names of the errors are those of the parser.
    #[test]
    fn each_text_has_its_message() {
        let texts = MESSAGES.iter().filter_map(|message| Some((message, message.text?)));
        for (expected, text) in texts {
            let error = Parser::new_from_str(text).find_map(Result::err).unwrap();
            let (message, help) = in_words(error.kind());
            assert_eq!(help, Some(expected.help), "{text}: {:?}", error.kind());
            assert!(expected.message.contains('{') || message == expected.message, "{message}");
        }
    }
}
