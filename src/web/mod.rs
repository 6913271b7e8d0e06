//! What the daemon serves over HTTP: metrics for collectors, and a page for people. Both are off unless the node file
//! names a listener, and then reachable from this host alone.
//!
//! Nothing can be changed here: only GET and HEAD are answered. Everything is asked of the control loop as a command
//! would ask it, so the page shows the same reports as `--json`.

mod answer;
mod query;
mod sampler;
mod serve;
#[cfg(test)]
mod tests;

pub use serve::Web;
