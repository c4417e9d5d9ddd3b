//! Kernels as they are saved: what launches need. Loading trusts nothing, and makes the object from the functions
//! again.

use harp_isa::ArchId;
use harp_isa::object::Chunk;
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};

use super::Kernel;
use crate::builder::Param;
use crate::emit;
use crate::function::{FunctionCode, SavedFunction};
use crate::groups::Grouping;
use crate::options::MAX_STACK_BYTES;
use crate::print::{PrintSites, SavedPrint};
use crate::profile::{BranchCounters, BranchId};
use crate::stats::CompileStats;

/// A [`Kernel`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedKernel {
    arch: ArchId,
    params: Vec<Param>,
    entry: SavedFunction,
    functions: Vec<SavedFunction>,
    /// The chunks of each datum.
    data: Vec<Vec<Chunk>>,
    lane_stack_bytes: u32,
    grouping: Grouping,
    by_rows: bool,
    group_bytes: u32,
    /// The branches that it counts, if it does.
    counted: Option<Vec<BranchId>>,
    reports_accesses: bool,
    prints: Vec<SavedPrint>,
    stats: CompileStats,
}

impl From<Kernel> for SavedKernel {
    fn from(kernel: Kernel) -> SavedKernel {
        let count = kernel.data_chunks.iter().sum::<u32>() as usize;
        let chunks = &kernel.object.chunks;
        let mut chunks = chunks[chunks.len() - count..].iter().cloned();
        let of_datum = |&count: &u32| chunks.by_ref().take(count as usize).collect();
        SavedKernel {
            arch: kernel.arch(),
            params: kernel.params,
            data: kernel.data_chunks.iter().map(of_datum).collect(),
            entry: kernel.entry.into(),
            functions: kernel.functions.into_iter().map(SavedFunction::from).collect(),
            lane_stack_bytes: kernel.lane_stack_bytes,
            grouping: kernel.grouping,
            by_rows: kernel.by_rows,
            group_bytes: kernel.group_bytes,
            counted: kernel.counters.map(|counters| counters.branches().to_vec()),
            reports_accesses: kernel.reports_accesses,
            prints: kernel.prints.as_ref().map_or_else(Vec::new, PrintSites::saved),
            stats: kernel.stats,
        }
    }
}

/// Why saved bytes are no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a kernel: {0}")]
pub(super) struct NoKernel(String);

impl From<&str> for NoKernel {
    fn from(reason: &str) -> NoKernel {
        NoKernel(reason.to_owned())
    }
}

impl TryFrom<SavedKernel> for Kernel {
    type Error = NoKernel;

    fn try_from(saved: SavedKernel) -> Result<Kernel, NoKernel> {
        let (arch, params) = (saved.arch, saved.params.len());
        let entry = saved.entry.restored(arch, params)?;
        let functions = saved.functions.into_iter().map(|saved| saved.restored(arch, params));
        let functions: Vec<FunctionCode> = functions.collect::<Result<_, _>>()?;
        check_names(&entry, &functions, saved.data.iter().flatten())?;
        let stack = saved.lane_stack_bytes;
        let has_room = emit::frame_room(stack.into(), arch) > 0;
        if !stack.is_power_of_two() || stack > MAX_STACK_BYTES || !has_room {
            return Err("the size of a lane's stack is none".into());
        }
        if saved.data.iter().any(Vec::is_empty) {
            return Err("a datum has no chunk".into());
        }
        if saved.data.iter().flatten().any(|chunk| chunk.address.is_some()) {
            return Err("data is bound to an address".into());
        }
        let counters = saved.counted.map(|branches| {
            BranchCounters::new(entry.name(), arch, branches, entry.branch_fingerprint())
        });
        Ok(Kernel {
            params: saved.params,
            lane_stack_bytes: stack,
            grouping: saved.grouping,
            by_rows: saved.by_rows,
            group_bytes: saved.group_bytes,
            counters,
            reports_accesses: saved.reports_accesses,
            prints: PrintSites::restored(arch, saved.prints).map_err(NoKernel)?,
            stats: CompileStats { code_bytes: entry.code().len(), ..saved.stats },
            ..Kernel::linked(entry, functions, saved.data)
        })
    }
}

/// Names of functions are unique, also among those of data.
fn check_names<'a>(
    entry: &'a FunctionCode,
    functions: &'a [FunctionCode],
    mut data: impl Iterator<Item = &'a Chunk>,
) -> Result<(), &'static str> {
    let mut names = HashSet::new();
    names.insert(entry.name());
    if !functions.iter().all(|function| names.insert(function.name())) {
        return Err("two functions have the same name");
    }
    if data.any(|chunk| names.contains(chunk.name.as_str())) {
        return Err("a datum has the name of a function");
    }
    Ok(())
}
