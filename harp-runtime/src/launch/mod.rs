//! Launches, which run a kernel over a grid.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harp_emu::{Stats, Trap};
use harp_isa::abi::warp_alignment;
use harp_isa::{Image, WordSize};
use harp_jit::{BranchCounters, BranchProfile, Kernel, PrintArea, PrintSites, ProfileError};
use harp_library::{LockPlace, Walk};
use harp_monitor::{Checks, too_many_items};

use crate::args::{Arg, Arguments};
use crate::config::LaunchConfig;
use crate::device::{Bottom, Device, Limits};
use crate::error::{LaunchError, LaunchTrap, TrapSite};
use crate::finding::Findings;
use crate::heap::{ALIGNMENT, Allocation};
use crate::image::{ImageCache, KernelImage};
use crate::kernel::{KernelParts, Origin};
use crate::memory::BufferMemory;
use crate::observe::{LaunchObserver, Watch};
use crate::profile::BranchCounter;
use crate::report::{Printed, Report};
use crate::snapshot::Snapshot;

mod check;
mod plan;
#[cfg(test)]
mod tests;

use check::Check;
use plan::{Places, Plan};

impl Device {
    /// Runs `kernel` once for each work-item of the grid and waits for the end.
    ///
    /// Warps take chunks of work-items in turn, on all cores, in an unspecified order. With work-groups, each
    /// core runs as many of them at a time as it has warps for. A grid may have any extents, also 0.
    ///
    /// # Errors
    ///
    /// If the kernel is for another machine, the arguments do not match its parameters, the grid or its
    /// groups are too large, a kernel that uses work-groups is launched without them, or the kernel, stacks
    /// or groups' memory do not fit the memory: then nothing has run. Also if the run ends in a trap, such
    /// as a barrier that some of a group's work-items do not reach.
    pub fn launch(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg],
    ) -> Result<Report, LaunchError> {
        if !config.branch_profile || kernel.counters().is_some() {
            return self.launch_watched(kernel, config, args, None);
        }
        let mut counter = BranchCounter::new(kernel);
        let report = self.launch_watched(kernel, config, args, Some(&mut counter))?;
        Ok(Report { branches: Some(counter.profile(kernel)), ..report })
    }

    /// Like [`launch`](Self::launch), but shows `observer` every instruction before it is issued. That takes many
    /// times as long. The report has a branch profile only if the kernel counts its branches itself
    /// ([`CompileOptions::count_branches`](harp_jit::CompileOptions::count_branches)).
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    pub fn launch_observed(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg],
        observer: &mut impl LaunchObserver,
    ) -> Result<Report, LaunchError> {
        self.launch_watched(kernel, config, args, Some(observer))
    }

    fn launch_watched(
        &self,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg],
        observer: Option<&mut dyn Watch>,
    ) -> Result<Report, LaunchError> {
        let origin_of =
            |function: Option<&str>, offset| Origin::in_kernel(kernel, function, offset);
        let parts = KernelParts::new(kernel, &origin_of);
        let mut bottom = self.bottom();
        let folder = self.config().replays.as_ref();
        let kept = folder
            .and_then(|folder| Some((folder, Snapshot::capture(self, kernel, config, args)?)));
        let result = self.launch_parts(&mut bottom, parts, config, args, observer);
        result.map_err(|error| match kept {
            Some((folder, before)) if error.is_of_kernel() => {
                error.with_replay(before.keep(folder))
            }
            _ => error,
        })
    }

    /// What a launch checks, if it does.
    fn checks(
        &self,
        kernel: KernelParts<'_>,
        config: LaunchConfig,
    ) -> Result<Option<Checks>, LaunchError> {
        let checks = config.checks.or(self.config().checks);
        if checks.is_some() && kernel.reporting.is_none() {
            return Err(LaunchError::NoReports { kernel: kernel.name.to_owned() });
        }
        Ok(checks)
    }

    /// The image that launches of `kernel` run: runtime library, argument block and kernel, linked at address
    /// 0, for work-groups if the kernel uses them. The launch descriptor and the arguments in it are zero.
    ///
    /// # Errors
    ///
    /// If the kernel is for another machine, or does not fit the memory.
    pub fn image(&self, kernel: &Kernel) -> Result<Image, LaunchError> {
        let parts = KernelParts::new(kernel, &|_, _| None);
        self.check_machine(parts)?;
        let walk = plan::walk(parts, parts.uses_groups);
        Ok(self.linked(&mut self.bottom().images, parts, walk)?.image().clone())
    }

    /// [`launch`](Self::launch) for a kernel of any origin.
    pub(crate) fn launch_parts(
        &self,
        bottom: &mut Bottom,
        kernel: KernelParts<'_>,
        config: LaunchConfig,
        args: &[Arg],
        observer: Option<&mut dyn Watch>,
    ) -> Result<Report, LaunchError> {
        let start = Instant::now();
        self.check_machine(kernel)?;
        let checks = self.checks(kernel, config)?;
        let Arguments { words: mut arguments, group_bytes, regions } =
            Arguments::new(self, kernel, args, checks.is_some())?;
        if kernel.uses_groups && config.group.is_none() {
            return Err(LaunchError::NoGroups { kernel: kernel.name.to_owned() });
        }
        let walk = plan::walk(kernel, config.group.is_some());
        let plan = Plan::new(config, self.arch(), self.config().cores, walk)?;
        if checks.is_some()
            && plan.is_some()
            && let Some((given, limit)) = too_many_items(config.grid, config.group)
        {
            return Err(LaunchError::GridTooLargeToCheck { given, limit });
        }
        let printing = (kernel.prints.zip(plan.as_ref()))
            .map(|(sites, plan)| self.printing(sites, plan, config))
            .transpose()?;
        arguments.extend(printing.as_ref().map(|printing| printing.memory.address()));
        let counted = kernel.counters.map(|counters| self.counted(counters)).transpose()?;
        arguments.extend(counted.as_ref().map(|counted| counted.memory.address()));
        let Some(plan) = plan else {
            let times = [start.elapsed(), Duration::ZERO];
            let branches = counted.map(|counted| counted.profile(self)).transpose()?;
            let printed = Printed::default();
            return Ok(self.report(kernel, config, Stats::default(), times, branches, printed));
        };
        let image = self.linked(&mut bottom.images, kernel, plan.walk())?;
        if config.offset != [0; 3] && image.launch_offset().is_none() {
            return Err(LaunchError::NoOffset { kernel: kernel.name.to_owned() });
        }

        let word = self.arch().word();
        let stack_bytes = u64::from(kernel.lane_stack_bytes);
        let bytes = plan.stacks().saturating_mul(stack_bytes);
        let alignment = warp_alignment(self.arch(), stack_bytes).max(ALIGNMENT);
        let stacks = self.heap().allocate(bytes, alignment)?;
        let space = plan.group_space(group_bytes, word);
        let group_space =
            space.map(|space| self.heap().allocate(space.bytes, ALIGNMENT)).transpose()?;
        let places = Places {
            kernel: image.kernel().start,
            stacks: stacks.address(),
            stack_bytes,
            group_space: group_space.as_ref().map_or(0, Allocation::address),
        };
        self.put_image(&image, &plan.descriptor(places, space, word), &plan.header(), &arguments);
        if let Some(place) = image.launch_memory() {
            let words = plan.launch_memory(places, space);
            self.put(place, &word_bytes(word, words.into_iter()));
        }
        if let Some(place) = image.launch_offset() {
            self.put(place, &word_bytes(word, config.offset.into_iter()));
        }
        if let Some(place) = image.launch_grid() {
            self.put(place, &word_bytes(word, [config.told_dimensions()].into_iter()));
        }
        let _lock = image.lock_place().map(|place| self.lock(place, &plan)).transpose()?;
        let limits = Limits {
            fuel: config.fuel,
            time: config.time_limit,
            host_threads: checks.map(|_| NonZeroUsize::MIN),
            audit_shared: config.audit_shared,
        };
        let spare = bottom.spare.take().map(|spare| match bottom.images.take_code(&image) {
            Some(code) => spare.with_code(code),
            None => spare,
        });
        let mut machine = self.machine(limits, Some(&image), spare)?;
        let check = checks.map(|checks| {
            let stacks = stacks.address()..stacks.address() + bytes;
            let groups = space.map(|space| plan.group_places(places, space, group_bytes));
            let (warps, arguments) = (plan.warps, regions);
            let given = check::Given { config, warps, arguments, stacks, stack_bytes, groups };
            let races = std::mem::take(&mut bottom.races);
            Check::begin(self, kernel, &image, checks, given, races)
        });
        match &check {
            Some(check) => check.watch(&mut machine),
            None if kernel.reporting.is_some() => Check::ignore(&mut machine),
            None => {}
        }
        let prepared = start.elapsed();

        let run = match observer {
            Some(observer) => observer.watch(&mut machine, image.kernel().start),
            None => machine.run(),
        };
        let times = [prepared, start.elapsed() - prepared];
        let printed = printing.map(|printing| printing.read(self, config)).unwrap_or_default();
        let findings = match check {
            Some(check) => {
                let (findings, races) = check.end(kernel, &image, args);
                bottom.races = races;
                findings
            }
            None => {
                args.iter().filter_map(Arg::memory).for_each(BufferMemory::may_be_written);
                None
            }
        };
        let result = match (run, findings) {
            (Ok(stats), findings) => {
                let branches = counted.map(|counted| counted.profile(self)).transpose()?;
                let report = self.report(kernel, config, stats, times, branches, printed);
                match findings {
                    None => Ok(report),
                    Some(findings) => {
                        let findings = Findings { report: Some(report), ..findings };
                        Err(LaunchError::Findings(Box::new(findings)))
                    }
                }
            }
            (Err(trap), findings) => {
                let trap = located(*trap, kernel, &image, machine.stats());
                Err(LaunchError::Trap(Box::new(LaunchTrap { printed, findings, ..trap })))
            }
        };
        let mut spare = machine.into_spare();
        bottom.images.keep_code(&image, spare.take_code());
        bottom.spare = Some(spare);
        result
    }

    /// Memory for what a kernel prints.
    fn printing<'a>(
        &self,
        sites: &'a PrintSites,
        plan: &Plan,
        config: LaunchConfig,
    ) -> Result<Printing<'a>, LaunchError> {
        let area = PrintArea {
            cores: self.config().cores,
            warps: u8::try_from(plan.warps).expect("a core has at most 64 warps"),
            lane_bytes: config.print_bytes,
        };
        let memory = self.heap().allocate(sites.bytes(area), ALIGNMENT);
        let memory = memory.map_err(LaunchError::Printing)?;
        let word = self.arch().word();
        for (offset, value) in sites.prepared(area, memory.address()) {
            self.put(memory.address() + offset, &word_bytes(word, [value].into_iter()));
        }
        Ok(Printing { sites, area, memory })
    }

    /// Memory for the lock, whose address and size are written to `place`.
    fn lock(&self, place: u64, plan: &Plan) -> Result<Allocation, LaunchError> {
        let (word, cores) = (self.arch().word(), self.config().cores.into());
        let bytes = LockPlace::lock_words(plan.warps, cores) * u64::from(word.bytes());
        let memory = self.heap().allocate(bytes, ALIGNMENT).map_err(LaunchError::Lock)?;
        let zeros = usize::try_from(bytes).expect("the host holds the device's memory");
        self.put(memory.address(), &vec![0; zeros]);
        let words = LockPlace::words(memory.address(), plan.warps, cores);
        self.put(place, &word_bytes(word, words.into_iter()));
        Ok(memory)
    }

    /// Memory for the counters of a kernel's branches.
    fn counted<'a>(&self, counters: &'a BranchCounters) -> Result<Counted<'a>, LaunchError> {
        let bytes = counters.bytes(self.config().cores);
        let memory = self.heap().allocate(bytes, ALIGNMENT).map_err(LaunchError::Counters)?;
        let bytes = usize::try_from(bytes).expect("the host holds the device's memory");
        self.put(memory.address(), &vec![0; bytes]);
        Ok(Counted { counters, memory, bytes })
    }

    fn check_machine(&self, kernel: KernelParts<'_>) -> Result<(), LaunchError> {
        let (given, expected) = (kernel.object.arch, self.arch());
        if given.is_object_compatible(expected) {
            return Ok(());
        }
        Err(LaunchError::Arch { kernel: kernel.name.to_owned(), given, expected })
    }

    /// The kernel's image, after checking that it fits the memory reserved for it.
    fn linked(
        &self,
        images: &mut ImageCache,
        kernel: KernelParts<'_>,
        walk: Walk,
    ) -> Result<Arc<KernelImage>, LaunchError> {
        let image = images.image(kernel, walk)?;
        let (given, limit) = (image.image().bytes.len() as u64, self.image_limit());
        if given > limit {
            return Err(LaunchError::ImageTooLarge { given, limit });
        }
        Ok(image)
    }

    /// Writes the image, descriptor and arguments. The launch before may have run another kernel.
    fn put_image(
        &self,
        image: &KernelImage,
        descriptor: &[u64],
        header: &[u64],
        arguments: &[u64],
    ) {
        let word = self.arch().word();
        self.put(0, &image.image().bytes);
        self.put(image.descriptor(), &word_bytes(word, descriptor.iter().copied()));
        let block = header.iter().chain(arguments).copied();
        self.put(image.arguments(), &word_bytes(word, block));
    }

    fn report(
        &self,
        kernel: KernelParts<'_>,
        config: LaunchConfig,
        stats: Stats,
        [image_time, run_time]: [Duration; 2],
        branches: Option<BranchProfile>,
        printed: Printed,
    ) -> Report {
        Report {
            kernel: kernel.name.to_owned(),
            arch: self.arch(),
            cores: self.config().cores,
            grid: config.grid,
            group: config.group,
            stats,
            image_time,
            run_time,
            branches,
            printed,
        }
    }
}

