//! The events that the performance monitor counts.
//!
//! Source: `enum pmu_event` of Arm's core driver 1.0.0, `ethosu55_interface.h` (whose list is the U65's too) and
//! `ethosu85_interface.h`. The union of both is one enumeration here, so that one program serves all products.

use core::fmt;

use crate::product::Product;

macro_rules! events {
    ($($variant:ident $name:literal $number:literal $products:ident,)*) => {
        /// Something that the performance monitor can count.
        ///
        /// An event with a name ending in a digit belongs to one port, sub-core or buffer; without one, to all of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum PmuEvent {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl PmuEvent {
            /// Every event of every product.
            pub const ALL: &[PmuEvent] = &[$(PmuEvent::$variant,)*];

            /// The name in Arm's interface headers, without `PMU_EVENT_`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(PmuEvent::$variant => $name,)*
                }
            }

            /// The number that `product`'s registers take; `None` where it doesn't have the event.
            pub const fn number(self, product: Product) -> Option<u16> {
                let old = matches!(product, Product::U55 | Product::U65);
                let (number, there) = match self {
                    $(PmuEvent::$variant => ($number, events!(@there old $products)),)*
                };
                if there { Some(number) } else { None }
            }
        }
    };
    (@there $old:ident BOTH) => { true };
    (@there $old:ident OLD) => { $old };
    (@there $old:ident U85) => { !$old };
}

