//! Exchanges between lanes that have the same: those that divergence management makes of loads that decide branches.
//!
//! [`MInst::OfSomeLane`] of a register that is uniform anyway is that register. A load from a uniform address is uniform where
//! it is executed once. So in place of the exchange stands a note that lanes must agree in the register, which has its loads
//! executed once for all lanes, whether the register gets a place among the shared ones or not.

use hashbrown::HashMap;

use super::nesting::Nesting;
use super::rows::drop_unused;
use super::uniform::Uniform;
use crate::vcode::{MInst, Reg, VCode};

/// Takes exchanges of what is uniform out of the code. Returns whether there were any.
pub(super) fn fold(vcode: &mut VCode, nesting: &Nesting, uniform: &Uniform) -> bool {
    let mut same: HashMap<Reg, Reg> = HashMap::new();
    let mut folded = vec![false; vcode.insts.len()];
    for (id, block) in vcode.blocks() {
        for index in block.insts.clone() {
            if let MInst::OfSomeLane { dst, src, .. } = vcode.insts[index]
                && uniform.is_uniform_in(src, id, nesting)
            {
                same.insert(dst, src);
                folded[index] = true;
            }
        }
    }
    if same.is_empty() {
        return false;
    }
    let name = |mut reg: Reg| {
        // One may be of another one's result.
        while let Some(&src) = same.get(&reg) {
            reg = src;
        }
        reg
    };
    vcode.once.extend(same.values().map(|&src| name(src)));
    vcode.retain_insts(|index, _| !folded[index]);
    vcode.insts.iter_mut().for_each(|inst| inst.rewrite_regs(|reg| *reg = name(*reg)));
    vcode.promises.rename(|reg| Some(name(reg)));
    // The addresses through which values were exchanged.
    drop_unused(vcode);
    true
}

#[cfg(test)]
mod tests {
    use super::super::check::{Misplaced, check};
    use super::super::{Setting, share};
    use super::*;
    use crate::abi::EntryKind;
    use crate::builder::{KernelBuilder, KernelSource};
    use crate::options::CompileOptions;
    use crate::pipeline;
    use crate::times::Clock;
    use crate::unit::Unit;

    /// Code of a kernel in which lanes store if an element is not 0 that all of them load.
    fn shared(arch: &str) -> VCode {
        let mut source = KernelSource::new("some", arch.parse().unwrap());
        let mut b = KernelBuilder::new(&mut source);
        let (data, at, lane) = (b.buffer::<i32>("data"), b.scalar::<i32>("at"), b.lane_id());
        let wanted = b.load(data, at);
        b.if_then(wanted, |b| b.store(data, lane, wanted));
        b.return_();
        b.finalize().unwrap();
        let options = CompileOptions { verify: true, ..CompileOptions::default() };
        let unit = Unit::of_kernel(&source, &options);
        let mut vcode = pipeline::select(source.function(), unit, &Clock::new()).unwrap().vcode;
        let setting = Setting { arch: source.arch(), entry: EntryKind::Kernel, by_rows: false };
        share(&mut vcode, setting);
        check(&vcode, source.arch(), EntryKind::Kernel).unwrap();
        vcode
    }

    fn count(vcode: &VCode, is_wanted: fn(&MInst) -> bool) -> usize {
        vcode.insts.iter().filter(|inst| is_wanted(inst)).count()
    }

    #[test]
    fn one_load_decides_for_all_lanes() {
        for arch in
            ["4w24/12/32/16+x+s8/4", "4w24/12/32/16+s8/4", "4w16/16/8/4+s1", "4b16/16/16/8+x+s8"]
        {
            let vcode = shared(arch);
            let splits = |inst: &MInst| matches!(inst, MInst::CondBr { split: true, .. });
            let exchanges =
                |inst: &MInst| matches!(inst, MInst::FrameValue { .. } | MInst::OfSomeLane { .. });
            assert_eq!([count(&vcode, splits), count(&vcode, exchanges)], [0, 0], "{vcode}");
            assert_eq!(vcode.once.len(), 1, "{vcode}");
            // A load that lanes would do for themselves is found.
            let mut broken = vcode.clone();
            broken.shared.clear();
            let found = check(&broken, arch.parse().unwrap(), EntryKind::Kernel);
            assert!(matches!(found, Err(Misplaced::LoadedByEach { .. })), "{found:?}");
        }
    }
}
