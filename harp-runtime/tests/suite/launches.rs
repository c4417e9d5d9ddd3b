//! Compiled kernels over the public interface.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types;
use harp_isa::{OpcodeFlags, Permissions, Space, disassemble};
use harp_jit::{ArchId, CompileOptions, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError, TrapKind, TrapSite};

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/8/4", "8b32/32/8/8", "4w8/2/1/1"];

/// `data[i] = data[i] / divisor` for `i < n`, words of the machine; and the line of the division.
fn halves(arch: ArchId) -> (Kernel, u32) {
    let mut source = KernelSource::new("halves", arch);
    let mut b = KernelBuilder::new(&mut source);
    let data = b.param(ParamType::Pointer);
    let n = b.param(ParamType::I32);
    let divisor = b.param(ParamType::I32);
    let i = b.global_id(0);
    let word = b.word_int();
    let [n, divisor] = [n, divisor]
        .map(|value| if arch.word().bytes() == 8 { b.ins().uextend(word, value) } else { value });
    let (inside, old) = (b.ins().icmp(IntCC::UnsignedLessThan, i, n), b.load_elem(word, data, i));
    let (new, division) = (b.ins().udiv(old, divisor), line!());
    let new = b.ins().select(inside, new, old);
    b.store_elem(new, data, i);
    b.return_();
    b.finalize().expect("the kernel is well formed");
    (source.compile(&CompileOptions::default()).expect("the kernel compiles"), division)
}

fn words(arch: ArchId, values: impl Iterator<Item = u64>) -> Vec<u8> {
    let bytes = usize::from(arch.word().bytes());
    values.flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
}

#[test]
fn compiled_kernels_run_on_every_machine() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        let device = Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(arch) }).unwrap();
        let (kernel, _) = halves(arch);
        for n in [1, 7, 33, 1000] {
            let data = device.buffer_from_slice(&words(arch, (0..n).map(|i| 3 * i))).unwrap();
            let args = [Arg::from(&data), (n as u32 - 1).into(), 2_u32.into()];
            let report = device.launch(&kernel, LaunchConfig::grid_1d(n as usize), &args).unwrap();
            let expected = (0..n).map(|i| if i + 1 < n { 3 * i / 2 } else { 3 * i });
            assert_eq!(device.read(&data).unwrap(), words(arch, expected), "{id}, {n}");
            assert!(report.warp_instructions() > 0 && report.work_items() == n);
        }
    }
}

#[test]
fn a_trap_names_the_line_of_the_builder_call() {
    let device = Device::new(DeviceConfig::new(ArchId::HARP32)).unwrap();
    let (kernel, division) = halves(ArchId::HARP32);
    let data = device.buffer_zeroed::<u32>(40).unwrap();
    let args = [Arg::from(&data), 40_u32.into(), 0_u32.into()];
    let error = device.launch(&kernel, LaunchConfig::grid_1d(40), &args).unwrap_err();
    let LaunchError::Trap(trap) = &error else { panic!("{error:?}") };
    let place = trap.place.as_ref().unwrap();
    assert!(place.file.ends_with("launches.rs"), "{place}");
    assert_eq!(place.line, division, "{error}");
    assert!(matches!(trap.site, TrapSite::Kernel { .. }));
    assert_eq!((trap.trap.warp, trap.trap.lanes), (0, 0xffff));
}

#[test]
fn elements_at_misaligned_addresses_trap_where_that_is_checked() {
    let arch = ArchId::HARP32;
    let options = CompileOptions { check_alignment: true, ..CompileOptions::default() };
    for store in [false, true] {
        let mut source = KernelSource::new("shifted", arch);
        let mut b = KernelBuilder::new(&mut source);
        let (data, by) = (b.param(ParamType::Pointer), b.param(ParamType::I32));
        let i = b.global_id(0);
        let shifted = b.ins().iadd(data, by);
        let (from, to) = if store { (data, shifted) } else { (shifted, data) };
        let (loading, value) = (line!(), b.load_elem(types::I32, from, i));
        let storing = line!() + 1;
        b.store_elem(value, to, i);
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&options).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let data = device.buffer_zeroed::<u32>(65).unwrap();
        let grid = LaunchConfig::grid_1d(64);
        for by in [0_u32, 4] {
            device.launch(&kernel, grid, &[Arg::from(&data), by.into()]).unwrap();
        }
        let error = device.launch(&kernel, grid, &[Arg::from(&data), 2_u32.into()]).unwrap_err();
        let LaunchError::Trap(trap) = &error else { panic!("{error:?}") };
        assert_eq!(trap.place.as_ref().unwrap().line, if store { storing } else { loading });
        assert!(error.to_string().contains("128"), "{error}");
    }
}

