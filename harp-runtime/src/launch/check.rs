//! Launches that are checked.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use harp_emu::Machine;
use harp_isa::WordSize;
use harp_isa::abi::MonitorWord;
use harp_jit::{Kernel, Root};
use harp_monitor::{
    Argument, CheckedFunction, Checks, Extents, Found, GroupPlaces, Ignored, Monitor, Races,
    Regions, Unwritten, WordAt,
};

use crate::args::Arg;
use crate::config::LaunchConfig;
use crate::device::Device;
use crate::finding::Findings;
use crate::image::KernelImage;
use crate::kernel::KernelParts;
use crate::memory::BufferMemory;

/// What a launch gives the kernel.
pub(super) struct Given {
    pub(super) config: LaunchConfig,
    /// Warps that are started on each core.
    pub(super) warps: u64,
    pub(super) arguments: Vec<Argument>,
    pub(super) stacks: Range<u64>,
    pub(super) stack_bytes: u64,
    pub(super) groups: Option<GroupPlaces>,
}

/// The checks of a launch.
pub(super) struct Check {
    word: WordSize,
    buffers: Vec<Arc<BufferMemory>>,
    monitor: Arc<Mutex<Monitor>>,
}

impl Check {
    pub(super) fn begin(
        device: &Device,
        kernel: KernelParts<'_>,
        image: &Arc<KernelImage>,
        checks: Checks,
        given: Given,
        last_races: Races,
    ) -> Check {
        let Given { config, warps, arguments, stacks, stack_bytes, groups } = given;
        let (arch, buffers) = (device.arch(), device.buffers().live());
        let mut unwritten = Unwritten::default();
        for buffer in &buffers {
            unwritten.forget_part(buffer.range().start, &buffer.unwritten());
        }
        let data =
            kernel.reporting.into_iter().flat_map(Kernel::data).filter_map(|(name, bytes)| {
                let start = image.image().symbol(name)?;
                Some((name.to_owned(), start..start + bytes))
            });
        let regions = Regions {
            arguments,
            data: data.collect(),
            buffers: buffers.iter().map(|buffer| (buffer.range(), buffer.name())).collect(),
            // What lies before is the library's.
            image: image.arguments()..image.image().bytes.len() as u64,
            stacks,
            stack_bytes,
            groups,
        };
        let is_slot = |root: &Root| matches!(root, Root::Slot { .. });
        let mut accesses = functions(kernel, image).flat_map(|function| function.accesses);
        let uses_slots = accesses.any(|access| access.roots.iter().any(is_slot));
        let extents = Extents {
            word: arch.word(),
            lanes: arch.lanes(),
            warps,
            grid: config.grid,
            group: config.group,
            uses_slots,
        };
        let functions = functions(kernel, image);
        let monitor = Monitor::new(
            checks,
            extents,
            regions,
            unwritten,
            functions,
            word_at(device.clone()),
            last_races,
        );
        let monitor = Arc::new(Mutex::new(monitor));
        Check { word: arch.word(), buffers, monitor }
    }

    pub(super) fn watch(&self, machine: &mut Machine<'_>) {
        machine.set_device(addresses(self.word), self.monitor.clone());
    }

    /// Lets the kernel report, but to nobody.
    pub(super) fn ignore(machine: &mut Machine<'_>) {
        let word = machine.config().arch.word();
        machine.set_device(addresses(word), Arc::new(Mutex::new(Ignored)));
    }

    /// What was found, if anything was, and what is left for the next launch.
    pub(super) fn end(
        self,
        kernel: KernelParts<'_>,
        image: &KernelImage,
        args: &[Arg],
    ) -> (Option<Findings>, Races) {
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |function: Option<&str>, offset| (kernel.origin_of)(function, offset)?.place;
        let place_of = |pc: u64| match image.kernel_symbol(pc) {
            _ if image.kernel().contains(&pc) => (place(None, pc - image.kernel().start), None),
            Some((name, offset)) => (place(Some(name), offset), Some(name.to_owned())),
            None => (None, None),
        };
        let Found { list, more, unwritten, races } = monitor.finish(&place_of);
        match unwritten {
            Some(unwritten) => {
                for buffer in self.buffers {
                    *buffer.unwritten() = unwritten.part(buffer.range());
                }
            }
            None => args.iter().filter_map(Arg::memory).for_each(BufferMemory::may_be_written),
        }
        let found = !list.is_empty() || more > 0;
        let findings = found.then(|| Findings {
            kernel: kernel.name.to_owned(),
            list,
            more,
            report: None,
            replay: None,
        });
        (findings, races)
    }
}

/// Reads words of the device's memory.
fn word_at(device: Device) -> Box<WordAt> {
    let bytes = usize::from(device.arch().word().bytes());
    Box::new(move |address| {
        let mut word = [0; 8];
        device.get(address, &mut word[..bytes]);
        u64::from_le_bytes(word)
    })
}

/// The addresses of the device: the rest of the address space.
fn addresses(word: WordSize) -> Range<u64> {
    MonitorWord::first_address(word)..word.mask()
}

/// The kernel and its functions, with the accesses that they report.
fn functions(
    kernel: KernelParts<'_>,
    image: &KernelImage,
) -> impl Iterator<Item = CheckedFunction> {
    let entry = kernel.reporting.map(|kernel| (image.kernel(), kernel.entry()));
    let others = kernel.reporting.into_iter().flat_map(Kernel::functions).filter_map(|function| {
        let start = image.image().symbol(function.name())?;
        Some((start..start + function.code().len() as u64, function))
    });
    entry
        .into_iter()
        .chain(others)
        .map(|(code, function)| CheckedFunction { code, accesses: function.accesses().to_vec() })
}
