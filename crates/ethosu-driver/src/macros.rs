//! Messages through `log` or `defmt`, and functions that are constant except under the model checker.

/// A function that is `const`, except under loom, whose atomics can't be made at compile time.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*
        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}

/// A message with one value that implements `Display`.
macro_rules! message {
    ($level:ident, $text:literal, $value:expr) => {{
        #[cfg(feature = "log")]
        log::$level!(concat!("ethos-u: ", $text), $value);
        #[cfg(feature = "defmt")]
        defmt::$level!($text, defmt::Display2Format(&$value));
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        let _ = &$value;
    }};
}
