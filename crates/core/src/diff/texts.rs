//! The texts of problems. The build makes these constants from `problems.yaml`.

pub(crate) use undrift_model::{placeholders, text::PlaceholderValues};

include!(concat!(env!("OUT_DIR"), "/tables/diff/problems.rs"));

/// The code, the message and the help of a problem.
pub(crate) type ProblemTexts = [&'static str; 3];
