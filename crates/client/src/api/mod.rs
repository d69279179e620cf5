//! The client of the service: the one place that sends requests.
//!
//! ```text
//! Request<Read>  --> ReadClient  --+
//!                                  +--> gate, budget, retry --> Transport --> the service
//! Request<Write> --> WriteClient --+
//! ```
//!
//! [`ReadClient`] accepts only requests that read; planning gets nothing else. [`WriteClient`]
//! wraps one and also sends writes; only `apply`, `comment` and `call` make one. All clones of a
//! client share one gate ([`limit`]), so a wait that the service asks for holds for all of them.
//! They also share the number of requests in flight ([`pace`]), the budget ([`budget`]), one count
//! of calls, and one end: after a 401 nothing more is sent.
//!
//! For every request:
//!
//! - It goes to the origin in [`ServiceAddress`], and to no other. Redirects and links are not followed.
//! - It is sent again only if [`retry`]'s table allows it. A create whose answer was lost is not:
//!   its error holds the time since when it is [in doubt](ApiError::in_doubt_since), and the caller
//!   reads again.
//! - A read succeeds only with a complete JSON document and a status of success. Anything else is
//!   an error. No error means absence, except a 404 that states it.
//! - Secrets enter a body when it is sent, and are kept nowhere else. No error, log or `Debug` text
//!   contains a body.

pub mod budget;
mod call;
mod client;
mod clock;
mod error;
mod judge;
pub mod limit;
mod message;
pub mod pace;
mod parse;
mod quote;
pub mod retry;
mod service;
mod transport;
mod write;

#[cfg(test)]
mod tests;

pub use call::Freshness;
pub use client::{ApiResponse, CallCount, ClientSettings, Counts, ReadClient};
pub use clock::{Clock, Random, SystemClock, SystemRandom};
pub use error::ApiError;
pub use message::success_message;
pub use pace::InFlight;
pub use service::{ServiceAddress, ServiceAddressError};
pub use transport::{
    BodyError, EncodedBody, FormPart, HttpOptions, HttpTransport, RequestPhase, SendError,
    SetupError, Transport, TransportError, WRITE_TIMEOUT, WireRequest, WireResponse,
};
pub use write::WriteClient;

/// The result of asking the service.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;
