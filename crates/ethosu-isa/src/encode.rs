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

#[cfg(test)]
mod tests {
    extern crate std;
    use proptest::prelude::*;
    use std::string::ToString;

    use super::*;
    use crate::command::ROWS;
    use crate::decode::DecodeError;

    /// Words of the command `code` that carry as much of `bits` as it has fields for.
    fn fitted(code: u32, bits: u64, product: Product) -> Result<(Words, Command), DecodeError> {
        let words = |bits: u64| Words {
            control: code | (bits as u32) << 16,
            payload: (code & PAYLOAD_FOLLOWS != 0).then_some((bits >> 16) as u32),
        };
        match words(bits).decode(product) {
            Err(DecodeError::Reserved { bits: extra, .. }) => {
                let words = words(bits & !extra);
                words.decode(product).map(|command| (words, command))
            }
            other => other.map(|command| (words(bits), command)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8192))]
        #[test]
        fn every_command_survives_the_way_there_and_back(
            row in 0..ROWS.len(),
            product in prop::sample::select(&Product::ALL[..]),
            bits in any::<u64>(),
        ) {
            // Codes without a meaning are refused; the test below sees to it that every command is reached.
            let (code, products, name) = ROWS[row];
            if let Ok((words, command)) = fitted(code, bits, product) {
                prop_assert!(command.exists_on(product));
                if products.has(product) {
                    prop_assert_eq!(command.name(), name);
                }
                let again = command.encode(product).unwrap();
                prop_assert_eq!(again.decode(product), Ok(command));
                // A negative stride on U55 is the one thing that two forms mean.
                if !(product == Product::U55 && name.contains("_STRIDE_")) {
                    prop_assert_eq!(again, words);
                }
                for other in Product::ALL.into_iter().filter(|other| !command.exists_on(*other)) {
                    prop_assert!(command.encode(other).is_err());
                }
            }
        }
    }

    #[test]
    fn every_command_can_be_read_on_each_of_its_products() {
        for &(code, products, name) in ROWS {
            for product in Product::ALL.into_iter().filter(|product| products.has(*product)) {
                let (words, command) = fitted(code, 0, product).unwrap();
                assert_eq!((command.name(), u32::from(command.code())), (name, code), "{product}");
                assert!(command.exists_on(product));
                assert_eq!(command.encode(product), Ok(words));
            }
        }
    }

    #[test]
    fn no_two_commands_share_a_code_on_a_product() {
        for product in Product::ALL {
            let mut codes: std::vec::Vec<u32> = ROWS
                .iter()
                .filter(|(_, products, _)| products.has(product))
                .map(|(code, ..)| *code)
                .collect();
            let all = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), all, "{product}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        use crate::{Activation, ActivationFunction, ClipRange, Decomposition, KernelStride};
        let field = |command, field, value| Err(EncodeError::Field { command, field, value });
        assert_eq!(Command::IfmPadTop(128).encode(Product::U85), field("NPU_SET_IFM_PAD_TOP", "pad", 128));
        assert_eq!(Command::BlockDep(4).encode(Product::U55), field("NPU_SET_BLOCKDEP", "blockdep", 4));
        assert!(Command::BlockDep(4).encode(Product::U85).is_ok());
        assert_eq!(
            Command::IfmBase0(1 << 32).encode(Product::U55),
            field("NPU_SET_IFM_BASE0", "addr", 1 << 32)
        );
        assert_eq!(
            Command::IfmBase0(1 << 40).encode(Product::U65),
            field("NPU_SET_IFM_BASE0", "addr", 1 << 40)
        );
        assert!(Command::OfmStrideX(i64::from(i32::MIN)).encode(Product::U55).is_ok());
        assert!(Command::OfmStrideX(i64::from(i32::MIN) - 1).encode(Product::U55).is_err());
        assert!(Command::OfmStrideX(-1 << 39).encode(Product::U65).is_ok());
        assert!(Command::OfmStrideX(1 << 39).encode(Product::U65).is_err());
        assert_eq!(
            Command::ResizeXOffset(2048).encode(Product::U85),
            field("NPU_SET_RESIZE_X_OFFSET", "offset", 2048)
        );
        let table = |n| {
            Command::Activation(Activation { function: ActivationFunction::Table(n), clip: ClipRange::Ofm })
        };
        assert_eq!(table(7).encode(Product::U55).unwrap().control, 0x0017_0125);
        for n in [8, 9, 15, 16, 240, 255] {
            assert!(table(n).encode(Product::U55).is_err(), "table {n}");
        }
        let stride = |stride_x, dilation_y| {
            Command::KernelStride(KernelStride {
                stride_x,
                stride_y: 1,
                part_kernel_first: false,
                dilation_x: 1,
                dilation_y,
                decomposition: Decomposition::D8x8,
            })
        };
        assert_eq!(stride(0, 1).encode(Product::U55), field("NPU_SET_KERNEL_STRIDE", "stride_x", 0));
        assert_eq!(stride(5, 1).encode(Product::U55), field("NPU_SET_KERNEL_STRIDE", "stride_x", 5));
        assert_eq!(stride(4, 3).encode(Product::U55), field("NPU_SET_KERNEL_STRIDE", "dilation_y", 3));
        let error = Command::IfmIbEnd(2).encode(Product::U85).unwrap_err();
        assert_eq!(error.to_string(), "NPU_SET_IFM_IB_END in this form doesn't exist on ethos-u85");
    }
}
