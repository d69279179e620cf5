//! The names of time zones that the service accepts.

/// The names in the time zone database, one per line. After an empty line, the file contains short
/// names for some of the time zones.
const NAMES: &str = include_str!("time-zones.txt");

/// The full and the short names of all time zones.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter(|name| !name.is_empty())
}

/// True if `text` is the name of a time zone (case-sensitive), such as `UTC`, `Europe/Berlin` or
/// `Pacific Time (US & Canada)`, or an offset such as `+02:00`.
#[must_use]
pub fn is_valid(text: &str) -> bool {
    let offset = text.strip_prefix(['+', '-']).and_then(|offset| offset.split_once(':'));
    offset.is_some_and(|(hours, minutes)| is_up_to(hours, 14) && is_up_to(minutes, 59))
        || names().any(|name| name == text)
}

/// True if `digits` is a number with two digits that is not above `max`.
fn is_up_to(digits: &str, max: u8) -> bool {
    digits.len() == 2
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.parse::<u8>().is_ok_and(|number| number <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_have_names() {
        for (text, expected) in [
            ("UTC", true),
            ("Pacific Time (US & Canada)", true),
            ("America/St_Johns", true),
            ("", false),
            ("Berlin", true),
            ("+02:00", true),
            ("+25:00", false),
            ("++5:00", false),
            ("+05:+9", false),
            ("europe/berlin", false),
            ("Nowhere", false),
        ] {
            assert_eq!(is_valid(text), expected, "{text}");
        }
    }
}
