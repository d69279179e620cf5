//! Decides which service a run uses, and with which token.
//!
//! Neither the address nor the token ever comes from a manifest, because the author of a manifest
//! must not be able to send the token elsewhere. The token never comes from the command line, which
//! everybody on the machine can see.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{CommandError, Environment, Exit, Output, RunContext, input};
use crate::{
    api::{
        ClientSettings, HttpOptions, HttpTransport, InFlight, ReadClient, ServiceAddress,
        SetupError,
    },
    diagnostic::Diagnostics,
    manifest::{Config, LoadEnvironment, config},
    secret::{Secret, Secrets, judge::mask_url},
};

/// The variables for the address, in order; `--url` comes before them.
const URL_NAMES: [&str; 3] = ["UNDRIFT_URL", "GITLAB_URL", "CI_SERVER_URL"];
/// The variables for the token, in order; `--token-file` comes before them.
const TOKEN_NAMES: [&str; 2] = ["UNDRIFT_TOKEN", "GITLAB_TOKEN"];

/// The variables in which other programs find a proxy. undrift only mentions them in messages.
const PROXY_NAMES: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

/// The maximum size of a file with a token, and of one with certificates, in bytes.
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
    /// File of the certificate (PEM) that the service asks clients for
    #[arg(long, value_name = "FILE")]
    pub(super) client_cert: Option<PathBuf>,
    /// File of its private key, if the certificate file does not contain it
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
    /// The service, if it was found before.
    #[arg(skip)]
    pub(super) found: Option<Endpoint>,
}

/// A service with its token.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// The address.
    pub(super) service: ServiceAddress,
    /// The token.
    pub(super) token: Secret,
    /// The file that the token was read from, if any.
    pub(super) token_file: Option<PathBuf>,
    /// The environment for looking up secrets.
    pub(super) environment: Environment,
    /// True if it runs inside this process. Its token is an administrator's, made by undrift itself.
    pub(super) is_embedded: bool,
}

impl Endpoint {
    /// `secrets` after a change: they refuse the token as the value of a secret.
    pub(super) fn exclude_token(&self, secrets: Secrets) -> Secrets {
        secrets.with_service_token(self.token.clone(), self.token_file.as_deref())
    }

    /// The secrets that a command line may name.
    pub(super) fn secrets(&self) -> Secrets {
        self.exclude_token(Secrets::of_command_line(self.environment.clone()))
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
    ) -> Result<Endpoint, CommandError> {
        if let Some(found) = &self.found {
            return Ok(found.clone());
        }
        #[cfg(feature = "sandbox")]
        if let Some(file) = &self.sandbox {
            return super::embedded::start(file, root, cx).await;
        }
        let service = self.service_address(&cx.env)?;
        check_declared_service(&service, config)?;
        Ok(Endpoint {
            service,
            token: self.token(&cx.env)?,
            token_file: self.token_file.clone(),
            environment: cx.env.clone(),
            is_embedded: false,
        })
    }

    /// Finds the service for a command without manifests, by the configuration at `path`, or else in
    /// `undrift.yaml`. Reports which sandbox is used if its file was not given, and the collections
    /// that it only knows from descriptions.
    ///
    /// # Errors
    /// If there is no service, or the configuration is wrong.
    pub(super) async fn find_endpoint_and_config(
        &self,
        path: Option<&Path>,
        cx: &RunContext,
    ) -> Result<(Endpoint, Config), CommandError> {
        let mut diagnostics = Diagnostics::default();
        let (root, config) = match path {
            Some(path) => (
                PathBuf::from("."),
                config::read(path, &path.to_string_lossy(), None, &mut diagnostics),
            ),
            None => config::find(".".as_ref(), &LoadEnvironment::of_process(), &mut diagnostics),
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
        self.url.is_some() || env.first_of(&URL_NAMES).is_some()
    }

    /// The name of the option or variable with the address, and the address.
    pub(super) fn named_address<'e>(&'e self, env: &'e Environment) -> Option<(&'e str, &'e str)> {
        self.url.as_deref().map(|url| ("--url", url)).or_else(|| env.first_of(&URL_NAMES))
    }