#[test]
fn images_without_the_extension_hold_base_instructions_only() {
    for id in MACHINES.into_iter().filter(|id| !id.ends_with("+x")) {
        let arch: ArchId = id.parse().unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let image = device.image(&halves(arch).0).unwrap();
        let mut seen = 0;
        for section in &image.sections {
            if !section.permissions.contains(Permissions::EXECUTE) {
                continue;
            }
            let (start, size) = (section.address as usize, section.size as usize);
            let code = &image.bytes[start..start + size];
            for (address, instruction) in disassemble(code, section.address, arch) {
                let opcode = instruction.unwrap().op.opcode();
                let base = matches!(opcode.space(), Space::Base(_))
                    && !opcode.flags().contains(OpcodeFlags::EXTENSION);
                assert!(base, "{id} {address:#x}: {opcode:?}");
                seen += 1;
            }
        }
        assert!(seen > 80, "{id}: {seen}");
    }
}

/// The code of a kernel in which both sides of a split have a shared register, and one reads it after the other has
/// written it.
const CLOBBERED: &str = "
    tid %r1;
    andi %r1, %r1, #1;
    rtop @p0, %r1;
    ldi %s0, #7;
    @p0 ? split;
    @p0 ? jmpi #8;
    addi %r2, %s0, #1;
    jmpi #4;
    ldi %s0, #8;
    join;
    jmpr %r23;
";

#[test]
fn an_audit_finds_what_the_other_side_of_a_split_has_written() {
    let arch: ArchId = "4w24/12/32/16+x+s8/4".parse().unwrap();
    let mut source = KernelSource::new("clobbered", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, i) = (b.buffer::<u32>("data"), b.global_id(0));
    // At least as much code as there is above.
    let end = (0..20).fold(i, |x, _| b.ins().imul(x, x));
    b.store(data, i, end);
    b.return_();
    b.finalize().unwrap();
    let kernel = source.compile(&CompileOptions::default()).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let data = device.buffer_zeroed::<u32>(64).unwrap();
    let launch = |kernel: &Kernel, config| device.launch(kernel, config, &[Arg::from(&data)]);
    let grid = LaunchConfig::grid_1d(64);
    launch(&kernel, grid.with_audit()).unwrap();

    let mut code = harp_isa::asm::assemble(CLOBBERED, arch, &[]).unwrap().chunks[0].data.clone();
    while code.len() < kernel.code().len() {
        let nop = harp_isa::Instruction::new(harp_isa::Op::Nop {});
        harp_isa::encode(&nop, arch, &mut code).unwrap();
    }
    let broken = kernel.with_code(0, &code).unwrap();
    launch(&broken, grid).unwrap();
    let error = launch(&broken, grid.with_audit()).unwrap_err();
    let LaunchError::Trap(trap) = &error else { panic!("{error:?}") };
    let TrapKind::SharedMismatch { number, shared, own, .. } = trap.trap.kind else {
        panic!("{error}")
    };
    assert_eq!((number, shared, own), (0, 8, 7), "{error}");
}

