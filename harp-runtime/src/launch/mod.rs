//! Launches: a kernel over a grid.

use std::sync::Arc;
use std::time::{Duration, Instant};

use harp_emu::{Stats, Trap};
use harp_isa::{Image, WordSize};
use harp_jit::Kernel;

use crate::args::{self, Arg};
use crate::device::Device;
use crate::heap::ALIGNMENT;
use crate::image::KernelImage;
use crate::kernel::{KernelParts, Origin};
use crate::report::Report;

mod error;
mod plan;
#[cfg(test)]
mod tests;

pub use error::{LaunchError, LaunchTrap, TrapSite};
use plan::Plan;

/// The grid of a launch and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchConfig {
    /// Work-items in each dimension. With a 0 among them nothing runs, which is no error.
    pub grid: [u64; 3],
    /// The most instructions that each core may issue; `None`: the device's limit.
    pub fuel: Option<u64>,
}

impl LaunchConfig {
    /// A line of `x` work-items.
    pub fn grid_1d(x: usize) -> LaunchConfig {
        LaunchConfig::grid_3d(x, 1, 1)
    }

    /// `x` times `y` work-items.
    pub fn grid_2d(x: usize, y: usize) -> LaunchConfig {
        LaunchConfig::grid_3d(x, y, 1)
    }

    /// `x` times `y` times `z` work-items.
    pub fn grid_3d(x: usize, y: usize, z: usize) -> LaunchConfig {
        LaunchConfig { grid: [x, y, z].map(|extent| extent as u64), fuel: None }
    }

    /// The same grid with at most `fuel` instructions a core.
    pub fn with_fuel(self, fuel: u64) -> LaunchConfig {
        LaunchConfig { fuel: Some(fuel), ..self }
    }
}

impl Device {
    /// Runs `kernel` once for each work-item of the grid and waits for the end.
    ///
    /// Warps take chunks of work-items in turn, on all cores; nothing is promised about their order.
    /// A grid may have any extent, also none.
    ///
    /// # Errors
    ///
    /// If the kernel is for another machine, the arguments are not those that it takes, the grid is
    /// too large, kernel or stacks do not fit the memory: then nothing has run. And if the run ends
    /// in a trap.
    pub fn launch(
        &mut self,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<Report, LaunchError> {
        let origin_of =
            |function: Option<&str>, offset| Origin::in_kernel(kernel, function, offset);
        self.launch_parts(KernelParts::new(kernel, &origin_of), config, args)
    }

    /// The image that launches of `kernel` run: runtime library, argument block and kernel, linked
    /// at address 0. The launch descriptor and the arguments in it are zero.
    ///
    /// # Errors
    ///
    /// If the kernel is for another machine, or does not fit the memory.
    pub fn image(&mut self, kernel: &Kernel) -> Result<Image, LaunchError> {
        let parts = KernelParts::new(kernel, &|_, _| None);
        self.check_machine(parts)?;
        Ok(self.linked(parts)?.image().clone())
    }

    /// [`launch`](Self::launch) for a kernel of any origin.
    pub(crate) fn launch_parts(
        &mut self,
        kernel: KernelParts<'_>,
        config: LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<Report, LaunchError> {
        let start = Instant::now();
        self.check_machine(kernel)?;
        let arguments = args::words(self, kernel.params, args)?;
        let image = self.linked(kernel)?;
        let plan = Plan::new(config.grid, self.arch(), self.config().cores)?;
        let Some(plan) = plan else {
            return Ok(self.report(
                kernel,
                config,
                Stats::default(),
                [start.elapsed(), Duration::ZERO],
            ));
        };

        let stack_bytes = u64::from(kernel.lane_stack_bytes);
        let bytes = plan.stacks().saturating_mul(stack_bytes);
        let stacks = self.heap().allocate(bytes, stack_bytes.max(ALIGNMENT))?;
        let word = self.arch().word();
        let descriptor = plan.descriptor(image.kernel().start, stacks.address(), stack_bytes, word);
        self.put_image(&image, &descriptor, config.grid, &arguments);
        let mut machine = self.machine(config.fuel.or(self.config().fuel), image.read_only())?;
        let prepared = start.elapsed();

        let run = machine.run();
        let times = [prepared, start.elapsed() - prepared];
        match run {
            Ok(stats) => Ok(self.report(kernel, config, stats, times)),
            Err(trap) => {
                let stats = machine.stats();
                Err(LaunchError::Trap(Box::new(located(*trap, kernel, &image, stats))))
            }
        }
    }

    fn check_machine(&self, kernel: KernelParts<'_>) -> Result<(), LaunchError> {
        let (given, expected) = (kernel.object.arch, self.arch());
        if given.is_object_compatible(expected) {
            return Ok(());
        }
        Err(LaunchError::Arch { kernel: kernel.name.to_owned(), given, expected })
    }

    /// The kernel's image, which is known to fit the place that the memory has for it.
    fn linked(&mut self, kernel: KernelParts<'_>) -> Result<Arc<KernelImage>, LaunchError> {
        let image = self.images.image(kernel)?;
        let (given, limit) = (image.image().bytes.len() as u64, self.image_limit());
        if given > limit {
            return Err(LaunchError::ImageTooLarge { given, limit });
        }
        Ok(image)
    }

    /// Writes the image: the launch before may have been of another kernel.
    fn put_image(
        &self,
        image: &KernelImage,
        descriptor: &[u64],
        grid: [u64; 3],
        arguments: &[u64],
    ) {
        let word = self.arch().word();
        self.put(0, &image.image().bytes);
        self.put(image.descriptor(), &word_bytes(word, descriptor.iter().copied()));
        let block = grid.into_iter().chain(arguments.iter().copied());
        self.put(image.arguments(), &word_bytes(word, block));
    }

    fn report(
        &self,
        kernel: KernelParts<'_>,
        config: LaunchConfig,
        stats: Stats,
        [image_time, run_time]: [Duration; 2],
    ) -> Report {
        Report {
            kernel: kernel.name.to_owned(),
            arch: self.arch(),
            cores: self.config().cores,
            grid: config.grid,
            stats,
            image_time,
            run_time,
        }
    }
}

/// `words` as the machine's memory holds them.
fn word_bytes(word: WordSize, words: impl Iterator<Item = u64>) -> Vec<u8> {
    let bytes = usize::from(word.bytes());
    words.flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
}

/// The trap with what its pc means.
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
    let Origin { place, trap_code } = origin;
    LaunchTrap { trap, kernel: kernel.name.to_owned(), site, place, trap_code, stats }
}
