//! The sandbox as a separate program: for tests that need a process, and for trials without
//! undrift. Users run `undrift sandbox` instead.
//!
//! ```text
//! undrift-sandbox [--data FILE] [--seed FILE.json] [--release 18.9] [--tier ultimate]
//! ```
//!
//! The program prints the address of the sandbox, and serves until it is stopped. The environment
//! variable `UNDRIFT_SANDBOX_TOKEN` sets the token of `root`. Without the variable, the program
//! generates and prints a token.

use std::{env, fs, process::ExitCode};

use undrift_sandbox::{DataLocation, SandboxConfig, start};

type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a program of its own")]
            {
                eprintln!("error: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Error> {
    let mut config =
        SandboxConfig { token: env::var("UNDRIFT_SANDBOX_TOKEN").ok(), ..SandboxConfig::default() };
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("`{name}` needs a value"))?;
        match name.as_str() {
            "--data" => config.data = DataLocation::File(value.into()),
            "--seed" => config.seed = Some(serde_json::from_str(&fs::read_to_string(value)?)?),
            "--release" => config.release = Some(value.parse()?),
            "--tier" => config.tier = Some(serde_json::from_value(value.into())?),
            _ => return Err(format!("unknown option `{name}`").into()),
        }
    }
    let sandbox = start(config).await?;
    #[expect(clippy::print_stdout, reason = "a program of its own")]
    {
        println!("listening on {}", sandbox.url());
        if sandbox.is_token_generated() {
            println!("token of root: {}", sandbox.token());
        }
    }
    tokio::signal::ctrl_c().await?;
    sandbox.stop().await;
    Ok(())
}
