//! The viamesh daemon and its commands.
fn main() {}
