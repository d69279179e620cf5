//! Tests of the client as a whole: against a scripted transport on a clock that stands still, and
//! over loopback sockets.

mod client;
mod http;
mod script;
