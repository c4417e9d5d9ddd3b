//! Traces line by line, errors of who writes them, stepping under observation, and whether the memory
//! that observers are told about is the memory that is used.

use std::io::{self, Write};

use expect_test::{Expect, expect};
use harp_emu::{
    AccessKind, Issue, Machine, MachineConfig, Memory, MemoryAccess, Observer, Retire, Trace,
    TraceFormat, TraceWriter, TrapKind,
};
use harp_isa::{ArchId, Instruction, Op, Opcode, OpcodeFlags, Operand, OperandKind, Role};

use crate::common::*;

fn loaded(arch: ArchId, code: &[Instruction]) -> Memory {
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, code)).unwrap();
    memory
}

fn config(arch: ArchId) -> MachineConfig {
    MachineConfig { fuel: Some(1000), ..MachineConfig::new(arch) }
}

/// What is written about a run, which may trap.
fn traced(arch: &str, code: &[Instruction], trace: Trace, format: TraceFormat) -> String {
    let arch: ArchId = arch.parse().unwrap();
    let memory = loaded(arch, code);
    let mut machine = Machine::new(config(arch), &memory).unwrap();
    let mut writer = TraceWriter::new(trace, format, Vec::new());
    let _ = machine.run_observed(&mut writer);
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

/// Four lanes; lanes 2 and 3 go one way.
fn program() -> Vec<Instruction> {
    vec![
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        Op::Tid { dst: r(0) }.into(),
        Op::Shli { dst: r(3), src: r(0), imm: 2 }.into(),
        st(0, 3, 0x100),
        ld(4, 3, 0x104),
        ld(5, 6, 0x108),
        Op::Andi { dst: r(7), src: r(0), imm: 2 }.into(),
        Op::Rtop { dst: p(1), src: r(7) }.into(),
        on(1, ldi(7, 9).op),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: 0 }),
        Op::Join {}.into(),
        Op::Addi { dst: r(3), src: r(3), imm: 0x100 }.into(),
        Op::AmoAdd { dst: r(6), addr: r(3), value: r(1) }.into(),
        on(0, ld(4, 3, 0x100).op),
        Op::Divi { dst: r(4), src: r(4), imm: 0 }.into(),
    ]
}

const ARCH: &str = "4w8/8/4/1+x";

fn check(trace: Trace, format: TraceFormat, expected: &Expect) {
    expected.assert_eq(&traced(ARCH, &program(), trace, format));
}

