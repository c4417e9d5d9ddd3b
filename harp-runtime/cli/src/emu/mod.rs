//! `harp emu`: runs a flat image on an emulated machine, as the original emulator does.

mod console;
mod report;
mod trace;

pub(super) use trace::Tracing;

use std::io::{self, IsTerminal};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use harp_emu::{
    DivergentBarriers, Floats, HostTier, Interrupts, Machine, MachineConfig, Memory, Reconvergence,
    Schedule, SpawnPolicy, Translation, Trap,
};
use harp_isa::{MAX_ENCODED_BYTES, decode};

use super::Target;
use super::error::CliError;
use super::files::Input;
use super::numbers::{number, seconds, size};
use super::options::TierOption;
use console::Terminal;

/// Memory comes in multiples of this many bytes, as in the original emulator.
const RAM_UNIT: u64 = 16 << 20;

/// Run a flat image on an emulated machine
#[derive(Args)]
#[command(
    long_about = "Run a flat image on an emulated machine

The image is loaded at address 0. Each core starts there in lane 0 of warp 0, as on the original
emulator: interrupts go to the guest's handlers, pages are translated, the warps take turns after
each instruction.

The program's console output goes to standard output; with several cores it is printed at the end, core
by core. Statistics follow. A trap, a deadlock or running out of fuel is reported on standard error and
by the exit code.",
    after_help = "Examples:
  harp emu -a harp32 -b -s main.bin
  harp emu -a 4w16/16/8/8 -i -s -b -c main.bin
  echo abc | harp emu -a harp64 -b --fuel 1000000 upper.bin
  harp emu -a harp32 -b --trace divergence --trace-format json --trace-file splits.jsonl main.bin
  harp emu -a harp32 -b --collect branches,lanes --stats-format json main.bin | tail -n 1"
)]
pub(super) struct Emu {
    /// The image; `-` is standard input, which leaves the console without input
    #[arg(value_name = "FILE.bin", required_unless_present = "core")]
    image: Option<Input>,
    #[command(flatten)]
    target: Target,
    /// The image, given as for the original emulator
    #[arg(short, long, value_name = "FILE.bin", conflicts_with = "image")]
    core: Option<Input>,
    /// Basic machine: addresses are physical, there is no TLB
    #[arg(short, long)]
    basic: bool,
    /// Batch: the console has no input. Otherwise its input is what is typed, or, if standard input is not
    /// a terminal, all of standard input, read before the run
    #[arg(short = 'i', long)]
    batch: bool,
    /// Compute floats as the original emulator does, not as IEEE 754 says
    #[arg(long)]
    reference_floats: bool,
    /// Reconverge divergent loops at their `split`
    #[arg(long)]
    pdom: bool,
    /// Trap where a lane reads from a shared register what it has not written itself
    #[arg(long)]
    audit_shared: bool,
    /// How instructions are carried out, with the same results. Host code is for basic machines
    #[arg(long, value_enum, default_value_t)]
    tier: TierOption,
    /// Stop each core after this many instructions
    #[arg(long, value_name = "N", value_parser = number)]
    fuel: Option<u64>,
    /// Stop after this many seconds, such as 0.5 or 60
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// The number of cores, which share the memory
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..))]
    cores: u16,
    /// The size of the memory, such as 65536, 512K or 64M [default: the image's, rounded up to 16M]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    ram: Option<u64>,
    /// The most entries of a warp's divergence stack
    #[arg(long, value_name = "N", default_value_t = 4096)]
    divergence_depth: usize,
    /// The bytes of the segments in which `--collect memory` counts
    #[arg(long, value_name = "BYTES", default_value = "64")]
    segment_bytes: NonZeroU32,
    #[command(flatten)]
    trace: Tracing,
    #[command(flatten)]
    report: report::Reporting,
}

impl Emu {
    pub(super) fn run(self) -> Result<(), CliError> {
        let file = self.image().clone();
        let image = file.read()?;
        let ram = self.ram.unwrap_or((image.len().max(1) as u64).next_multiple_of(RAM_UNIT));
        let in_memory = |source| CliError::Memory { file: file.clone(), source };
        let memory = Memory::new(self.target.arch.word(), ram).map_err(in_memory)?;
        memory.write(0, &image).map_err(in_memory)?;

        let mut machine = Machine::new(self.config()?, &memory)?;
        if let Some(native) = self.tier.native() {
            let tier: Arc<dyn HostTier> = Arc::new(native);
            machine.set_host_tier(&tier);
        }
        let terminal = (self.cores == 1).then(|| match self.is_interactive() {
            true => Terminal::with_keyboard(),
            false => Terminal::without_keyboard(),
        });
        if let Some(terminal) = &terminal {
            machine.set_console(terminal.clone());
        }
        let outcome = match self.trace.writer()? {
            None => machine.run(),
            Some(mut writer) => {
                let outcome = machine.run_observed(&mut writer);
                self.trace.finish(writer)?;
                outcome
            }
        };
        let last = match terminal {
            Some(terminal) => terminal.finish().map_err(CliError::stdout)?,
            None => report::print_console(&machine.console()).map_err(CliError::stdout)?,
        };
        self.report.print(&machine, last).map_err(CliError::stdout)?;
        outcome.map(drop).map_err(|trap| {
            let instruction = self.instruction_at(&trap, &memory);
            CliError::Trap { trap, instruction }
        })
    }

    fn image(&self) -> &Input {
        self.image.as_ref().or(self.core.as_ref()).expect("clap asks for one of the two")
    }

    /// The original's machine, changed by the options.
    fn config(&self) -> Result<MachineConfig, CliError> {
        Ok(MachineConfig {
            cores: self.cores,
            fuel: self.fuel,
            time_limit: self.time_limit,
            divergence_depth: self.divergence_depth,
            interrupts: Interrupts::Guest,
            translation: if self.basic { Translation::Physical } else { Translation::Tlb },
            floats: if self.reference_floats { Floats::Reference } else { Floats::Ieee },
            audit_shared: self.audit_shared,
            reconvergence: if self.pdom { Reconvergence::Pdom } else { Reconvergence::Join },
            divergent_barriers: DivergentBarriers::Allow,
            spawn: SpawnPolicy::Original,
            schedule: Schedule::Step,
            input: self.input()?,
            collect: self.report.collect(),
            segment_bytes: self.segment_bytes,
            ..MachineConfig::new(self.target.arch)
        })
    }

    /// Whether the console takes what is typed. With several cores it never does.
    fn is_interactive(&self) -> bool {
        self.takes_input() && self.cores == 1 && io::stdin().is_terminal()
    }

    fn takes_input(&self) -> bool {
        !self.batch && *self.image() != Input::Stdin
    }

    /// The console's input as far as it is known before the run.
    fn input(&self) -> Result<Vec<u8>, CliError> {
        match self.takes_input() && !self.is_interactive() {
            true => Input::Stdin.read(),
            false => Ok(Vec::new()),
        }
    }

    /// The instruction at which a run stopped, as text; `None` with a TLB, where its virtual address does not
    /// tell where in memory it lies.
    fn instruction_at(&self, trap: &Trap, memory: &Memory) -> Option<String> {
        let left = memory.size().checked_sub(trap.pc).filter(|_| self.basic)?;
        let mut bytes = [0; MAX_ENCODED_BYTES];
        let bytes = &mut bytes[..left.min(MAX_ENCODED_BYTES as u64) as usize];
        memory.read(trap.pc, bytes).ok()?;
        let (instruction, _) = decode(bytes, self.target.arch).ok()?;
        Some(instruction.display(self.target.arch).to_string())
    }
}
