//! The command `harp`; all of it is in [`harp_runtime::cli`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    harp_runtime::cli::main()
}
