//! babel
#![forbid(unsafe_code)]
