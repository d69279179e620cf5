//! Decides which service a run uses, and with which token.
//!
//! Neither the address nor the token ever comes from a manifest, because the author of a manifest
//! must not be able to send the token elsewhere. The token never comes from the command line, which
//! everybody on the machine can see.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{CommandError, Environment, Exit, Output, Result, RunContext, input};
use crate::{
    api::{
        ClientSettings, HttpOptions, HttpTransport, InFlightRange, ReadClient, ServiceAddress,
        TransportSetupError,
    },
    diagnostic::Diagnostics,
    manifest::{Config, LoadEnvironment, config},
    observe::Observer,
    secret::{Secret, Secrets, judge::mask_url},
};

/// The variables for the address, in order of precedence; `--url` takes precedence over them.
const URL_VARIABLES: [&str; 3] = ["UNDRIFT_URL", "GITLAB_URL", "CI_SERVER_URL"];
/// The variables for the token, in order of precedence; `--token-file` takes precedence over them.
const TOKEN_VARIABLES: [&str; 2] = ["UNDRIFT_TOKEN", "GITLAB_TOKEN"];

/// The variables from which other programs read a proxy. undrift only names them in messages.
const PROXY_VARIABLES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

/// The maximum sizes of a token file and of a certificate file, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 << 10;
const MAX_CERTIFICATE_BYTES: u64 = 4 << 20;

/// The service, and how to reach it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Service")]
pub(super) struct ConnectArgs {
    /// Address of the service [env: UNDRIFT_URL, GITLAB_URL, CI_SERVER_URL]
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// File that holds the token [env: UNDRIFT_TOKEN, GITLAB_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// Use the embedded service; FILE keeps its state (default: .undrift/sandbox.db) or is
    /// `:memory:`
    #[cfg(feature = "sandbox")]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with_all = ["url", "proxy"])]
    pub(super) sandbox: Option<String>,
    /// File of certificate authorities (PEM) to trust instead of the system's [env: UNDRIFT_CA_FILE]
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,
    /// File of the client certificate (PEM), if the service requires one
    #[arg(long, value_name = "FILE")]
    pub(super) client_cert: Option<PathBuf>,
    /// File of the private key (PEM) of the client certificate, if the certificate file lacks it
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(super) client_key: Option<PathBuf>,
    /// Proxy to use; HTTPS_PROXY and the like are ignored [env: UNDRIFT_PROXY]
    #[arg(long, value_name = "URL")]
    pub(super) proxy: Option<String>,
    /// Allow plain http to other machines, which exposes the token
    #[arg(long)]
    pub(super) allow_plaintext: bool,
    /// Number of concurrent requests [default: adapts between 16 and 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(super) concurrency: Option<u16>,
    /// Maximum number of requests
    #[arg(long, value_name = "N")]
    pub(super) max_requests: Option<u64>,
    /// Maximum duration of the run, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(super) deadline: Option<u64>,
    /// The service and its token, if they are already known.
    #[arg(skip)]
    pub(super) known_endpoint: Option<Endpoint>,
}

/// A service with its token.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// The address.
    pub(super) service: ServiceAddress,
    /// The token.
    pub(super) token: Secret,
    /// The file that the token was read from; `None` if no file was used.
    pub(super) token_file: Option<PathBuf>,
    /// The environment for looking up secrets.
    pub(super) environment: Environment,
    /// True if the service runs inside this process. In this case, undrift generated the token, and
    /// the token belongs to an administrator.
    pub(super) is_embedded: bool,
}

impl Endpoint {
    /// Makes `secrets` refuse the token of the service as the value of a secret.
    pub(super) fn exclude_token(&self, secrets: Secrets) -> Secrets {
        secrets.with_service_token(self.token.clone(), self.token_file.as_deref())
    }

    /// The secrets that a command line may name.
    pub(super) fn command_line_secrets(&self) -> Secrets {
        self.exclude_token(Secrets::for_command_line(self.environment.variables()))
    }
}

