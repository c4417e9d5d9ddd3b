//! The notation that traces, statistics, profiles and traps share in JSON (feature `json`).

use harp_isa::Opcode;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::notation::{LaneMask, Register, lanes_of};
use crate::stats::{CoreStats, Stats};
use crate::trap::Trap;

/// An address or a value, written as a string, because not every JSON reader preserves 64-bit numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hex(pub(crate) u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

impl Serialize for LaneMask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Register {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// An opcode by its mnemonic.
pub(crate) fn opcode<S: Serializer>(opcode: &Opcode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(opcode.mnemonic())
}

/// The numbers of the lanes in a mask, as a list.
pub(crate) struct LaneList(pub(crate) u64);

impl Serialize for LaneList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(lanes_of(self.0))
    }
}

/// An object: `kind` (see [`TrapKind::name`](crate::trap::TrapKind::name)), `message`, `core`, `warp`, `pc`, and
/// `lanes`, a list of lane numbers.
impl Serialize for Trap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Trap", 6)?;
        object.serialize_field("kind", self.kind.name())?;
        object.serialize_field("message", &self.kind.to_string())?;
        object.serialize_field("core", &self.core)?;
        object.serialize_field("warp", &self.warp)?;
        object.serialize_field("pc", &Hex(self.pc))?;
        object.serialize_field("lanes", &LaneList(self.lanes))?;
        object.end()
    }
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Stats", 7)?;
        object.serialize_field("steps", &self.steps())?;
        object.serialize_field("issued", &self.issued())?;
        object.serialize_field("insts", &self.insts())?;
        object.serialize_field("loads", &self.loads())?;
        object.serialize_field("stores", &self.stores())?;
        object.serialize_field("divergence_high_water", &self.divergence_high_water())?;
        object.serialize_field("cores", &self.cores)?;
        object.end()
    }
}

impl Serialize for CoreStats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("CoreStats", 7)?;
        object.serialize_field("steps", &self.steps)?;
        object.serialize_field("issued", &self.issued())?;
        object.serialize_field("insts", &self.insts())?;
        object.serialize_field("loads", &self.loads())?;
        object.serialize_field("stores", &self.stores())?;
        object.serialize_field("divergence_high_water", &self.divergence_high_water())?;
        object.serialize_field("warps", &self.warps)?;
        object.end()
    }
}
