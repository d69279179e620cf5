//! The address of the service: one origin, parsed once.

use std::{fmt, net::IpAddr};

use reqwest::Url;

/// The address of the service. The token goes to this origin and to no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    /// The base URL, without a trailing slash and without `/api/v4`.
    base_url: Url,
}

/// The reason why an address is invalid. Never contains the address, which may include a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceAddressError {
    /// The text is not a URL. Contains the reason.
    #[error(
        "the address of the service is not a URL ({0}); write it like https://gitlab.example.org"
    )]
    NotUrl(String),
    /// The scheme is neither https nor http.
    #[error("the address of the service must start with https://")]
    Scheme,
    /// The address uses plain http to another machine.
    #[error("the address of the service is plain http, which exposes the token; use https")]
    Plaintext,
    /// The address contains a user name or password.
    #[error(
        "the address of the service must not contain a user name or password; set the token in the environment or in a file"
    )]
    UserInfo,
    /// The address contains `?` or `#`.
    #[error("the address of the service must not have a query or a fragment (`?` or `#`)")]
    Query,
}

impl ServiceAddress {
    /// Parses an address `https://host[:port][/path]`. A trailing slash and `/api/v4` are removed.
    ///
    /// Plain http is allowed only to this machine, unless `allow_plaintext` is true.
    ///
    /// # Errors
    /// [`ServiceAddressError`] for anything else.
    pub fn parse(text: &str, allow_plaintext: bool) -> Result<Self, ServiceAddressError> {
        let mut base = Url::parse(text.trim()).map_err(|error| {
            ServiceAddressError::NotUrl(match error {
                url::ParseError::RelativeUrlWithoutBase => "it has no `https://`".to_owned(),
                error => error.to_string(),
            })
        })?;
        if !matches!(base.scheme(), "https" | "http") {
            return Err(ServiceAddressError::Scheme);
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(ServiceAddressError::UserInfo);
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(ServiceAddressError::Query);
        }
        let path = base.path().trim_end_matches('/');
        let path = path.strip_suffix("/api/v4").unwrap_or(path).trim_end_matches('/').to_owned();
        base.set_path(&path);
        let service = Self { base_url: base };
        if service.base_url.scheme() == "http" && !service.is_loopback() && !allow_plaintext {
            return Err(ServiceAddressError::Plaintext);
        }
        Ok(service)
    }

    /// True if the address uses TLS.
    pub fn is_https(&self) -> bool {
        self.base_url.scheme() == "https"
    }

    /// True if the address points to this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.base_url.host_str().unwrap_or_default();
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
    }

    /// The URL for `target`, which is a path and query below `/api/v4`. `None` if URL parsing would
    /// change the target, as for a segment `..`.
    pub(super) fn target_url(&self, target: &str) -> Option<Url> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = format!("{}/api/v4{path}", self.base_url.path().trim_end_matches('/'));
        // Setting the parts is faster than parsing the whole URL for each request.
        let mut url = self.base_url.clone();
        url.set_path(&path);
        url.set_query(query);
        (url.path() == path && url.query() == query).then_some(url)
    }

    /// The id of the project that a `Location` header points to. The origin is ignored: the service may
    /// use another name for itself.
    pub(super) fn project_id_in(&self, location: &str) -> Option<u64> {
        let url = self.base_url.join(location).ok()?;
        let path = url.path().strip_prefix(self.base_url.path().trim_end_matches('/'))?;
        path.strip_prefix("/api/v4/projects/")?.parse().ok()
    }
}

/// The address without a trailing slash.
impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base_url.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_normalised_or_refused() {
        let accepted_pairs = [
            ("https://gitlab.example.org", "https://gitlab.example.org"),
            (" https://gitlab.example.org/ ", "https://gitlab.example.org"),
            ("https://gitlab.example.org/api/v4", "https://gitlab.example.org"),
            ("https://gitlab.example.org/api/v4/", "https://gitlab.example.org"),
            ("HTTPS://GitLab.Example.org:443/git/", "https://gitlab.example.org/git"),
            ("https://example.org:8443/git/api/v4", "https://example.org:8443/git"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("http://127.9.9.9:1/x", "http://127.9.9.9:1/x"),
            ("http://[::1]:80", "http://[::1]"),
        ];
        for (text, parsed) in accepted_pairs {
            assert_eq!(ServiceAddress::parse(text, false).unwrap().to_string(), parsed, "{text}");
        }
        let refused_pairs = [
            ("", ServiceAddressError::NotUrl("it has no `https://`".into())),
            ("gitlab.example.org", ServiceAddressError::NotUrl("it has no `https://`".into())),
            ("https://", ServiceAddressError::NotUrl("empty host".into())),
            ("gitlab.example.org:8443", ServiceAddressError::Scheme),
            ("ftp://example.org", ServiceAddressError::Scheme),
            ("file:///etc/passwd", ServiceAddressError::Scheme),
            ("https://user@example.org", ServiceAddressError::UserInfo),
            ("https://:canary@example.org", ServiceAddressError::UserInfo),
            ("https://example.org?private_token=canary", ServiceAddressError::Query),
            ("https://example.org/#x", ServiceAddressError::Query),
            ("http://example.org", ServiceAddressError::Plaintext),
            ("http://localhost.example.org", ServiceAddressError::Plaintext),
            ("http://10.0.0.1", ServiceAddressError::Plaintext),
            ("http://128.0.0.1", ServiceAddressError::Plaintext),
        ];
        for (text, error) in refused_pairs {
            let actual = ServiceAddress::parse(text, false).unwrap_err();
            assert_eq!(actual, error, "{text}");
            assert!(!format!("{actual} {actual:?}").contains("canary"));
        }
        assert!(ServiceAddress::parse("http://example.org", true).is_ok());
    }

    #[test]
    fn a_target_stays_below_the_address() {
        let service = ServiceAddress::parse("https://example.org/git", false).unwrap();
        assert_eq!(
            service.target_url("/projects/a%2Fb?x=%2E").unwrap().as_str(),
            "https://example.org/git/api/v4/projects/a%2Fb?x=%2E"
        );
        for target in
            ["/projects/..", "/projects/../user", "/projects/%2e%2E/hooks", "/projects/./hooks"]
        {
            assert_eq!(service.target_url(target), None, "{target}");
        }
    }

    #[test]
    fn a_project_is_recognised_in_a_location_whatever_the_origin() {
        let service = ServiceAddress::parse("https://example.org/git", false).unwrap();
        let table = [
            ("https://example.org/git/api/v4/projects/7", Some(7)),
            ("/git/api/v4/projects/7", Some(7)),
            ("https://example.org:443/git/api/v4/projects/7", Some(7)),
            ("http://example.org/git/api/v4/projects/7", Some(7)),
            ("https://example.org:8443/git/api/v4/projects/7", Some(7)),
            ("//other.example/git/api/v4/projects/7", Some(7)),
            ("https://other.example/sign_in?to=/git/api/v4/projects/7", None),
            ("/api/v4/projects/7", None),
            ("/git/api/v4/projects/7/hooks", None),
            ("/git/api/v4/projects/a%2Fb", None),
            ("", None),
        ];
        for (location, id) in table {
            assert_eq!(service.project_id_in(location), id, "{location}");
        }
    }
}
