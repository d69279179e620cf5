//! Explanations of declarations, fields and codes, as text for people.

mod address;

pub use address::{Subject, explain_declaration, explain_live_state};

use crate::{
    catalogue::reference::FieldReference,
    diagnostic::codes,
    manifest::schema::NameDescription,
    report::{Canvas, Line, Paint, TextStyle},
    secret::Secrets,
};

/// The explanation of the code `name`, with an example if there is one.
pub fn explain_code(name: &str, style: TextStyle) -> Option<String> {
    let code = codes::find_code(name)?;
    let no_secrets = Secrets::default();
    let mut canvas = Canvas::new(style, &no_secrets);
    canvas.add_line(&Line::with_text(Paint::Bold, name).text(", the code of a message"));
    canvas.add_line(&Line::indented(2).text(code.explanation()));
    if let Some(example) = code.example() {
        for (title, text) in [("wrong:", example.wrong), ("right:", example.right)] {
            canvas.add_paragraph([Line::indented(2).put(Paint::Note, title)]);
            text.lines().for_each(|line| canvas.add_line(&Line::indented(4).text(line)));
        }
    }
    Some(canvas.finish())
}

/// The text for these descriptions of fields.
pub fn explain_fields(descriptions: &[NameDescription], style: TextStyle) -> String {
    let no_secrets = Secrets::default();
    let mut canvas = Canvas::new(style, &no_secrets);
    for description in descriptions {
        canvas.add_gap();
        let kinds = description.contexts.join(", ");
        let head = match description.name.as_str() {
            "" => Line::with_text(Paint::Bold, kinds),
            name => Line::with_text(Paint::Bold, name).text(format!(", in {kinds}")),
        };
        canvas.add_line(&head);
        draw_description(&mut canvas, &description.field);
        let requirements = description.required_fields.iter().map(String::as_str);
        requirements.for_each(|text| canvas.add_line(&Line::indented(2).text(text)));
        if !description.inner_names.is_empty() {
            let line = Line::indented(2).put(Paint::Dim, "holds   ").set_hanging_indent();
            canvas.add_line(&line.text(description.inner_names.join(", ")));
        }
    }
    canvas.finish()
}

/// Draws the meaning of a field, its values, and its special rules.
fn draw_description(canvas: &mut Canvas, description: &FieldReference) {
    let FieldReference { value, meaning, remarks } = description;
    if !meaning.is_empty() {
        canvas.add_line(&Line::indented(2).text(meaning));
    }
    let notes = remarks.iter().map(|remark| ("note    ", remark));
    for (title, text) in [("value   ", value)].into_iter().chain(notes) {
        canvas.add_line(&Line::indented(2).put(Paint::Dim, title).set_hanging_indent().text(text));
    }
}