#[test]
fn divergence_as_text() {
    check(
        Trace::Divergence,
        TraceFormat::Text,
        &expect![[r#"
            core 0 warp 0 pc 0x28 split: 1111 -> 0011, push 1111 1100@0x2c, depth 0 -> 2
            core 0 warp 0 pc 0x30 join: 0011 -> 1100, pop 1100@0x2c, depth 2 -> 1
            core 0 warp 0 pc 0x30 join: 1100 -> 1111, pop 1111, depth 1 -> 0
        "#]],
    );
}

#[test]
fn divergence_as_json() {
    check(
        Trace::Divergence,
        TraceFormat::JsonLines,
        &expect![[r#"
            {"event":"split","core":0,"warp":0,"pc":"0x28","before":"1111","executing":"0011","pushed":[{"mask":"1111","resume":null},{"mask":"1100","resume":"0x2c"}],"popped":[],"after":"0011","depth_before":0,"depth_after":2,"trap":null}
            {"event":"join","core":0,"warp":0,"pc":"0x30","before":"0011","executing":"0011","pushed":[],"popped":[{"mask":"1100","resume":"0x2c"}],"after":"1100","depth_before":2,"depth_after":1,"trap":null}
            {"event":"join","core":0,"warp":0,"pc":"0x30","before":"1100","executing":"1100","pushed":[],"popped":[{"mask":"1111","resume":null}],"after":"1111","depth_before":1,"depth_after":0,"trap":null}
        "#]],
    );
}

#[test]
fn instructions_as_text() {
    check(
        Trace::Instructions,
        TraceFormat::Text,
        &expect![[r#"
        core 0 warp 0 pc 0x0 active 1000 executing 1000: ldi %r1 #0x4; | %r1 = 0x4
        core 0 warp 0 pc 0x4 active 1000 executing 1000: jalis %r2 %r1 #0x0; | %r2 = 0x8
        core 0 warp 0 pc 0x8 active 1111 executing 1111: tid %r0 ; | %r0 = 0x0 0x1 0x2 0x3
        core 0 warp 0 pc 0xc active 1111 executing 1111: shli %r3 %r0 #0x2; | %r3 = 0x0 0x4 0x8 0xc
        core 0 warp 0 pc 0x10 active 1111 executing 1111: st %r0 %r3 #0x100; | store 0x100 0x104 0x108 0x10c = 0x0 0x1 0x2 0x3
        core 0 warp 0 pc 0x14 active 1111 executing 1111: ld %r4 %r3 #0x104; | load 0x104 0x108 0x10c 0x110 | %r4 = 0x1 0x2 0x3 0x0
        core 0 warp 0 pc 0x18 active 1111 executing 1111: ld %r5 %r6 #0x108; | load 0x108 | %r5 = 0x2
        core 0 warp 0 pc 0x1c active 1111 executing 1111: andi %r7 %r0 #0x2; | %r7 = 0x0 0x0 0x2 0x2
        core 0 warp 0 pc 0x20 active 1111 executing 1111: rtop @p1 %r7 ; | @p1 = 0x0 0x0 0x1 0x1
        core 0 warp 0 pc 0x24 active 1111 executing 0011: @p1 ? ldi %r7 #0x9; | %r7 = 0x9
        core 0 warp 0 pc 0x28 active 1111 executing 0011: @p1 ? split ;
        core 0 warp 0 pc 0x28 split: 1111 -> 0011, push 1111 1100@0x2c, depth 0 -> 2
        core 0 warp 0 pc 0x2c active 0011 executing 0011: @p1 ? jmpi #0x0;
        core 0 warp 0 pc 0x30 active 0011 executing 0011: join ;
        core 0 warp 0 pc 0x30 join: 0011 -> 1100, pop 1100@0x2c, depth 2 -> 1
        core 0 warp 0 pc 0x2c active 1100 executing 0000: @p1 ? jmpi #0x0;
        core 0 warp 0 pc 0x30 active 1100 executing 1100: join ;
        core 0 warp 0 pc 0x30 join: 1100 -> 1111, pop 1111, depth 1 -> 0
        core 0 warp 0 pc 0x34 active 1111 executing 1111: addi %r3 %r3 #0x100; | %r3 = 0x100 0x104 0x108 0x10c
        core 0 warp 0 pc 0x38 active 1111 executing 1111: amoadd %r6 %r3 %r1 ; | atomic 0x100 0x104 0x108 0x10c | %r6 = 0x0 0x1 0x2 0x3
        core 0 warp 0 pc 0x3c active 1111 executing 0000: @p0 ? ld %r4 %r3 #0x100;
        core 0 warp 0 pc 0x40 active 1111 executing 1111: divi %r4 %r4 #0x0; | trap: division by zero
    "#]],
    );
}

#[test]
fn instructions_as_json() {
    check(
        Trace::Instructions,
        TraceFormat::JsonLines,
        &expect![[r#"
        {"event":"instruction","core":0,"warp":0,"pc":"0x0","text":"ldi %r1 #0x4;","active":"1000","executing":"1000","writes":[{"register":"%r1","values":["0x4"]}],"access":null,"next":"0x4","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x4","text":"jalis %r2 %r1 #0x0;","active":"1000","executing":"1000","writes":[{"register":"%r2","values":["0x8"]}],"access":null,"next":"0x8","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x8","text":"tid %r0 ;","active":"1111","executing":"1111","writes":[{"register":"%r0","values":["0x0","0x1","0x2","0x3"]}],"access":null,"next":"0xc","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0xc","text":"shli %r3 %r0 #0x2;","active":"1111","executing":"1111","writes":[{"register":"%r3","values":["0x0","0x4","0x8","0xc"]}],"access":null,"next":"0x10","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x10","text":"st %r0 %r3 #0x100;","active":"1111","executing":"1111","writes":[],"access":{"kind":"store","addresses":["0x100","0x104","0x108","0x10c"],"values":["0x0","0x1","0x2","0x3"]},"next":"0x14","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x14","text":"ld %r4 %r3 #0x104;","active":"1111","executing":"1111","writes":[{"register":"%r4","values":["0x1","0x2","0x3","0x0"]}],"access":{"kind":"load","addresses":["0x104","0x108","0x10c","0x110"],"values":[]},"next":"0x18","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x18","text":"ld %r5 %r6 #0x108;","active":"1111","executing":"1111","writes":[{"register":"%r5","values":["0x2","0x2","0x2","0x2"]}],"access":{"kind":"load","addresses":["0x108","0x108","0x108","0x108"],"values":[]},"next":"0x1c","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x1c","text":"andi %r7 %r0 #0x2;","active":"1111","executing":"1111","writes":[{"register":"%r7","values":["0x0","0x0","0x2","0x2"]}],"access":null,"next":"0x20","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x20","text":"rtop @p1 %r7 ;","active":"1111","executing":"1111","writes":[{"register":"@p1","values":["0x0","0x0","0x1","0x1"]}],"access":null,"next":"0x24","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x24","text":"@p1 ? ldi %r7 #0x9;","active":"1111","executing":"0011","writes":[{"register":"%r7","values":["0x9","0x9"]}],"access":null,"next":"0x28","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x28","text":"@p1 ? split ;","active":"1111","executing":"0011","writes":[],"access":null,"next":"0x2c","trap":null}
        {"event":"split","core":0,"warp":0,"pc":"0x28","before":"1111","executing":"0011","pushed":[{"mask":"1111","resume":null},{"mask":"1100","resume":"0x2c"}],"popped":[],"after":"0011","depth_before":0,"depth_after":2,"trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x2c","text":"@p1 ? jmpi #0x0;","active":"0011","executing":"0011","writes":[],"access":null,"next":"0x30","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x30","text":"join ;","active":"0011","executing":"0011","writes":[],"access":null,"next":"0x2c","trap":null}
        {"event":"join","core":0,"warp":0,"pc":"0x30","before":"0011","executing":"0011","pushed":[],"popped":[{"mask":"1100","resume":"0x2c"}],"after":"1100","depth_before":2,"depth_after":1,"trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x2c","text":"@p1 ? jmpi #0x0;","active":"1100","executing":"0000","writes":[],"access":null,"next":"0x30","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x30","text":"join ;","active":"1100","executing":"1100","writes":[],"access":null,"next":"0x34","trap":null}
        {"event":"join","core":0,"warp":0,"pc":"0x30","before":"1100","executing":"1100","pushed":[],"popped":[{"mask":"1111","resume":null}],"after":"1111","depth_before":1,"depth_after":0,"trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x34","text":"addi %r3 %r3 #0x100;","active":"1111","executing":"1111","writes":[{"register":"%r3","values":["0x100","0x104","0x108","0x10c"]}],"access":null,"next":"0x38","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x38","text":"amoadd %r6 %r3 %r1 ;","active":"1111","executing":"1111","writes":[{"register":"%r6","values":["0x0","0x1","0x2","0x3"]}],"access":{"kind":"atomic","addresses":["0x100","0x104","0x108","0x10c"],"values":[]},"next":"0x3c","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x3c","text":"@p0 ? ld %r4 %r3 #0x100;","active":"1111","executing":"0000","writes":[],"access":{"kind":"load","addresses":[],"values":[]},"next":"0x40","trap":null}
        {"event":"instruction","core":0,"warp":0,"pc":"0x40","text":"divi %r4 %r4 #0x0;","active":"1111","executing":"1111","writes":[],"access":null,"next":"0x44","trap":"division by zero"}
    "#]],
    );
}

#[test]
fn traps_of_splits_and_joins() {
    let join = traced(ARCH, &[Op::Join {}.into()], Trace::Divergence, TraceFormat::Text);
    expect![[r#"
        core 0 warp 0 pc 0x0 join: 1000, trap: `join` on an empty divergence stack
    "#]]
    .assert_eq(&join);

    let arch: ArchId = ARCH.parse().unwrap();
    let memory = loaded(arch, &[Op::Split {}.into(), Op::Split {}.into()]);
    let config = MachineConfig { divergence_depth: 1, ..config(arch) };
    let mut machine = Machine::new(config, &memory).unwrap();
    let mut writer = TraceWriter::new(Trace::Divergence, TraceFormat::Text, Vec::new());
    let trap = machine.run_observed(&mut writer).unwrap_err();
    assert_eq!(trap.kind, TrapKind::StackOverflow { limit: 1 });
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    expect![[r#"
        core 0 warp 0 pc 0x0 split: 1000 -> 1000, push 1000, depth 0 -> 1
        core 0 warp 0 pc 0x4 split: 1000, trap: `split` with all 1 entries of the divergence stack in use
    "#]]
    .assert_eq(&text);
}

#[test]
fn no_trace_is_empty() {
    check(Trace::None, TraceFormat::Text, &expect![""]);
    check(Trace::None, TraceFormat::JsonLines, &expect![""]);
}

/// Takes so many bytes, then fails for ever, each time differently.
struct Full {
    left: usize,
    taken: Vec<u8>,
    refused: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.left);
        if count == 0 {
            self.refused += 1;
            return Err(io::Error::other(format!("refused {}", self.refused)));
        }
        self.taken.extend(&bytes[..count]);
        self.left -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_writer_stay_until_the_end() {
    let arch: ArchId = ARCH.parse().unwrap();
    let whole = traced(ARCH, &program(), Trace::Instructions, TraceFormat::Text);
    for left in [0, 1, 100, whole.len() - 1, whole.len()] {
        let memory = loaded(arch, &program());
        let mut machine = Machine::new(config(arch), &memory).unwrap();
        let mut out = Full { left, taken: Vec::new(), refused: 0 };
        let mut writer = TraceWriter::new(Trace::Instructions, TraceFormat::Text, &mut out);
        // The run does not care.
        assert_eq!(machine.run_observed(&mut writer).unwrap_err().kind, TrapKind::DivideByZero);
        let fails = left < whole.len();
        assert_eq!(writer.error().is_some(), fails);
        let message = writer.finish().err().map(|error| error.to_string());
        assert_eq!(message, fails.then(|| "refused 1".to_owned()));
        assert_eq!(out.refused, usize::from(fails));
        assert_eq!(out.taken, whole.as_bytes()[..left]);
    }
}

/// How often which method was called, and with what pc.
#[derive(Default)]
struct Calls(Vec<(char, u16, u8, u64)>);

impl Observer for Calls {
    fn issue(&mut self, issue: &Issue<'_>) {
        assert_eq!(issue.state.pc(), issue.pc);
        self.0.push(('i', issue.core, issue.warp, issue.pc));
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        self.0.push(('r', retire.core, retire.warp, retire.pc));
    }
}

#[test]
fn steps_can_be_observed() {
    let arch: ArchId = "4w8/8/1/2".parse().unwrap();
    let memory = loaded(
        arch,
        &[ldi(1, 8), Op::Wspawn { dst: r(2), pc: r(1), src: r(1) }.into(), ldi(3, 1), halt()],
    );
    let config = MachineConfig { cores: 2, ..config(arch) };
    let mut machine = Machine::new(config, &memory).unwrap();
    let mut calls = Calls::default();
    assert!(machine.step_observed(&mut calls).unwrap());
    assert_eq!(calls.0, [('i', 0, 0, 0), ('r', 0, 0, 0), ('i', 1, 0, 0), ('r', 1, 0, 0)]);

    calls.0.clear();
    assert!(machine.step_warp_observed(1, 0, &mut calls).unwrap());
    assert_eq!(calls.0, [('i', 1, 0, 4), ('r', 1, 0, 4)]);
    // Core 0 has no warp 1 yet, and there is no core 2.
    calls.0.clear();
    assert!(!machine.step_warp_observed(0, 1, &mut calls).unwrap());
    assert!(!machine.step_warp_observed(2, 0, &mut calls).unwrap());
    assert_eq!(calls.0, []);

    // In the next step warp 0 of core 0 starts its warp 1, which runs at once, as do both of core 1.
    let found = machine.run_until_observed(12, &mut calls).unwrap();
    assert_eq!(found, Some((0, 1)));
    let pcs = calls.0.iter().filter(|call| call.0 == 'i').map(|call| (call.1, call.2, call.3));
    assert_eq!(pcs.collect::<Vec<_>>(), [(0, 0, 4), (0, 1, 8), (1, 0, 8), (1, 1, 8)]);
    assert_eq!(machine.run_until_observed(0x1000, &mut calls).unwrap(), None);
}

/// The last access to memory.
#[derive(Default)]
struct LastAccess(Option<MemoryAccess>);

impl Observer for LastAccess {
    fn issue(&mut self, issue: &Issue<'_>) {
        if let Some(access) = issue.memory_access() {
            self.0 = Some(access);
        }
    }
}

const DATA: u64 = 0x1000;

/// `opcode` with its address in `%r1` (and an offset of -1, where it has one), what it stores in
/// `%r2`, its destination `%r3`.
fn memory_op(opcode: Opcode) -> Op {
    let operand = |desc: &harp_isa::OperandDesc| match (desc.kind, desc.name) {
        (OperandKind::Gpr(Role::Def | Role::Mod), _) => r(3).into(),
        (OperandKind::Gpr(Role::Use), "base" | "addr") => r(1).into(),
        (OperandKind::Gpr(Role::Use), _) => r(2).into(),
        (OperandKind::Imm, _) => Operand::Imm(-1),
        _ => panic!("{opcode:?} has an operand that this test does not know: {desc:?}"),
    };
    let operands: Vec<Operand> = opcode.operands().iter().map(operand).collect();
    Op::from_operands(opcode, &operands).unwrap()
}

/// Runs `op` at `address` in memory filled with `contents`; the access, `%r3`, and the data after.
fn access(arch: ArchId, op: Op, address: u64, contents: &[u8]) -> (MemoryAccess, u64, Vec<u8>) {
    let base = address.wrapping_add(u64::from(!op.opcode().flags().contains(OpcodeFlags::ATOMIC)));
    let code = [ldi(1, base.cast_signed()), ldi(2, -1), op.into(), halt()];
    let memory = loaded(arch, &code);
    memory.write(DATA, contents).unwrap();
    let mut machine = Machine::new(config(arch), &memory).unwrap();
    let mut last = LastAccess::default();
    machine.run_observed(&mut last).unwrap();
    let mut after = vec![0; contents.len()];
    memory.read(DATA, &mut after).unwrap();
    let value = machine.warp(0, 0).unwrap().gpr(r(3), 0).unwrap();
    (last.0.expect("an access"), value, after)
}

#[test]
fn accesses_are_what_observers_are_told() {
    let mut seen = 0;
    for arch in ["4w8/8/1/1+x", "8w8/8/1/1+x"] {
        let arch: ArchId = arch.parse().unwrap();
        let word = arch.word().bytes();
        for &opcode in Opcode::ALL {
            let Some(kind) = AccessKind::of(opcode) else { continue };
            if opcode.flags().contains(OpcodeFlags::WORD8) && word == 4 {
                continue;
            }
            seen += 1;
            let starts = match kind {
                AccessKind::Atomic => vec![DATA + 8],
                _ => (DATA + 8..DATA + 16).collect(),
            };
            for start in starts {
                // Positive bytes, all different, for loads; zeros for what writes ones.
                let contents: Vec<u8> = match kind {
                    AccessKind::Load => (1..=32).collect(),
                    _ => vec![0; 32],
                };
                let (told, value, after) = access(arch, memory_op(opcode), start, &contents);
                assert_eq!((told.kind, told.lanes.len()), (kind, 1), "{opcode:?}");
                let lane = told.lanes[0];
                assert_eq!((lane.lane, lane.address), (0, start), "{opcode:?}");
                let first = (start - DATA) as usize;
                let bytes = first..first + usize::from(lane.bytes);
                match kind {
                    AccessKind::Load => {
                        let mut expected = [0; 8];
                        expected[..bytes.len()].copy_from_slice(&contents[bytes]);
                        assert_eq!(value, u64::from_le_bytes(expected), "{opcode:?} {start:#x}");
                    }
                    _ if leaves_zero(opcode) => assert_eq!(after, contents, "{opcode:?}"),
                    _ => {
                        let mut expected = contents.clone();
                        expected[bytes].fill(0xff);
                        assert_eq!(after, expected, "{opcode:?} {start:#x}");
                    }
                }
            }
        }
    }
    assert_eq!(seen, 11 + 10 + 11 + 20);
}

/// Atomic operations of 0 in memory and -1 whose result is 0.
fn leaves_zero(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(opcode, AmoAnd | AmoMax | AmoMinu | AmoAndw | AmoMaxw | AmoMinuw)
}

#[test]
fn addresses_wrap_and_lanes_that_do_not_execute_use_none() {
    let code = [
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        Op::Tid { dst: r(0) }.into(),
        Op::Subi { dst: r(0), src: r(0), imm: 2 }.into(),
        Op::Isneg { dst: p(0), src: r(0) }.into(),
        on(0, Op::Ldb { dst: r(3), base: r(0), offset: 1 }),
    ];
    let arch: ArchId = ARCH.parse().unwrap();
    let memory = loaded(arch, &code);
    let mut machine = Machine::new(config(arch), &memory).unwrap();
    let mut last = LastAccess::default();
    machine.run_observed(&mut last).unwrap_err();
    let lanes = last.0.unwrap().lanes;
    let used: Vec<_> = lanes.iter().map(|at| (at.lane, at.address, at.bytes)).collect();
    assert_eq!(used, [(0, 0xffff_ffff, 1), (1, 0, 1)]);
}
