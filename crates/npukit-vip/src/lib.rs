//! VeriSilicon VIP NPUs.
