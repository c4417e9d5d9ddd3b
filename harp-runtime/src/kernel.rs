//! What a launch needs to know of a kernel.

use std::sync::Arc;

use harp_isa::Object;
use harp_jit::{BranchCounters, FunctionCode, Kernel, Param, PrintSites, SourcePlace};

/// The parts of a kernel, so that launches do not depend on how it was made.
#[derive(Clone, Copy)]
pub(crate) struct KernelParts<'a> {
    /// The kernel's name.
    pub(crate) name: &'a str,
    /// Its code. The entry is one global executable chunk with the kernel's name.
    pub(crate) object: &'a Arc<Object>,
    /// Its parameters.
    pub(crate) params: &'a [Param],
    /// What it prints, if it does: then it takes the address of the print area as one more argument.
    pub(crate) prints: Option<&'a PrintSites>,
    /// The counters of its branches, if it counts them: then it takes their address as its last argument.
    pub(crate) counters: Option<&'a BranchCounters>,
    /// The compiled kernel, if it reports its accesses to memory.
    pub(crate) reporting: Option<&'a Kernel>,
    /// The size of each lane's stack, a power of two larger than the lane control block: the code finds
    /// the block by rounding the stack pointer down to a multiple of it.
    pub(crate) lane_stack_bytes: u32,
    /// Whether it uses anything that only launches with work-groups have.
    pub(crate) uses_groups: bool,
    /// Whether work-groups make a difference to it.
    pub(crate) sees_groups: bool,
    /// Whether its launches must walk by rows of the grid.
    pub(crate) by_rows: bool,
    /// Bytes of memory that each work-group shares.
    pub(crate) group_bytes: u32,
    /// Where the instruction at an offset comes from, in the entry (`None`) or in the named function.
    /// The result is `None` if there is no such function.
    pub(crate) origin_of: &'a dyn Fn(Option<&str>, u64) -> Option<Origin>,
}

/// Where an instruction of a kernel comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The place in the source.
    pub(crate) place: Option<SourcePlace>,
    /// The code of a `trap` instruction.
    pub(crate) trap_code: Option<String>,
    /// The message of a `trap` instruction.
    pub(crate) message: Option<String>,
}

impl Origin {
    /// The origin of the instruction at `offset` of a compiled kernel, or of a function of its
    /// module.
    pub(crate) fn in_kernel(
        kernel: &Kernel,
        function: Option<&str>,
        offset: u64,
    ) -> Option<Origin> {
        let Some(name) = function else {
            return Some(Origin::in_function(kernel.entry(), offset));
        };
        let function = kernel.functions().iter().find(|function| function.name() == name)?;
        let inside = offset < function.code().len() as u64;
        inside.then(|| Origin::in_function(function, offset))
    }

    /// The origin of the instruction at `offset` of a function.
    pub(crate) fn in_function(function: &FunctionCode, offset: u64) -> Origin {
        Origin {
            place: function.place_at(offset).cloned(),
            trap_code: function.trap_code_at(offset).map(|code| code.to_string()),
            message: function.trap_message_at(offset).map(str::to_owned),
        }
    }
}

impl<'a> KernelParts<'a> {
    /// The parts of a compiled kernel.
    pub(crate) fn new(
        kernel: &'a Kernel,
        origin_of: &'a dyn Fn(Option<&str>, u64) -> Option<Origin>,
    ) -> KernelParts<'a> {
        KernelParts {
            name: kernel.name(),
            object: kernel.object(),
            params: kernel.params(),
            prints: kernel.prints(),
            counters: kernel.counters(),
            reporting: kernel.reports_accesses().then_some(kernel),
            lane_stack_bytes: kernel.lane_stack_bytes(),
            uses_groups: kernel.uses_groups(),
            sees_groups: kernel.sees_groups(),
            by_rows: kernel.is_by_rows(),
            group_bytes: kernel.group_bytes(),
            origin_of,
        }
    }

    /// Words of the argument block after its header.
    pub(crate) fn argument_words(&self) -> usize {
        let word = self.object.arch.word();
        let words = self.params.iter().map(|param| param.ty().words(word) as usize);
        let hidden = usize::from(self.prints.is_some()) + usize::from(self.counters.is_some());
        words.sum::<usize>() + hidden
    }
}
