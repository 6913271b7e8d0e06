//! ikev2
#![forbid(unsafe_code)]
