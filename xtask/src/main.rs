//! The repository commands.
fn main() {}
