//! Parses the numbers of YAML's core schema.

/// Parses a number of the YAML 1.2 core schema; `None` if the text is not a number. Fails if JSON
/// cannot represent the number. The error is the text that the user sees.
pub(super) fn parse(text: &str) -> Result<Option<serde_json::Number>, &'static str> {
    const TOO_LARGE: &str = "a number that 64 bits cannot hold";
    let (radix, unsigned) = match text.as_bytes() {
        [b'0', b'x', ..] => (16, &text[2..]),
        [b'0', b'o', ..] => (8, &text[2..]),
        _ => (10, text.strip_prefix(['+', '-']).unwrap_or(text)),
    };
    if !unsigned.is_empty() && unsigned.chars().all(|c| c.is_digit(radix)) {
        if radix == 10 && unsigned.len() > 1 && unsigned.starts_with('0') {
            return Err("a number that starts with `0`: some readers of YAML read it as octal");
        }
        let signed = if text.starts_with('-') { text } else { unsigned };
        return i64::from_str_radix(signed, radix).map(|n| Some(n.into())).map_err(|_| TOO_LARGE);
    }
    // `0o89` and `0x1.5` are texts.
    if radix != 10 {
        return Ok(None);
    }
    match unsigned {
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => {
            return Err("JSON cannot represent infinity and NaN");
        }
        _ if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return Ok(None),
        _ => {}
    }
    let Ok(float) = unsigned.parse::<f64>() else { return Ok(None) };
    let float = if text.starts_with('-') { -float } else { float };
    // `8.0` is the integer 8, as in a JSON schema.
    if let Ok(integer) = float.to_string().parse::<i64>() {
        return Ok(Some(integer.into()));
    }
    serde_json::Number::from_f64(float).map(Some).ok_or(TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use serde_json::Number;

    use super::*;

    #[test]
    fn a_whole_number_is_an_integer() {
        for (text, integer) in [
            ("8", 8),
            ("8.0", 8),
            ("8.", 8),
            ("3e1", 30),
            ("-2.0", -2),
            ("-0.0", 0),
            ("1e18", 10_i64.pow(18)),
        ] {
            assert_eq!(parse(text), Ok(Some(integer.into())), "{text}");
        }
        for text in ["0o89", "0x1.5", "0x.5", "0x", "0o", "0x.inf", "1.5.0"] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
        for (text, float) in [("1.5", 1.5), ("-1e-3", -0.001), ("1e300", 1e300)] {
            assert_eq!(parse(text), Ok(Number::from_f64(float)), "{text}");
        }
    }
}
