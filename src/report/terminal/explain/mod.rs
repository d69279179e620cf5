//! Explanations of declarations, fields and codes, as text for people.

mod address;

pub use address::{Subject, declared, live};

use crate::{
    catalogue::reference::FieldReference,
    diagnostic::codes,
    manifest::schema::NameDescription,
    report::{Canvas, Line, Paint, TextStyle},
    secret::Secrets,
};

/// The explanation of the code `name`, with an example if there is one.
pub fn code(name: &str, style: TextStyle) -> Option<String> {
    let code = codes::of(name)?;
    let none = Secrets::default();
    let mut canvas = Canvas::new(style, &none);
    canvas.line(&Line::of(Paint::Bold, name).text(", the code of a message"));
    canvas.line(&Line::indented(2).text(code.explanation()));
    if let Some(example) = code.example() {
        for (title, text) in [("wrong:", example.wrong), ("right:", example.right)] {
            canvas.paragraph([Line::indented(2).put(Paint::Note, title)]);
            text.lines().for_each(|line| canvas.line(&Line::indented(4).text(line)));
        }
    }
    Some(canvas.finish())
}

/// The descriptions of `descriptions` fields.
pub fn fields(descriptions: &[NameDescription], style: TextStyle) -> String {
    let none = Secrets::default();
    let mut canvas = Canvas::new(style, &none);
    for field in descriptions {
        canvas.gap();
        let kinds = field.homes.join(", ");
        let head = match field.name.as_str() {
            "" => Line::of(Paint::Bold, kinds),
            name => Line::of(Paint::Bold, name).text(format!(", in {kinds}")),
        };
        canvas.line(&head);
        draw_description(&mut canvas, &field.described);
        let needs = field.needs.iter().map(String::as_str);
        needs.for_each(|needs| canvas.line(&Line::indented(2).text(needs)));
        if !field.within.is_empty() {
            let line = Line::indented(2).put(Paint::Dim, "holds   ").hang_here();
            canvas.line(&line.text(field.within.join(", ")));
        }
    }
    canvas.finish()
}

/// What a field means, its values, and its special rules.
fn draw_description(canvas: &mut Canvas, described: &FieldReference) {
    let FieldReference { value, meaning, remarks } = described;
    if !meaning.is_empty() {
        canvas.line(&Line::indented(2).text(meaning));
    }
    let notes = remarks.iter().map(|remark| ("note    ", remark));
    for (title, text) in [("value   ", value)].into_iter().chain(notes) {
        canvas.line(&Line::indented(2).put(Paint::Dim, title).hang_here().text(text));
    }
}
