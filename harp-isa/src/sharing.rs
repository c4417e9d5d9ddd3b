//! How often an instruction is carried out on a machine with shared registers.
//!
//! The rules are those of Lee et al. (CGO 2013, sections 2.3 and 3.5): what has a shared result is done once for
//! all lanes, and what lies at a shared address is accessed as a row.

use crate::arch::ArchId;
use crate::opcode::Role;
use crate::operand::Operand;
use crate::reg::Gpr;
use crate::table::Op;

/// How the lanes of a warp carry out an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// In each executing lane. A shared operand has the same value in all of them.
    Each,
    /// Once, in the first executing lane, for all: its destination is shared, or it has no destination and only
    /// shared register operands. Other operands are those of that lane; but an instruction by which lanes read each
    /// other's values, such as a vote, reads those of all executing lanes.
    Once,
    /// In each executing lane, at addresses that follow each other: a plain load or store of a lane's own register
    /// at a shared address, to which each lane adds its number times the bytes of an access.
    Row,
}

impl ArchId {
    /// Whether an operand is a register that lanes share.
    pub fn is_shared(self, operand: impl Into<Operand>) -> bool {
        match operand.into() {
            Operand::Gpr(reg) => self.is_shared_gpr(reg),
            Operand::Pred(pred) => self.is_shared_pred(pred),
            Operand::Imm(_) => false,
        }
    }

    /// Whether a load or a store of `value` at `base` and an offset accesses a row.
    pub const fn is_row(self, value: Gpr, base: Gpr) -> bool {
        self.is_shared_gpr(base) && !self.is_shared_gpr(value)
    }
}

impl Op {
    /// How the lanes of a warp of `arch` carry it out.
    ///
    /// ```
    /// use harp_isa::{ArchId, Gpr, Op, Sharing};
    ///
    /// let arch: ArchId = "4w24/12/32/16+s8/4".parse()?;
    /// let (own, shared) = (Gpr::new(1), Gpr::new(24));
    /// assert_eq!(Op::Add { dst: shared, a: own, b: own }.sharing(arch), Sharing::Once);
    /// assert_eq!(Op::Add { dst: own, a: shared, b: shared }.sharing(arch), Sharing::Each);
    /// assert_eq!(Op::Ld { dst: own, base: shared, offset: 0 }.sharing(arch), Sharing::Row);
    /// # Ok::<(), harp_isa::ArchIdError>(())
    /// ```
    pub fn sharing(self, arch: ArchId) -> Sharing {
        if !arch.has_shared() {
            return Sharing::Each;
        }
        let mut descriptions = self.opcode().operands().iter();
        // Whether the destination is shared, and whether any and all of the sources are.
        let mut destination = None;
        let (mut any, mut all) = (false, true);
        let mut has_shared_base = false;
        self.for_each_operand(|operand| {
            let description = descriptions.next().expect("the table describes every operand");
            if let Operand::Imm(_) = operand {
                return;
            }
            let shared = arch.is_shared(operand);
            // Atomic operations call theirs `addr`.
            has_shared_base |= shared && description.name == "base";
            match description.kind.register() {
                Some((_, Role::Def | Role::Mod)) => destination = Some(shared),
                _ => (any, all) = (any || shared, all && shared),
            }
        });
        match destination.unwrap_or(any && all) {
            true => Sharing::Once,
            false if has_shared_base => Sharing::Row,
            false => Sharing::Each,
        }
    }
}
