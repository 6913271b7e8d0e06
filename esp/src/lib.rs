//! esp
#![forbid(unsafe_code)]
