//! The launch path with kernels written in assembly, on many machines.

use harp_emu::TrapKind;
use harp_isa::abi::{ArgumentBlock, LaneField};
use harp_isa::{ArchId, LinkError, Object, WordSize};
use harp_jit::{Param, ParamType, SourcePlace};

use super::*;
use crate::buffer::Buffer;
use crate::config::DeviceConfig;
use crate::error::Parameter;
use crate::heap::OutOfMemory;

const STACK_BYTES: u32 = 256;

/// Machines of every word size and encoding: few registers and many, few lanes and many.
const MACHINES: [&str; 18] = [
    "4w24/12/32/16+x+s8/4",
    "8b8/8/8/4+s2",
    "4w8/8/16/16",
    "8w32/32/16/16",
    "4w32/16/32/16+x",
    "4w32/16/32/16",
    "4b16/16/8/4",
    "8b32/32/8/8",
    "8b8/2/4/2",
    "4b64/64/64/64",
    "4w8/2/1/1",
    "4w8/2/1/64",
    "4w8/2/64/1",
    "4w64/64/64/64",
    "8w64/64/64/64+x",
    "4w9/8/3/5",
    "8w13/4/7/3",
    "4w14/4/5/2",
];

/// A kernel of assembly text.
struct TestKernel {
    object: Arc<Object>,
    params: Vec<Param>,
}

impl TestKernel {
    fn new(arch: ArchId, text: &str, params: &[ParamType]) -> TestKernel {
        let word = arch.word();
        let mut definitions = vec![("K", i64::from(STACK_BYTES.ilog2()))];
        let names = ["LANE", "WARP", "CORE", "Y", "Z"];
        for (field, name) in LaneField::ALL.into_iter().zip(names) {
            definitions.push((name, field.offset(word).into()));
        }
        definitions.push(("EX", ArgumentBlock::grid_extent(0, word).into()));
        definitions.push(("EY", ArgumentBlock::grid_extent(1, word).into()));
        definitions.push(("ARG0", ArgumentBlock::argument(0, word).into()));
        definitions.push(("ARG1", ArgumentBlock::argument(1, word).into()));
        let object = Arc::new(harp_isa::assemble(text, arch, &definitions).unwrap());
        TestKernel { object, params: params.iter().copied().map(Param::unnamed).collect() }
    }

    fn parts<'a>(
        &'a self,
        origin_of: &'a dyn Fn(Option<&str>, u64) -> Option<Origin>,
    ) -> KernelParts<'a> {
        KernelParts {
            counters: None,
            reporting: None,
            prints: None,
            name: "test",
            object: &self.object,
            params: &self.params,
            lane_stack_bytes: STACK_BYTES,
            uses_groups: false,
            sees_groups: true,
            by_rows: self.object.arch.has_shared(),
            group_bytes: 0,
            origin_of,
        }
    }

    fn launch(
        &self,
        device: &Device,
        config: LaunchConfig,
        args: &[Arg],
    ) -> Result<Report, LaunchError> {
        device.launch_parts(&mut device.bottom(), self.parts(&|_, _| None), config, args, None)
    }
}

fn device(arch: &str, cores: u16) -> Device {
    let arch = arch.parse().unwrap();
    Device::new(DeviceConfig { cores, fuel: Some(1 << 30), ..DeviceConfig::new(arch) }).unwrap()
}

