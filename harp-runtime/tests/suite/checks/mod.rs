//! What checked launches find, and what they must not find, over the public interface.

use harp_runtime::jit::DivergenceStrategy;
use harp_runtime::prelude::*;
use harp_runtime::{Checks, Element, Finding, Findings, Queue, QueueError};

mod bounds;
mod promises;
mod races;
mod unwritten;

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/8/4", "4w24/12/32/16+x+s8/4"];
const WITH_X: [&str; 3] = ["4w32/16/32/16+x", "4b16/16/16/8+x", "8w32/32/8/8+x"];

fn options(divergence: DivergenceStrategy) -> CompileOptions {
    CompileOptions { report_accesses: true, divergence, ..CompileOptions::default() }
}

fn compiled(arch: ArchId, build: &dyn Fn(&mut KernelBuilder<'_>)) -> Kernel {
    compiled_with(arch, &options(DivergenceStrategy::default()), build)
}

fn compiled_with(
    arch: ArchId,
    options: &CompileOptions,
    build: &dyn Fn(&mut KernelBuilder<'_>),
) -> Kernel {
    let mut source = KernelSource::new("checked", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    source.compile(options).unwrap()
}

fn device(arch: &str) -> Device {
    Device::new(DeviceConfig::new(arch.parse().unwrap())).unwrap()
}

/// The findings of a launch; none if it found nothing.
fn findings(
    device: &Device,
    kernel: &Kernel,
    config: LaunchConfig,
    args: &[Arg],
) -> Option<Findings> {
    match device.launch(kernel, config.with_checks(Checks::all()), args) {
        Ok(_) => None,
        Err(LaunchError::Findings(findings)) => Some(*findings),
        Err(error) => panic!("{error}"),
    }
}

/// The only finding of a launch.
fn one(device: &Device, kernel: &Kernel, config: LaunchConfig, args: &[Arg]) -> Finding {
    let found = findings(device, kernel, config, args).expect("something is wrong");
    assert_eq!((found.list.len(), found.more, found.kernel.as_str()), (1, 0, "checked"), "{found}");
    found.list[0].clone()
}

fn line(finding: &Finding) -> u32 {
    let place = finding.access.place.as_ref().unwrap();
    assert!(place.file.contains("checks"), "{place}");
    place.line
}

/// The word of the machine as an element, for kernels that run on all machines.
fn words(device: &Device, len: usize) -> (Box<dyn Fn() -> Arg>, Vec<u64>) {
    fn of<T: Element + From<u8>>(device: &Device, len: usize) -> (Box<dyn Fn() -> Arg>, Vec<u64>) {
        let buffer = device.buffer_from_slice(&vec![T::from(0); len]).unwrap().named("words");
        let address = buffer.address();
        (Box::new(move || Arg::from(&buffer)), vec![address])
    }
    match device.arch().word().bytes() {
        4 => of::<u32>(device, len),
        _ => of::<u64>(device, len),
    }
}

/// The address of a stack slot of that size.
fn stack_slot(b: &mut KernelBuilder<'_>, bytes: u32) -> Value {
    use harp_runtime::jit::ir::{StackSlotData, StackSlotKind};
    let word = b.word_int();
    let slot = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
    let slot = b.inner().create_sized_stack_slot(slot);
    b.ins().stack_addr(word, slot, 0)
}

#[test]
fn every_strategy_and_optimization_finds_the_same() {
    use DivergenceStrategy::{Predicate, SplitJoin, Static};
    let device = device("4w32/16/32/16+x");
    for divergence in [SplitJoin, Predicate, Static] {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let options = CompileOptions { opt_level, ..options(divergence) };
            let kernel = compiled_with(device.arch(), &options, &|b| {
                let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
                let limit = b.scalar::<i32>("limit");
                let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, limit);
                b.if_then(inside, |b| {
                    let value = b.load(data, i);
                    let value = b.ins().iadd_imm_s(value, 1);
                    b.store(data, i, value);
                });
            });
            let data = device.buffer_zeroed::<i32>(50).unwrap();
            let grid = LaunchConfig::grid_1d(64);
            let args = |limit: i32| [Arg::from(&data), limit.into()];
            assert_eq!(findings(&device, &kernel, grid, &args(50)), None);
            assert_eq!(device.read(&data).unwrap(), [1; 50]);
            let found = findings(&device, &kernel, grid, &args(53)).unwrap();
            let counts: Vec<_> = found.list.iter().map(|one| one.count).collect();
            assert_eq!(counts, [3, 3], "{divergence:?} {opt_level:?}: {found}");
        }
    }
}

#[test]
fn checks_are_asked_for_and_findings_are_limited() {
    let device = device("harp32");
    let build = |b: &mut KernelBuilder<'_>| {
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        for by in 1..=5 {
            let at = b.ins().iadd_imm_s(i, 64 * by);
            // One place, so one finding.
            let value = b.load(data, at);
            b.store(data, i, value);
        }
    };
    let kernel = compiled(device.arch(), &build);
    let data = device.buffer_zeroed::<i32>(64).unwrap();
    let (grid, args) = (LaunchConfig::grid_1d(64), [Arg::from(&data)]);
    // Without checks it runs.
    let report = device.launch(&kernel, grid, &args).unwrap();
    assert_eq!(report.work_items(), 64);
    let mut checks = Checks::none();
    assert_eq!(device.launch(&kernel, grid.with_checks(checks), &args).map(|_| ()), Ok(()));
    (checks.bounds, checks.limit) = (true, 3);
    let error = device.launch(&kernel, grid.with_checks(checks), &args).unwrap_err();
    let LaunchError::Findings(found) = &error else { panic!("{error}") };
    assert_eq!((found.list.len(), found.more), (3, 2 * 64));
    assert!(error.to_string().contains("and 128 more"), "{error}");
    assert!(found.report.as_ref().is_some_and(|report| report.work_items() == 64));
    // There are numbers for so many work-items only.
    let wide = self::device("harp64");
    let kernel_64 = compiled(wide.arch(), &build);
    let data_64 = wide.buffer_zeroed::<i32>(64).unwrap();
    let huge = LaunchConfig::grid_1d(1 << 33).with_checks(Checks::all());
    let error = wide.launch(&kernel_64, huge, &[Arg::from(&data_64)]).unwrap_err();
    assert_eq!(error, LaunchError::GridTooLargeToCheck { given: 1 << 33, limit: (1 << 32) - 2 });
    // A kernel that does not report cannot be checked.
    let plain = compiled_with(device.arch(), &CompileOptions::default(), &build);
    let error = device.launch(&plain, grid.with_checks(Checks::all()), &args).unwrap_err();
    assert_eq!(error, LaunchError::NoReports { kernel: "checked".to_owned() });
    // A device may check all launches, those of queues, too.
    let config = DeviceConfig { checks: Some(Checks::all()), ..device.config().clone() };
    let device = Device::new(config).unwrap();
    let data = device.buffer_zeroed::<i32>(64).unwrap();
    let queue = Queue::new(&device).unwrap();
    let launch = queue.launch(&std::sync::Arc::new(kernel), grid, &[Arg::from(&data)]);
    assert!(matches!(launch.wait(), Err(QueueError::Launch(LaunchError::Findings(_)))));
}

#[test]
fn traps_tell_what_was_found_before() {
    for arch in MACHINES {
        let device = device(arch);
        // The element behind the buffer is stored, then the lanes trap.
        let kernel = compiled(device.arch(), &|b| {
            let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
            let next = b.ins().iadd_imm_s(i, 1);
            let zero = b.ins().iconst(types::I32, 0);
            b.store(data, next, zero);
            b.assert(zero, "all fail");
        });
        let data = device.buffer_zeroed::<i32>(1).unwrap();
        let config = LaunchConfig::grid_1d(1).with_checks(Checks::all());
        let error = device.launch(&kernel, config, &[Arg::from(&data)]).unwrap_err();
        let LaunchError::Trap(trap) = &error else { panic!("{error}") };
        assert_eq!(trap.findings.as_ref().map(|findings| findings.list.len()), Some(1), "{error}");
        let text = error.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("assertion failed: all fail"), "{text}");
        assert_eq!(lines[1], "kernel `checked`: 1 finding", "{text}");
        assert!(lines[2].starts_with("  out of bounds: store of i32"), "{text}");
    }
}
