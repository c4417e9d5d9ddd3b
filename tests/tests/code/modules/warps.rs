//! Programs that make their own warps and lanes.

use std::num::NonZeroU32;

use harp_emu::{Machine, MachineConfig, Memory, Schedule};
use harp_isa::{ArchId, WordSize};
use harp_jit::text::TextFile;
use harp_jit::{CompileOptions, DivergenceStrategy, Module};
use harp_runtime::Program;

/// `%start` makes as many warps as there are, runs one itself, and waits for all. All lanes add to a sum and to bytes
/// beside each other, in as many rounds of a loop as their number says, which all of them run as long as one does
/// (Gupta 2016, section 2.1.4.3). The result is the sum.
const TEXT: &str = "
; data: %words WORD 0 0
; data: %bytes i8 0*4096

function %lane(WORD) {
    gv0 = symbol %words
    gv1 = symbol %bytes
    fn0 = %harp_lane_id() -> WORD
    fn1 = %harp_warp_id() -> WORD
    fn2 = %lane_or(WORD, WORD, WORD) -> WORD
block0(v0: WORD):
    v1 = call fn0()
    v2 = call fn1()
    v3 = symbol_value.WORD gv0
    v4 = symbol_value.WORD gv1
    v5 = iconst.WORD 64
    v6 = imul v2, v5
    v7 = iadd v6, v1
    v8 = iadd v4, v7
    v9 = iconst.WORD 0
    jump block1(v9)
block1(v10: WORD):
    v11 = icmp ult v10, v1
    v12 = uextend.WORD v11
    v13 = call fn2(v2, v1, v12)
    brif v13, block2, block5
block2:
    brif v11, block3, block4(v10)
block3:
    v14 = atomic_rmw.WORD aligned add v3, v0
    v15 = load.i8 v8
    v16 = iconst.i8 3
    v17 = iadd v15, v16
    store v17, v8
    v18 = iconst.WORD 1
    v19 = iadd v10, v18
    jump block4(v19)
block4(v20: WORD):
    jump block1(v20)
block5:
    return
}

function %warp(WORD) {
    gv0 = symbol %words
    fn0 = %call_par(WORD, WORD)
    fn1 = %lane(WORD)
block0(v0: WORD):
    v1 = func_addr.WORD fn1
    call fn0(v1, v0)
    call fn0(v1, v0)
    v2 = symbol_value.WORD gv0
    v3 = iconst.WORD BYTES
    v4 = iadd v2, v3
    v5 = iconst.WORD 1
    v6 = atomic_rmw.WORD aligned add v4, v5
    return
}

function %start(WORD) -> WORD, WORD {
    gv0 = symbol %words
    fn0 = %spawn_warp(WORD, WORD) -> WORD
    fn1 = %warp(WORD)
block0(v0: WORD):
    v1 = func_addr.WORD fn1
    v2 = iconst.WORD 1
    jump block1(v2)
block1(v3: WORD):
    v4 = call fn0(v1, v0)
    v5 = iadd v3, v2
    brif v4, block1(v5), block2
block2:
    call fn1(v0)
    v6 = symbol_value.WORD gv0
    v7 = iconst.WORD BYTES
    v8 = iadd v6, v7
    jump block3
block3:
    v9 = atomic_load.WORD aligned v8
    v10 = icmp eq v9, v3
    brif v10, block4, block3
block4:
    v11 = load.WORD aligned v6
    return v11, v3
}
";

fn program(arch: ArchId, divergence: DivergenceStrategy) -> Program {
    let (word, bytes) = match arch.word() {
        WordSize::Four => ("i32", "4"),
        WordSize::Eight => ("i64", "8"),
    };
    let text = TEXT.replace("WORD", word).replace("BYTES", bytes);
    let file = TextFile::parse(&text, "warps.clif").unwrap();
    let options = CompileOptions { divergence, check_code: true, ..CompileOptions::default() };
    let mut module = Module::new(arch, options);
    file.define(&mut module).unwrap();
    let module = module.finish().unwrap();
    Program::new(&module, "start", &file.function("start").unwrap().func.signature).unwrap()
}

/// What the lanes of all warps make of the argument in two rounds each.
fn expected(arch: ArchId, argument: u64) -> [u64; 2] {
    let (lanes, warps) = (u64::from(arch.lanes()), u64::from(arch.warps()));
    [(2 * argument * warps * (lanes * (lanes - 1) / 2)) & arch.word().mask(), warps]
}

#[test]
fn a_program_makes_its_own_warps_and_lanes() {
    let machines = ["harp32", "harp64", "4w8/2/1/1", "4b8/2/5/3", "8w64/64/2/7", "4w32/16/8/4+x"];
    let strategies = [DivergenceStrategy::SplitJoin, DivergenceStrategy::Predicate];
    for (id, divergence) in machines.into_iter().flat_map(|id| strategies.map(|it| (id, it))) {
        let arch: ArchId = id.parse().unwrap();
        let outcome = program(arch, divergence).call(&[11], Some(1 << 26)).unwrap();
        assert_eq!(outcome.results, expected(arch, 11), "{id}");
    }
}

/// The lock and the start of warps stand any order of the warps' instructions, and what each lane did is there.
#[test]
fn warps_may_run_in_any_order() {
    for id in ["4w8/8/3/4", "8b16/4/2/5"] {
        let arch: ArchId = id.parse().unwrap();
        let program = program(arch, DivergenceStrategy::default());
        let image = program.image(&[5]).unwrap();
        let quantum = |length| Schedule::Quantum(NonZeroU32::new(length).unwrap());
        let seeded = (0..100).map(Schedule::Seeded);
        for schedule in [Schedule::Step, quantum(1), quantum(7)].into_iter().chain(seeded) {
            let memory = Memory::new(arch.word(), program.memory_bytes()).unwrap();
            memory.write(0, &image.bytes).unwrap();
            let config =
                MachineConfig { schedule, fuel: Some(1 << 24), ..MachineConfig::new(arch) };
            Machine::new(config, &memory).unwrap().run().unwrap();
            let word = usize::from(arch.word().bytes());
            let mut results = vec![0; 2 * word];
            memory.read(program.results_address(), &mut results).unwrap();
            let first = |bytes: &[u8]| u64::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            let found = [first(&results), first(&results[word..])];
            assert_eq!(found, expected(arch, 5), "{id}, {schedule:?}");
            let mut bytes = vec![0; 4096];
            memory.read(image.symbol("bytes").unwrap(), &mut bytes).unwrap();
            for (at, byte) in bytes.into_iter().enumerate() {
                let (warp, lane) = (at / 64, at % 64);
                let ran = warp < arch.warps().into() && lane < arch.lanes().into();
                let wanted = if ran { 2 * 3 * lane as u8 } else { 0 };
                assert_eq!(byte, wanted, "{id}, {schedule:?}: lane {lane} of warp {warp}");
            }
        }
    }
}
