//! The original's order, many rounds at once: whatever warps do to each other, all that there is to see
//! is what one round after the other gives, wherever the fuel ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use harp_emu::{Console, Machine, MachineConfig, Memory, TrapKind};
use harp_isa::{ArchId, Instruction, Op};

use crate::common::rounds::*;
use crate::common::*;

/// Compares both for every end of the fuel; the outcome where it does not end.
fn compare(arch: &str, code: &[Instruction]) -> Outcome {
    let arch: ArchId = arch.parse().unwrap();
    compare_rounds(&round_config(arch), &assemble(arch, code), 1)
}

/// Starts all warps of a machine of four words' bytes at what follows, the number of each in `%r4`.
fn everybody(warps: i64) -> Vec<Instruction> {
    let mut code = vec![ldi(3, 4 * (3 + 2 * (warps - 1))), ldi(4, 0), ldi(5, 0)];
    for warp in 1..warps {
        code.push(ldi(5, warp));
        code.push(Op::Wspawn { dst: r(4), pc: r(3), src: r(5) }.into());
    }
    code
}

/// Repeats code `%r8` times.
fn repeat(times: i64, body: impl IntoIterator<Item = Instruction>) -> Vec<Instruction> {
    let mut code = vec![Op::Addi { dst: r(8), src: r(4), imm: times }.into()];
    code.extend(body);
    code.push(Op::Subi { dst: r(8), src: r(8), imm: 1 }.into());
    code.push(Op::Rtop { dst: p(1), src: r(8) }.into());
    code.push(on(1, Op::Jmpi { rel: -4 * code.len() as i64 }));
    code
}

#[test]
fn warps_that_race() {
    // Everybody adds its number to the same word, in rounds that are never the same for long.
    for pause in [0, 1, 5] {
        let mut code = everybody(4);
        let mut body = vec![ldi(9, OUT), ld(10, 9, 0)];
        body.extend(quiet(pause));
        body.push(Op::Add { dst: r(10), a: r(10), b: r(4) }.into());
        body.push(st(10, 9, 0));
        // The odd ones wait a little.
        body.push(Op::Andi { dst: r(11), src: r(4), imm: 1 }.into());
        body.push(Op::Rtop { dst: p(2), src: r(11) }.into());
        body.push(on(2, Op::Jmpi { rel: 4 }));
        body.push(Op::Nop {}.into());
        code.extend(repeat(3, body));
        code.push(halt());
        assert_eq!(compare("4w16/8/4/4", &code).trap, None);
    }
}

#[test]
fn output_comes_in_the_order_of_rounds() {
    let mut code = everybody(4);
    code.extend([ldi(9, 1), Op::Shli { dst: r(9), src: r(9), imm: 31 }.into()]);
    let mut body: Vec<_> = quiet(3).collect();
    body.extend([Op::Addi { dst: r(10), src: r(4), imm: 65 }.into(), st(10, 9, 0)]);
    code.extend(repeat(2, body));
    code.push(halt());
    let run = compare("4w16/8/4/4", &code);
    assert_eq!(run.console.len(), 2 + 3 + 4 + 5);
}

#[test]
fn barriers_and_late_spawns() {
    let mut code = everybody(3);
    let mut body: Vec<_> = quiet(4).collect();
    body.extend([ldi(9, 1), ldi(10, 3), Op::Bar { id: r(9), warps: r(10) }.into()]);
    body.extend(quiet(2));
    // The fourth warp is started in the middle, and joins nobody.
    body.push(Op::Wspawn { dst: r(4), pc: r(3), src: r(4) }.into());
    code.push(ldi(8, 3));
    code.extend(body.into_iter().cycle().take(30));
    code.push(halt());
    compare("4w16/8/4/4", &code);
}

#[test]
fn a_trap_stops_the_others_where_they_are() {
    // Warp 2 divides by zero after some rounds, in the midst of what concerns the others alone.
    for rounds in [0, 1, 7] {
        let mut code = everybody(4);
        code.extend(quiet(rounds));
        code.push(Op::Subi { dst: r(9), src: r(4), imm: 2 }.into());
        code.push(Op::Div { dst: r(10), a: r(4), b: r(9) }.into());
        code.extend(quiet(9));
        code.push(halt());
        let run = compare("4w16/8/4/4", &code);
        let trap = run.trap.unwrap();
        assert!(matches!(trap.kind, TrapKind::NoHandler { .. }) && trap.warp == 2, "{trap:?}");
    }
}

