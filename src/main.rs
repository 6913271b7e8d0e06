//! The viamesh daemon and its commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    viamesh::cli::main()
}
