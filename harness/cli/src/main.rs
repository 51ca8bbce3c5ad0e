//! The program: all of it is in the library, which tests of others use as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    sidecert::main()
}