/// The memory for what a kernel prints in a launch.
struct Printing<'a> {
    sites: &'a PrintSites,
    area: PrintArea,
    memory: Allocation,
}

impl Printing<'_> {
    fn read(&self, device: &Device, config: LaunchConfig) -> Printed {
        let get = |address, out: &mut [u8]| device.memory().read(address, out).is_ok();
        let (records, dropped) = self.sites.read(self.area, self.memory.address(), get);
        Printed::new(config.grid, config.needed_dimensions(), records, dropped)
    }
}

/// The counters of a kernel's branches in a launch.
struct Counted<'a> {
    counters: &'a BranchCounters,
    memory: Allocation,
    bytes: usize,
}

impl Counted<'_> {
    fn profile(&self, device: &Device) -> Result<BranchProfile, ProfileError> {
        let mut memory = vec![0; self.bytes];
        device.get(self.memory.address(), &mut memory);
        self.counters.profile(&memory)
    }
}

/// The bytes of `words` in the machine's memory.
fn word_bytes(word: WordSize, words: impl Iterator<Item = u64>) -> Vec<u8> {
    let bytes = usize::from(word.bytes());
    words.flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
}

/// The trap together with what its pc points into.
fn located(trap: Trap, kernel: KernelParts<'_>, image: &KernelImage, stats: Stats) -> LaunchTrap {
    let code = image.kernel();
    let mut origin = Origin::default();
    let site = if code.contains(&trap.pc) {
        let offset = trap.pc - code.start;
        origin = (kernel.origin_of)(None, offset).unwrap_or_default();
        TrapSite::Kernel { offset }
    } else if let Some((name, offset)) = image.kernel_symbol(trap.pc)
        && let Some(found) = (kernel.origin_of)(Some(name), offset)
    {
        origin = found;
        TrapSite::Function { name: name.to_owned(), offset }
    } else if let Some((symbol, offset)) = image.library_symbol(trap.pc) {
        TrapSite::Runtime { symbol: symbol.to_owned(), offset }
    } else {
        TrapSite::Outside
    };
    let Origin { place, trap_code, message } = origin;
    let (kernel, printed) = (kernel.name.to_owned(), Printed::default());
    let (findings, replay) = (None, None);
    LaunchTrap { findings, trap, kernel, site, place, trap_code, message, printed, stats, replay }
}
