//! Messages for syntax errors of YAML.

use std::borrow::Cow;

use granit_parser::ErrorKind;

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

/// The message for a syntax error, and its usual cause. Messages of the parser do not quote the
/// text either. One message for each kind of error makes the function long.
pub(super) fn in_words(kind: &ErrorKind) -> (Cow<'static, str>, Option<&'static str>) {
    const BRACKET: Option<&str> = Some("close the bracket, or put a text that holds one in quotes");
    const COMMA: Option<&str> = Some(
        "write a `,` between two of them, or put a text that holds brackets or `: ` in quotes",
    );
    const INDENT: Option<&str> = Some("check the indentation");
    const QUOTE: Option<&str> = Some("close the quote");
    let (message, help) = match kind {
        kind if is_tab(kind) => ("tabs are not allowed in indentation", Some("indent with spaces")),
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::InvalidSimpleKey
        | ErrorKind::SimpleKeyExpected => (
            "a `:` where there can be no key",
            Some("check the indentation, and put a text that holds `: ` in quotes"),
        ),
        ErrorKind::InvalidColonPlacement => (
            "a `:` where there can be no key",
            Some("close the bracket of the line above, and put a text that holds `: ` in quotes"),
        ),
        ErrorKind::ExpectedBlockMappingKey => ("a key must be here", INDENT),
        ErrorKind::ExpectedBlockSequenceEntry => ("an entry with `- ` must be here", INDENT),
        ErrorKind::InvalidIndentation => ("an indentation that fits to nothing above", INDENT),
        ErrorKind::ExpectedFlowMappingSeparator => ("a `,` or `}` must be here", COMMA),
        ErrorKind::ExpectedFlowSequenceSeparator => ("a `,` or `]` must be here", COMMA),
        ErrorKind::UnexpectedEofImplicitFlowMapping => {
            ("a `,` without anything in front", Some("take it away"))
        }
        ErrorKind::InvalidBlockScalarHeader => (
            "more text behind `|` or `>`",
            Some(
                "put it in quotes, or start a text of several lines on the next line, deeper than its key",
            ),
        ),
        ErrorKind::ExpectedDocumentStart => (
            "more text behind the end of a document",
            Some("write one mapping, and a line `---` in front of the next document"),
        ),
        ErrorKind::UnexpectedEofFlowMapping | ErrorKind::UnexpectedEofFlowSequence => {
            ("a bracket that is never closed", BRACKET)
        }
        ErrorKind::MisplacedFlowCollectionEnd => (
            "a bracket that closes nothing",
            Some("take it away, or put a text that holds one in quotes"),
        ),
        ErrorKind::MappingKeyNotAllowed => (
            "text that starts with `? ` must be in quotes",
            Some("put it in single quotes, as in `'? text'`"),
        ),
        ErrorKind::BlockSequenceEntryNotAllowed => (
            "a `- ` where no list can be",
            Some("start a list on the next line; put text that starts with `- ` in quotes"),
        ),
        ErrorKind::UnclosedQuotedScalar => ("a quote that is never closed", QUOTE),
        ErrorKind::InvalidQuotedScalarIndent => {
            ("a quoted text that goes on with too little indentation", QUOTE)
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "more text after the quote that ends a text",
            Some(
                "put the whole text in one pair of quotes; a `'` inside single quotes is written twice",
            ),
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar => (
            "more text after the quote that ends a text",
            Some(
                "put the whole text in one pair of quotes; a `\"` inside double quotes is written as `\\\"`",
            ),
        ),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidUnicodeEscape => (
            "an unknown escape in a text in double quotes",
            Some("put the text in single quotes: they keep a `\\` as it is"),
        ),
        ErrorKind::UnclosedFlowCollection { open } => {
            return (format!("`{open}` is never closed").into(), BRACKET);
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            return (format!("`{open}` is closed by `{close}`").into(), BRACKET);
        }
        ErrorKind::MissingAnchorOrAliasName => (
            "text that starts with `*` or `&` must be in quotes",
            Some(
                "put it in single quotes, as in `'*'` or `'* 4 * * *'`: without them it names a YAML alias",
            ),
        ),
        ErrorKind::CommentNotSeparated => (
            "a `#` without a blank in front",
            Some("put text that has a `#` in quotes; a comment has a blank in front"),
        ),
        ErrorKind::UnexpectedCharacter { .. }
        | ErrorKind::PlainScalarStartsWithDashFlowIndicator => (
            "a character that no text can start with",
            Some("put the text in single quotes: they keep it as it is"),
        ),
        kind => return (kind.to_string().into(), None),
    };
    (message.into(), help)
}
