//! Every sort of diagnostic, with a paragraph on what lies behind it and mostly an example.
//!
//! `codes/CODE.md` is all that there is to say of a code: `explain` shows it, the reference holds it,
//! and a test gives its example to `undrift check`.

/// A sort of diagnostic.
#[derive(Debug)]
pub struct Code {
    /// What stands in the brackets of a message.
    pub name: &'static str,
    /// Its page in Markdown: a paragraph, and `Wrong:` and `Right:` with a block of YAML each.
    pub page: &'static str,
}

/// A fault that a few lines can show. A line such as `# undrift.yaml` begins a file; what has none
/// is one manifest.
#[derive(Debug)]
pub struct Example {
    /// What has the fault, and no other error.
    pub wrong: &'static str,
    /// The same, mended.
    pub right: &'static str,
}

/// All of them, in the order of their names.
pub static CODES: &[Code] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

const fn page(name: &'static str, page: &'static str) -> Code {
    Code { name, page }
}

/// The code with this name.
pub fn of(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}

impl Code {
    /// What lies behind it: one paragraph.
    pub fn explanation(&self) -> &'static str {
        self.page.lines().next().unwrap_or_default()
    }

    /// Its example, if it has one.
    pub fn example(&self) -> Option<Example> {
        let (wrong, right) = self.page.split_once("\nRight:\n")?;
        Some(Example { wrong: block(wrong)?, right: block(right)? })
    }
}

/// What stands in the one block of YAML of `text`.
fn block(text: &'static str) -> Option<&'static str> {
    Some(text.split_once("```yaml\n")?.1.split_once("```")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_is_a_paragraph_and_mostly_an_example() {
        for code in CODES {
            let example = |Example { wrong, right }| {
                format!("\nWrong:\n\n```yaml\n{wrong}```\n\nRight:\n\n```yaml\n{right}```\n")
            };
            let example = code.example().map(example).unwrap_or_default();
            assert_eq!(code.page, format!("{}\n{example}", code.explanation()), "{}", code.name);
            let text = code.explanation();
            assert!(text.ends_with('.') && !text.contains("  "), "{}", code.name);
        }
    }
}
