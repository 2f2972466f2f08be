//! Arm's Vela compiler as a tool.
