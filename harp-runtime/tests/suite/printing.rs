//! What kernels print, on machines of all kinds.

use std::num::NonZeroUsize;

use harp_runtime::jit::{DivergenceStrategy, OptLevel, ProfileParams};
use harp_runtime::prelude::*;

const MACHINES: [&str; 8] = [
    "harp32",
    "harp64",
    "4w32/16/32/16+x",
    "4b16/16/16/8+x",
    "4w8/2/1/1",
    "8b32/32/8/8",
    "4w64/16/64/2",
    "8w64/16/64/2+x",
];

fn machines() -> impl Iterator<Item = ArchId> {
    MACHINES.into_iter().map(|id| id.parse().expect("the list holds ids"))
}

fn source(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new("k", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().expect("the kernel is well formed");
    source
}

fn compiled(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    let options = CompileOptions { check_code: true, ..CompileOptions::default() };
    let source = source(arch, build);
    source.compile(&options).unwrap_or_else(|error| panic!("{arch}: {error}\n{source}"))
}

fn device(arch: ArchId, cores: u16) -> Device {
    Device::new(DeviceConfig { cores, ..DeviceConfig::new(arch) }).expect("there is memory")
}

#[test]
fn values_of_all_types_are_printed() {
    for arch in machines() {
        let kernel = compiled(arch, |b| {
            let byte = b.ins().iconst(types::I8, 0xfe);
            let half = b.ins().iconst(types::I16, 0xfffd);
            let int = b.ins().iconst(types::I32, 0xffff_fffc);
            let long = b.ins().iconst(types::I64, -5);
            let (single, double) = (b.ins().f32const(0.1), b.ins().f64const(-2.5e300));
            b.print("{} {} {} {}", &[byte, half, int, long]);
            b.print("{:u} {:u} {:u} {:u}", &[byte, half, int, long]);
            b.print("{:x} {:x} {:x} {:x}", &[byte, half, int, long]);
            b.print("{{{}, {}}}", &[single, double]);
            b.print("", &[]);
        });
        let device = device(arch, 1);
        let report = device.launch(&kernel, LaunchConfig::grid_1d(1), &[]).unwrap();
        let wanted = "[0] -2 -3 -4 -5\n\
                      [0] 254 65533 4294967292 18446744073709551611\n\
                      [0] fe fffd fffffffc fffffffffffffffb\n\
                      [0] {0.1, -2.5e300}\n\
                      [0] \n";
        assert_eq!(report.printed.to_string(), wanted, "{arch}");
    }
}

/// Work-items print in loops and under conditions on which they disagree. The lines are those of the program in
/// Rust, in the order of the work-items, whatever the machine and the strategy.
#[test]
fn lines_are_in_the_order_of_the_work_items() {
    let strategies = [
        DivergenceStrategy::SplitJoin,
        DivergenceStrategy::Adaptive,
        DivergenceStrategy::Predicate,
        DivergenceStrategy::Profile(ProfileParams::default()),
    ];
    let build = |b: &mut KernelBuilder<'_>| {
        let (x, y) = (b.global_id(0), b.global_id(1));
        let sum = b.ins().iadd(x, y);
        let odd = b.ins().band_imm_u(sum, 1);
        b.if_else(odd, |b| b.print("odd {}", &[sum]), |b| b.print("even {}", &[sum]));
        let (zero, one) = (b.word_const(0), b.word_const(1));
        let rounds = b.ins().band_imm_u(x, 3);
        b.for_range(zero, rounds, one, |b, k| b.print("{} of {}", &[k, rounds]));
    };
    let (columns, rows) = (37, 3);
    let mut wanted = Vec::new();
    for (x, y) in (0..rows).flat_map(|y| (0..columns).map(move |x| (x, y))) {
        let kind = if (x + y) % 2 == 1 { "odd" } else { "even" };
        wanted.push(format!("[{x}, {y}] {kind} {}", x + y));
        wanted.extend((0..x % 4).map(|k| format!("[{x}, {y}] {k} of {}", x % 4)));
    }
    let grid = LaunchConfig::grid_2d(columns, rows);
    for arch in machines() {
        let mut profile = None;
        for divergence in strategies {
            for opt_level in [OptLevel::None, OptLevel::Speed] {
                let options = CompileOptions {
                    divergence,
                    opt_level,
                    profile: profile.clone().filter(|_| opt_level == OptLevel::Speed),
                    check_code: true,
                    ..CompileOptions::default()
                };
                if options.profile.is_none() && matches!(divergence, DivergenceStrategy::Profile(_))
                {
                    continue;
                }
                let kernel = source(arch, build).compile(&options).unwrap();
                for (cores, group) in [(1, None), (2, None), (3, Some(7))] {
                    if group
                        .is_some_and(|items| items > arch.lanes() as usize * arch.warps() as usize)
                    {
                        continue;
                    }
                    let config = group.map_or(grid, |items| grid.with_groups_1d(items));
                    let device = device(arch, cores);
                    let report = device.launch(&kernel, config, &[]).unwrap();
                    let text = report.printed.to_string();
                    let lines: Vec<&str> = text.lines().collect();
                    assert_eq!(lines, wanted, "{arch}, {divergence:?}, cores: {cores}");
                    assert_eq!(report.printed.dropped, 0);
                    if divergence == DivergenceStrategy::SplitJoin && opt_level == OptLevel::Speed {
                        let config = config.with_branch_profile();
                        let report = device.launch(&kernel, config, &[]).unwrap();
                        assert_eq!(report.printed.lines.len(), wanted.len());
                        profile = report.branches.map(std::sync::Arc::new);
                    }
                }
            }
        }
    }
}

