//! Real daemons in network namespaces.
