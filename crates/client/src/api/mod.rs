//! The client of the service: the one place that sends requests.
//!
//! ```text
//! Request<Read>  --> ReadClient  --+
//!                                  +--> gate, budget, retry --> Transport --> the service
//! Request<Write> --> WriteClient --+
//! ```
//!
//! [`ReadClient`] accepts only requests that read. Planning has no other client. [`WriteClient`]
//! wraps a [`ReadClient`] and also sends writes. Only `apply`, `comment`, `call` and `selftest`
//! create a [`WriteClient`]. All clones of a client share one gate ([`limit`]), so a pause that the
//! service requests applies to all clones. All clones also share the limit of requests in flight
//! ([`pace`]), the budget ([`budget`]), the count of calls, and the end of the run. After a 401,
//! nothing more is sent.
//!
//! For every request:
//!
//! - The request goes to the origin in [`ServiceAddress`], and to no other. Redirects and links are
//!   not followed.
//! - The request is sent again only if the table in [`retry`] allows it. A create whose response
//!   was lost is not sent again. Its error contains [the time](ApiError::in_doubt_since) when the
//!   lost attempt began, and the caller reads the live state.
//! - A read succeeds only with a success status and a complete JSON document. Anything else is an
//!   error. Only a 404 that names the missing object means absence.
//! - Secrets are added to a body when it is sent, and stored nowhere else. No error, log or `Debug`
//!   text contains a body.

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
pub use client::{ApiResponse, CallCount, CallCounts, ClientSettings, ReadClient};
pub use clock::{Clock, Random, SystemClock, SystemRandom};
pub use error::ApiError;
pub use message::success_message;
pub use pace::InFlightRange;
pub use service::{ServiceAddress, ServiceAddressError};
pub use transport::{
    BodyError, EncodedBody, FormPart, HttpOptions, HttpTransport, RequestPhase, SendError,
    SendErrorKind, Transport, TransportSetupError, WRITE_TIMEOUT, WireRequest, WireResponse,
};
pub use write::WriteClient;

/// The result of a request.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;
