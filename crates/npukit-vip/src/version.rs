//! ovxlib versions, and the points of its history where the rules changed.

use core::fmt;
use core::str::FromStr;
use serde::{Serialize, Serializer};

/// An ovxlib version: major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OvxlibVersion(pub u16, pub u16, pub u16);

impl OvxlibVersion {
    /// The oldest version in the public history of TIM-VX.
    pub const OLDEST: OvxlibVersion = OvxlibVersion(1, 1, 28);
    /// Rows are matched with the wildcard for an absent quantisation from here on; before, byte by byte (3c59694).
    pub const WILDCARD: OvxlibVersion = OvxlibVersion(1, 1, 32);
    /// I8 asymmetric tensors become U8 from here on (`vsi_nn_graph_optimization.c`, 3c59694).
    pub const REWRITE: OvxlibVersion = OvxlibVersion(1, 1, 32);
    /// Op checks can be switched off by `VSI_NN_ENABLE_OPCHECK` in every version after 1.1.28.
    pub const SWITCHABLE_AFTER: OvxlibVersion = OvxlibVersion(1, 1, 28);
    /// The last version whose fully-connected check reads a table.
    pub const LAST_WITH_FCL_TABLE: OvxlibVersion = OvxlibVersion(1, 1, 88);
    /// FCL_RELU lost its check here, which makes the FCL table unreachable; the affine check took in U4, I4 and I16
    /// (2d9e614).
    pub const FCL_TABLE_UNREAD: OvxlibVersion = OvxlibVersion(1, 2, 2);
    /// The newest version whose sources were read.
    pub const NEWEST: OvxlibVersion = OvxlibVersion(1, 2, 22);
}

impl fmt::Display for OvxlibVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Serialize for OvxlibVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is no version of the form `1.2.22`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no ovxlib version; write three numbers, such as 1.1.88 or 1.2.22")]
pub struct VersionError(String);

impl FromStr for OvxlibVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let refuse = || VersionError(text.to_owned());
        let mut parts = text.split('.').map(|part| part.parse::<u16>());
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
                Ok(OvxlibVersion(major, minor, patch))
            }
            _ => Err(refuse()),
        }
    }
}

/// How sure something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// Read in the public sources or measured.
    Known,
    /// Concluded from something known, or extended beyond what was read; the report says from what.
    Assumed,
    /// Not known.
    Unknown,
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Certainty::Known => "known",
            Certainty::Assumed => "assumed",
            Certainty::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_by_number_not_by_text() {
        let parse = |text: &str| text.parse::<OvxlibVersion>().unwrap();
        assert!(parse("1.2.2") < parse("1.2.14"));
        assert!(parse("1.1.88") < OvxlibVersion::FCL_TABLE_UNREAD);
        for wrong in ["1.2", "1.2.3.4", "v1.2.3", "", "1.2.70000"] {
            assert!(wrong.parse::<OvxlibVersion>().is_err(), "{wrong}");
        }
    }
}