impl ConnectArgs {
    /// Finds the service for the manifests in `root`, or starts the embedded one.
    ///
    /// # Errors
    /// If the address or the token is missing or not valid, or `config` names another service.
    #[cfg_attr(
        not(feature = "sandbox"),
        expect(clippy::unused_async, unused_variables, reason = "only a sandbox is started")
    )]
    pub(super) async fn find_endpoint(
        &self,
        root: &Path,
        config: &Config,
        cx: &RunContext,
    ) -> Result<Endpoint> {
        if let Some(endpoint) = &self.known_endpoint {
            return Ok(endpoint.clone());
        }
        #[cfg(feature = "sandbox")]
        if let Some(file) = &self.sandbox {
            return super::embedded::start_once(file, root, cx).await;
        }
        let service = self.service_address(&cx.env)?;
        check_declared_service(&service, config)?;
        Ok(Endpoint {
            service,
            token: self.read_token(&cx.env)?,
            token_file: self.token_file.clone(),
            environment: cx.env.clone(),
            is_embedded: false,
        })
    }

    /// Finds the service for a command without manifests, with the configuration at `path`, or else
    /// `undrift.yaml`. Prints a note about the default file of the sandbox, and one for each section
    /// that the sandbox knows only from a description.
    ///
    /// # Errors
    /// If there is no service, or the configuration is wrong.
    pub(super) async fn find_endpoint_and_config(
        &self,
        path: Option<&Path>,
        cx: &RunContext,
    ) -> Result<(Endpoint, Config)> {
        let mut diagnostics = Diagnostics::default();
        let (root, config) = match path {
            Some(path) => (
                PathBuf::from("."),
                config::read(path, &path.to_string_lossy(), None, &mut diagnostics),
            ),
            None => config::find(".".as_ref(), &LoadEnvironment::for_process(), &mut diagnostics),
        };
        cx.output.refuse_errors(&diagnostics)?;
        let endpoint = self.find_endpoint(&root, &config, cx).await?;
        #[cfg(feature = "sandbox")]
        if let Some(file) = &self.sandbox {
            if file.is_empty() {
                let path = super::embedded::default_path(&root);
                cx.output.eprint(&format!("note: using the sandbox `{}`\n", path.display()));
            }
            super::rehearsed::print_notes(&cx.output);
        }
        Ok((endpoint, config))
    }

    /// True if the command line or the environment names a service.
    pub(super) fn has_address(&self, env: &Environment) -> bool {
        #[cfg(feature = "sandbox")]
        if self.sandbox.is_some() {
            return true;
        }
        self.url.is_some() || env.first_set(&URL_VARIABLES).is_some()
    }

    /// The name of the option or variable with the address, and the address.
    pub(super) fn named_address<'e>(&'e self, env: &'e Environment) -> Option<(&'e str, &'e str)> {
        self.url.as_deref().map(|url| ("--url", url)).or_else(|| env.first_set(&URL_VARIABLES))
    }

    /// Connects to the service `target`. If there is no response, the error names the address, and
    /// the option or variable that it comes from.
    pub(super) async fn connect_observer(
        &self,
        client: ReadClient,
        target: impl fmt::Display,
        env: &Environment,
    ) -> Result<Observer> {
        Observer::connect(client).await.map_err(|error| {
            let source = self.named_address(env).filter(|_| error.has_no_response());
            let failure = CommandError::from(error);
            match (source, failure.help.clone()) {
                (Some((name, _)), Some(help)) => {
                    failure.help(format!("{help}; {name} is `{target}`"))
                }
                _ => failure,
            }
        })
    }

    /// The address from the option or a variable.
    fn service_address(&self, env: &Environment) -> Result<ServiceAddress> {
        let Some((name, url)) = self.named_address(env) else {
            let failure = CommandError::usage("no service address given");
            let lacks_token =
                self.token_file.is_none() && env.first_set(&TOKEN_VARIABLES).is_none();
            let help = if lacks_token {
                "pass `--url` or set UNDRIFT_URL, and set UNDRIFT_TOKEN; or try `--sandbox`"
            } else {
                "pass `--url` or set UNDRIFT_URL, or try `--sandbox`"
            };
            return Err(failure.help(add_dotenv_hint(help)));
        };
        ServiceAddress::parse(url, self.allow_plaintext).map_err(|error| {
            let failure = CommandError::usage(format!("{name}: {error}"));
            if error == crate::api::ServiceAddressError::Plaintext {
                failure.help("pass `--allow-plaintext` to use it anyway")
            } else {
                failure
            }
        })
    }

    /// Reads the token from the file of `--token-file`, or else from a variable.
    fn read_token(&self, env: &Environment) -> Result<Secret> {
        let help = "set UNDRIFT_TOKEN or pass `--token-file`; apply needs the scope `api`, plan only `read_api`";
        if let Some(path) = &self.token_file {
            let bytes = input::read_file(path, MAX_TOKEN_BYTES).map_err(|failure| {
                if failure.help.is_some() {
                    failure
                } else {
                    failure.help("correct `--token-file`, or set UNDRIFT_TOKEN")
                }
            })?;
            let token = String::from_utf8(bytes)
                .ok()
                .map(|text| text.trim().to_owned())
                .filter(|token| !token.is_empty());
            let source = format!("`{}`", path.display());
            let token = token.ok_or_else(|| {
                CommandError::usage(format!("{source} holds no token"))
                    .help("write the token into the file, or leave out `--token-file`")
            })?;
            return check_token_form(&source, &token);
        }
        let (name, token) = env.first_set(&TOKEN_VARIABLES).ok_or_else(|| {
            CommandError::usage("no token given").help(add_token_hints(help, env))
        })?;
        check_token_form(name, token.trim())
    }

    /// The network settings for reaching the service.
    ///
    /// # Errors
    /// If a file of certificates cannot be read.
    fn http_options(&self, env: &Environment, in_flight: InFlightRange) -> Result<HttpOptions> {
        let ca_pem = self.authorities_file(env).map(|(name, path)| {
            let certificates = read_certificates(path);
            certificates.map_err(|failure| failure.help(format!("{name} names this file")))
        });
        let ca_pem = ca_pem.transpose()?;
        let identity = match &self.client_cert {
            Some(path) => {
                let key = self.client_key.as_ref().unwrap_or(path);
                Some((read_certificates(path)?, read_certificates(key)?))
            }
            None => None,
        };
        let proxy = self.proxy.as_deref().or_else(|| env.get("UNDRIFT_PROXY"));
        Ok(HttpOptions {
            ca_pem,
            client_cert: identity,
            ignores_proxy: proxy.is_none() && env.first_set(&PROXY_VARIABLES).is_some(),
            proxy: proxy.map(str::to_owned),
            max_in_flight: in_flight.max(),
        })
    }

    /// The file of certificate authorities, with the name of its option or variable.
    fn authorities_file<'e>(&'e self, env: &'e Environment) -> Option<(&'e str, &'e Path)> {
        if let Some(path) = &self.ca_file {
            return Some(("`--ca-file`", path));
        }
        let is_ci_address =
            self.named_address(env).is_some_and(|(name, _)| name == "CI_SERVER_URL");
        let variables = ["UNDRIFT_CA_FILE", "CI_SERVER_TLS_CA_FILE"];
        let (name, path) = env.first_set(&variables[..if is_ci_address { 2 } else { 1 }])?;
        Some((name, Path::new(path)))
    }

    /// The failure if the client cannot be created. It names the file of certificates if that file
    /// is the cause.
    fn setup_failure(&self, error: TransportSetupError, env: &Environment) -> CommandError {
        let file =
            (error == TransportSetupError::CaFile).then(|| self.authorities_file(env)).flatten();
        let failure = CommandError::new(Exit::Usage, error);
        let Some((name, path)) = file else { return failure };
        failure.help(format!(
            "{name} names the file `{}`; it must have certificates that start with `-----BEGIN CERTIFICATE-----`",
            path.display()
        ))
    }

    /// The number of requests that may be in flight.
    pub(super) fn in_flight_range(&self, config: &Config) -> InFlightRange {
        let fixed_limit = self.concurrency.or(config.concurrency);
        fixed_limit.map_or(InFlightRange::ADAPTIVE, |number| InFlightRange::fixed(number.into()))
    }

    /// A client of the service at `endpoint`. From now on, no output shows `secrets`.
    ///
    /// # Errors
    /// If the token, a certificate or the proxy is not valid.
    pub(super) fn create_client(
        &self,
        endpoint: &Endpoint,
        config: &Config,
        secrets: Arc<Secrets>,
        output: &Output,
    ) -> Result<ReadClient> {
        output.redactor.set_secrets(Arc::clone(&secrets));
        let in_flight = self.in_flight_range(config);
        // Requests to the sandbox use no proxy.
        let options = if endpoint.is_embedded {
            HttpOptions { max_in_flight: in_flight.max(), ..HttpOptions::default() }
        } else {
            self.http_options(&endpoint.environment, in_flight)?
        };
        let transport = HttpTransport::new(&endpoint.service, &endpoint.token, &options)
            .map_err(|error| self.setup_failure(error, &endpoint.environment))?;
        let (max_requests, deadline) = (self.max_requests, self.deadline.map(Duration::from_secs));
        let settings =
            ClientSettings { in_flight, max_requests, deadline, ..ClientSettings::default() };
        Ok(ReadClient::new(endpoint.service.clone(), Arc::new(transport), secrets, settings))
    }
}

