//! The command `harp` as a binary of this package: cargo builds the binaries of a package, and of
//! no other, before it runs the package's tests, and tells them where they are.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    harp_runtime::cli::main()
}
