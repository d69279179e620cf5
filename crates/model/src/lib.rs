//! The model of undrift: values, secrets, addresses, diagnostics with their locations, the kinds of
//! objects with their fields, and the operations of the service. This crate does no IO, except that
//! [`secret`] reads the files of secrets.
//!
//! | layer | modules | contents |
//! |---|---|---|
//! | vocabulary | [`text`], [`value`], [`secret`], [`field`], [`level`], [`operation`], [`page`], [`release`], [`cause`], [`origin`], [`address`], [`digest`], [`yaml`], [`diagnostic`], [`planted`], [`steps`] | types that every layer uses |
//! | kinds | [`schema`], [`kind`], [`catalogue`] | how a kind is described, and all descriptions |

pub mod address;
pub mod catalogue;
pub mod cause;
pub mod diagnostic;
pub mod digest;
pub mod field;
pub mod kind;
pub mod level;
pub mod operation;
pub mod origin;
pub mod page;
pub mod planted;
pub mod release;
pub mod schema;
pub mod secret;
pub mod steps;
pub mod text;
pub mod value;
pub mod yaml;