#[test]
fn code_that_changes_under_others() {
    // Warp 3 replaces what the others are about to do.
    let place = 4 * (3 + 2 * 3 + 5 + 12);
    let replacement: Instruction = Op::Addi { dst: r(6), src: r(6), imm: 1000 }.into();
    for delay in 0..8 {
        let mut code = everybody(4);
        code.push(Op::Subi { dst: r(9), src: r(4), imm: 3 }.into());
        code.push(Op::Iszero { dst: p(2), src: r(9) }.into());
        code.extend([ldi(10, place), ldi(11, OUT), ld(12, 11, 0)]);
        code.extend(quiet(delay));
        code.push(on(2, Op::St { value: r(12), base: r(10), offset: 0 }));
        code.extend(quiet(24 - delay));
        code.push(Op::Subi { dst: r(13), src: r(13), imm: 1 }.into());
        code.push(Op::Addi { dst: r(14), src: r(13), imm: 3 }.into());
        code.push(Op::Rtop { dst: p(1), src: r(14) }.into());
        code.push(on(1, Op::Jmpi { rel: -4 * 28 }));
        code.push(halt());
        let arch: ArchId = "4w16/8/4/4".parse().unwrap();
        code.resize(OUT as usize / 4, halt());
        code.push(replacement);
        assert!(assemble(arch, &code).len() > OUT as usize);
        assert_eq!(compare("4w16/8/4/4", &code).trap, None);
    }
}

#[test]
fn input_interrupts_warp_0_among_others() {
    let mut code = everybody(3);
    code.push(Op::Rtop { dst: p(1), src: r(4) }.into());
    let skip = code.len();
    code.extend([halt(), halt()]);
    code.extend([Instruction::from(Op::Di {}), Op::Skep { entry: r(9) }.into()]);
    code.extend(quiet(5));
    code.push(Op::Ei {}.into());
    code[skip] = on(1, Op::Jmpi { rel: 4 * (code.len() - skip - 1) as i64 });
    code.extend(quiet(40));
    code.push(halt());
    code[skip + 1] = ldi(9, 4 * code.len() as i64);
    code.extend([ldi(9, 1), Op::Shli { dst: r(9), src: r(9), imm: 31 }.into(), ld(10, 9, 0)]);
    code.extend([st(10, 9, 0), Op::Reti {}.into()]);
    let run = compare("4w16/8/4/3", &code);
    assert_eq!((run.trap, run.console.as_slice()), (None, &b"xyz"[..]));
}

/// Counts how often it is asked.
struct Asked(Arc<AtomicU64>);

impl Console for Asked {
    fn write(&mut self, _: u8) {}

    fn poll(&mut self) -> Option<u8> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// A loop of instructions that concern nobody but their warp is not done one by one: a console that may
/// interrupt it is asked once in many rounds.
#[test]
fn rounds_are_done_many_at_once() {
    for warps in [1, 4] {
        let mut code = vec![ldi(9, 4 * 3), Op::Skep { entry: r(9) }.into(), Op::Nop {}.into()];
        let mut all = everybody(warps);
        all[0] = ldi(3, 4 * (3 + 3 + 2 * (warps - 1)));
        code.extend(all);
        code.extend(repeat(1000, quiet(12)));
        code.push(halt());
        let arch: ArchId = "4w16/8/4/4".parse().unwrap();
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &assemble(arch, &code)).unwrap();
        let fuel = Some(1_000_000);
        let config = MachineConfig { input: Vec::new(), fuel, ..round_config(arch) };
        let mut machine = Machine::new(config, &memory).unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        machine.set_console(Asked(asked.clone()));
        let rounds = machine.run().unwrap().steps();
        let asked = asked.load(Ordering::Relaxed);
        assert!(rounds > 15_000 && asked * 100 < rounds, "asked {asked} times in {rounds} rounds");
    }
}

/// The round in which a trap ends the run is one, as the warp's last instruction is.
#[test]
fn machine_steps_and_steps_agree_after_a_trap() {
    for count in [0, 1, 5] {
        let mut code: Vec<_> = quiet(count).collect();
        code.push(Op::Trap {}.into());
        let run = compare("4w16/8/4/1", &code);
        assert!(run.trap.is_some());
        assert_eq!((run.stats.steps(), run.stats.issued()), (count as u64 + 1, count as u64 + 1));
    }
}
