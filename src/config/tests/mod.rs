//! Tests of the whole way from text to settings and diagnostics.

mod checks;
mod defaults;
mod examples;
mod hostile;
mod ike;
mod mistakes;
mod paths;
mod ranet;
mod settings;
mod shared;
mod support;
