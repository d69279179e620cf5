//! The URLs that the service accepts: targets of its own requests, and URLs of badges.

use std::net::IpAddr;

/// The service's error text for a URL that it refuses; `None` for an accepted URL. Only the scheme
/// and the host are checked. Spaces in a path and hosts that are not ASCII are accepted. Names are
/// not resolved.
///
/// If the service sends requests to the URL, `own_url` is the URL of the service. Hosts in the
/// machine and network of the service are then refused, except the service itself. Without
/// `own_url`, only browsers open the URL, and any host is accepted.
pub(crate) fn url_error(url: &str, schemes: &[&str], own_url: Option<&str>) -> Option<String> {
    if url.is_empty() {
        return Some("must be a valid URL".to_owned());
    }
    let (scheme, after_scheme) = url.split_once("://").unwrap_or(("", url));
    let host = host_and_port(after_scheme).map(|(host, _)| host);
    let problem =
        if after_scheme.is_empty() || !scheme.is_empty() && host.is_none_or(has_bad_character) {
            "URI is invalid".to_owned()
        } else if !schemes.contains(&scheme) {
            format!("Only allowed schemes are {}", schemes.join(", "))
        } else if host?.is_empty() {
            "Host cannot be resolved or invalid".to_owned()
        } else if !host?.starts_with(|c: char| c.is_alphanumeric() || c == '[') {
            "Hostname or IP address invalid".to_owned()
        } else {
            let own_origin = origin(own_url?);
            let network = forbidden_network(host?).filter(|_| origin(url) != own_origin)?;
            format!("Requests to {network} are not allowed")
        };
    Some(format!("is blocked: {problem}"))
}

fn has_bad_character(host: &str) -> bool {
    host.contains(|c: char| c.is_whitespace() || "<>{}\\\"".contains(c))
}

/// The scheme, host and port of a URL; `None` if the text is not a URL with a host.
fn origin(url: &str) -> Option<(&str, &str, Option<u16>)> {
    let (scheme, after_scheme) = url.split_once("://")?;
    let (host, port) = host_and_port(after_scheme)?;
    let default_port = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Some((scheme, host, port.or(default_port)))
}

/// The host and the port in the part after the scheme; `None` if the port is not a number.
fn host_and_port(after_scheme: &str) -> Option<(&str, Option<u16>)> {
    let authority_text = after_scheme.split(['/', '?', '#']).next()?;
    let address = authority_text.rsplit('@').next()?;
    // An address in brackets contains colons.
    let host_end = address.rfind(']').map_or(0, |position| position + 1);
    match address[host_end..].split_once(':') {
        Some((name, port)) => Some((&address[..host_end + name.len()], Some(port.parse().ok()?))),
        None => Some((address, None)),
    }
}

/// The name of the forbidden network that contains the host; `None` for an allowed host.
fn forbidden_network(host: &str) -> Option<&'static str> {
    const LOCALHOST: &str = "localhost";
    let address =
        host.trim_matches(['[', ']']).parse().map(|address: IpAddr| address.to_canonical());
    match address {
        Err(_) if host.eq_ignore_ascii_case(LOCALHOST) => Some(LOCALHOST),
        Err(_) => None,
        Ok(address) if address.is_loopback() || address.is_unspecified() => Some(LOCALHOST),
        Ok(IpAddr::V4(address)) if address.is_link_local() => Some("the link local network"),
        Ok(IpAddr::V4(address)) if address.is_broadcast() => Some("the limited broadcast address"),
        Ok(IpAddr::V4(address)) => address.is_private().then_some("the local network"),
        Ok(IpAddr::V6(address)) if address.is_unicast_link_local() => {
            Some("the link local network")
        }
        Ok(IpAddr::V6(address)) => address.is_unique_local().then_some("the local network"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB_SCHEMES: &[&str] = &["http", "https"];
    const OUTSIDE: Option<&str> = Some("http://127.0.0.1:8080");

    #[test]
    fn a_url_is_refused_in_the_words_of_the_service() {
        for (url, error) in [
            ("https://ci.example.org/x?y=1#z", None),
            ("https://user:pw@ci.example.org:8443", None),
            ("http://ci.example.org/x y", None),
            ("https://münchen.example.org/ä", None),
            ("http://203.0.113.1:8080/", None),
            ("", Some("must be a valid URL")),
            ("https://", Some("is blocked: URI is invalid")),
            ("https://a b", Some("is blocked: URI is invalid")),
            ("https://a.example:port/", Some("is blocked: URI is invalid")),
            ("nope", Some("is blocked: Only allowed schemes are http, https")),
            ("5", Some("is blocked: Only allowed schemes are http, https")),
            ("javascript:x", Some("is blocked: Only allowed schemes are http, https")),
            ("file:///p", Some("is blocked: Only allowed schemes are http, https")),
            ("https:///p", Some("is blocked: Host cannot be resolved or invalid")),
            ("ftp://example.org", Some("is blocked: Only allowed schemes are http, https")),
            ("HTTPS://example.org", Some("is blocked: Only allowed schemes are http, https")),
            ("https://-x", Some("is blocked: Hostname or IP address invalid")),
        ] {
            assert_eq!(url_error(url, WEB_SCHEMES, OUTSIDE).as_deref(), error, "{url}");
        }
    }

    #[test]
    fn addresses_in_the_local_network_are_refused() {
        for (url, network) in [
            ("http://localhost:1/", "localhost"),
            ("http://u@127.9.9.9/", "localhost"),
            ("http://[::1]/", "localhost"),
            ("http://0.0.0.0/", "localhost"),
            ("http://10.0.0.1/", "the local network"),
            ("http://172.16.0.1/", "the local network"),
            ("http://[::ffff:192.168.0.1]:80/", "the local network"),
            ("http://[fd00::1]/", "the local network"),
            ("http://169.254.169.254/", "the link local network"),
        ] {
            let error = format!("is blocked: Requests to {network} are not allowed");
            assert_eq!(url_error(url, WEB_SCHEMES, OUTSIDE), Some(error), "{url}");
            assert_eq!(url_error(url, WEB_SCHEMES, None), None, "{url}");
        }
    }

    #[test]
    fn the_own_address_is_not_refused() {
        for (url, own_url, is_refused) in [
            ("http://127.0.0.1:8080/a/b.git", "http://127.0.0.1:8080", false),
            ("http://u:p@127.0.0.1:8080/", "http://127.0.0.1:8080", false),
            ("http://[::1]:80/", "http://[::1]", false),
            ("http://localhost", "http://localhost:80", false),
            ("http://127.0.0.1:8081/", "http://127.0.0.1:8080", true),
            ("http://127.0.0.1/", "http://127.0.0.1:8080", true),
            ("https://127.0.0.1:8080/", "http://127.0.0.1:8080", true),
            ("http://localhost:8080/", "http://127.0.0.1:8080", true),
            ("http://localhost/", "", true),
        ] {
            let has_error = url_error(url, WEB_SCHEMES, Some(own_url)).is_some();
            assert_eq!(has_error, is_refused, "{url} {own_url}");
        }
    }
}
