//! Programs made of choices.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};

use arbitrary::{Result, Unstructured};
use harp_emu::{DivergentBarriers, Interrupts, MachineConfig, Schedule, SpawnPolicy};
use harp_isa::{
    ArchId, Encoding, Opcode, OpcodeFlags, OperandDesc, OperandKind, WordSize, listing,
};

use super::super::isa;
use super::writer::{CONSTANTS, MAX_WARPS, Writer};

/// Bytes of memory. Everything is in reach of `ldi`'s immediate on all machines that are made.
pub(super) const MEMORY: u64 = 0x1_0000;

/// What a program promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Warps do not race, and nothing shows the order of atomic operations.
    RaceFree,
    /// Anything may happen.
    Wild,
}

/// A program, from address 0 on, and its machine.
pub(super) struct Program {
    pub(super) config: MachineConfig,
    pub(super) kind: Kind,
    pub(super) image: Vec<u8>,
    /// Bytes of code in the image.
    code_bytes: usize,
}

impl Program {
    /// The program that choices lead to; its machine has shared registers if that is asked for. Fails if they ask for a
    /// machine whose instructions do not fit a word.
    pub(super) fn new(u: &mut Unstructured<'_>, is_shared: bool) -> Result<Program> {
        if u.ratio(1, 8)? {
            return Program::noise(u, is_shared);
        }
        let mut config = config(u)?;
        if is_shared {
            config.arch = with_shared(u, config.arch)?;
        }
        let kind = if u.ratio(1, 3)? { Kind::Wild } else { Kind::RaceFree };
        let cores = if kind == Kind::Wild { 1 } else { config.cores };
        let mut image = Writer::new(u, config.arch, kind).program()?;
        let code_bytes = image.len();
        image.resize(CONSTANTS as usize, 0);
        image.extend_from_slice(u.bytes(u.len().min(0x400))?);
        let config = MachineConfig { cores, ..config };
        Ok(Program { config, kind, image, code_bytes })
    }

    /// Bytes as they come, on any machine.
    fn noise(u: &mut Unstructured<'_>, is_shared: bool) -> Result<Program> {
        let mut arch = isa::arch(u)?;
        if is_shared {
            let [gprs, preds] = [u.int_in_range(1..=56)?, u.int_in_range(0..=62)?];
            let [gprs, preds] = [gprs.min(64 - arch.gprs()), preds.min(64 - arch.preds())];
            arch = arch.with_shared(gprs, preds).map_err(|_| arbitrary::Error::IncorrectFormat)?;
        }
        let lanes = u.int_in_range(1..=64)?;
        let arch = arch.with_lanes(lanes).map_err(|_| arbitrary::Error::IncorrectFormat)?;
        let arch = arch.with_warps(2).map_err(|_| arbitrary::Error::IncorrectFormat)?;
        let config = MachineConfig { arch, cores: 1, ..config(u)? };
        let mut image = u.bytes(u.len())?.to_vec();
        isa::guard_noise(arch, &mut image);
        let code_bytes = image.len();
        Ok(Program { config, kind: Kind::Wild, image, code_bytes })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arch = self.config.arch;
        writeln!(f, "{:?} program for {arch}:", self.kind)?;
        write!(f, "{}", listing(&self.image[..self.code_bytes], 0, arch))
    }
}

/// Whether the result may be a NaN, whose bits are not specified.
pub(super) fn may_make_nan(opcode: Opcode) -> bool {
    use Opcode::{Fabs, Fneg, Ftoi, Ftou, Itof, Utof};
    let has_result =
        matches!(opcode.operands()[..], [OperandDesc { kind: OperandKind::Gpr(_), .. }, ..]);
    has_result
        && opcode.flags().contains(OpcodeFlags::FLOAT)
        && ![Itof, Utof, Ftoi, Ftou, Fneg, Fabs].contains(&opcode)
}

/// The orders in which a core's warps take turns.
pub(super) fn schedules() -> [Schedule; 5] {
    let quantum = |n| Schedule::Quantum(NonZeroU32::new(n).expect("not zero"));
    [Schedule::Step, quantum(1), quantum(7), quantum(4096), Schedule::Seeded(9)]
}

/// The machine with shared registers, so many that 16 bits are left for the immediate of `ldi`.
fn with_shared(u: &mut Unstructured<'_>, arch: ArchId) -> Result<ArchId> {
    let gprs = u.int_in_range(1..=32 - arch.gprs())?;
    let preds = u.int_in_range(0..=16 - arch.preds())?;
    arch.with_shared(gprs, preds).map_err(|_| arbitrary::Error::IncorrectFormat)
}

fn config(u: &mut Unstructured<'_>) -> Result<MachineConfig> {
    let word = *u.choose(&[WordSize::Four, WordSize::Eight])?;
    let encoding = *u.choose(&[Encoding::Word, Encoding::Byte])?;
    let refused = |_| arbitrary::Error::IncorrectFormat;
    // With more registers a word of 4 bytes has no room for the addresses of the data.
    let most_gprs = if word == WordSize::Four { 16 } else { 18 };
    let arch =
        ArchId::new(word, encoding, u.int_in_range(16..=most_gprs)?, u.int_in_range(8..=16)?)
            .map_err(refused)?
            .with_lanes(*u.choose(&[1, 2, 5, 8, 16, 23, 32, 33, 64])?)
            .and_then(|arch| arch.with_warps(MAX_WARPS))
            .and_then(|arch| arch.with_extension(true))
            .map_err(refused)?;
    Ok(MachineConfig {
        cores: u.int_in_range(1..=2)?,
        fuel: Some(4000),
        divergence_depth: *u.choose(&[4096, 4096, 6])?,
        interrupts: *u.choose(&[Interrupts::Trap, Interrupts::Guest])?,
        divergent_barriers: *u
            .choose(&[DivergentBarriers::Allow, DivergentBarriers::Trap { outer_split: None }])?,
        spawn: *u.choose(&[SpawnPolicy::Strict, SpawnPolicy::Original])?,
        schedule: *u.choose(&schedules())?,
        host_threads: Some(NonZeroUsize::MIN),
        read_only_below: *u.choose(&[0, 0, 0x4400])?,
        input: u.choose(&[&b""[..], b"input"])?.to_vec(),
        ..MachineConfig::new(arch)
    })
}
