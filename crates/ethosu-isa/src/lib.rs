//! The Ethos-U command language.
