//! The C interface of npukit.
