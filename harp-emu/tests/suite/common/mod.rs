//! Small programs and machines for them.

pub(crate) mod rounds;

use harp_emu::{Machine, MachineConfig, Memory, Stats, Trap, TrapKind};
use harp_isa::{ArchId, Gpr, Instruction, Op, Pred};

/// A general register.
pub(crate) fn r(index: u8) -> Gpr {
    Gpr::new(index)
}

/// A predicate.
pub(crate) fn p(index: u8) -> Pred {
    Pred::new(index)
}

/// `op` under a guard.
pub(crate) fn on(guard: u8, op: Op) -> Instruction {
    Instruction::new(op).guarded_by(p(guard))
}

/// `%dst := imm`
pub(crate) fn ldi(dst: u8, imm: i64) -> Instruction {
    Op::Ldi { dst: r(dst), imm }.into()
}

/// `%dst :=` the word at `%base + offset`
pub(crate) fn ld(dst: u8, base: u8, offset: i64) -> Instruction {
    Op::Ld { dst: r(dst), base: r(base), offset }.into()
}

/// The word at `%base + offset := %value`
pub(crate) fn st(value: u8, base: u8, offset: i64) -> Instruction {
    Op::St { value: r(value), base: r(base), offset }.into()
}

/// Activates all lanes; `%r1` and `%r2` are lost.
pub(crate) fn all_lanes(arch: ArchId) -> [Instruction; 2] {
    [ldi(1, arch.lanes().into()), Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into()]
}

pub(crate) fn halt() -> Instruction {
    Op::Halt {}.into()
}

pub(crate) fn assemble(arch: ArchId, code: &[Instruction]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for instruction in code {
        harp_isa::encode(instruction, arch, &mut bytes).unwrap();
    }
    bytes
}

/// The image of a program in assembly.
pub(crate) fn assemble_text(arch: ArchId, text: &str) -> Vec<u8> {
    let object = harp_isa::assemble(text, arch, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    harp_isa::link(&[&object], 0).unwrap().bytes
}

/// A machine's memory and what became of it.
pub(crate) struct Run {
    pub(crate) memory: Memory,
    pub(crate) stats: Stats,
    pub(crate) console: Vec<u8>,
    pub(crate) trap: Option<Trap>,
}

impl Run {
    /// The word at `address`.
    pub(crate) fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        let width = usize::from(self.memory.word().bytes());
        self.memory.read(address, &mut bytes[..width]).unwrap();
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn kind(&self) -> &TrapKind {
        &self.trap.as_ref().expect("a trap").kind
    }
}

pub(crate) const MEMORY: u64 = 0x4000;
/// Where programs leave results, beyond their code.
pub(crate) const OUT: i64 = 0x1000;

/// Runs code from address 0.
pub(crate) fn run(
    arch: &str,
    code: &[Instruction],
    adjust: impl FnOnce(&mut MachineConfig),
) -> Run {
    let arch: ArchId = arch.parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, code)).unwrap();
    run_in(arch, memory, adjust)
}

/// Runs what lies in memory.
pub(crate) fn run_in(arch: ArchId, memory: Memory, adjust: impl FnOnce(&mut MachineConfig)) -> Run {
    let mut config = MachineConfig { fuel: Some(100_000), ..MachineConfig::new(arch) };
    adjust(&mut config);
    let mut machine = Machine::new(config, &memory).unwrap();
    let trap = machine.run().err().map(|trap| *trap);
    let (stats, console) = (machine.stats(), machine.console());
    drop(machine);
    Run { memory, stats, console, trap }
}
