//! Configuration: the node file and the registry, from text to [`Settings`].
//!
//! Both files are supersets of ranet's `config.json` and `registry.json`. A run over them goes through these steps,
//! each of which reports what it finds and goes on, so that one run shows every mistake:
//!
//! 1. `yaml`: text to a tree whose values know where they stand. JSON is YAML, so ranet's files need nothing else.
//! 2. `record`: the tree to records (`node_file`, `registry_file`), whose doc comments are the reference manual.
//! 3. `resolve`: records to [`Settings`]: names become nodes, defaults are filled in, and mistakes across fields
//!    and files are found.
//!
//! Everything but [`load::System`] and [`key`] is pure. The parser is `serde-saphyr`, because `serde_yaml` is
//! archived and knows no positions.

mod change_list;
pub mod code;
pub mod credentials;
pub mod diagnostic;
pub mod diff;
mod ike_identity;
pub mod key;
mod listener;
pub mod load;
mod node_file;
pub mod overlay;
mod record;
pub mod redistribution;
pub mod reference;
mod registry_file;
pub mod registry_source;
mod resolve;
mod scalar;
pub mod settings;
pub mod source;
mod stop;
mod suggestion;
#[cfg(test)]
mod tests;
mod yaml;

pub use code::Code;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use load::{Loaded, Request, load};
pub use settings::{NodeName, Settings};
pub(crate) use suggestion::nearest;
