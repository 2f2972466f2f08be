//! How an operation is carried out: what its registers say that changes no value but decides how long it takes.

use ethosu_isa::{Block, Command};

use crate::map::Extent;

/// Which activation the output stage applies, as far as that costs time (U55, U65).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Activation {
    /// None, or a clamp to the whole range of the type.
    #[default]
    None,
    /// A clamp that is narrower than the type.
    Clamp,
    /// A table, or one of the built-in functions.
    Table,
}

/// What the waits before an operation allow to be still under way; `None` where nothing is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Transfers (NPU_OP_DMA_WAIT).
    pub transfers: Option<u8>,
    /// Operations (NPU_OP_KERNEL_WAIT).
    pub operations: Option<u8>,
}

impl Waits {
    /// Takes note of a command if it is a wait. Of several the strictest counts.
    pub(crate) fn apply(&mut self, command: &Command) {
        let (wait, outstanding) = match *command {
            Command::DmaWait { outstanding } => (&mut self.transfers, outstanding),
            Command::KernelWait { outstanding } => (&mut self.operations, outstanding),
            _ => return,
        };
        *wait = Some(wait.map_or(outstanding, |before| before.min(outstanding)));
    }
}

/// The registers that schedule an operation. They mean nothing for a transfer, apart from the waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Schedule {
    /// The block of the output that is computed at once (OFM_BLK_*); `None` where no command has set it.
    pub block: Option<Extent>,
    /// The micro-block of the output (ACC_FORMAT of the U85); `None` on U55 and U65, where the accelerator decides.
    pub microblock: Option<Block>,
    /// Accumulators have 40 or 48 bits, not 32.
    pub wide_accumulators: bool,
    /// Weights are ordered, and inputs walked, part kernel first.
    pub part_kernel_first: bool,
    /// Two of every four weights are left out (U85).
    pub sparse_weights: bool,
    /// What the output stage applies.
    pub activation: Activation,
    /// First byte and length of each stream of weights (WEIGHT_*, WEIGHT1_* ...), also of one that holds no channel's.
    pub weight_streams: [(u64, u32); 4],
    /// First byte and length of each stream of biases and scales (SCALE_*, SCALE1_*).
    pub scale_streams: [(u64, u32); 2],
    /// Banks of shared RAM where the input's buffer ends, the second input's begins and the accumulators begin (U55, U65).
    pub banks: [Option<u8>; 3],
    /// How many blocks of the operation before may still be under way (BLOCKDEP).
    pub block_dependency: Option<u8>,
    /// Both cores share the operation (PARALLEL_MODE of the U65).
    pub parallel: bool,
    /// What has to be over before it starts.
    pub waits: Waits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_wait_counts() {
        let mut waits = Waits::default();
        for command in [
            Command::KernelWait { outstanding: 1 },
            Command::DmaWait { outstanding: 2 },
            Command::KernelWait { outstanding: 0 },
            Command::KernelWait { outstanding: 3 },
        ] {
            waits.apply(&command);
        }
        assert_eq!(waits, Waits { transfers: Some(2), operations: Some(0) });
    }
}