/// Each work-item adds 1 to the first word of its record and writes to the others: its position in
/// the grid, lane, warp, core. Then it overwrites every register that it may.
fn positions_kernel(arch: ArchId) -> TestKernel {
    let clobbered: String = (0..arch.gprs() / 2).map(|r| format!("ldi %r{r}, #-1\n")).collect();
    let fields = ["Y", "Z", "LANE", "WARP", "CORE"];
    let stores: String = (2..)
        .zip(fields)
        .map(|(n, field)| format!("ld %r3, %r1, {field}\nst %r3, %r2, ({n} * __WORD)\n"))
        .collect();
    let text = format!(
        ".perm x
        .global
        test:   st %fp, %sp, (-__WORD)
                ori %fp, %sp, #0
                subi %sp, %sp, (2 * __WORD)
                st %r1, %sp, #0
                shri %r1, %sp, K
                shli %r1, %r1, K
                ld %r2, %r1, Z
                ld %r3, %r0, EY
                mul %r2, %r2, %r3
                ld %r3, %r1, Y
                add %r2, %r2, %r3
                ld %r3, %r0, EX
                mul %r2, %r2, %r3
                ld %r3, %sp, #0
                add %r2, %r2, %r3
                shli %r2, %r2, (3 + `__WORD)
                ld %r3, %r0, ARG0
                add %r2, %r2, %r3
                ld %r3, %r2, #0
                addi %r3, %r3, #1
                st %r3, %r2, #0
                ld %r3, %sp, #0
                st %r3, %r2, __WORD
                {stores}
                {clobbered}
                iszero @p0, %r0
                iszero @p1, %r0
                ori %sp, %fp, #0
                ld %fp, %fp, (-__WORD)
                jmpr %ra"
    );
    TestKernel::new(arch, &text, &[ParamType::Pointer])
}

/// The words of `buffer`, which holds `count` words of the machine.
fn words(device: &Device, buffer: &Buffer<u8>) -> Vec<u64> {
    let bytes = device.read(buffer).unwrap();
    let size = usize::from(device.arch().word().bytes());
    let value = |word: &[u8]| word.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
    bytes.chunks(size).map(value).collect()
}

fn check_positions(id: &str, cores: u16, [x, y, z]: [usize; 3]) {
    let device = device(id, cores);
    let arch = device.arch();
    let (count, guard) = (x * y * z, 4);
    let bytes = (count + guard) * 8 * usize::from(arch.word().bytes());
    let buffer = device.buffer_zeroed::<u8>(bytes).unwrap();
    let config = LaunchConfig::grid_3d(x, y, z);
    let args = [Arg::from(&buffer)];
    let report = positions_kernel(arch).launch(&device, config, &args).unwrap();
    assert_eq!((report.grid, report.cores), ([x as u64, y as u64, z as u64], cores));

    let words = words(&device, &buffer);
    let lanes = u64::from(arch.lanes());
    let mut warp_of_chunk = None;
    for item in 0..count {
        let record = &words[8 * item..][..8];
        let expected = [1, item % x, item / x % y, item / (x * y)].map(|word| word as u64);
        let place = format!("{id}, {cores} cores, {x} x {y} x {z}, work-item {item}");
        assert_eq!(record[..4], expected, "{place}");
        let (lane, warp, core) = (record[4], record[5], record[6]);
        let (column, is_line) = (item % x, (y, z) == (1, 1));
        // By rows, each row begins a chunk.
        let numbered = if arch.has_shared() && !is_line { column } else { item };
        assert_eq!(lane, numbered as u64 % lanes, "{place}");
        assert!(warp < arch.warps().into() && core < cores.into(), "{place}: {warp} {core}");
        if lane == 0 {
            warp_of_chunk = Some((warp, core));
        }
        assert_eq!(warp_of_chunk, Some((warp, core)), "{place}");
    }
    assert!(words[8 * count..].iter().all(|&word| word == 0), "{id}: surplus lanes wrote");
}

#[test]
fn each_work_item_of_a_line_runs_once_and_knows_its_place() {
    for id in MACHINES {
        for n in [1, 7, 31, 32, 33, 1000] {
            check_positions(id, 1, [n, 1, 1]);
        }
    }
}

#[test]
fn each_work_item_of_a_volume_runs_once_and_knows_its_place() {
    for id in MACHINES {
        for grid in [[1, 1, 2], [3, 5, 7], [1, 33, 1], [16, 4, 2], [65, 2, 3]] {
            check_positions(id, 1, grid);
        }
    }
}

#[test]
fn cores_share_the_grid() {
    for id in MACHINES {
        for (cores, grid) in
            [(2, [1, 1, 1]), (3, [1000, 1, 1]), (4, [7, 11, 13]), (7, [4097, 1, 1])]
        {
            check_positions(id, cores, grid);
        }
    }
}

#[test]
fn statistics_do_not_depend_on_the_number_of_host_threads() {
    let stats = |threads: usize| {
        let config = DeviceConfig {
            cores: 4,
            host_threads: NonZeroUsize::new(threads),
            ..DeviceConfig::new("4w8/8/16/16".parse().unwrap())
        };
        let device = Device::new(config).unwrap();
        let buffer = device.buffer_zeroed::<u8>(3001 * 32).unwrap();
        let kernel = positions_kernel(device.arch());
        let report = kernel.launch(&device, LaunchConfig::grid_1d(3001), &[Arg::from(&buffer)]);
        (report.unwrap().stats, device.read(&buffer).unwrap())
    };
    assert_eq!(stats(1), stats(4));
}

/// Stores the word of its second argument to each word that its first argument points to.
fn argument_kernel(arch: ArchId, params: [ParamType; 2]) -> TestKernel {
    let text = "
        .perm x
        .global
        test:   ld %r2, %r0, ARG1
                ld %r3, %r0, ARG0
                shli %r1, %r1, (`__WORD)
                add %r3, %r3, %r1
                st %r2, %r3, #0
                jmpr %ra";
    TestKernel::new(arch, text, &params)
}

fn passed(id: &str, ty: ParamType, value: impl Into<Arg>) -> Vec<u64> {
    let device = device(id, 1);
    let size = usize::from(device.arch().word().bytes());
    let buffer = device.buffer_zeroed::<u8>(3 * size).unwrap();
    let kernel = argument_kernel(device.arch(), [ParamType::Pointer, ty]);
    let args = [Arg::from(&buffer), value.into()];
    kernel.launch(&device, LaunchConfig::grid_1d(3), &args).unwrap();
    words(&device, &buffer)
}

#[test]
fn arguments_arrive_with_zeros_above_their_type() {
    assert_eq!(passed("4w8/8/16/16", ParamType::I32, -2_i32), [0xffff_fffe; 3]);
    assert_eq!(passed("4w8/8/16/16", ParamType::F32, 1.5_f32), [0x3fc0_0000; 3]);
    assert_eq!(passed("8w32/32/4/2", ParamType::I32, -2_i32), [0xffff_fffe; 3]);
    assert_eq!(passed("8w32/32/4/2", ParamType::I64, -2_i64), [u64::MAX - 1; 3]);
    assert_eq!(passed("8b32/32/4/2", ParamType::F64, -0.5_f64), [0xbfe0 << 48; 3]);
    assert_eq!(passed("8b32/32/4/2", ParamType::I8, -1_i8), [0xff; 3]);
    assert_eq!(passed("4b8/2/4/2", ParamType::I16, 0x8001_u16), [0x8001; 3]);
}

#[test]
fn wrong_arguments_are_named() {
    let ours = device("4w8/8/16/16", 1);
    let theirs = device("4w8/8/16/16", 1);
    let (a, b) = (ours.buffer_zeroed::<u8>(64).unwrap(), theirs.buffer_zeroed::<u8>(64).unwrap());
    let kernel = argument_kernel(ours.arch(), [ParamType::Pointer, ParamType::I32]);
    let launch = |kernel: &TestKernel, args: &[Arg]| {
        kernel.launch(&ours, LaunchConfig::grid_1d(1), args).unwrap_err()
    };

    let parameter = |index| Parameter { kernel: "test".to_owned(), index, name: None };
    let error = launch(&kernel, &[(&a).into()]);
    let test = "test".to_owned();
    assert_eq!(error, LaunchError::ArgumentCount { kernel: test, expected: 2, given: 1 });
    let error = launch(&kernel, &[(&a).into(), 1_f32.into()]);
    let (expected, given) = (ParamType::I32, ParamType::F32);
    let wanted = LaunchError::ArgumentType { parameter: parameter(1), expected, given };
    assert_eq!(error, wanted);
    let text = "kernel `test`, parameter 1 has type i32, its argument has type f32";
    assert_eq!(error.to_string(), text);
    let error = launch(&kernel, &[(&b).into(), 1_i32.into()]);
    assert_eq!(error, LaunchError::ForeignBuffer { parameter: parameter(0) });
    let error = launch(&kernel, &[Arg::address(1 << 32), 1_i32.into()]);
    let (parameter, given) = (parameter(0), 1 << 32);
    assert_eq!(error, LaunchError::ArgumentTooWide { parameter, given, word_bytes: 4 });
}

#[test]
fn an_empty_grid_runs_nothing() {
    let device = device("4w8/8/16/16", 2);
    let kernel = TestKernel::new(device.arch(), ".perm x\n.global\ntest: trap", &[]);
    let report = kernel.launch(&device, LaunchConfig::grid_3d(5, 0, 3), &[]).unwrap();
    assert_eq!((report.warp_instructions(), report.work_items()), (0, 0));
}

#[test]
fn kernels_of_other_machines_are_refused() {
    let device = device("4w8/8/16/16", 1);
    let given: ArchId = "4w8/8/2/2".parse().unwrap();
    let fitting = TestKernel::new(given, ".perm x\n.global\ntest: jmpr %ra", &[]);
    fitting.launch(&device, LaunchConfig::grid_1d(100), &[]).unwrap();
    let given: ArchId = "4w8/4/16/16".parse().unwrap();
    let kernel = TestKernel::new(given, ".perm x\n.global\ntest: jmpr %ra", &[]);
    let error = kernel.launch(&device, LaunchConfig::grid_1d(1), &[]).unwrap_err();
    let expected = device.arch();
    assert_eq!(error, LaunchError::Arch { kernel: "test".into(), given, expected });
}

#[test]
fn kernels_that_do_not_link_or_fit_are_refused() {
    let device =
        Device::new(DeviceConfig { memory_bytes: 64 << 10, ..DeviceConfig::new(ArchId::HARP32) })
            .unwrap();
    let launch = |text: &str| {
        let kernel = TestKernel::new(ArchId::HARP32, text, &[]);
        kernel.launch(&device, LaunchConfig::grid_1d(1 << 10), &[]).unwrap_err()
    };
    let is_unresolved = |error: &LaunchError| {
        let LaunchError::Link(errors) = error else { return false };
        matches!(errors.first(), LinkError::Unresolved { .. })
    };
    let error = launch(".perm x\n.global\ntest: jmpi nowhere");
    assert!(is_unresolved(&error), "{error:?}");
    let error = launch(".perm x\n.global\nother: jmpr %ra");
    assert!(is_unresolved(&error), "{error:?}");
    let error = launch(".perm x\n.global\ntest: jmpr %ra\n.perm r\ntable: .space 4096");
    assert!(
        matches!(error, LaunchError::ImageTooLarge { given, limit: 16384 } if given > 16384),
        "{error:?}"
    );
    // 256 lanes need 64 KiB of stacks.
    let error = launch(".perm x\n.global\ntest: jmpr %ra");
    let stacks = OutOfMemory { given: 65536, free: 49152, limit: 49152 };
    assert_eq!(error, LaunchError::Stacks(stacks));
}

/// Kernels of tens of thousands of instructions take more than a megabyte on machines with long instructions.
#[test]
fn large_kernels_fit_the_usual_memory() {
    let text = ".perm x\n.global\ntest: jmpr %ra\n.perm r\ntable: .space 0x60000";
    let device = Device::new(DeviceConfig::new(ArchId::HARP64)).unwrap();
    let kernel = TestKernel::new(ArchId::HARP64, text, &[]);
    kernel.launch(&device, LaunchConfig::grid_1d(20), &[]).unwrap();
}

/// Launches a kernel that must trap over 40 work-items of a machine of 8 lanes.
fn trap_of(text: &str, config: LaunchConfig) -> LaunchTrap {
    let device = device("4w8/8/8/4", 1);
    let text = format!(
        ".perm x\n.global
        test:
        {text}
        jmpr %ra"
    );
    let kernel = TestKernel::new(device.arch(), &text, &[]);
    let origin_of = |_: Option<&str>, offset: u64| {
        let line = u32::try_from(offset / 4).unwrap();
        let place = SourcePlace { file: "kernel.rs".into(), line, column: 1 };
        let trap_code = (offset == 0).then(|| "user7".to_owned());
        Some(Origin { place: Some(place), trap_code, message: None })
    };
    match device.launch_parts(&mut device.bottom(), kernel.parts(&origin_of), config, &[], None) {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("{other:?}"),
    }
}

#[test]
fn traps_name_kind_warp_lanes_and_place() {
    let grid = LaunchConfig::grid_1d(40);

    // Items 16, 18, 20 and 22 divide by zero: chunk 2, warp 2, even lanes.
    let text = "andi %r2, %r1, #25; xori %r2, %r2, #16; ldi %r3, #7; div %r3, %r3, %r2";
    let trap = trap_of(text, grid);
    assert_eq!(trap.trap.kind, TrapKind::DivideByZero);
    assert_eq!((trap.trap.core, trap.trap.warp, trap.trap.lanes), (0, 2, 0b101_0101));
    assert_eq!(trap.site, TrapSite::Kernel { offset: 12 });
    assert_eq!(trap.place.as_ref().map(|place| place.line), Some(3));
    assert!(
        trap.to_string()
            .starts_with("kernel `test` at kernel.rs:3:1: division by zero (core 0, warp 2, pc 0x"),
        "{trap}"
    );
    assert!(trap.stats.issued() > 0);

    let trap = trap_of("ldi %r2, #1; shli %r2, %r2, #30; ld %r2, %r2, #0", grid);
    assert_eq!(trap.trap.kind, TrapKind::BadAddress { address: 1 << 30, store: false });
    assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0xff));
    assert_eq!(trap.site, TrapSite::Kernel { offset: 8 });

    let trap = trap_of("jmpi #-4", grid.with_fuel(10_000));
    assert_eq!(trap.trap.kind, TrapKind::OutOfFuel { limit: 10_000 });
    assert_eq!(trap.site, TrapSite::Kernel { offset: 0 });

    let limit = Duration::from_millis(5);
    let trap = trap_of("jmpi #-4", grid.with_time_limit(limit));
    assert_eq!(trap.trap.kind, TrapKind::TimeLimit { limit });
    assert_eq!(trap.site, TrapSite::Kernel { offset: 0 });

    let text = "andi %r2, %r1, #1; rtop @p0, %r2; @p0 ? jmpi #4; nop";
    let trap = trap_of(text, grid);
    let opcode = harp_isa::Opcode::Jmpi;
    assert_eq!(trap.trap.kind, TrapKind::DivergentBranch { opcode });
    assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0b1010_1010));

    let trap = trap_of("trap", grid);
    assert_eq!((&trap.trap.kind, trap.trap.warp), (&TrapKind::GuestTrap, 0));
    assert!(trap.to_string().starts_with("kernel `test` at kernel.rs:0:1: user7: "), "{trap}");

    let trap = trap_of("ldi %r2, #-4; jmpr %r2", grid);
    assert!(matches!(trap.trap.kind, TrapKind::BadPc { .. }), "{trap}");
    assert_eq!((trap.site, trap.place), (TrapSite::Outside, None));
}

