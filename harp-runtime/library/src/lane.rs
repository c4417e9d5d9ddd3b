//! What all images have: how a lane finds out who it is, and the offsets of its control block.

use harp_isa::WordSize;
use harp_isa::abi::LaneField;

const LANE: &str = include_str!("asm/lane.s");

/// The text with the part that says what a lane is, whose number is in this register.
pub(crate) fn with_lane(text: &str, lane: &str) -> String {
    text.replace("\nLANE\n", &format!("\n{}", LANE.replace("%lane", lane)))
}

/// The offsets in the lane control block that the texts of all images use.
pub(crate) fn lane_definitions(word: WordSize) -> [(&'static str, i64); 9] {
    [
        ("L_LANE", LaneField::Lane),
        ("L_WARP", LaneField::Warp),
        ("L_CORE", LaneField::Core),
        ("L_Y", LaneField::GlobalIdY),
        ("L_Z", LaneField::GlobalIdZ),
        ("L_STACK_LIMIT", LaneField::StackLimit),
        ("L_SCRATCH_ADDRESS", LaneField::ScratchAddress),
        ("L_SCRATCH", LaneField::ScratchWord),
        ("L_LANES", LaneField::Lanes),
    ]
    .map(|(name, field)| (name, i64::from(field.offset(word))))
}
