//! srv6
#![forbid(unsafe_code)]
