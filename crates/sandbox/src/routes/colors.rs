//! Colours of labels: `#RGB`, `#RRGGBB`, or a CSS name, which is stored as hexadecimal digits.

/// The colour names of CSS, each with its hexadecimal digits.
const CSS_NAMES: &str = include_str!("colors.txt");
/// The text colours: dark text for light backgrounds, light text for dark backgrounds.
const DARK_TEXT: &str = "#1F1E24";
const LIGHT_TEXT: &str = "#FFFFFF";
/// The sum of red, green and blue above which a colour is light.
const MAX_DARK_SUM: u32 = 500;

/// The stored form of a colour; `None` if the text is not a colour. Digits keep their case. The
/// case of a name is ignored.
pub(super) fn parse(text: &str) -> Option<String> {
    if let Some(digits) = text.strip_prefix('#') {
        let is_valid =
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return is_valid.then(|| text.to_owned());
    }
    let mut names = CSS_NAMES.lines().filter_map(|line| line.split_once(' '));
    let (_, digits) = names.find(|(name, _)| name.eq_ignore_ascii_case(text))?;
    Some(format!("#{digits}"))
}

/// The text colour for a background of this colour.
pub(super) fn choose_text_color(color: &str) -> &'static str {
    let digits: Vec<u32> = color.chars().filter_map(|digit| digit.to_digit(16)).collect();
    let sum: u32 = match digits.as_slice() {
        [red, green, blue] => (red + green + blue) * 17,
        [r1, r2, g1, g2, b1, b2] => (r1 + g1 + b1) * 16 + r2 + g2 + b2,
        _ => 0,
    };
    if sum > MAX_DARK_SUM { DARK_TEXT } else { LIGHT_TEXT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stay_and_names_become_digits() {
        for (text, stored_color) in [
            ("#fFf", Some("#fFf")),
            ("#00ff7F", Some("#00ff7F")),
            ("red", Some("#FF0000")),
            ("Tomato", Some("#FF6347")),
            ("#ff", None),
            ("#ggg", None),
            ("", None),
            ("ff0000", None),
            ("reddish", None),
        ] {
            assert_eq!(parse(text).as_deref(), stored_color, "{text}");
        }
    }

    #[test]
    fn text_is_dark_on_light_colours() {
        for (color, text) in [
            ("#fff", DARK_TEXT),
            ("#FFFF00", DARK_TEXT),
            ("#000", LIGHT_TEXT),
            ("#FF0000", LIGHT_TEXT),
        ] {
            assert_eq!(choose_text_color(color), text, "{color}");
        }
    }
}