#[test]
fn the_last_chunk_holds_surplus_lanes_back() {
    // Lanes 0 to 2 of the last chunk exist: each traps.
    let text = "subi %r2, %r1, #40; isneg @p0, %r2; notp @p0, @p0; ldi %r3, #0
                @p0 ? div %r3, %r3, %r3";
    let trap = trap_of(text, LaunchConfig::grid_1d(43));
    assert_eq!(trap.trap.kind, TrapKind::DivideByZero);
    assert_eq!(trap.trap.lanes, 0b111);
}

#[test]
fn a_trap_in_the_library_names_its_label() {
    // A kernel that loses its lane's stack and the registers that it has to preserve.
    let trap = trap_of("ldi %fp, #1; shli %fp, %fp, #30", LaunchConfig::grid_3d(10, 10, 10));
    let TrapSite::Runtime { symbol, .. } = &trap.site else { panic!("{trap}") };
    assert_eq!((symbol.as_str(), trap.place.is_none()), ("volume", true));
    assert!(trap.to_string().contains("kernel `test`, runtime library, `volume` + 0x"), "{trap}");
}

#[test]
fn images_of_kernels_launched_in_turns_do_not_mix() {
    let device = device("4w8/8/16/16", 1);
    let buffer = device.buffer_zeroed::<u32>(40).unwrap();
    // More kernels than the cache holds images, of which some come again while it has their code, too.
    let kernel = |value: usize| {
        let text = format!(
            ".perm x\n.global
            test:
            shli %r1, %r1, #2; ld %r2, %r0, ARG0; add %r1, %r1, %r2
            ldi %r2, #{value}; st %r2, %r1, #0; jmpr %ra"
        );
        TestKernel::new(ArchId::HARP32, &text, &[ParamType::Pointer])
    };
    for value in (0..70).chain([0, 69, 3, 69, 3, 0, 1, 69]) {
        let grid = LaunchConfig::grid_1d(40);
        kernel(value).launch(&device, grid, &[(&buffer).into()]).unwrap();
        assert_eq!(device.read(&buffer).unwrap(), [value as u32; 40]);
    }
}

#[test]
fn launches_give_their_stacks_back() {
    let device =
        Device::new(DeviceConfig { memory_bytes: 128 << 10, ..DeviceConfig::new(ArchId::HARP32) })
            .unwrap();
    let kernel = TestKernel::new(ArchId::HARP32, ".perm x\n.global\ntest: jmpr %ra", &[]);
    for _ in 0..100 {
        kernel.launch(&device, LaunchConfig::grid_1d(1000), &[]).unwrap();
    }
    assert_eq!(device.arch().word(), WordSize::Four);
}
