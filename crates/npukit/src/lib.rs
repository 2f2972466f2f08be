//! The npukit library facade.
