//! Headers on the wire.

