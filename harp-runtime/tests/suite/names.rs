//! A crate that depends on harp-runtime alone can name all that building and launching a kernel involves.

use harp_runtime::prelude::*;
use harp_runtime::{CancelToken, Printed, Stats, WordSize, jit};

/// What a crate might keep of a kernel under construction.
struct Parts<'a> {
    arch: ArchId,
    word: WordSize,
    buffer: BufferParam<f32>,
    value: Value,
    ty: Type,
    block: Block,
    variable: Variable,
    function: Option<FuncRef>,
    operation: AtomicRmwOp,
    trap: TrapCode,
    condition: (IntCC, FloatCC),
    flags: MemFlagsData,
    reduction: Reduction,
    ins: fn(&mut KernelBuilder<'a>) -> jit::ir::Inst,
}

fn parts<'a>(b: &mut KernelBuilder<'a>) -> Parts<'a> {
    let buffer = b.buffer("buffer");
    Parts {
        arch: b.arch(),
        word: b.arch().word(),
        buffer,
        value: buffer.base(),
        ty: b.word_int(),
        block: b.create_block(),
        variable: b.declare_var(types::I32),
        function: None,
        operation: AtomicRmwOp::Add,
        trap: TrapCode::unwrap_user(1),
        condition: (IntCC::Equal, FloatCC::Equal),
        flags: MemFlagsData::new(),
        reduction: Reduction::Iadd,
        ins: |b| b.ins().nop(),
    }
}

#[test]
fn the_parts_of_a_kernel_have_names() {
    let mut source = KernelSource::new("parts", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let Parts { arch, word, buffer, value, ty, block, variable, function, operation, .. } =
        parts(&mut b);
    assert_eq!((arch.word(), b.word_int()), (word, ty));
    assert_eq!((buffer.base(), function.is_none()), (value, true));
    assert_ne!(b.create_block(), block);
    assert_eq!(operation, AtomicRmwOp::Add);
    b.use_var(variable);
    b.return_();
    let result: Result<(), BuildError> = b.finalize();
    assert_eq!(result.map_err(|error: BuildError| -> BuildErrorKind { error.kind }), Ok(()));
    let params: &[jit::Param] = source.params();
    assert_eq!(params[0].name(), Some("buffer"));
}

#[test]
fn the_rest_of_the_parts_is_used() {
    let mut source = KernelSource::new("parts", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let Parts { trap, condition, flags, reduction, ins, value, .. } = parts(&mut b);
    ins(&mut b);
    let loaded = b.ins().load(types::I32, flags, value, 0);
    let sum = b.reduce(reduction, loaded);
    let same = b.ins().icmp(condition.0, sum, loaded);
    b.trap_if(same, trap);
    b.return_();
    b.finalize().unwrap();
    let kernel: Result<Kernel, CompileError> = source.compile(&CompileOptions::default());
    assert_eq!(kernel.unwrap().name(), "parts");
}

/// Functions with the types of the launch in their signatures.
fn launch(kernel: &Kernel, args: &[Arg]) -> Result<(Stats, Printed), LaunchError> {
    let device = Device::new(DeviceConfig::new(kernel.arch())).expect("there is memory");
    let _: CancelToken = device.cancel_token();
    let report: Report = device.launch(kernel, LaunchConfig::grid_1d(1), args)?;
    Ok((report.stats, report.printed))
}

#[test]
fn functions_of_cranelift_can_be_built() {
    let triple = jit::Triple::from(ArchId::HARP32);
    let config: Result<jit::TargetFrontendConfig, jit::TripleError> = jit::frontend_config(&triple);
    let mut module = jit::Module::new(ArchId::HARP32, CompileOptions::default());
    let mut signature: jit::ir::Signature = module.make_signature();
    signature.returns.push(jit::ir::AbiParam::new(types::I32));
    let id = module.declare_function("five", jit::Linkage::Local, &signature).unwrap();
    let name = jit::ir::UserFuncName::testcase("five");
    let mut func = jit::ir::Function::with_name_signature(name, signature);
    let mut context = jit::FunctionBuilderContext::new();
    let mut f = jit::FunctionBuilder::new(&mut func, &mut context);
    let block = f.create_block();
    f.switch_to_block(block);
    let five = f.ins().iconst(types::I32, 5);
    f.ins().return_(&[five]);
    f.seal_all_blocks();
    f.finalize(config.unwrap());
    module.define_function(id, &func).unwrap();

    let mut source = KernelSource::new("calls", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let [five] = b.call(&module, id, &[]);
    b.print("{}", &[five]);
    b.return_();
    b.finalize().unwrap();
    let kernel = module.compile_kernel(&source).unwrap();
    let (stats, printed) = launch(&kernel, &[]).unwrap();
    assert!(stats.issued() > 0);
    assert_eq!(printed.to_string(), "[0] 5\n");
}
