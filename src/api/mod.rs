//! The client of the service: the one place that sends requests.
//!
//! ```text
//! Request<Read>  --> ReadClient  --+
//!                                  +--> gate, budget, retry --> Transport --> the service
//! Request<Write> --> WriteClient --+
//! ```
//!
//! [`ReadClient`] accepts only requests that read; it is all that planning gets. [`WriteClient`]
//! wraps one and sends the others; only `apply`, `comment` and `call` make one. All clones of a
//! client share one gate ([`limit`]), so that a wait which the service asks for holds for all, as many are in
//! flight as it takes well ([`pace`]) and no more are sent than it answers ([`budget`]), one count of
//! calls, and one end: after a 401 nothing more is sent.
//!
//! What holds for every request:
//!
//! - It goes to the origin that [`Service`] names, and to no other. Redirects are not followed,
//!   links are not taken at their word.
//! - It is sent again only where [`retry`]'s table allows. A create whose answer was lost is not:
//!   its error says since when it is [in doubt](ApiError::in_doubt_since), and the caller looks.
//! - A read is an answer only if it is a complete JSON document of a status that means success.
//!   Anything else is an error, and no error means absence but a 404 that says so.
//! - Secrets enter a body when it is sent, and leave with it. No error, log or `Debug` text holds a
//!   body.

pub mod budget;
mod call;
mod client;
mod clock;
mod error;
pub mod limit;
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
pub use client::{Answer, Count, ReadClient, Settings};
pub use clock::{Clock, Random, SystemClock, SystemRandom};
pub use error::{ApiError, said};
pub use pace::InFlight;
pub use service::{Service, ServiceError};
pub use transport::{
    BodyError, Content, Failure, HttpOptions, HttpTransport, Part, Phase, SendError, SetupError,
    Transport, WRITE_TIMEOUT, WireRequest, WireResponse,
};
pub use write::WriteClient;