/// Each work-item adds to its cell of a picture what it is next to, and its position; and the extent of groups, if it is to
/// know of them.
fn next_to(arch: ArchId, knows_groups: bool) -> Kernel {
    let mut source = KernelSource::new("next_to", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (from, to) = (b.buffer::<u32>("from"), b.buffer::<u32>("to"));
    let width = b.scalar::<usize>("width");
    let (x, y) = (b.global_id(0), b.global_id(1));
    let row = b.ins().imul(y, width);
    let at = b.ins().iadd(row, x);
    let next = b.ins().iadd_imm_s(at, 1);
    let [own, right, old] = [b.load(from, at), b.load(from, next), b.load(to, at)];
    let place = match arch.word() {
        harp_isa::WordSize::Four => at,
        harp_isa::WordSize::Eight => b.ins().ireduce(types::I32, at),
    };
    let odd = b.ins().band_imm_u(own, 1);
    let mut parts = vec![right, old, place];
    if knows_groups {
        let extent = b.group_size(0);
        parts.push(match arch.word() {
            harp_isa::WordSize::Four => extent,
            harp_isa::WordSize::Eight => b.ins().ireduce(types::I32, extent),
        });
    }
    let sum = parts.into_iter().fold(own, |sum, part| b.ins().iadd(sum, part));
    b.store(to, at, sum);
    // Some lanes access a row, too.
    b.if_then(odd, |b| {
        let again = b.load(to, at);
        let twice = b.ins().iadd(again, again);
        b.store(to, at, twice);
    });
    b.return_();
    b.finalize().unwrap();
    source.compile(&CompileOptions::default()).unwrap()
}

#[test]
fn rows_of_memory_are_those_of_the_grid() {
    let machines = [
        "4w24/12/32/16+x+s8/4",
        "4w24/12/1/4+x+s8/4",
        "8b8/8/64/2+s24/8",
        "4b16/16/16/8+x+s8",
        "4w8/8/8/4+s1",
        "8w32/32/4/4+x+s16/4",
    ];
    let mut with_rows = 0;
    for (id, knows_groups) in machines.iter().flat_map(|id| [false, true].map(|knows| (*id, knows)))
    {
        let arch: ArchId = id.parse().unwrap();
        let kernel = next_to(arch, knows_groups);
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let code = disassemble(kernel.code(), 0, arch);
        let is_row = |op: harp_isa::Op| op.sharing(arch) == harp_isa::Sharing::Row;
        let has_rows = code.filter_map(|(_, inst)| inst.ok()).any(|inst| is_row(inst.op));
        assert!(!(has_rows && knows_groups), "{id}: positions in groups make no rows");
        with_rows += u32::from(has_rows);
        for (width, height) in [(1, 1), (7, 3), (33, 2), (64, 3), (65, 1), (3, 50)] {
            for groups in [None, Some([2, 2, 1])].into_iter().skip(usize::from(knows_groups)) {
                let from: Vec<u32> = (0..width * height + 1).map(|n| (n * n) as u32 % 91).collect();
                let to: Vec<u32> = (0..width * height).map(|n| n as u32 / 3).collect();
                let args = [device.buffer_from_slice(&from), device.buffer_from_slice(&to)];
                let [from_buffer, to_buffer] = args.map(Result::unwrap);
                let args = [Arg::from(&from_buffer), Arg::from(&to_buffer), Arg::from(width)];
                let grid = LaunchConfig::grid_2d(width, height).with_audit();
                let grid = groups.map_or(grid, |groups| grid.with_groups(groups));
                device.launch(&kernel, grid, &args).unwrap();
                let extent = groups.map_or(0, |groups| groups[0] as u32 * u32::from(knows_groups));
                let cell = |n: usize| {
                    let sum = from[n] + from[n + 1] + to[n] + n as u32 + extent;
                    if from[n] % 2 == 1 { 2 * sum } else { sum }
                };
                let expected: Vec<u32> = (0..width * height).map(cell).collect();
                let place = format!("{id}, {width} x {height}, groups {groups:?}, {knows_groups}");
                assert_eq!(device.read(&to_buffer).unwrap(), expected, "{place}");
            }
        }
    }
    assert!(with_rows >= 3, "{with_rows}");
}

#[test]
fn an_offset_is_what_the_kernel_is_told() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        let mut source = KernelSource::new("shifted", arch);
        let mut b = KernelBuilder::new(&mut source);
        let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
        let offsets = [2, 0, 1, 0].map(|dim| b.global_offset(dim));
        let (one, other) = (b.ins().imul(offsets[0], offsets[1]), b.ins().iadd(offsets[2], i));
        let sum = b.ins().iadd(one, other);
        let sum = b.ins().isub(sum, offsets[3]);
        b.store_elem(sum, data, i);
        b.return_();
        b.finalize().expect("the kernel is well formed");
        let kernel = source.compile(&CompileOptions::default()).expect("the kernel compiles");
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let data = device.buffer_from_slice(&words(arch, 0..10)).unwrap();
        let launch = |config| device.launch(&kernel, config, &[Arg::from(&data)]);
        let config = LaunchConfig::grid_1d(10);
        for offset in [[3, 100, 7], [0, 0, 0]] {
            launch(config.with_offset(offset)).unwrap();
            let [x, y, z] = offset.map(|n| n as u64);
            let mask = arch.word().mask();
            let expected = (0..10).map(|i| (z * x + y + i).wrapping_sub(x) & mask);
            assert_eq!(device.read(&data).unwrap(), words(arch, expected), "{id}");
        }
        let limit = arch.word().mask();
        let given = [0, limit, 0];
        let error = launch(config.with_offset(given.map(|n| n as usize))).unwrap_err();
        assert_eq!(error, LaunchError::OffsetTooLarge { given, grid: [10, 1, 1], limit }, "{id}");
    }
}

#[test]
fn an_offset_is_not_lost() {
    let device = Device::new(DeviceConfig::new(ArchId::HARP32)).unwrap();
    let (kernel, _) = halves(ArchId::HARP32);
    let data = device.buffer_zeroed::<u32>(40).unwrap();
    let args = [Arg::from(&data), 40_u32.into(), 1_u32.into()];
    let config = LaunchConfig::grid_1d(40).with_offset([0, 1, 0]);
    let error = device.launch(&kernel, config, &args).unwrap_err();
    assert_eq!(error, LaunchError::NoOffset { kernel: "halves".to_owned() });
}
