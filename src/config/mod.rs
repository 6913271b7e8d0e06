//! Configuration: the node file and the registry, from text to [`Settings`].

pub mod key;
pub mod settings;

pub use settings::{NodeName, Settings};
