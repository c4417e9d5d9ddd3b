//! Registers that the lanes of a warp share.

use harp_emu::{Machine, MachineConfig, Memory, Path, Simd, Stats, Trap};
use harp_isa::{ArchId, Gpr, Pred};

use crate::common::assemble_text;

mod audit;
mod fir;
mod rules;

/// What a warp looks like at the end: registers and predicates by lane, those of a lane before the shared ones.
#[derive(Clone, Debug, PartialEq)]
struct End {
    trap: Option<Trap>,
    stats: Stats,
    memory: Vec<u8>,
    warps: Vec<(Vec<Vec<u64>>, Vec<u64>)>,
    arch: ArchId,
}

impl End {
    /// `%s<number>` of warp 0, which must be the same in all lanes.
    fn s(&self, number: u8) -> u64 {
        self.s_of(0, number)
    }

    fn s_of(&self, warp: usize, number: u8) -> u64 {
        let row = &self.warps[warp].0[usize::from(self.arch.gprs() + number)];
        assert!(row.iter().all(|value| *value == row[0]), "{row:x?}");
        row[0]
    }

    /// `@s<number>` of warp 0.
    fn sp(&self, number: u8) -> bool {
        let bits = self.warps[0].1[usize::from(self.arch.preds() + number)];
        let all = u64::MAX >> (64 - u32::from(self.arch.lanes()));
        assert!(bits == 0 || bits == all, "{bits:x}");
        bits != 0
    }

    /// `%r<number>` of warp 0, by lane.
    fn r(&self, number: usize) -> &[u64] {
        &self.warps[0].0[number]
    }

    fn word(&self, address: usize) -> u64 {
        let width = usize::from(self.arch.word().bytes());
        let bytes = &self.memory[address..address + width];
        bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

const MEMORY: u64 = 0x2000;
const OUT: u64 = 0x1000;

fn run_once(arch: ArchId, text: &str, adjust: &dyn Fn(&mut MachineConfig)) -> End {
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble_text(arch, text)).unwrap();
    let mut config = MachineConfig { fuel: Some(10_000), ..MachineConfig::new(arch) };
    adjust(&mut config);
    let mut machine = Machine::new(config, &memory).unwrap();
    let trap = machine.run().err().map(|trap| *trap);
    let lanes = u64::MAX >> (64 - u32::from(arch.lanes()));
    let warps = machine.warps().map(|(_, _, warp)| {
        let row =
            |reg| (0..arch.lanes()).map(|lane| warp.gpr(Gpr::new(reg), lane).unwrap()).collect();
        let preds = (0..arch.all_preds()).map(|pred| warp.pred(Pred::new(pred)) & lanes);
        ((0..arch.all_gprs()).map(row).collect(), preds.collect())
    });
    let (warps, stats) = (warps.collect(), machine.stats());
    drop(machine);
    let mut bytes = vec![0; MEMORY as usize];
    memory.read(0, &mut bytes).unwrap();
    End { trap, stats, memory: bytes, warps, arch }
}

/// Runs on all paths, which must agree.
fn run_with(arch: ArchId, text: &str, adjust: impl Fn(&mut MachineConfig)) -> End {
    let precise = run_once(arch, text, &|config| {
        adjust(config);
        config.path = Path::Precise;
    });
    for simd in [Simd::Detect, Simd::Baseline] {
        let fast = run_once(arch, text, &|config| {
            adjust(config);
            config.simd = simd;
        });
        assert_eq!(fast, precise, "{text}\non {arch}, {simd:?}");
    }
    precise
}

fn run(arch: ArchId, text: &str) -> End {
    run_with(arch, text, |_| {})
}

/// Machines of all numbers of groups of lanes, full and not, in both words and encodings.
fn machines() -> impl Iterator<Item = ArchId> {
    ["4b", "4w", "8b", "8w"].into_iter().flat_map(|kind| {
        [1, 2, 5, 8, 16, 23, 32, 33, 64]
            .into_iter()
            .map(move |lanes| format!("{kind}10/6/{lanes}/3+x+s6/2").parse().unwrap())
    })
}

/// All lanes are active, and `%r0` is the lane's number.
fn all_lanes(arch: ArchId, text: &str) -> String {
    format!("ldi %r1 #{}; jalis %r2 %r1 all\nall: tid %r0\n{text}\nhalt", arch.lanes())
}

fn lanes(arch: ArchId) -> u64 {
    arch.lanes().into()
}

fn bytes(arch: ArchId) -> u64 {
    arch.word().bytes().into()
}
