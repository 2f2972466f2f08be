//! Register files: every register keeps its value until it is set again.

use crate::stop::Cause;

/// A register that may not have been set yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Register<T> {
    name: &'static str,
    value: Option<T>,
}

impl<T: Copy> Register<T> {
    /// Not set.
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, value: None }
    }

    /// Sets it.
    pub(super) fn set(&mut self, value: T) {
        self.value = Some(value);
    }

    /// The value.
    ///
    /// # Errors
    /// [`Cause::NeverSet`]: what an unset register holds is not defined, so nothing may depend on it.
    pub(super) fn get(&self) -> Result<T, Cause> {
        self.value.ok_or(Cause::NeverSet { register: self.name })
    }

    /// The value, if there is one: for what only schedules and can't change a result.
    pub(super) fn peek(&self) -> Option<T> {
        self.value
    }
}

/// First byte and length of a stream; nothing where a register isn't set.
pub(super) fn stream(base: &Register<u64>, length: &Register<u32>) -> (u64, u32) {
    base.peek().zip(length.peek()).unwrap_or((0, 0))
}

/// Makes a register file: fields, and a function that sets the one a command names.
macro_rules! registers {
    ($($field:ident: $type:ty = $command:ident, $name:literal;)*) => {
        /// All registers that a command can set.
        #[derive(Debug, Clone)]
        pub(super) struct Registers {
            $(pub(super) $field: Register<$type>,)*
        }

        impl Registers {
            /// No register set.
            pub(super) fn new() -> Self {
                Self { $($field: Register::new($name),)* }
            }

            /// Sets the register that `command` names; false if it names none.
            pub(super) fn apply(&mut self, command: &Command) -> bool {
                match *command {
                    $(Command::$command(value) => self.$field.set(value),)*
                    _ => return false,
                }
                true
            }
        }
    };
}

pub(super) use registers;