// Variant, name, number, products: OLD is U55 and U65. No event has different numbers on two products.
events! {
    NoEvent "NO_EVENT" 0 BOTH,
    Cycle "CYCLE" 17 BOTH,
    NpuIdle "NPU_IDLE" 32 BOTH,
    CcStalledOnBlockdep "CC_STALLED_ON_BLOCKDEP" 33 BOTH,
    CcStalledOnShramReconfig "CC_STALLED_ON_SHRAM_RECONFIG" 34 OLD,
    NpuActive "NPU_ACTIVE" 35 BOTH,
    MacActive "MAC_ACTIVE" 48 BOTH,
    MacActive8bit "MAC_ACTIVE_8BIT" 49 OLD,
    MacActive16bit "MAC_ACTIVE_16BIT" 50 OLD,
    MacDpuActive "MAC_DPU_ACTIVE" 51 BOTH,
    MacStalledByWdAcc "MAC_STALLED_BY_WD_ACC" 52 OLD,
    MacStalledByWd "MAC_STALLED_BY_WD" 53 OLD,
    MacStalledByAcc "MAC_STALLED_BY_ACC" 54 BOTH,
    MacStalledByIb "MAC_STALLED_BY_IB" 55 BOTH,
    MacActive32bit "MAC_ACTIVE_32BIT" 56 OLD,
    MacStalledByIntW "MAC_STALLED_BY_INT_W" 57 OLD,
    MacStalledByIntAcc "MAC_STALLED_BY_INT_ACC" 58 OLD,
    AoActive "AO_ACTIVE" 64 BOTH,
    AoActive8bit "AO_ACTIVE_8BIT" 65 OLD,
    AoActive16bit "AO_ACTIVE_16BIT" 66 OLD,
    AoStalledByOfmpOb "AO_STALLED_BY_OFMP_OB" 67 OLD,
    AoStalledByOfmp "AO_STALLED_BY_OFMP" 68 OLD,
    AoStalledByOb "AO_STALLED_BY_OB" 69 BOTH,
    AoStalledByAccIb "AO_STALLED_BY_ACC_IB" 70 OLD,
    AoStalledByAcc "AO_STALLED_BY_ACC" 71 OLD,
    AoStalledByIb "AO_STALLED_BY_IB" 72 OLD,
    WdActive "WD_ACTIVE" 80 BOTH,
    WdStalled "WD_STALLED" 81 BOTH,
    WdStalledByWs "WD_STALLED_BY_WS" 82 OLD,
    WdStalledByWdBuf "WD_STALLED_BY_WD_BUF" 83 BOTH,
    WdParseActive "WD_PARSE_ACTIVE" 84 OLD,
    WdParseStalled "WD_PARSE_STALLED" 85 OLD,
    WdParseStalledIn "WD_PARSE_STALLED_IN" 86 OLD,
    WdParseStalledOut "WD_PARSE_STALLED_OUT" 87 OLD,
    WdTransWs "WD_TRANS_WS" 88 OLD,
    WdTransWb "WD_TRANS_WB" 89 OLD,
    WdTransDw0 "WD_TRANS_DW0" 90 OLD,
    WdTransDw1 "WD_TRANS_DW1" 91 OLD,
    Axi0RdTransAccepted "AXI0_RD_TRANS_ACCEPTED" 128 OLD,
    Axi0RdTransCompleted "AXI0_RD_TRANS_COMPLETED" 129 OLD,
    Axi0RdDataBeatReceived "AXI0_RD_DATA_BEAT_RECEIVED" 130 OLD,
    Axi0RdTranReqStalled "AXI0_RD_TRAN_REQ_STALLED" 131 OLD,
    Axi0WrTransAccepted "AXI0_WR_TRANS_ACCEPTED" 132 OLD,
    Axi0WrTransCompletedM "AXI0_WR_TRANS_COMPLETED_M" 133 OLD,
    Axi0WrTransCompletedS "AXI0_WR_TRANS_COMPLETED_S" 134 OLD,
    Axi0WrDataBeatWritten "AXI0_WR_DATA_BEAT_WRITTEN" 135 OLD,
    Axi0WrTranReqStalled "AXI0_WR_TRAN_REQ_STALLED" 136 OLD,
    Axi0WrDataBeatStalled "AXI0_WR_DATA_BEAT_STALLED" 137 OLD,
    Axi0EnabledCycles "AXI0_ENABLED_CYCLES" 140 OLD,
    Axi0RdStallLimit "AXI0_RD_STALL_LIMIT" 142 OLD,
    Axi0WrStallLimit "AXI0_WR_STALL_LIMIT" 143 OLD,
    AxiLatencyAny "AXI_LATENCY_ANY" 160 BOTH,
    AxiLatency32 "AXI_LATENCY_32" 161 BOTH,
    AxiLatency64 "AXI_LATENCY_64" 162 BOTH,
    AxiLatency128 "AXI_LATENCY_128" 163 BOTH,
    AxiLatency256 "AXI_LATENCY_256" 164 BOTH,
    AxiLatency512 "AXI_LATENCY_512" 165 BOTH,
    AxiLatency1024 "AXI_LATENCY_1024" 166 BOTH,
    EccDma "ECC_DMA" 176 BOTH,
    EccSb0 "ECC_SB0" 177 OLD,
    Axi1RdTransAccepted "AXI1_RD_TRANS_ACCEPTED" 384 OLD,
    Axi1RdTransCompleted "AXI1_RD_TRANS_COMPLETED" 385 OLD,
    Axi1RdDataBeatReceived "AXI1_RD_DATA_BEAT_RECEIVED" 386 OLD,
    Axi1RdTranReqStalled "AXI1_RD_TRAN_REQ_STALLED" 387 OLD,
    Axi1WrTransAccepted "AXI1_WR_TRANS_ACCEPTED" 388 OLD,
    Axi1WrTransCompletedM "AXI1_WR_TRANS_COMPLETED_M" 389 OLD,
    Axi1WrTransCompletedS "AXI1_WR_TRANS_COMPLETED_S" 390 OLD,
    Axi1WrDataBeatWritten "AXI1_WR_DATA_BEAT_WRITTEN" 391 OLD,
    Axi1WrTranReqStalled "AXI1_WR_TRAN_REQ_STALLED" 392 OLD,
    Axi1WrDataBeatStalled "AXI1_WR_DATA_BEAT_STALLED" 393 OLD,
    Axi1EnabledCycles "AXI1_ENABLED_CYCLES" 396 OLD,
    Axi1RdStallLimit "AXI1_RD_STALL_LIMIT" 398 OLD,
    Axi1WrStallLimit "AXI1_WR_STALL_LIMIT" 399 OLD,
    EccSb1 "ECC_SB1" 433 OLD,
    MacStalledByWOrAcc "MAC_STALLED_BY_W_OR_ACC" 52 U85,
    MacStalledByW "MAC_STALLED_BY_W" 53 U85,
    AoStalledByBsOrOb "AO_STALLED_BY_BS_OR_OB" 67 U85,
    AoStalledByBs "AO_STALLED_BY_BS" 68 U85,
    AoStalledByAbOrCb "AO_STALLED_BY_AB_OR_CB" 70 U85,
    AoStalledByAb "AO_STALLED_BY_AB" 71 U85,
    AoStalledByCb "AO_STALLED_BY_CB" 72 U85,
    WdStalledByWsFc "WD_STALLED_BY_WS_FC" 84 U85,
    WdStalledByWsTc "WD_STALLED_BY_WS_TC" 85 U85,
    WdTransWblk "WD_TRANS_WBLK" 89 U85,
    WdTransWsFc "WD_TRANS_WS_FC" 90 U85,
    WdTransWsTc "WD_TRANS_WS_TC" 91 U85,
    WdStalledByWsSc0 "WD_STALLED_BY_WS_SC0" 96 U85,
    WdStalledByWsSc1 "WD_STALLED_BY_WS_SC1" 97 U85,
    WdStalledByWsSc2 "WD_STALLED_BY_WS_SC2" 98 U85,
    WdStalledByWsSc3 "WD_STALLED_BY_WS_SC3" 99 U85,
    WdParseActiveSc0 "WD_PARSE_ACTIVE_SC0" 100 U85,
    WdParseActiveSc1 "WD_PARSE_ACTIVE_SC1" 101 U85,
    WdParseActiveSc2 "WD_PARSE_ACTIVE_SC2" 102 U85,
    WdParseActiveSc3 "WD_PARSE_ACTIVE_SC3" 103 U85,
    WdParseStallSc0 "WD_PARSE_STALL_SC0" 104 U85,
    WdParseStallSc1 "WD_PARSE_STALL_SC1" 105 U85,
    WdParseStallSc2 "WD_PARSE_STALL_SC2" 106 U85,
    WdParseStallSc3 "WD_PARSE_STALL_SC3" 107 U85,
    WdParseStallInSc0 "WD_PARSE_STALL_IN_SC0" 108 U85,
    WdParseStallInSc1 "WD_PARSE_STALL_IN_SC1" 109 U85,
    WdParseStallInSc2 "WD_PARSE_STALL_IN_SC2" 110 U85,
    WdParseStallInSc3 "WD_PARSE_STALL_IN_SC3" 111 U85,
    WdParseStallOutSc0 "WD_PARSE_STALL_OUT_SC0" 112 U85,
    WdParseStallOutSc1 "WD_PARSE_STALL_OUT_SC1" 113 U85,
    WdParseStallOutSc2 "WD_PARSE_STALL_OUT_SC2" 114 U85,
    WdParseStallOutSc3 "WD_PARSE_STALL_OUT_SC3" 115 U85,
    WdTransWsSc0 "WD_TRANS_WS_SC0" 116 U85,
    WdTransWsSc1 "WD_TRANS_WS_SC1" 117 U85,
    WdTransWsSc2 "WD_TRANS_WS_SC2" 118 U85,
    WdTransWsSc3 "WD_TRANS_WS_SC3" 119 U85,
    WdTransWb0 "WD_TRANS_WB0" 120 U85,
    WdTransWb1 "WD_TRANS_WB1" 121 U85,
    WdTransWb2 "WD_TRANS_WB2" 122 U85,
    WdTransWb3 "WD_TRANS_WB3" 123 U85,
    SramRdTransAccepted "SRAM_RD_TRANS_ACCEPTED" 128 U85,
    SramRdTransCompleted "SRAM_RD_TRANS_COMPLETED" 129 U85,
    SramRdDataBeatReceived "SRAM_RD_DATA_BEAT_RECEIVED" 130 U85,
    SramRdTranReqStalled "SRAM_RD_TRAN_REQ_STALLED" 131 U85,
    SramWrTransAccepted "SRAM_WR_TRANS_ACCEPTED" 132 U85,
    SramWrTransCompletedM "SRAM_WR_TRANS_COMPLETED_M" 133 U85,
    SramWrTransCompletedS "SRAM_WR_TRANS_COMPLETED_S" 134 U85,
    SramWrDataBeatWritten "SRAM_WR_DATA_BEAT_WRITTEN" 135 U85,
    SramWrTranReqStalled "SRAM_WR_TRAN_REQ_STALLED" 136 U85,
    SramWrDataBeatStalled "SRAM_WR_DATA_BEAT_STALLED" 137 U85,
    SramEnabledCycles "SRAM_ENABLED_CYCLES" 140 U85,
    SramRdStallLimit "SRAM_RD_STALL_LIMIT" 142 U85,
    SramWrStallLimit "SRAM_WR_STALL_LIMIT" 143 U85,
    EccMacIb "ECC_MAC_IB" 177 U85,
    EccMacAb "ECC_MAC_AB" 178 U85,
    EccAoCb "ECC_AO_CB" 179 U85,
    EccAoOb "ECC_AO_OB" 180 U85,
    EccAoLut "ECC_AO_LUT" 181 U85,
    ExtRdTransAccepted "EXT_RD_TRANS_ACCEPTED" 384 U85,
    ExtRdTransCompleted "EXT_RD_TRANS_COMPLETED" 385 U85,
    ExtRdDataBeatReceived "EXT_RD_DATA_BEAT_RECEIVED" 386 U85,
    ExtRdTranReqStalled "EXT_RD_TRAN_REQ_STALLED" 387 U85,
    ExtWrTransAccepted "EXT_WR_TRANS_ACCEPTED" 388 U85,
    ExtWrTransCompletedM "EXT_WR_TRANS_COMPLETED_M" 389 U85,
    ExtWrTransCompletedS "EXT_WR_TRANS_COMPLETED_S" 390 U85,
    ExtWrDataBeatWritten "EXT_WR_DATA_BEAT_WRITTEN" 391 U85,
    ExtWrTranReqStalled "EXT_WR_TRAN_REQ_STALLED" 392 U85,
    ExtWrDataBeatStalled "EXT_WR_DATA_BEAT_STALLED" 393 U85,
    ExtEnabledCycles "EXT_ENABLED_CYCLES" 396 U85,
    ExtRdStallLimit "EXT_RD_STALL_LIMIT" 398 U85,
    ExtWrStallLimit "EXT_WR_STALL_LIMIT" 399 U85,
    Sram0RdTransAccepted "SRAM0_RD_TRANS_ACCEPTED" 512 U85,
    Sram0RdTransCompleted "SRAM0_RD_TRANS_COMPLETED" 513 U85,
    Sram0RdDataBeatReceived "SRAM0_RD_DATA_BEAT_RECEIVED" 514 U85,
    Sram0RdTranReqStalled "SRAM0_RD_TRAN_REQ_STALLED" 515 U85,
    Sram0WrTransAccepted "SRAM0_WR_TRANS_ACCEPTED" 516 U85,
    Sram0WrTransCompletedM "SRAM0_WR_TRANS_COMPLETED_M" 517 U85,
    Sram0WrTransCompletedS "SRAM0_WR_TRANS_COMPLETED_S" 518 U85,
    Sram0WrDataBeatWritten "SRAM0_WR_DATA_BEAT_WRITTEN" 519 U85,
    Sram0WrTranReqStalled "SRAM0_WR_TRAN_REQ_STALLED" 520 U85,
    Sram0WrDataBeatStalled "SRAM0_WR_DATA_BEAT_STALLED" 521 U85,
    Sram0EnabledCycles "SRAM0_ENABLED_CYCLES" 524 U85,
    Sram0RdStallLimit "SRAM0_RD_STALL_LIMIT" 526 U85,
    Sram0WrStallLimit "SRAM0_WR_STALL_LIMIT" 527 U85,
    Sram1RdTransAccepted "SRAM1_RD_TRANS_ACCEPTED" 528 U85,
    Sram1RdTransCompleted "SRAM1_RD_TRANS_COMPLETED" 529 U85,
    Sram1RdDataBeatReceived "SRAM1_RD_DATA_BEAT_RECEIVED" 530 U85,
    Sram1RdTranReqStalled "SRAM1_RD_TRAN_REQ_STALLED" 531 U85,
    Sram1WrTransAccepted "SRAM1_WR_TRANS_ACCEPTED" 532 U85,
    Sram1WrTransCompletedM "SRAM1_WR_TRANS_COMPLETED_M" 533 U85,
    Sram1WrTransCompletedS "SRAM1_WR_TRANS_COMPLETED_S" 534 U85,
    Sram1WrDataBeatWritten "SRAM1_WR_DATA_BEAT_WRITTEN" 535 U85,
    Sram1WrTranReqStalled "SRAM1_WR_TRAN_REQ_STALLED" 536 U85,
    Sram1WrDataBeatStalled "SRAM1_WR_DATA_BEAT_STALLED" 537 U85,
    Sram1EnabledCycles "SRAM1_ENABLED_CYCLES" 540 U85,
    Sram1RdStallLimit "SRAM1_RD_STALL_LIMIT" 542 U85,
    Sram1WrStallLimit "SRAM1_WR_STALL_LIMIT" 543 U85,
    Sram2RdTransAccepted "SRAM2_RD_TRANS_ACCEPTED" 544 U85,
    Sram2RdTransCompleted "SRAM2_RD_TRANS_COMPLETED" 545 U85,
    Sram2RdDataBeatReceived "SRAM2_RD_DATA_BEAT_RECEIVED" 546 U85,
    Sram2RdTranReqStalled "SRAM2_RD_TRAN_REQ_STALLED" 547 U85,
    Sram2WrTransAccepted "SRAM2_WR_TRANS_ACCEPTED" 548 U85,
    Sram2WrTransCompletedM "SRAM2_WR_TRANS_COMPLETED_M" 549 U85,
    Sram2WrTransCompletedS "SRAM2_WR_TRANS_COMPLETED_S" 550 U85,
    Sram2WrDataBeatWritten "SRAM2_WR_DATA_BEAT_WRITTEN" 551 U85,
    Sram2WrTranReqStalled "SRAM2_WR_TRAN_REQ_STALLED" 552 U85,
    Sram2WrDataBeatStalled "SRAM2_WR_DATA_BEAT_STALLED" 553 U85,
    Sram2EnabledCycles "SRAM2_ENABLED_CYCLES" 556 U85,
    Sram2RdStallLimit "SRAM2_RD_STALL_LIMIT" 558 U85,
    Sram2WrStallLimit "SRAM2_WR_STALL_LIMIT" 559 U85,
    Sram3RdTransAccepted "SRAM3_RD_TRANS_ACCEPTED" 560 U85,
    Sram3RdTransCompleted "SRAM3_RD_TRANS_COMPLETED" 561 U85,
    Sram3RdDataBeatReceived "SRAM3_RD_DATA_BEAT_RECEIVED" 562 U85,
    Sram3RdTranReqStalled "SRAM3_RD_TRAN_REQ_STALLED" 563 U85,
    Sram3WrTransAccepted "SRAM3_WR_TRANS_ACCEPTED" 564 U85,
    Sram3WrTransCompletedM "SRAM3_WR_TRANS_COMPLETED_M" 565 U85,
    Sram3WrTransCompletedS "SRAM3_WR_TRANS_COMPLETED_S" 566 U85,
    Sram3WrDataBeatWritten "SRAM3_WR_DATA_BEAT_WRITTEN" 567 U85,
    Sram3WrTranReqStalled "SRAM3_WR_TRAN_REQ_STALLED" 568 U85,
    Sram3WrDataBeatStalled "SRAM3_WR_DATA_BEAT_STALLED" 569 U85,
    Sram3EnabledCycles "SRAM3_ENABLED_CYCLES" 572 U85,
    Sram3RdStallLimit "SRAM3_RD_STALL_LIMIT" 574 U85,
    Sram3WrStallLimit "SRAM3_WR_STALL_LIMIT" 575 U85,
    Ext0RdTransAccepted "EXT0_RD_TRANS_ACCEPTED" 640 U85,
    Ext0RdTransCompleted "EXT0_RD_TRANS_COMPLETED" 641 U85,
    Ext0RdDataBeatReceived "EXT0_RD_DATA_BEAT_RECEIVED" 642 U85,
    Ext0RdTranReqStalled "EXT0_RD_TRAN_REQ_STALLED" 643 U85,
    Ext0WrTransAccepted "EXT0_WR_TRANS_ACCEPTED" 644 U85,
    Ext0WrTransCompletedM "EXT0_WR_TRANS_COMPLETED_M" 645 U85,
    Ext0WrTransCompletedS "EXT0_WR_TRANS_COMPLETED_S" 646 U85,
    Ext0WrDataBeatWritten "EXT0_WR_DATA_BEAT_WRITTEN" 647 U85,
    Ext0WrTranReqStalled "EXT0_WR_TRAN_REQ_STALLED" 648 U85,
    Ext0WrDataBeatStalled "EXT0_WR_DATA_BEAT_STALLED" 649 U85,
    Ext0EnabledCycles "EXT0_ENABLED_CYCLES" 652 U85,
    Ext0RdStallLimit "EXT0_RD_STALL_LIMIT" 654 U85,
    Ext0WrStallLimit "EXT0_WR_STALL_LIMIT" 655 U85,
    Ext1RdTransAccepted "EXT1_RD_TRANS_ACCEPTED" 656 U85,
    Ext1RdTransCompleted "EXT1_RD_TRANS_COMPLETED" 657 U85,
    Ext1RdDataBeatReceived "EXT1_RD_DATA_BEAT_RECEIVED" 658 U85,
    Ext1RdTranReqStalled "EXT1_RD_TRAN_REQ_STALLED" 659 U85,
    Ext1WrTransAccepted "EXT1_WR_TRANS_ACCEPTED" 660 U85,
    Ext1WrTransCompletedM "EXT1_WR_TRANS_COMPLETED_M" 661 U85,
    Ext1WrTransCompletedS "EXT1_WR_TRANS_COMPLETED_S" 662 U85,
    Ext1WrDataBeatWritten "EXT1_WR_DATA_BEAT_WRITTEN" 663 U85,
    Ext1WrTranReqStalled "EXT1_WR_TRAN_REQ_STALLED" 664 U85,
    Ext1WrDataBeatStalled "EXT1_WR_DATA_BEAT_STALLED" 665 U85,
    Ext1EnabledCycles "EXT1_ENABLED_CYCLES" 668 U85,
    Ext1RdStallLimit "EXT1_RD_STALL_LIMIT" 670 U85,
    Ext1WrStallLimit "EXT1_WR_STALL_LIMIT" 671 U85,
}

