//! The allowed values of the `Host` header. A web page can point its own host name at this machine
//! (DNS rebinding). The browser then sends requests of the page to this service. The sandbox
//! therefore refuses other host names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The host names and addresses of this service.
#[derive(Debug)]
pub(crate) struct AllowedHosts {
    listen_ip: IpAddr,
    names: Vec<String>,
}

impl AllowedHosts {
    /// Allows the IP address in `listen`, and further `names` chosen by the user.
    pub(crate) fn new(listen: SocketAddr, names: Vec<String>) -> Self {
        Self { listen_ip: listen.ip().to_canonical(), names }
    }

    /// True if a `Host` header names this service. The port is ignored, because the port that
    /// clients use outside a container differs from the port inside.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let names = self.names.iter().map(String::as_str);
        names.chain(["localhost"]).any(|allowed| allowed.eq_ignore_ascii_case(name))
            || parse_address(name).is_some_and(|ip| self.is_own_address(ip))
    }

    /// True if an IP address leads to this service. If the service listens on all addresses, every
    /// address is accepted. Accepting an address is safe: a web page can point a name at this
    /// machine, but not an address.
    fn is_own_address(&self, ip: IpAddr) -> bool {
        self.listen_ip.is_unspecified() || ip.is_loopback() || ip == self.listen_ip
    }
}

/// Parses an address as `Host` headers write it: IPv6 in brackets.
fn parse_address(name: &str) -> Option<IpAddr> {
    let ip = match name.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(address) => IpAddr::V6(address.parse::<Ipv6Addr>().ok()?),
        None => IpAddr::V4(name.parse::<Ipv4Addr>().ok()?),
    };
    Some(ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        // The host. The first flag is true if a service on one address accepts the host, the second
        // if a service on all addresses does.
        let table = [
            ("localhost", true, true),
            ("LOCALHOST:8080", true, true),
            ("127.0.0.1:1", true, true),
            ("[::1]:1", true, true),
            ("[0:0::1]", true, true),
            ("192.0.2.7", true, true),
            ("[::ffff:192.0.2.7]:80", true, true),
            ("box", true, true),
            ("BOX:9000", true, true),
            ("192.0.2.8:80", false, true),
            ("0.0.0.0:80", false, true),
            ("[2001:db8::1]:80", false, true),
            ("box.example.org", false, false),
            ("example.org", false, false),
            ("localhost.example.org", false, false),
            ("127.0.0.1.example.org:80", false, false),
            ("192.0.2", false, false),
            ("2001:db8::1", false, false),
            ("", false, false),
            (":80", false, false),
        ];
        for (listen, listens_on_all) in
            [("192.0.2.7:80", false), ("0.0.0.0:80", true), ("[::]:80", true)]
        {
            let hosts =
                AllowedHosts::new(listen.parse().expect("an address"), vec!["box".to_owned()]);
            for (host, is_accepted_on_one, is_accepted_on_all) in table {
                assert_eq!(
                    hosts.allows(host),
                    if listens_on_all { is_accepted_on_all } else { is_accepted_on_one },
                    "{listen} {host}"
                );
            }
        }
    }
}
