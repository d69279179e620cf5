//! Every code of diagnostics, with an explanation and usually an example.
//!
//! `codes/CODE.md` contains everything about a code: `explain` shows it, the reference contains it,
//! and a test runs `undrift check` on its example.

/// A code of diagnostics.
#[derive(Debug)]
pub struct Code {
    /// The name in the brackets of a message.
    pub name: &'static str,
    /// Its page in Markdown: a paragraph, and after `Wrong:` and `Right:` one block of YAML each.
    pub page: &'static str,
}

/// An example of a fault. A line such as `# undrift.yaml` starts a new file; an example without
/// such a line is one manifest.
#[derive(Debug)]
pub struct Example {
    /// Manifests with the fault and no other error.
    pub wrong: &'static str,
    /// The same without the fault.
    pub right: &'static str,
}

/// All codes, ordered by name.
pub static CODES: &[Code] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

const fn page(name: &'static str, page: &'static str) -> Code {
    Code { name, page }
}

/// The code with this name.
pub fn find_code(name: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.name == name)
}

impl Code {
    /// The explanation: one paragraph.
    pub fn explanation(&self) -> &'static str {
        self.page.lines().next().unwrap_or_default()
    }

    /// The example, if there is one.
    pub fn example(&self) -> Option<Example> {
        let (wrong, right) = self.page.split_once("\nRight:\n")?;
        Some(Example { wrong: yaml_block(wrong)?, right: yaml_block(right)? })
    }
}

/// The only block of YAML in `text`.
fn yaml_block(text: &'static str) -> Option<&'static str> {
    Some(text.split_once("```yaml\n")?.1.split_once("```")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_paragraph_and_usually_an_example() {
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
