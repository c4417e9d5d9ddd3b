//! Profiles as JSON. The objects are described at the types.

use std::collections::BTreeMap;

use harp_isa::{ArchId, Opcode};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::scalar::{self, ScalarCounts};
use super::{
    Activity, BranchCounts, BranchMasks, Histogram, OpcodeCounts, Profile, RegisterCount,
    RegisterCounts,
};
use crate::config::Collect;
use crate::json::{Hex, LaneList};
use crate::notation::Register;

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.collect.iter().count();
        let mut object = serializer.serialize_struct("Profile", 2 + parts)?;
        object.serialize_field("arch", &self.arch.to_string())?;
        object.serialize_field("segment_bytes", &self.segment_bytes)?;
        for part in self.collect.iter() {
            match part {
                Collect::OPCODES => object.serialize_field("opcodes", &ByOpcode(&self.opcodes))?,
                Collect::LANES => object.serialize_field("lanes", &self.lanes)?,
                Collect::DEPTH => object.serialize_field("depth", &self.depth)?,
                Collect::BRANCHES => {
                    let branches = Branches { counts: &self.branches, arch: self.arch };
                    object.serialize_field("branches", &branches)?;
                }
                Collect::REGISTERS => {
                    let counts = ByRegister { counts: &self.registers, arch: self.arch };
                    object.serialize_field("registers", &counts)?;
                }
                Collect::MEMORY => object.serialize_field("memory", &ByPc(&self.memory))?,
                Collect::SCALARS => {
                    let scalars = Scalars { counts: &self.scalars, arch: self.arch };
                    object.serialize_field("scalars", &scalars)?;
                }
                _ => {}
            }
        }
        object.end()
    }
}

/// A list of objects with a field `pc`, by address.
struct ByPc<'a, T>(&'a BTreeMap<u64, T>);

impl<T: Serialize> Serialize for ByPc<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Row<'a, T> {
            pc: Hex,
            #[serde(flatten)]
            counts: &'a T,
        }
        serializer.collect_seq(self.0.iter().map(|(&pc, counts)| Row { pc: Hex(pc), counts }))
    }
}

/// As [`ByPc`], with the names of guards on a machine.
struct Branches<'a> {
    counts: &'a BTreeMap<u64, BranchCounts>,
    arch: ArchId,
}

impl Serialize for Branches<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Row<'a> {
            pc: Hex,
            guard: Option<Register>,
            #[serde(flatten)]
            counts: &'a BranchCounts,
        }
        serializer.collect_seq(self.counts.iter().map(|(&pc, counts)| Row {
            pc: Hex(pc),
            guard: counts.guard.map(|guard| Register(guard.into(), self.arch)),
            counts,
        }))
    }
}

/// A list of objects by address: the instruction, how it is done, and what it has cost.
struct Scalars<'a> {
    counts: &'a BTreeMap<u64, ScalarCounts>,
    arch: ArchId,
}

impl Serialize for Scalars<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Row {
            pc: Hex,
            instruction: String,
            done: &'static str,
            issued: u64,
            together: u64,
            #[serde(flatten)]
            activity: Activity,
        }
        serializer.collect_seq(self.counts.iter().map(|(&pc, counts)| Row {
            pc: Hex(pc),
            instruction: counts.instruction.display(self.arch).to_string(),
            done: scalar::name(counts.sharing),
            issued: counts.issued,
            together: counts.together,
            activity: counts.activity,
        }))
    }
}

/// A list of objects with a field `opcode`, in the order of the instruction table.
struct ByOpcode<'a>(&'a BTreeMap<Opcode, OpcodeCounts>);

impl Serialize for ByOpcode<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Row<'a> {
            opcode: &'static str,
            #[serde(flatten)]
            counts: &'a OpcodeCounts,
        }
        let row = |(opcode, counts): (&Opcode, _)| Row { opcode: opcode.mnemonic(), counts };
        serializer.collect_seq(self.0.iter().map(row))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Histogram", 3)?;
        object.serialize_field("total", &self.total())?;
        object.serialize_field("sum", &self.sum())?;
        object.serialize_field("counts", self.counts())?;
        object.end()
    }
}

/// Counts with the names of registers on a machine.
struct ByRegister<'a> {
    counts: &'a RegisterCounts,
    arch: ArchId,
}

impl Serialize for ByRegister<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Row {
            register: Register,
            #[serde(flatten)]
            count: RegisterCount,
        }
        let ByRegister { counts, arch } = *self;
        let row = |(register, count)| Row { register: Register(register, arch), count };
        let rows = counts.registers().map(row);
        let mut object = serializer.serialize_struct("RegisterCounts", 3)?;
        object.serialize_field("registers", &rows.collect::<Vec<_>>())?;
        object.serialize_field("reads", &counts.reads)?;
        object.serialize_field("writes", &counts.writes)?;
        object.end()
    }
}

/// A list of objects; the masks as lists of lane numbers.
pub(super) fn mask_list<S: Serializer>(
    masks: &BTreeMap<BranchMasks, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct Row {
        active: LaneList,
        taken: LaneList,
        times: u64,
    }
    serializer.collect_seq(masks.iter().map(|(masks, &times)| Row {
        active: LaneList(masks.active),
        taken: LaneList(masks.taken),
        times,
    }))
}
