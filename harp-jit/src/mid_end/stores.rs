//! Keeps stores that the mid-end would remove wrongly.
//!
//! Cranelift removes a store that a later store overwrites on all paths if no load in between reads it. A
//! store without an alias region may write anywhere, so it counts as the last store to all of memory; but it
//! does not count as a reader of the store before. A load after both that reads what the first one wrote is
//! then taken to depend on the second one only. Where the path from the first store to the load is not the
//! path from the first store to the overwriting one, the first one is lost:
//!
//! ```text
//!     header: v1 = load p; store v1 + 1, p; brif v2, next, last
//!     next:   store v3, q; jump header            ; the load reads what is stored to p
//!     last:   store v4, p; return                 ; the store to p in the header vanishes
//! ```
//!
//! Stores of one region do count as depending on each other. So for the mid-end all accesses get the same
//! region, unless the function gives every access a region. If it gives some a region, that is dropped: an
//! access without one may alias all others. Only loads of what nothing changes have another region, in which
//! there are no stores: what was loaded once is known, whatever is stored in between.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    AliasRegion, AliasRegionData, Function, Inst, InstructionData, MemFlags, MemFlagsData,
};

/// More combinations of memory flags than Cranelift can represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyKinds;

/// Puts all accesses into one region if some have none, and loads of what nothing changes into another; returns whether it did.
pub(crate) fn share_region(func: &mut Function) -> Result<bool, TooManyKinds> {
    let accesses = accesses(func);
    let in_none = |&inst: &Inst| func.dfg.insts[inst].alias_region(&func.dfg).is_none();
    let shares = accesses.iter().any(in_none);
    if shares {
        let [memory, constant] = [(0, "memory"), (1, "constant")].map(|(user_id, description)| {
            let region = AliasRegionData { user_id, description: description.into() };
            func.dfg.alias_regions.insert(region)
        });
        let is_constant = |&inst: &Inst| {
            let InstructionData::Load { flags, .. } = func.dfg.insts[inst] else { return false };
            func.dfg.mem_flags[flags].readonly()
        };
        let (loads, others): (Vec<Inst>, Vec<Inst>) = accesses.into_iter().partition(is_constant);
        set_region(func, &loads, Some(constant))?;
        set_region(func, &others, Some(memory))?;
    }
    Ok(shares)
}

/// Removes all accesses from their regions.
pub(crate) fn leave_region(func: &mut Function) -> Result<(), TooManyKinds> {
    set_region(func, &accesses(func), None)?;
    func.dfg.alias_regions.clear();
    Ok(())
}

fn accesses(func: &Function) -> Vec<Inst> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    // A bitcast has memory flags, too, but no region.
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
    // Many accesses have the same flags.
    let mut known: SecondaryMap<MemFlags, Option<MemFlags>> = SecondaryMap::new();
    for &inst in accesses {
        let Some(given) = func.dfg.insts[inst].memflags() else { continue };
        let flags = match known[given] {
            Some(flags) => flags,
            None => {
                let data: MemFlagsData = func.dfg.mem_flags[given].with_alias_region(region);
                let flags = func.dfg.mem_flags.insert(data).map_err(|_| TooManyKinds)?;
                *known[given].insert(flags)
            }
        };
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
        let clif = optimized(text);
        assert_eq!(clif.matches("store").count(), 3, "{clif}");
        assert!(!clif.contains("region"), "{clif}");
    }

    #[test]
    fn what_nothing_changes_is_loaded_once() {
        let text = |flags: &str| {
            format!(
                "function %f(i32, i32) -> i32 fast {{
                block0(v0: i32, v1: i32):
                    v2 = load.i32 aligned {flags} v0
                    store aligned v2, v1
                    v3 = load.i32 aligned {flags} v0
                    v4 = iadd v2, v3
                    return v4
                }}"
            )
        };
        for (flags, loads) in [("readonly", 1), ("", 2)] {
            let clif = optimized(&text(flags));
            assert_eq!(clif.matches("load").count(), loads, "{clif}");
        }
    }

    fn optimized(text: &str) -> String {
        let func = parse_functions(text).unwrap().remove(0);
        let arch = "4w8/8/4/1".parse().unwrap();
        let options = CompileOptions::default();
        let stages = Compiler::new(arch, options).stages(&func, &SourceMap::new()).unwrap();
        stages.clif
    }
}
