//! Numbers of YAML's core schema.

/// A number of the YAML 1.2 core schema that JSON can represent; `None` if the text is not one.
pub(super) fn parse(text: &str) -> Result<Option<serde_json::Number>, &'static str> {
    const TOO_LARGE: &str = "a number that 64 bits cannot hold";
    let radix = match text.as_bytes() {
        [b'0', b'x', ..] => 16,
        [b'0', b'o', ..] => 8,
        _ => 10,
    };
    let unsigned =
        if radix == 10 { text.strip_prefix(['+', '-']).unwrap_or(text) } else { &text[2..] };
    if radix == 10
        && unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned.chars().all(|c| c.is_ascii_digit())
    {
        return Err("a number that starts with `0`: some readers of YAML take it for octal");
    }
    if !unsigned.is_empty() && unsigned.chars().all(|c| c.is_digit(radix)) {
        let signed = if text.starts_with('-') { text } else { unsigned };
        return i64::from_str_radix(signed, radix).map(|n| Some(n.into())).map_err(|_| TOO_LARGE);
    }
    match unsigned {
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => {
            return Err("not a number that the API knows");
        }
        _ if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return Ok(None),
        _ => {}
    }
    match unsigned.parse::<f64>() {
        Ok(float) => {
            let float = if text.starts_with('-') { -float } else { float };
            serde_json::Number::from_f64(float).map(Some).ok_or(TOO_LARGE)
        }
        Err(_) => Ok(None),
    }
}
