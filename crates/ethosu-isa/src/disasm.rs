//! Commands as text.
//!
//! An instruction is one line: offset in bytes, words in hex, the command's name in Arm's headers, and its fields.
//!
//! ```text
//! 0x000024  0001010f           NPU_SET_IFM_REGION           region=1
//! 0x000090  00004010 000017c0  NPU_SET_OFM_BASE0            addr=0x17c0
//! 0x0000e0  ff800118           NPU_SET_OFM_ZERO_POINT       zero_point=65408 or -128
//! ```

use core::fmt;

use crate::command::Command;
use crate::decode::{Instruction, Words};

/// Columns of the longest name, `NPU_SET_RESIZE_X_SCALE_N_M1`.
const NAME_COLUMNS: usize = 27;

impl Command {
    fn write_fields(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut result = Ok(());
        let mut separator = "";
        self.for_each_field(|name, value| {
            if result.is_ok() {
                result = write!(f, "{separator}{name}={value}");
                separator = ", ";
            }
        });
        result
    }

    fn has_fields(&self) -> bool {
        let mut any = false;
        self.for_each_field(|_, _| any = true);
        any
    }
}

impl fmt::Display for Command {
    /// The name and the fields: `NPU_OP_POOL mode=average`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.has_fields() {
            f.write_str(" ")?;
            self.write_fields(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Words {
    /// The words in stream order, in hex.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.payload {
            Some(payload) => write!(f, "{:08x} {payload:08x}", self.control),
            None => write!(f, "{:08x}", self.control),
        }
    }
}

impl fmt::Display for Instruction {
    /// One line of a disassembly, without the line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}  {:08x} ", self.offset, self.words.control)?;
        match self.words.payload {
            Some(payload) => write!(f, "{payload:08x}")?,
            None => write!(f, "{:8}", "")?,
        }
        if self.command.has_fields() {
            write!(f, "  {:NAME_COLUMNS$}  ", self.command.name())?;
            self.command.write_fields(f)
        } else {
            write!(f, "  {}", self.command.name())
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use crate::{Decoder, Product};
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn lines(words: &[u32], product: Product) -> Vec<String> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Decoder::new(&bytes, product).map(|instruction| instruction.unwrap().to_string()).collect()
    }

    #[test]
    fn instructions_show_offset_words_name_and_fields() {
        let old =
            [0x0001_010f, 0x0000_4010, 0x17c0, 0xff80_0118, 0x00ff_4015, 0xffff_fff4, 0x0247_0122, 0x0002];
        let text = "\
0x000000  0001010f           NPU_SET_IFM_REGION           region=1
0x000004  00004010 000017c0  NPU_SET_OFM_BASE0            addr=0x17c0
0x00000c  ff800118           NPU_SET_OFM_ZERO_POINT       zero_point=65408 or -128
0x000010  00ff4015 fffffff4  NPU_SET_OFM_STRIDE_Y         stride=-12
0x000018  02470122           NPU_SET_KERNEL_STRIDE        stride_x=4, stride_y=4, part_kernel_first=yes, dilation_x=1, \
dilation_y=1, decomposition=8x8
0x00001c  00000002           NPU_OP_CONV";
        assert_eq!(lines(&old, Product::U65).join("\n"), text);

        let new = [0x0025_4024, 0x5108_8c32, 0x0800_012c, 0x0300_0124, 0x0002_0005];
        let text = "\
0x000000  00254024 51088c32  NPU_SET_OFM_SCALE            scale=1359514674, shift=37, double_round=0, rounding=double
0x000008  0800012c           NPU_SET_RESIZE_X_OFFSET      offset=-2048
0x00000c  03000124           NPU_SET_ACC_FORMAT           format=int32, input=reset, output_disabled=no, microblock=2x2
0x000010  00020005           NPU_OP_POOL                  mode=reduce-sum";
        assert_eq!(lines(&new, Product::U85).join("\n"), text);
    }
}
