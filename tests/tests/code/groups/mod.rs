//! Work-groups: places in them, their memory, barriers, and what lanes tell each other.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_bench::array::Array;
use harp_jit::ir::{FuncRef, Value, types};
use harp_jit::{
    ArchId, BuildErrorKind, CompileOptions, DivergenceStrategy, Kernel, KernelBuilder,
    KernelSource, Linkage, Module, OptLevel, ParamType,
};
use harp_runtime::{Device, DeviceConfig, LaunchConfig, LaunchError, Program, ProgramError};

mod barriers;
mod lanes;
mod meetings;
mod places;
mod reductions;
mod turns;

/// Both word sizes and encodings, with and without the extension, few registers and many, one lane and
/// many, one warp and many.
const MACHINES: [&str; 9] = [
    "harp32",
    "harp64+x",
    "4w32/16/32/8+x",
    "4w64/64/16/4",
    "8b16/16/8/4",
    "4b8/2/4/8",
    "4w9/8/3/5",
    "8w13/4/64/1",
    "4w8/2/1/16",
];

fn device(arch: ArchId, cores: u16) -> Device {
    Device::new(DeviceConfig { cores, fuel: Some(1 << 24), ..DeviceConfig::new(arch) }).unwrap()
}

fn build(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new("test", arch);
    let mut b = KernelBuilder::new(&mut source);
    kernel(&mut b);
    b.return_();
    b.finalize().unwrap();
    source
}

fn compile(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    proved(build(arch, kernel).compile(&verified()).unwrap())
}

/// Options by which code can be [`proved`], in release builds as well.
fn verified() -> CompileOptions {
    CompileOptions { verify: true, ..CompileOptions::default() }
}

/// A kernel whose finished code keeps lanes together, barriers and votes under divergent branches included.
fn proved(kernel: Kernel) -> Kernel {
    kernel.check().unwrap_or_else(|error| panic!("{error}\n{}", kernel.disassembly()));
    kernel
}

/// Every strategy that needs no profile, with and without the mid-end.
fn options() -> impl Iterator<Item = CompileOptions> {
    let strategies = [
        DivergenceStrategy::SplitJoin,
        DivergenceStrategy::Predicate,
        DivergenceStrategy::Static,
        DivergenceStrategy::Adaptive,
    ];
    strategies.into_iter().flat_map(|divergence| {
        [OptLevel::None, OptLevel::Speed].map(|opt_level| CompileOptions {
            divergence,
            opt_level,
            ..verified()
        })
    })
}