#[test]
fn host_threads_do_not_matter() {
    let arch: ArchId = "4w8/8/16/16".parse().unwrap();
    let kernel = compiled(arch, |b| {
        let (i, core) = (b.global_id(0), b.core_id());
        b.print("{} on core {}", &[i, core]);
    });
    let runs = [1, 2, 4].map(|threads| {
        let host_threads = NonZeroUsize::new(threads);
        let config = DeviceConfig { cores: 4, host_threads, ..DeviceConfig::new(arch) };
        let device = Device::new(config).unwrap();
        device.launch(&kernel, LaunchConfig::grid_1d(3000), &[]).unwrap().printed
    });
    assert_eq!(runs[0].lines.len(), 3000);
    assert!(runs.iter().all(|run| *run == runs[0]));
    let line = &runs[0].lines[1234];
    assert_eq!((line.work_item, line.place.file.ends_with("printing.rs")), ([1234, 0, 0], true));
}

/// Lines that do not fit are counted, and those that come first are kept.
#[test]
fn lines_that_do_not_fit_are_counted() {
    for arch in machines() {
        let kernel = compiled(arch, |b| {
            let (i, zero, one) = (b.global_id(0), b.word_const(0), b.word_const(1));
            let hundred = b.word_const(100);
            b.for_range(zero, hundred, one, |b, k| b.print("{} {}", &[i, k]));
        });
        let device = device(arch, 2);
        let record = 4 * u32::from(arch.word().bytes());
        for bytes in [0, 1, record - 1, record, 5 * record + 3, 100 * record, 1 << 20] {
            let config = LaunchConfig::grid_1d(1).with_print_bytes(bytes);
            let printed = device.launch(&kernel, config, &[]).unwrap().printed;
            // The memory is whole words.
            let fit = (bytes.next_multiple_of(record / 4) / record).min(100) as usize;
            let texts: Vec<_> = printed.lines.iter().map(|line| line.text.clone()).collect();
            let wanted: Vec<_> = (0..fit).map(|k| format!("0 {k}")).collect();
            assert_eq!(texts, wanted, "{arch}, {bytes}");
            assert_eq!(printed.dropped, 100 - fit as u64, "{arch}, {bytes}");
        }
        let config = LaunchConfig::grid_1d(500).with_print_bytes(record * 7);
        let printed = device.launch(&kernel, config, &[]).unwrap().printed;
        assert_eq!(printed.lines.len() as u64 + printed.dropped, 50_000, "{arch}");
        assert!(printed.to_string().ends_with(&format!("did not fit: {}\n", printed.dropped)));
        let config = LaunchConfig::grid_1d(500).with_print_bytes(u32::MAX);
        let error = device.launch(&kernel, config, &[]).unwrap_err();
        assert!(matches!(error, LaunchError::Printing(_)), "{error}");
    }
}

