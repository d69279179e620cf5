//! Tests of the whole client: with a scripted transport and a paused clock, and over loopback
//! sockets.

mod client;
mod http;
mod script;
