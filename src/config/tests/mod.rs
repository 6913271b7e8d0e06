//! Tests of the whole way from text to settings and diagnostics.

mod mistakes;
mod support;
