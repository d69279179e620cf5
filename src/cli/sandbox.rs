//! `undrift sandbox`: runs the sandbox as a server.

use std::{
    net::{Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use super::{CommandResult, RunContext, embedded, rehearsed, signal};
use crate::{
    cli::Exit,
    release::{REFERENCE, Release},
    sandbox::{DataLocation, Profile, RateLimits, SandboxConfig, ServiceTier, facts_table},
};

/// The variable with the token of the user `root`; without it, a token is generated.
const TOKEN_VARIABLE: &str = "UNDRIFT_SANDBOX_TOKEN";

/// The options of `sandbox`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/sandbox.txt"))]
pub(super) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Also accept requests for this host, such as the name of a container; may be repeated
    #[arg(long, value_name = "NAME", value_parser = host)]
    allow_host: Vec<String>,
    /// File to keep the data in [default: in memory]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Initial data (YAML, see `undrift schema sandbox`)
    #[arg(long, value_name = "FILE")]
    seed: Option<PathBuf>,
    /// Licence tier: free, premium or ultimate [default: from the seed, else premium]
    #[arg(long, value_name = "TIER", value_parser = tier)]
    tier: Option<ServiceTier>,
    /// Release of the service, such as 18.2 [default: from the seed, else 15.8]
    #[arg(long, value_name = "RELEASE", value_parser = release)]
    release: Option<Release>,
    /// Delay every response by this many milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    latency: u64,
    /// Append one JSON line per request to this file
    #[arg(long, value_name = "FILE")]
    pub(super) request_log: Option<PathBuf>,
    /// Requests per minute and user [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate_limit: Option<u32>,
    /// Requests per minute, user and operation [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    operation_rate_limit: Option<u32>,
    /// Allow each user 400 requests for single projects and 60 removals of members per minute, as
    /// large hosted services do
    #[arg(long)]
    route_rate_limits: bool,
    /// Duration of forks and imports; the default is long enough to observe and cancel one
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 2_000)]
    import_delay: u64,
    /// Pause after housekeeping before it can start again
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    housekeeping_lease: u64,
    /// Days in which a deleted project can be restored [default: depends on release and tier]
    #[arg(long, value_name = "DAYS")]
    deletion_delay: Option<u32>,
    /// Enable a feature flag
    #[arg(long = "flag", value_name = "FLAG")]
    flags: Vec<FeatureFlag>,
    /// Flush every write to disk
    #[arg(long, requires = "data")]
    durable: bool,
    /// Print the rules that the sandbox follows, with their sources, and exit
    #[arg(long, exclusive = true)]
    facts: bool,
}

/// The features that the service hides behind a flag that is off by default (reference 1, 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FeatureFlag {
    /// Importing gists
    #[value(name = "extgit_import_gists")]
    ExtgitImportGists,
}

fn tier(text: &str) -> Result<ServiceTier, String> {
    ServiceTier::from_name(text).ok_or_else(|| "must be free, premium or ultimate".into())
}

fn release(text: &str) -> Result<Release, String> {
    match text.parse::<Release>()? {
        release if release < REFERENCE => Err(format!("must be {REFERENCE} or later")),
        release => Ok(release),
    }
}

fn host(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = bracketed.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
    if is_name || is_address {
        Ok(text.to_owned())
    } else {
        Err("must be a host name or an IP address, without scheme and port".into())
    }
}

/// Runs the server until interrupted.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    if args.facts {
        cx.output.print(&facts_table())?;
        return Ok(Exit::Success);
    }
    let config = SandboxConfig {
        listen: Some(args.listen),
        allowed_hosts: args.allow_host,
        data: args.data.map_or(DataLocation::Memory, DataLocation::File),
        seed: args.seed.as_deref().map(|path| embedded::read_seed(path, &cx.output)).transpose()?,
        tier: args.tier,
        release: args.release,
        latency: Duration::from_millis(args.latency),
        request_log: args.request_log,
        rate_limits: RateLimits {
            max_per_user: args.rate_limit,
            max_per_operation: args.operation_rate_limit,
            has_route_limits: args.route_rate_limits,
        },
        is_durable: args.durable,
        profile: Profile {
            import_delay: Duration::from_millis(args.import_delay),
            housekeeping_lease: Duration::from_millis(args.housekeeping_lease),
            deletion_delay: args.deletion_delay,
            gists: args.flags.contains(&FeatureFlag::ExtgitImportGists),
            ..Profile::default()
        },
        token: cx.env.get(TOKEN_VARIABLE).map(str::to_owned),
        ..SandboxConfig::default()
    };
    // Listen for signals first: a program that reads the address may send one immediately.
    let mut signals = signal::Signals::new()?;
    let sandbox = embedded::launch(config, &cx.output).await?;
    rehearsed::print_notes(&cx.output);
    let token = if sandbox.is_token_generated() {
        format!("token: {}\n", sandbox.token())
    } else {
        String::new()
    };
    cx.output.print(&format!("listening on {}\n{token}", sandbox.url()))?;
    signals.next().await;
    sandbox.stop().await;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_that_of_the_reference_or_a_later_one() {
        assert_eq!(release("15.8"), Ok(REFERENCE));
        assert_eq!(release("18.2.1-ee"), Ok(Release::new(18, 2)));
        assert_eq!(release("15.7"), Err("must be 15.8 or later".to_owned()));
        assert!(release("18").is_err());
    }
}
