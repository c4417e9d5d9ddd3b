//! Stores that must survive the mid-end.
//!
//! Cranelift removes a store that a later one overwrites on all ways if nobody saw what it wrote. A store
//! without an alias region may write anything, so it counts as the last store to all of memory; but it does not
//! count as somebody who sees the one before. A load that comes behind both and reads what the first one wrote
//! is then taken for one that sees the second one only, and where the way from the first store to the load is
//! not the way from the first store to its overwriter, the first one is lost:
//!
//! ```text
//!     header: v1 = load p; store v1 + 1, p; brif v2, next, last
//!     next:   store v3, q; jump header            ; the load reads what is stored to p
//!     last:   store v4, p; return                 ; the store to p in the header vanishes
//! ```
//!
//! Stores of one region do count as seeing each other. So for the mid-end all accesses belong to one region,
//! unless the function says of every access which one it belongs to. What it says of some of them is dropped:
//! an access that belongs to none may alias all others.

use cranelift_codegen::ir::{AliasRegion, AliasRegionData, Function, Inst, MemFlagsData};

/// More kinds of accesses than Cranelift can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyKinds;

/// Puts all accesses into one region if some are in none; whether it did.
pub(crate) fn share_region(func: &mut Function) -> Result<bool, TooManyKinds> {
    let accesses = accesses(func);
    let in_none = |&inst: &Inst| func.dfg.insts[inst].alias_region(&func.dfg).is_none();
    let shares = accesses.iter().any(in_none);
    if shares {
        let memory = AliasRegionData { user_id: 0, description: "memory".into() };
        let region = func.dfg.alias_regions.insert(memory);
        set_region(func, &accesses, Some(region))?;
    }
    Ok(shares)
}

/// Takes all accesses out of their regions.
pub(crate) fn leave_region(func: &mut Function) -> Result<(), TooManyKinds> {
    set_region(func, &accesses(func), None)?;
    func.dfg.alias_regions.clear();
    Ok(())
}

fn accesses(func: &Function) -> Vec<Inst> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    // A bitcast has flags, too, and no region.
    let is_access = |&inst: &Inst| {
        let opcode = func.dfg.insts[inst].opcode();
        (opcode.can_load() || opcode.can_store()) && func.dfg.insts[inst].memflags().is_some()
    };
    insts.filter(is_access).collect()
}

fn set_region(
    func: &mut Function,
    accesses: &[Inst],
    region: Option<AliasRegion>,
) -> Result<(), TooManyKinds> {
    for &inst in accesses {
        let Some(flags) = func.dfg.insts[inst].memflags() else { continue };
        let data: MemFlagsData = func.dfg.mem_flags[flags].with_alias_region(region);
        let flags = func.dfg.mem_flags.insert(data).map_err(|_| TooManyKinds)?;
        func.dfg.insts[inst].memflags_mut().into_iter().for_each(|given| *given = flags);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cranelift_reader::parse_functions;

    use crate::{CompileOptions, Compiler, SourceMap};

    #[test]
    fn a_store_that_the_next_round_loads_is_kept() {
        let text = "function %f(i32, i32, i32) fast {
            block0(v0: i32, v1: i32, v2: i32):
                v3 = iconst.i32 1
                jump block1(v2)
            block1(v4: i32):
                v5 = load.i32 notrap aligned v0
                v6 = iadd v5, v3
                store notrap aligned v6, v0
                v7 = isub v4, v3
                brif v7, block2, block3
            block2:
                store notrap aligned v7, v1
                jump block1(v7)
            block3:
                store notrap aligned v2, v0
                return
            }";
        let func = parse_functions(text).unwrap().remove(0);
        let arch = "4w8/8/4/1".parse().unwrap();
        let options = CompileOptions::default();
        let stages = Compiler::new(arch, options).stages(&func, &SourceMap::new()).unwrap();
        assert_eq!(stages.clif.matches("store").count(), 3, "{}", stages.clif);
        assert!(!stages.clif.contains("region"), "{}", stages.clif);
    }
}