/// The same kernel with all these [`options`].
fn compile_all(arch: ArchId, kernel: impl FnOnce(&mut KernelBuilder<'_>)) -> Vec<Kernel> {
    let source = build(arch, kernel);
    options().map(|options| proved(source.compile(&options).unwrap())).collect()
}

/// The kernels with all these [`options`] that call a function of this text, by its number.
fn compile_all_calling(
    arch: ArchId,
    function: &str,
    kernel: impl Fn(&mut KernelBuilder<'_>, FuncRef),
) -> Vec<Kernel> {
    let func = cranelift_reader::parse_functions(function).unwrap().remove(0);
    let compiled = options().map(|options| {
        let mut module = Module::new(arch, options);
        let id = module.declare_function("callee", Linkage::Local, &func.signature).unwrap();
        module.define_function(id, &func).unwrap();
        let source = build(arch, |b| {
            let callee = module.declare_func_in_func(id, b.inner().func).unwrap();
            kernel(b, callee);
        });
        proved(module.compile_kernel(&source).unwrap())
    });
    compiled.collect()
}

/// Launches a kernel whose parameter is an array of words; the array afterwards, of 32 bits each.
fn run(device: &Device, kernel: &Kernel, config: LaunchConfig, words: &[i32]) -> Vec<u32> {
    let array = Array::of_ints(device, words).unwrap();
    device.launch(kernel, config, &[array.arg()]).unwrap();
    array.words(device).unwrap()
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let arch = ArchId::HARP32;
    let device = device(arch, 1);
    let kernel = compile(arch, |b| b.barrier());
    let line = LaunchConfig::grid_1d(100);
    let error = device.launch(&kernel, line, &[]).unwrap_err();
    assert_eq!(error, LaunchError::NoGroups { kernel: "test".into() });
    let error = device.launch(&kernel, line.with_groups_1d(257), &[]).unwrap_err();
    assert_eq!(error, LaunchError::GroupTooLarge { given: [257, 1, 1], limit: 256 });
    let error = device.launch(&kernel, line.with_groups([4, 0, 1]), &[]).unwrap_err();
    assert_eq!(error, LaunchError::GroupEmpty { given: [4, 0, 1] });
    let report = device.launch(&kernel, line.with_groups_1d(256), &[]).unwrap();
    assert_eq!(report.group, Some([256, 1, 1]));
    // Twice the device's memory for each of 16 groups.
    let kernel = compile(arch, |b| {
        b.group_array(types::I32, 1 << 25);
    });
    let grid = LaunchConfig::grid_1d(16).with_groups_1d(1);
    let error = device.launch(&kernel, grid, &[]).unwrap_err();
    assert!(matches!(error, LaunchError::Stacks(_)), "{error}");
}

/// Functions take part: kernels that call them use groups, single calls have none.
#[test]
fn functions_use_the_groups_of_their_kernels() {
    let arch = ArchId::HARP32;
    let text = "function %wait(i32) -> i32 {
            fn0 = %harp_barrier()
            fn1 = %harp_local_size_x() -> i32
            fn2 = %harp_any(i8) -> i8
        block0(v0: i32):
            call fn0()
            v1 = call fn1()
            v2 = icmp ugt v0, v1
            v3 = call fn2(v2)
            v4 = uextend.i32 v3
            v5 = iadd v1, v4
            return v5
        }";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let mut module = Module::new(arch, CompileOptions::default());
    let wait = module.declare_function("wait", Linkage::Local, &func.signature).unwrap();
    let signature = func.signature.clone();
    module.define_function(wait, &func).unwrap();
    let mut source = KernelSource::new("test", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
    let wait = module.declare_func_in_func(wait, b.inner().func).unwrap();
    let call = b.ins().call(wait, &[i]);
    let result = b.inner().inst_results(call)[0];
    b.store_elem(result, data, i);
    b.return_();
    b.finalize().unwrap();
    let kernel = module.compile_kernel(&source).unwrap();
    assert!(kernel.uses_groups());
    let config = LaunchConfig::grid_1d(42).with_groups_1d(40);
    let out = run(&device(arch, 1), &kernel, config, &[0; 42]);
    // A group of 40 has no work-item above 40; of those of the group of two both are.
    assert_eq!((&out[..40], &out[40..]), (&[40; 40][..], &[3, 3][..]));
    let error = Program::new(&module.finish().unwrap(), "wait", &signature).unwrap_err();
    assert!(matches!(error, ProgramError::UsesGroups { name } if name == "wait"));
}

#[test]
fn misuse_is_named_with_its_place() {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let mut kind = |build: &mut dyn FnMut(&mut KernelBuilder<'_>)| {
        let mut b = KernelBuilder::new(&mut source);
        build(&mut b);
        b.return_();
        b.finalize().unwrap_err().kind
    };
    for build in [
        (|b, dim| b.local_id(dim)) as fn(&mut KernelBuilder<'_>, u8) -> Value,
        |b, dim| b.group_id(dim),
        |b, dim| b.local_size(dim),
        |b, dim| b.group_size(dim),
        |b, dim| b.group_count(dim),
    ] {
        let found = kind(&mut |b| {
            build(b, 3);
        });
        assert_eq!(found, BuildErrorKind::Dimension { given: 3 });
    }
    let too_much = kind(&mut |b| {
        b.group_array(types::I32, 1 << 25);
        b.group_array(types::F64, 1 << 25);
    });
    assert_eq!(
        too_much,
        BuildErrorKind::GroupMemory { name: None, given: 3 << 27, limit: 1 << 28 }
    );
    let part = kind(&mut |b| {
        let i = b.global_id(0);
        b.ballot(i, 2);
    });
    assert_eq!(part, BuildErrorKind::BallotPart { given: 2 });
}
