//! What shared registers save, counted as in figures 4, 5 and 6 of Lee et al., "Convergence and scalarization for
//! data-parallel architectures" (CGO 2013).
//!
//! Each program runs on machines of some numbers of lanes, without shared registers and with: as many names of registers,
//! of which a quarter is shared. Counted are the kernels and their functions, without the runtime library.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::NonZeroU32;

use harp_emu::{Activity, Collect, Issue, Observer, Profile, RegistersNamed};
use harp_isa::{ArchId, Instruction, Sharing, disassemble};
use harp_jit::{CompileOptions, DivergenceStrategy, FunctionCode, Kernel};
use harp_runtime::{Device, DeviceConfig, LaunchObserver};
use serde::Serialize;

use crate::convergence::{Convergence, Places, Watch};
use crate::measure::options;

mod figures;
mod modules;
mod programs;

pub use figures::scalar_figures;
pub use programs::{Measured, Reader, programs};

/// The lanes of the machines.
pub const WIDTHS: [u8; 4] = [4, 8, 16, 32];

/// The machine of so many lanes, without shared registers and with.
fn machine(lanes: u8, is_shared: bool) -> ArchId {
    let id = match is_shared {
        false => format!("4w32/16/{lanes}/64+x"),
        true => format!("4w24/12/{lanes}/64+x+s8/4"),
    };
    id.parse().expect("there are machines of these sizes")
}

/// Instructions that were issued, by what is known of the lanes that execute them (figure 6a).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Issued {
    /// Done once, or of a row.
    pub scalar: u64,
    /// Others in blocks that are proved convergent.
    pub convergent: u64,
    /// Others for which all lanes happened to be there.
    pub together: u64,
    /// The rest.
    pub diverged: u64,
}

impl Issued {
    /// All of them.
    pub fn all(self) -> u64 {
        self.scalar + self.convergent + self.together + self.diverged
    }
}

/// What a program has cost on a machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cost {
    /// Instructions of its kernels and their functions (figure 5a).
    pub instructions: u64,
    /// Those of them that are done once or access a row.
    pub scalar_instructions: u64,
    /// The most registers, general ones and predicates, that a warp needs for one of its kernels (figure 5b).
    pub registers: u32,
    /// Instructions that warps issued (figure 6a).
    pub issued: Issued,
    /// Operations, operands, addresses and data of lanes (figures 6b to 6f).
    pub activity: Activity,
    /// Blocks that are convergent and come behind one that is not: there lanes of a machine without a divergence stack
    /// would have to wait for each other (section 5.2).
    pub sync_places: u64,
}

/// A program on both machines of some number of lanes.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The program's name.
    pub program: &'static str,
    /// The lanes.
    pub lanes: u8,
    /// Without shared registers.
    pub base: Cost,
    /// With shared registers.
    pub shared: Cost,
    /// How much of the run with shared registers is convergent (figure 4): there loads that decide branches are done once.
    pub convergence: Convergence,
}

/// Why a program was not measured.
#[derive(Debug, thiserror::Error)]
#[error("`{program}` on {arch}: {message}")]
pub struct ScalarError {
    program: &'static str,
    arch: ArchId,
    message: String,
}

impl Measured {
    /// Runs it on both machines of so many lanes.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled, a launch fails, or the results differ.
    pub fn compare(&self, lanes: u8, reader: Reader<'_>) -> Result<Compared, ScalarError> {
        let [base, shared] = [false, true].map(|is_shared| machine(lanes, is_shared));
        let error = |arch, message| ScalarError { program: self.name, arch, message };
        let run =
            |arch| self.measure(arch, reader).map_err(|failure| error(arch, failure.to_string()));
        let (before, first) = run(base)?;
        let (after, second) = run(shared)?;
        if first != second {
            return Err(error(shared, "other results than without shared registers".to_owned()));
        }
        let (convergence, base, shared) = (after.convergence, before.cost, after.cost);
        Ok(Compared { program: self.name, lanes, base, shared, convergence })
    }

    fn measure(
        &self,
        arch: ArchId,
        reader: Reader<'_>,
    ) -> Result<(Counted, Vec<u32>), Box<dyn Error>> {
        let strategy = options(DivergenceStrategy::SplitJoin);
        let options = CompileOptions { convergence: true, ..strategy };
        let mut counted = Counted::default();
        let device = Device::new(DeviceConfig::new(arch))?;
        let results =
            self.run(&device, &options, reader, &mut |device, kernel, config, args| {
                let mut observer = Counter::new(kernel);
                let report = device.launch_observed(kernel, config, args, &mut observer)?;
                counted.add(kernel, observer);
                Ok(report)
            })?;
        counted.convergence.never_apart = counted.places.never_apart();
        Ok((counted, results))
    }
}