/// `help`, with a hint if the working directory has a file `.env`, which undrift does not read.
fn add_dotenv_hint(help: &str) -> String {
    let has_file = Path::new(".env").is_file();
    let hint = "; undrift does not read `.env`: run `set -a; . ./.env; set +a` first";
    format!("{help}{}", if has_file { hint } else { "" })
}

/// Like [`add_dotenv_hint`], for a missing token. In a CI job, also explains why a variable may be missing.
fn add_token_hints(help: &str, env: &Environment) -> String {
    let hint = "; a protected variable is set only in jobs of protected branches, and CI_JOB_TOKEN does not suffice";
    let is_job = env.get("CI_JOB_TOKEN").is_some();
    add_dotenv_hint(&format!("{help}{}", if is_job { hint } else { "" }))
}

/// Returns `token` if its form is that of a token. Otherwise, the error names `source`.
fn check_token_form(source: &str, token: &str) -> Result<Secret, CommandError> {
    let lower_token = token.to_lowercase();
    let has_header = ["bearer ", "private-token", "authorization", "job-token"]
        .iter()
        .any(|name| lower_token.starts_with(name));
    let fault = match token {
        _ if token.starts_with(['"', '\'']) || token.ends_with(['"', '\'']) => {
            "has quotes around the token"
        }
        _ if has_header => "has a part of a header in front of the token",
        _ if token.starts_with(['$', '<']) => "holds a name that nothing has filled in",
        _ if token.contains("://") => "holds an address",
        _ if token.contains(char::is_whitespace) => "holds more than one word",
        _ => return Ok(Secret::new(token)),
    };
    Err(CommandError::usage(format!("{source} {fault}")).help("write only the token there"))
}