impl PmuEvent {
    /// The event with a number on `product`.
    pub fn from_number(number: u16, product: Product) -> Option<PmuEvent> {
        PmuEvent::ALL.iter().copied().find(|event| event.number(product) == Some(number))
    }

    /// The event with a name, in any case.
    pub fn from_name(name: &str) -> Option<PmuEvent> {
        PmuEvent::ALL.iter().copied().find(|event| event.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for PmuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back() {
        for product in Product::ALL {
            let events = PmuEvent::ALL.iter().filter(|event| event.number(product).is_some());
            // As many as the headers list.
            assert_eq!(events.clone().count(), if product == Product::U85 { 171 } else { 74 });
            for &event in events {
                let number = event.number(product).unwrap();
                assert_eq!(PmuEvent::from_number(number, product), Some(event));
                assert!(number < 1 << 10, "an event type has ten bits");
            }
        }
        assert!(PmuEvent::ALL.iter().all(|event| PmuEvent::from_name(event.name()) == Some(*event)));
        assert_eq!(PmuEvent::from_name("npu_active"), Some(PmuEvent::NpuActive));
        assert_eq!(PmuEvent::from_number(17, Product::U85), Some(PmuEvent::Cycle));
        assert_eq!(PmuEvent::from_number(18, Product::U85), None);
        assert_eq!(PmuEvent::Ext0RdTransAccepted.number(Product::U55), None);
    }
}