/// What was counted in all launches.
#[derive(Default)]
struct Counted {
    cost: Cost,
    convergence: Convergence,
    places: Places,
    /// The kernels whose code was counted.
    seen: Vec<String>,
}

impl Counted {
    fn add(&mut self, kernel: &Kernel, observer: Counter) {
        if !self.seen.iter().any(|name| name == kernel.name()) {
            self.seen.push(kernel.name().to_owned());
            self.add_code(kernel);
        }
        let start = observer.start;
        for (pc, counts) in &observer.profile.scalars {
            let issued = &mut self.cost.issued;
            if counts.sharing != Sharing::Each {
                issued.scalar += counts.issued;
            } else if start.is_some_and(|start| is_proved(kernel, pc - start)) {
                issued.convergent += counts.issued;
            } else {
                issued.together += counts.together;
                issued.diverged += counts.issued - counts.together;
            }
            self.cost.activity += counts.activity;
        }
        if let Some(watch) = observer.watch {
            self.convergence.add(&watch.finish(&mut self.places));
        }
    }

    fn add_code(&mut self, kernel: &Kernel) {
        let arch = kernel.arch();
        let functions = kernel.functions().iter().map(FunctionCode::code);
        let code: Vec<Instruction> = std::iter::once(kernel.code())
            .chain(functions)
            .flat_map(|code| disassemble(code, 0, arch))
            .filter_map(|(_, decoded)| decoded.ok())
            .collect();
        let is_scalar = |inst: &&Instruction| inst.op.sharing(arch) != Sharing::Each;
        self.cost.instructions += code.len() as u64;
        self.cost.scalar_instructions += code.iter().filter(is_scalar).count() as u64;
        let [gprs, preds] = RegistersNamed::of(code, arch).in_warp(arch.lanes());
        self.cost.registers = self.cost.registers.max(gprs + preds);
        self.cost.sync_places += sync_places(kernel);
    }
}

/// Whether the instruction lies in a block of the kernel that is proved convergent.
fn is_proved(kernel: &Kernel, offset: u64) -> bool {
    let blocks = kernel.entry().convergence();
    let after = blocks.partition_point(|block| block.start <= offset);
    let block = after.checked_sub(1).and_then(|index| blocks.get(index));
    block.is_some_and(|block| offset < block.end && block.proof.is_some())
}

/// The convergent blocks that come behind one that is not.
fn sync_places(kernel: &Kernel) -> u64 {
    let blocks = kernel.entry().convergence();
    let index_of = |offset: u64| blocks.iter().position(|block| block.start == offset);
    let mut behind: BTreeMap<usize, bool> = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate().filter(|(_, block)| block.proof.is_none()) {
        let bytes = &kernel.code()[block.start as usize..block.end as usize];
        let mut falls_through = true;
        for (at, decoded) in disassemble(bytes, block.start, kernel.arch()) {
            let Ok(inst) = decoded else { continue };
            falls_through = true;
            if let harp_isa::Op::Jmpi { rel } = inst.op {
                let mut length = Vec::new();
                if harp_isa::encode(&inst, kernel.arch(), &mut length).is_ok() {
                    let target = (at + length.len() as u64).checked_add_signed(rel);
                    behind.extend(target.and_then(index_of).map(|to| (to, true)));
                }
                falls_through = inst.guard.is_some();
            }
        }
        if falls_through {
            behind.insert(index + 1, true);
        }
    }
    let is_convergent = |index: &&usize| blocks.get(**index).is_some_and(|to| to.proof.is_some());
    behind.keys().filter(is_convergent).count() as u64
}

/// Counts what a launch does in the kernel.
struct Counter {
    profile: Profile,
    /// The address of the kernel.
    start: Option<u64>,
    /// Only on machines with shared registers.
    watch: Option<Watch>,
}

impl Counter {
    fn new(kernel: &Kernel) -> Counter {
        let profile = Profile::new(kernel.arch(), Collect::SCALARS, NonZeroU32::MIN);
        let follows = kernel.arch().has_shared();
        Counter { profile, start: None, watch: follows.then(|| Watch::new(kernel)) }
    }
}

impl LaunchObserver for Counter {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        if let Some(offset) = offset {
            self.start = Some(issue.pc - offset);
            Observer::issue(&mut self.profile, issue);
        }
        if let Some(watch) = &mut self.watch {
            watch.issue(offset, issue);
        }
    }
}
