//! Every code of diagnostics, with an explanation and usually an example.
//!
//! The page `codes/CODE.md` explains one code. `undrift explain` shows the page, and undrift's
//! reference contains the page. A test runs `undrift check` on the example in the page.

/// A code of diagnostics.
#[derive(Debug)]
pub struct Code {
    /// The name in the brackets of a message.
    pub name: &'static str,
    /// The page in Markdown. Each page has a paragraph. Most pages also have a block of YAML after
    /// `Wrong:`, and a block of YAML after `Right:`.
    pub page: &'static str,
}

/// An example of a fault. A line such as `# undrift.yaml` starts a new file. An example without
/// such a line is one manifest.
#[derive(Debug)]
pub struct Example {
    /// Manifests with the fault and no other error.
    pub wrong: &'static str,
    /// The same manifests without the fault.
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

    /// The example; `None` if the page has no example.
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
