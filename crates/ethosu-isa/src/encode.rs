//! From commands to words.

use core::fmt;

use crate::command::{Command, PAYLOAD_FOLLOWS};
use crate::decode::Words;
use crate::operand::Fault;
use crate::product::Product;

impl Command {
    /// The words that stand for this command in a stream for `product`. Reading them gives the command back.
    ///
    /// ```
    /// use ethosu_isa::{Command, Product};
    /// let words = Command::OfmStrideY(-12).encode(Product::U65)?;
    /// assert_eq!((words.control, words.payload), (0x00FF_4015, Some(0xFFFF_FFF4)));
    /// # Ok::<(), ethosu_isa::EncodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`EncodeError`] where the product doesn't have the command, or a value doesn't fit its field there.
    pub fn encode(&self, product: Product) -> Result<Words, EncodeError> {
        let command = self.name();
        if !self.exists_on(product) {
            return Err(EncodeError::NotOnProduct { command, product });
        }
        let bits = self.write(product).map_err(|fault| match fault {
            Fault::Field { field, value } => EncodeError::Field { command, field, value },
            // Writers only ever complain about a field; a reserved bit can't come from one.
            Fault::Reserved(value) => EncodeError::Field { command, field: "reserved", value },
        })?;
        let code = u32::from(self.code());
        Ok(Words {
            control: code | (bits as u32) << 16,
            payload: (code & PAYLOAD_FOLLOWS != 0).then_some((bits >> 16) as u32),
        })
    }
}

/// Why a command has no words on a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Only other products have the command in this form.
    NotOnProduct {
        /// Its name.
        command: &'static str,
        /// The product asked for.
        product: Product,
    },
    /// A value doesn't fit its field.
    Field {
        /// The command's name.
        command: &'static str,
        /// The field.
        field: &'static str,
        /// The value; a negative one as its two's complement.
        value: u64,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EncodeError::NotOnProduct { command, product } => {
                write!(f, "{command} in this form doesn't exist on {product}")
            }
            EncodeError::Field { command, field, value } => {
                write!(f, "{command} field {field} can't hold {value:#x}")
            }
        }
    }
}

impl core::error::Error for EncodeError {}
