//! The tier, as machines and devices see it.

use std::any::Any;
use std::sync::Arc;

use harp_emu::{BarrierRule, HostCode, HostTier};
use harp_isa::{ArchId, Gpr};

use crate::calls::{Callee, HeldLanes, RETURNS};
use crate::shape::Shape;
use crate::shared::{Shared, When};
use crate::stats::TierStats;
use crate::tier::CoreCode;

/// Runs hot regions of programs in host code: a tier for [`Machine::set_host_tier`](harp_emu::Machine::set_host_tier).
///
/// Its clones are the same tier. It may serve any number of machines, one after the other or at the same time; what
/// one has translated serves the others as far as they run the same instructions.
#[derive(Clone, Debug)]
pub struct Native {
    shared: Arc<Shared>,
    callee: Option<Callee>,
}

/// What a program promises about one of its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// The address of the function. It keeps the calling convention of [`harp_isa::abi`] and returns nothing. Where it jumps
    /// to its link register, it returns.
    pub function: u64,
    /// Bytes of its code, by which the tier tells it from others that take turns with it in the same memory.
    pub bytes: u64,
    /// How many registers of a lane hold arguments. Of those that lanes share, the ones of
    /// [`KernelEntry`](harp_isa::abi::KernelEntry) may.
    pub arguments: u8,
    /// Addresses behind calls of the function; the first four are used.
    pub returns: Vec<u64>,
    /// The lanes that do not call it where others do, if there are any.
    pub held_back: Option<HeldBack>,
}

/// Lanes that a `split` around the calls of a function holds back from them. Nothing else in between uses the divergence stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The address behind the `split`.
    pub behind: u64,
    /// The registers that they read, there or later, before they write them. All lanes that have called read no others, either.
    pub reads: Vec<Gpr>,
}

impl Native {
    /// A tier without regions. `None` if it has no code for this host.
    pub fn new(when: When) -> Option<Native> {
        Some(Native { shared: Arc::new(Shared::new(when)?), callee: None })
    }

    /// The same tier for programs that promise this. It then keeps registers and predicates exact only as far as the
    /// program may still read them: where a machine stops, others may have any value. All else stays exact.
    pub fn for_calls(&self, calls: &Calls) -> Native {
        let mut returns = [None; RETURNS];
        for (place, &address) in returns.iter_mut().zip(&calls.returns) {
            *place = Some(address);
        }
        let Calls { function: start, bytes, arguments, .. } = *calls;
        let arguments = arguments.min(32);
        let held_back = calls.held_back.as_ref().map(|HeldBack { behind, reads }| {
            let reads = reads.iter().fold(0, |bits, r| bits | 1u64 << r.index());
            HeldLanes { behind: *behind, reads }
        });
        let callee = Some(Callee { start, bytes, arguments, returns, held_back });
        Native { shared: self.shared.clone(), callee }
    }

    /// What it has done so far, what is being translated included; what running machines do is counted when they end.
    pub fn stats(&self) -> TierStats {
        self.shared.stats()
    }
}

impl HostTier for Native {
    fn for_core(
        &self,
        arch: ArchId,
        lane_words: usize,
        barriers: BarrierRule,
        before: Option<Box<dyn HostCode>>,
    ) -> Box<dyn HostCode> {
        let Native { shared, callee } = self;
        let shape = Shape::new(arch, lane_words);
        let before = before.and_then(|code| (code as Box<dyn Any>).downcast::<CoreCode>().ok());
        match before.filter(|code| code.is_of(shared, shape, barriers, *callee)) {
            Some(code) => code,
            None => Box::new(CoreCode::new(shared.clone(), shape, barriers, *callee)),
        }
    }
}
