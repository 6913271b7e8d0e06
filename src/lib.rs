//! viamesh