fn read_certificates(path: &Path) -> Result<Vec<u8>> {
    input::read_file(path, MAX_CERTIFICATE_BYTES)
}

/// Refuses a service other than the one in `undrift.yaml`.
fn check_declared_service(service: &ServiceAddress, config: &Config) -> Result<()> {
    let Some(declared_url) = &config.service.url else { return Ok(()) };
    // Plain http is allowed here: only the address in use must be encrypted.
    match ServiceAddress::parse(declared_url, true) {
        Ok(declared) if declared == *service => Ok(()),
        _ => {
            let failure = CommandError::usage(format!(
                "these manifests are for `{}`, not for `{service}`",
                mask_url(declared_url)
            ));
            Err(failure.help("use that address, or change `service.url` in undrift.yaml"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        Environment::default().with_variables(
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn the_address_comes_from_the_first_set_source() {
        let all = [
            ("UNDRIFT_URL", "https://u.example"),
            ("GITLAB_URL", "https://g.example"),
            ("CI_SERVER_URL", "https://c.example"),
        ];
        let find_address = |url: Option<&str>, env: Environment| {
            let args = ConnectArgs { url: url.map(str::to_owned), ..ConnectArgs::default() };
            args.service_address(&env)
                .map(|service| service.to_string())
                .map_err(|failure| failure.exit.code())
        };
        assert_eq!(
            find_address(Some("https://a.example/api/v4"), env(&all)),
            Ok("https://a.example".into())
        );
        assert_eq!(find_address(None, env(&all)), Ok("https://u.example".into()));
        assert_eq!(find_address(None, env(&all[1..])), Ok("https://g.example".into()));
        assert_eq!(find_address(None, env(&all[2..])), Ok("https://c.example".into()));
        assert_eq!(
            find_address(None, env(&[("UNDRIFT_URL", ""), all[2]])),
            Ok("https://c.example".into()),
            "empty is not set"
        );
        assert_eq!(find_address(None, env(&[])), Err(3));
        assert_eq!(find_address(Some("http://a.example"), env(&[])), Err(3), "plain http");
    }

    #[test]
    fn the_token_comes_from_the_file_or_the_first_set_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "from-file\n").unwrap();
        let environment = env(&[
            ("UNDRIFT_TOKEN", "from-undrift"),
            ("GITLAB_TOKEN", "from-gitlab"),
            ("CI_JOB_TOKEN", "never"),
        ]);
        let find_token = |token_file: Option<PathBuf>, env: &Environment| {
            let args = ConnectArgs { token_file, ..ConnectArgs::default() };
            args.read_token(env)
                .map(|token| token.expose().to_owned())
                .map_err(|failure| failure.exit.code())
        };
        assert_eq!(find_token(Some(file.clone()), &environment), Ok("from-file".into()));
        assert_eq!(find_token(None, &environment), Ok("from-undrift".into()));
        assert_eq!(
            find_token(None, &env(&[("GITLAB_TOKEN", "from-gitlab")])),
            Ok("from-gitlab".into())
        );
        let job = env(&[("CI_JOB_TOKEN", "never")]);
        assert_eq!(find_token(None, &job), Err(3));
        let failure = ConnectArgs::default().read_token(&job).map(|_| ()).unwrap_err();
        let help = failure.help.unwrap_or_default();
        assert!(help.contains("protected branches") && help.contains("CI_JOB_TOKEN"), "{help}");
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(
            find_token(Some(file), &environment),
            Err(3),
            "a file without a token is not passed over"
        );
    }

    #[test]
    fn a_token_in_a_wrong_form_is_refused_before_it_is_sent() {
        for (token, fault) in [
            ("glpat-aB_3.x=", None),
            ("\"glpat-a\"", Some("quotes")),
            ("'glpat-a'", Some("quotes")),
            ("glpat-a\"", Some("quotes")),
            ("Bearer glpat-a", Some("header")),
            ("PRIVATE-TOKEN: glpat-a", Some("header")),
            ("$GITLAB_TOKEN", Some("filled in")),
            ("<token>", Some("filled in")),
            ("https://bot:glpat-a@gitlab.example.org", Some("address")),
            ("glpat-a glpat-b", Some("more than one word")),
        ] {
            let args = ConnectArgs::default();
            let failure = args.read_token(&env(&[("GITLAB_TOKEN", token)])).err();
            let text = failure.map(|failure| failure.error.unwrap().to_string());
            assert_eq!(text.is_some(), fault.is_some(), "{token}");
            let text = text.unwrap_or_default();
            assert!(
                fault.is_none_or(|fault| text.starts_with("GITLAB_TOKEN ") && text.contains(fault))
            );
            assert!(!text.contains("glpat"), "{text}");
        }
    }

    #[test]
    fn authorities_and_proxy_come_from_options_or_own_variables() {
        let folder = tempfile::tempdir().unwrap();
        let [undrift_ca_path, runner_path] = ["own", "runners"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            path.to_str().unwrap().to_owned()
        });
        let ci_url = ("CI_SERVER_URL", "https://c.example");
        let other_url = ("UNDRIFT_URL", "https://u.example");
        let undrift_ca = ("UNDRIFT_CA_FILE", undrift_ca_path.as_str());
        let runner_ca = ("CI_SERVER_TLS_CA_FILE", runner_path.as_str());
        let proxy = ("UNDRIFT_PROXY", "http://p.example");
        let common_proxy = ("HTTPS_PROXY", "http://common.example");
        for (variables, ca, proxy_url, ignores_proxy) in [
            (vec![ci_url], None, None, false),
            (vec![ci_url, runner_ca], Some("runners"), None, false),
            (vec![ci_url, runner_ca, undrift_ca], Some("own"), None, false),
            (vec![ci_url, other_url, runner_ca], None, None, false),
            (vec![other_url, undrift_ca, proxy], Some("own"), Some("http://p.example"), false),
            (vec![other_url, common_proxy], None, None, true),
            (vec![other_url, common_proxy, proxy], None, Some("http://p.example"), false),
        ] {
            let options = ConnectArgs::default()
                .http_options(&env(&variables), InFlightRange::ADAPTIVE)
                .unwrap();
            let ca_text = options.ca_pem.map(|ca| String::from_utf8(ca).unwrap());
            assert_eq!(ca_text.as_deref(), ca, "{variables:?}");
            assert_eq!(options.proxy.as_deref(), proxy_url, "{variables:?}");
            assert_eq!(options.ignores_proxy, ignores_proxy, "{variables:?}");
        }
        let args = ConnectArgs {
            ca_file: Some(runner_ca.1.into()),
            client_cert: Some(undrift_ca.1.into()),
            proxy: Some("http://a.example".into()),
            ..ConnectArgs::default()
        };
        let options =
            args.http_options(&env(&[undrift_ca, proxy]), InFlightRange::ADAPTIVE).unwrap();
        assert_eq!(options.ca_pem.as_deref(), Some(b"runners".as_slice()));
        assert_eq!(options.proxy.as_deref(), Some("http://a.example"));
        assert_eq!(options.client_cert, Some((b"own".to_vec(), b"own".to_vec())));
        let missing = env(&[("UNDRIFT_CA_FILE", "/nowhere")]);
        let Err(failure) = ConnectArgs::default().http_options(&missing, InFlightRange::ADAPTIVE)
        else {
            panic!("a file that is not there was read")
        };
        assert_eq!(failure.help.as_deref(), Some("UNDRIFT_CA_FILE names this file"));
        let failure = ConnectArgs::default().setup_failure(TransportSetupError::CaFile, &missing);
        assert_eq!(
            failure.help.as_deref(),
            Some(
                "UNDRIFT_CA_FILE names the file `/nowhere`; it must have certificates that start \
                 with `-----BEGIN CERTIFICATE-----`"
            )
        );
        let failure = ConnectArgs::default().setup_failure(TransportSetupError::Token, &missing);
        assert_eq!(failure.help, None);
    }

    #[test]
    fn the_manifests_only_confirm_the_address() {
        let service = ServiceAddress::parse("https://a.example/git", false).unwrap();
        for (declared, is_accepted) in [
            (None, true),
            (Some("https://a.example/git/"), true),
            (Some("https://A.example:443/git/api/v4"), true),
            (Some("https://a.example"), false),
            (Some("http://a.example/git"), false),
            (Some("https://evil.example/git"), false),
        ] {
            let mut config = Config::default();
            config.service.url = declared.map(str::to_owned);
            assert_eq!(
                check_declared_service(&service, &config).is_ok(),
                is_accepted,
                "{declared:?}"
            );
        }
    }
}