/// What was printed before a trap is in the error, and nothing of other launches.
#[test]
fn lines_survive_a_trap() {
    for arch in machines() {
        let kernel = compiled(arch, |b| {
            let (i, end) = (b.global_id(0), b.scalar::<usize>("end"));
            b.print("before {}", &[i]);
            let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, end);
            b.assert(inside, "below the end");
            b.print("after {}", &[i]);
        });
        let device = device(arch, 1);
        let grid = LaunchConfig::grid_1d(2);
        let report = device.launch(&kernel, grid, &[2_usize.into()]).unwrap();
        let all = "[0] before 0\n[0] after 0\n[1] before 1\n[1] after 1\n";
        assert_eq!(report.printed.to_string(), all);
        let error = device.launch(&kernel, grid, &[1_usize.into()]).unwrap_err();
        let LaunchError::Trap(trap) = error else { panic!("{error}") };
        let printed = trap.printed.to_string();
        assert!(printed.contains("[1] before 1\n") && !printed.contains("after 1"), "{printed}");
        let empty = LaunchConfig::grid_1d(0);
        let report = device.launch(&kernel, empty, &[2_usize.into()]).unwrap();
        assert_eq!(report.printed, Default::default());
    }
}

/// How many instructions a line takes beyond the first one, and each value of it.
#[test]
fn a_line_takes_few_instructions() {
    for arch in machines() {
        let instructions = |lines: usize, values: usize| {
            let kernel = compiled(arch, |b| {
                let i = b.global_id(0);
                let format = "{}".repeat(values);
                (0..lines).for_each(|_| b.print(&format, &vec![i; values]));
            });
            let text = kernel.disassembly();
            text.lines().filter(|line| !line.trim_start().starts_with(';')).count()
        };
        let line = instructions(3, 0) - instructions(2, 0);
        let value = (instructions(3, 8) - instructions(2, 8) - line) / 8;
        assert!(line <= 30 && value <= 2, "{arch}: {line} and {value}");
    }
}

/// A kernel that prints and counts its branches takes two arguments more.
#[test]
fn printing_kernels_can_count_their_branches() {
    for arch in machines() {
        let source = source(arch, |b| {
            let (data, i) = (b.buffer::<u64>("data"), b.global_id(0));
            let odd = b.ins().band_imm_u(i, 1);
            let last = b.scalar::<u64>("last");
            b.if_then(odd, |b| {
                b.print("{}", &[i]);
                b.store(data, i, last);
            });
        });
        let options = CompileOptions { count_branches: true, ..CompileOptions::default() };
        let kernel = source.compile(&options).unwrap();
        let device = device(arch, 1);
        let data = device.buffer_zeroed::<u64>(4).unwrap();
        let args = [Arg::from(&data), 9_u64.into()];
        let report = device.launch(&kernel, LaunchConfig::grid_1d(4), &args).unwrap();
        assert_eq!(device.read(&data).unwrap(), [0, 9, 0, 9]);
        assert_eq!(report.printed.to_string(), "[1] 1\n[3] 3\n", "{arch}");
        assert!(report.branches.is_some_and(|profile| !profile.branches.is_empty()));
    }
}

#[test]
fn formats_that_do_not_fit_are_errors_with_the_place() {
    let mut source = KernelSource::new("k", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let i = b.global_id(0);
    let line = line!() + 1;
    b.print("{} {}", &[i]);
    b.return_();
    let error = b.finalize().unwrap_err();
    assert_eq!(error.place.as_ref().unwrap().line, line);
    let text = error.to_string();
    assert!(
        text.ends_with("the format \"{} {}\": more places than values, of which there are 1"),
        "{text}"
    );
}
