//! Input from others is read or refused, and never causes a panic: a fixed number of inputs for
//! each reader, mutated from valid ones, with randomness that is the same in each run.
//!
//! `UNDRIFT_INPUTS=200000` sets the number of inputs for each reader, and `UNDRIFT_INPUTS=37..38`
//! runs the one with that number, which a failure names. In addition, a refusal has a place or a
//! name and quotes no secret, work and output are bounded by the size of the input, and accepted
//! input is the same after writing and reading it again.

use std::{env, ops::Range};

use crate::numbers::Numbers;

mod arguments;
mod files;
mod mutate;
mod service;

/// A secret that must not appear in any text.
const CANARY: &str = "CANARY-0nly-4-tests";

/// Prints the number of the input if a reader panics.
struct Input<'n>(&'n str, u64);

impl Drop for Input<'_> {
    #[expect(clippy::print_stderr, reason = "it only says what failed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: UNDRIFT_INPUTS={}..{}", self.0, self.1, self.1 + 1);
        }
    }
}

/// Runs `inputs` inputs for one reader, unless the environment sets another number. Returns whether
/// these were all.
fn run_inputs(name: &str, inputs: u64, mut read: impl FnMut(&mut Numbers)) -> bool {
    let (numbers, is_usual) = match env::var("UNDRIFT_INPUTS") {
        Ok(said) => (numbers(&said), false),
        Err(_) => (0..inputs, true),
    };
    for number in numbers {
        let _input = Input(name, number);
        read(&mut Numbers::new(number.wrapping_mul(0x5851_f42d_4c95_7f2d)));
    }
    is_usual
}

/// `COUNT` or `FROM..TO`.
fn numbers(said: &str) -> Range<u64> {
    let (from, to) = said.split_once("..").unwrap_or(("0", said));
    let number = |text: &str| text.parse().expect("UNDRIFT_INPUTS is COUNT or FROM..TO");
    number(from)..number(to)
}