    /// The address.
    fn service_address(&self, env: &Environment) -> Result<ServiceAddress, CommandError> {
        let Some((name, url)) = self.named_address(env) else {
            let failure = CommandError::usage("no service address given");
            return Err(failure.help("pass `--url` or set UNDRIFT_URL, or try `--sandbox`"));
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

    /// The token.
    fn token(&self, env: &Environment) -> Result<Secret, CommandError> {
        let help = "set UNDRIFT_TOKEN or pass `--token-file`; apply needs the scope `api`, plan only `read_api`";
        if let Some(path) = &self.token_file {
            let text = input::read_file(path, MAX_TOKEN_BYTES)?;
            let token = String::from_utf8(text)
                .ok()
                .map(|text| text.trim().to_owned())
                .filter(|token| !token.is_empty());
            return token.map(Secret::new).ok_or_else(|| {
                CommandError::usage(format!("`{}` holds no token", path.display())).help(help)
            });
        }
        let token = env.first_of(&TOKEN_NAMES).map(|(_, token)| Secret::new(token.trim()));
        token.ok_or_else(|| CommandError::usage("no token given").help(help))
    }

    /// The network settings for reaching the service.
    ///
    /// # Errors
    /// If a file of certificates cannot be read.
    fn http_options(
        &self,
        env: &Environment,
        in_flight: InFlight,
    ) -> Result<HttpOptions, CommandError> {
        let ca = self.authorities_file(env).map(|(name, path)| {
            let certificates = read_certificates(path);
            certificates.map_err(|failure| failure.help(format!("{name} names this file")))
        });
        let ca = ca.transpose()?;
        let identity = match &self.client_cert {
            Some(path) => {
                let key = self.client_key.as_ref().unwrap_or(path);
                Some((read_certificates(path)?, read_certificates(key)?))
            }
            None => None,
        };
        let proxy = self.proxy.as_deref().or_else(|| env.get("UNDRIFT_PROXY"));
        Ok(HttpOptions {
            ca_pem: ca,
            identity,
            ignores_proxy: proxy.is_none() && env.first_of(&PROXY_NAMES).is_some(),
            proxy: proxy.map(str::to_owned),
            max_in_flight: in_flight.max(),
        })
    }

    /// The option or the variable that names the file of certificate authorities, and the file.
    fn authorities_file<'e>(&'e self, env: &'e Environment) -> Option<(&'e str, &'e Path)> {
        if let Some(path) = &self.ca_file {
            return Some(("`--ca-file`", path));
        }
        let is_ci_address =
            self.named_address(env).is_some_and(|(name, _)| name == "CI_SERVER_URL");
        let names = ["UNDRIFT_CA_FILE", "CI_SERVER_TLS_CA_FILE"];
        let (name, path) = env.first_of(&names[..if is_ci_address { 2 } else { 1 }])?;
        Some((name, Path::new(path)))
    }

    /// The failure if the client cannot be created; it names the file of certificates if that is wrong.
    fn setup_failure(&self, error: SetupError, env: &Environment) -> CommandError {
        let file = (error == SetupError::Authorities).then(|| self.authorities_file(env)).flatten();
        let failure = CommandError::new(Exit::Usage, error);
        let Some((name, path)) = file else { return failure };
        failure.help(format!("{name} names the file: `{}`", path.display()))
    }

    /// How many requests may be in flight.
    pub(super) fn in_flight(&self, config: &Config) -> InFlight {
        let fixed_number = self.concurrency.or(config.concurrency);
        fixed_number.map_or(InFlight::ADAPTING, |number| InFlight::fixed(number.into()))
    }

    /// A client of the service at `endpoint`. No output shows `secrets` from now on.
    ///
    /// # Errors
    /// If the token, a certificate or the proxy is not valid.
    pub(super) fn client(
        &self,
        endpoint: &Endpoint,
        config: &Config,
        secrets: Arc<Secrets>,
        output: &Output,
    ) -> Result<ReadClient, CommandError> {
        output.redactor.set_secrets(Arc::clone(&secrets));
        let in_flight = self.in_flight(config);
        // Requests to the embedded service use no proxy.
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

fn read_certificates(path: &Path) -> Result<Vec<u8>, CommandError> {
    input::read_file(path, MAX_CERTIFICATE_BYTES)
}

/// Refuses a service other than the one in `undrift.yaml`.
fn check_declared_service(service: &ServiceAddress, config: &Config) -> Result<(), CommandError> {
    let Some(declared) = &config.service.url else { return Ok(()) };
    // Plain http is allowed here: that check is only for the address in use.
    match ServiceAddress::parse(declared, true) {
        Ok(declared) if declared == *service => Ok(()),
        _ => {
            let failure = CommandError::usage(format!(
                "these manifests are for `{}`, not for `{service}`",
                mask_url(declared)
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
    fn the_address_comes_from_the_first_place_that_has_one() {
        let all = [
            ("UNDRIFT_URL", "https://u.example"),
            ("GITLAB_URL", "https://g.example"),
            ("CI_SERVER_URL", "https://c.example"),
        ];
        let found = |url: Option<&str>, env: Environment| {
            let args = ConnectArgs { url: url.map(str::to_owned), ..ConnectArgs::default() };
            args.service_address(&env)
                .map(|service| service.to_string())
                .map_err(|failure| failure.exit.code())
        };
        assert_eq!(
            found(Some("https://a.example/api/v4"), env(&all)),
            Ok("https://a.example".into())
        );
        assert_eq!(found(None, env(&all)), Ok("https://u.example".into()));
        assert_eq!(found(None, env(&all[1..])), Ok("https://g.example".into()));
        assert_eq!(found(None, env(&all[2..])), Ok("https://c.example".into()));
        assert_eq!(
            found(None, env(&[("UNDRIFT_URL", ""), all[2]])),
            Ok("https://c.example".into()),
            "empty is not set"
        );
        assert_eq!(found(None, env(&[])), Err(3));
        assert_eq!(found(Some("http://a.example"), env(&[])), Err(3), "plain http");
    }

    #[test]
    fn the_token_comes_from_the_file_or_the_first_name_that_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "from-file\n").unwrap();
        let all = env(&[
            ("UNDRIFT_TOKEN", "from-undrift"),
            ("GITLAB_TOKEN", "from-gitlab"),
            ("CI_JOB_TOKEN", "never"),
        ]);
        let found = |token_file: Option<PathBuf>, env: &Environment| {
            let args = ConnectArgs { token_file, ..ConnectArgs::default() };
            args.token(env)
                .map(|token| token.expose().to_owned())
                .map_err(|failure| failure.exit.code())
        };
        assert_eq!(found(Some(file.clone()), &all), Ok("from-file".into()));
        assert_eq!(found(None, &all), Ok("from-undrift".into()));
        assert_eq!(found(None, &env(&[("GITLAB_TOKEN", "from-gitlab")])), Ok("from-gitlab".into()));
        assert_eq!(found(None, &env(&[("CI_JOB_TOKEN", "never")])), Err(3));
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(found(Some(file), &all), Err(3), "a file without a token is not passed over");
    }

    #[test]
    fn authorities_and_proxy_come_from_options_or_variables_named_on_purpose() {
        let folder = tempfile::tempdir().unwrap();
        let [own, runners] = ["own", "runners"].map(|name| {
            let path = folder.path().join(name);
            std::fs::write(&path, name).unwrap();
            path.to_str().unwrap().to_owned()
        });
        let url = ("CI_SERVER_URL", "https://c.example");
        let other = ("UNDRIFT_URL", "https://u.example");
        let own = ("UNDRIFT_CA_FILE", own.as_str());
        let runners = ("CI_SERVER_TLS_CA_FILE", runners.as_str());
        let proxy = ("UNDRIFT_PROXY", "http://p.example");
        let common = ("HTTPS_PROXY", "http://common.example");
        for (variables, ca, named, ignores) in [
            (vec![url], None, None, false),
            (vec![url, runners], Some("runners"), None, false),
            (vec![url, runners, own], Some("own"), None, false),
            (vec![url, other, runners], None, None, false),
            (vec![other, own, proxy], Some("own"), Some("http://p.example"), false),
            (vec![other, common], None, None, true),
            (vec![other, common, proxy], None, Some("http://p.example"), false),
        ] {
            let options =
                ConnectArgs::default().http_options(&env(&variables), InFlight::ADAPTING).unwrap();
            let found = options.ca_pem.map(|ca| String::from_utf8(ca).unwrap());
            assert_eq!(found.as_deref(), ca, "{variables:?}");
            assert_eq!(options.proxy.as_deref(), named, "{variables:?}");
            assert_eq!(options.ignores_proxy, ignores, "{variables:?}");
        }
        let args = ConnectArgs {
            ca_file: Some(runners.1.into()),
            client_cert: Some(own.1.into()),
            proxy: Some("http://a.example".into()),
            ..ConnectArgs::default()
        };
        let options = args.http_options(&env(&[own, proxy]), InFlight::ADAPTING).unwrap();
        assert_eq!(options.ca_pem.as_deref(), Some(b"runners".as_slice()));
        assert_eq!(options.proxy.as_deref(), Some("http://a.example"));
        assert_eq!(options.identity, Some((b"own".to_vec(), b"own".to_vec())));
        let missing = env(&[("UNDRIFT_CA_FILE", "/nowhere")]);
        let Err(failure) = ConnectArgs::default().http_options(&missing, InFlight::ADAPTING) else {
            panic!("a file that is not there was read")
        };
        assert_eq!(failure.help.as_deref(), Some("UNDRIFT_CA_FILE names this file"));
        let failure = ConnectArgs::default().setup_failure(SetupError::Authorities, &missing);
        assert_eq!(failure.help.as_deref(), Some("UNDRIFT_CA_FILE names the file: `/nowhere`"));
        let failure = ConnectArgs::default().setup_failure(SetupError::Token, &missing);
        assert_eq!(failure.help, None);
    }

    #[test]
    fn the_manifests_only_confirm_the_address() {
        let service = ServiceAddress::parse("https://a.example/git", false).unwrap();
        for (declared, fits) in [
            (None, true),
            (Some("https://a.example/git/"), true),
            (Some("https://A.example:443/git/api/v4"), true),
            (Some("https://a.example"), false),
            (Some("http://a.example/git"), false),
            (Some("https://evil.example/git"), false),
        ] {
            let mut config = Config::default();
            config.service.url = declared.map(str::to_owned);
            assert_eq!(check_declared_service(&service, &config).is_ok(), fits, "{declared:?}");
        }
    }
}
