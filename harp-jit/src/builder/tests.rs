//! Tests of the code that the builder makes, and of its errors on misuse.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F64, I8, I32, I64};
use cranelift_codegen::ir::{
    AtomicRmwOp, Block, Function, Inst, MemFlagsData, Opcode, TrapCode, Value,
};
use cranelift_codegen::settings;
use cranelift_codegen::verifier::verify_function;
use cranelift_frontend::Variable;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use harp_isa::ArchId;
use harp_isa::abi::ArgumentBlock;

use super::{BufferParam, KernelBuilder, KernelSource, Param, ParamType};
use crate::error::BuildErrorKind;
use crate::intrinsic::Intrinsic;

const ARCHS: [ArchId; 2] = [ArchId::HARP32, ArchId::HARP64];

fn verify(func: &Function) {
    let flags = settings::Flags::new(settings::builder());
    verify_function(func, &flags).unwrap_or_else(|errors| panic!("{errors}\n{}", func.display()));
}

fn built(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> KernelSource {
    let mut source = KernelSource::new("test", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().unwrap();
    verify(source.finished().unwrap());
    source
}

/// The error of a kernel that otherwise ends as it should.
fn error(build: impl FnOnce(&mut KernelBuilder<'_>)) -> BuildErrorKind {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    if !b.has_ended() {
        b.return_();
    }
    let error = b.finalize().unwrap_err();
    assert!(source.finished().is_err());
    error.kind
}

fn insts(func: &Function) -> Vec<Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect()
}

#[test]
fn saxpy_on_both_word_sizes() {
    for arch in ARCHS {
        let source = built(arch, |b| {
            let float = b.word_float();
            let [x, y] = [b.param(ParamType::Pointer), b.param(ParamType::Pointer)];
            let a = b.param(if float == F32 { ParamType::F32 } else { ParamType::F64 });
            let n = b.param(ParamType::Pointer);
            let i = b.global_id(0);
            let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
            b.if_then(inside, |b| {
                let [xi, yi] = [b.load_elem(float, x, i), b.load_elem(float, y, i)];
                let product = b.ins().fmul(a, xi);
                let sum = b.ins().fadd(product, yi);
                b.store_elem(sum, y, i);
            });
        });
        assert_eq!(source.params().len(), 4);
        let func = source.function();
        for inst in insts(func) {
            let place = source.sources().place(func.srcloc(inst)).unwrap();
            assert!(place.file.ends_with("tests.rs"), "{place}");
        }
    }
}

#[test]
fn parameters_lie_behind_the_extent_of_the_grid() {
    for arch in ARCHS {
        let source = built(arch, |b| {
            let types = [ParamType::I8, ParamType::I16, ParamType::I32, ParamType::F32];
            let wanted = types.map(|ty| ty.clif_type(arch.word()));
            let values = types.map(|ty| b.param(ty));
            assert_eq!(values.map(|value| b.inner().func.dfg.value_type(value)), wanted);
            b.global_size(2);
        });
        let func = source.function();
        let offsets: Vec<i32> = insts(func)
            .into_iter()
            .filter_map(|inst| func.dfg.insts[inst].load_store_offset())
            .collect();
        // Before the parameters lie three extents or counts of three dimensions each.
        assert_eq!(offsets, [9, 10, 11, 12, 2].map(|word| word * i32::from(arch.word().bytes())));
    }
}

#[test]
fn ids_are_asked_for_once_and_at_the_top() {
    let source = built(ArchId::HARP32, |b| {
        let one = b.ins().iconst(I32, 1);
        b.if_then(one, |b| {
            let first = [b.global_id(1), b.lane_id(), b.warp_id(), b.core_id(), b.global_size(0)];
            let again = [b.global_id(1), b.lane_id(), b.warp_id(), b.core_id(), b.global_size(0)];
            assert_eq!(first, again);
        });
        let x = b.lane_id();
        b.ins().iadd(x, one);
    });
    let func = source.function();
    let entry = func.layout.entry_block().unwrap();
    let calls: Vec<_> =
        func.layout.block_insts(entry).filter_map(|inst| Intrinsic::of_call(func, inst)).collect();
    let position = Intrinsic::GLOBAL_ID[1];
    assert_eq!(calls, [position, Intrinsic::LANE_ID, Intrinsic::WARP_ID, Intrinsic::CORE_ID]);
    assert_eq!(source.to_string().matches("call ").count(), 4);
}

#[test]
fn assumptions_keep_the_type() {
    let source = built(ArchId::HARP64, |b| {
        let lane = b.lane_id();
        let flag = b.ins().icmp(IntCC::Equal, lane, lane);
        for value in [lane, flag, lane] {
            let assumed = b.assume_uniform(value);
            let dfg = &b.inner().func.dfg;
            assert_eq!(dfg.value_type(assumed), dfg.value_type(value));
        }
    });
    assert_eq!(source.to_string().matches("= colocated %harp_assume_uniform").count(), 2);
}

#[test]
fn elements_of_all_sizes() {
    let source = built(ArchId::HARP64, |b| {
        let base = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        for ty in [I8, I32, I64, F32, F64] {
            let value = b.load_elem(ty, base, i);
            assert_eq!(b.inner().func.dfg.value_type(value), ty);
            b.store_elem(value, base, i);
        }
    });
    let func = source.function();
    for inst in insts(func) {
        let data = &func.dfg.insts[inst];
        if let Some(flags) = data.memflags_data(&func.dfg) {
            let argument = data.load_store_offset() != Some(0);
            assert_eq!((flags.notrap(), flags.readonly()), (argument, argument));
            assert!(flags.aligned());
        }
    }
}

#[test]
fn constant_buffers_are_only_loaded_from() {
    let source = built(ArchId::HARP32, |b| {
        let (table, i) = (b.constant_buffer::<i32>("table"), b.global_id(0));
        b.load(table, i);
    });
    let [table] = source.params() else { panic!("there is one") };
    assert_eq!(
        (table.is_constant(), table.to_string()),
        (true, "table: pointer of i32, constant".to_owned())
    );
    let func = source.function();
    let loads =
        insts(func).into_iter().filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::Load);
    assert!(loads.into_iter().all(|inst| {
        func.dfg.insts[inst].memflags_data(&func.dfg).is_some_and(MemFlagsData::readonly)
    }));
    let writes: [fn(&mut KernelBuilder<'_>, BufferParam<i32>, Value); 3] = [
        |b, table, i| b.store(table, i, i),
        |b, table, i| {
            b.atomic(AtomicRmwOp::Add, table, i, i);
        },
        |b, table, i| {
            b.compare_exchange(table, i, i, i);
        },
    ];
    for write in writes {
        let mut source = KernelSource::new("k", ArchId::HARP32);
        let mut b = KernelBuilder::new(&mut source);
        let (table, i) = (b.constant_buffer::<i32>("table"), b.global_id(0));
        write(&mut b, table, i);
        b.return_();
        assert_eq!(b.finalize().unwrap_err().kind, BuildErrorKind::ConstantBuffer);
    }
}

#[test]
fn closures_nest_and_set_variables() {
    let source = built(ArchId::HARP32, |b| {
        let [zero, one, ten] = [0, 1, 10].map(|number| b.ins().iconst(I32, number));
        let sum = b.declare_var(I32);
        b.def_var(sum, zero);
        b.for_range(zero, ten, one, |b, i| {
            let old = b.use_var(sum);
            let odd = b.ins().band(i, one);
            b.if_else(
                odd,
                |b| {
                    let new = b.ins().iadd(old, i);
                    b.def_var(sum, new);
                },
                |b| {
                    b.while_loop(
                        |b| b.use_var(sum),
                        |b| {
                            let old = b.use_var(sum);
                            let new = b.ins().isub(old, one);
                            b.def_var(sum, new);
                        },
                    );
                },
            );
        });
        let sum = b.use_var(sum);
        let wanted = b.ins().iconst(I32, 9);
        let right = b.ins().icmp(IntCC::Equal, sum, wanted);
        b.ins().trapz(right, TrapCode::unwrap_user(1));
    });
    // 1, then 0; 3, then 0; ...; 9: cranelift's interpreter agrees if the trap is not taken.
    let mut store = FunctionStore::default();
    store.add("test".to_owned(), source.function());
    let state = InterpreterState::default().with_function_store(store);
    let flow = Interpreter::new(state).call_by_name("test", &[DataValue::I32(0)]).unwrap();
    assert!(matches!(flow, ControlFlow::Return(_)), "{flow:?}");
}

#[test]
fn closures_may_leave_the_kernel() {
    built(ArchId::HARP32, |b| {
        let lane = b.lane_id();
        b.if_then(lane, KernelBuilder::return_);
        b.while_loop(|_| lane, KernelBuilder::return_);
        b.for_range(lane, lane, lane, |b, _| b.return_());
        b.if_else(lane, KernelBuilder::return_, KernelBuilder::return_);
    });
}

#[test]
fn places_are_those_of_the_calls() {
    let mut line = 0;
    let source = built(ArchId::HARP32, |b| {
        line = line!() + 1;
        let x = b.lane_id();
        b.if_then(x, |b| {
            b.ins().iadd(x, x);
        });
    });
    let func = source.function();
    // The return is built by the test's helper, further up.
    let lines: Vec<u32> = insts(func)
        .into_iter()
        .filter_map(|inst| {
            source.sources().place(func.srcloc(inst)).unwrap().line.checked_sub(line)
        })
        .collect();
    // lane_id; the branch of if_then; iadd; the jump to its end.
    assert_eq!(lines, [0, 1, 2, 1]);
}

#[test]
fn the_place_of_an_error_is_that_of_the_first_misuse() {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let line = line!() + 1;
    b.global_size(7);
    b.global_id(9);
    b.return_();
    let error = b.finalize().unwrap_err();
    assert_eq!(error.place.as_ref().unwrap().line, line);
    let message = error.to_string();
    let wanted = "dimension 7 of the grid: it must be 0, 1 or 2";
    assert!(message.ends_with(wanted), "{message}");
}

#[test]
fn wide_parameters_take_two_narrow_words() {
    for (arch, words) in [(ArchId::HARP32, 2), (ArchId::HARP64, 1)] {
        for ty in [ParamType::I64, ParamType::F64] {
            assert_eq!(ty.words(arch.word()), words);
            built(arch, |b| {
                b.param(ty);
            });
        }
        assert_eq!(ParamType::I8.words(arch.word()), 1);
    }
}

#[test]
fn every_misuse_of_the_own_methods_is_an_error() {
    use BuildErrorKind as E;
    let number = |b: &mut KernelBuilder<'_>| b.ins().iconst(I32, 1);
    let unknown = Value::from_u32(1000);
    let (block, far) = (Block::from_u32(0), Block::from_u32(1000));

    assert_eq!(
        error(|b| {
            b.global_id(3);
        }),
        E::Dimension { given: 3 }
    );
    assert_eq!(
        error(|b| {
            b.global_size(255);
        }),
        E::Dimension { given: 255 }
    );
    assert_eq!(
        error(|b| {
            b.assume_uniform(unknown);
        }),
        E::UnknownValue { value: unknown }
    );
    assert_eq!(
        error(|b| {
            b.load_elem(F32, unknown, unknown);
        }),
        E::UnknownValue { value: unknown }
    );
    let index = E::ValueType { role: "index", expected: I32, given: I8 };
    assert_eq!(
        error(|b| {
            let (base, index) = (number(b), b.ins().iconst(I8, 1));
            b.load_elem(F32, base, index);
        }),
        index
    );
    let variable = Variable::from_u32(77);
    assert_eq!(
        error(|b| {
            b.use_var(variable);
        }),
        E::UnknownVariable { variable }
    );
    assert_eq!(
        error(|b| {
            let value = number(b);
            b.def_var(variable, value);
        }),
        E::UnknownVariable { variable }
    );
    assert_eq!(
        error(|b| {
            let (value, variable) = (number(b), b.declare_var(F32));
            b.def_var(variable, value);
        }),
        E::ValueType { role: "value of the variable", expected: F32, given: I32 }
    );
    let vector = cranelift_codegen::ir::types::I32X4;
    assert_eq!(
        error(|b| {
            b.declare_var(vector);
        }),
        E::NoScalar { role: "variable", given: vector }
    );
    assert_eq!(
        error(|b| {
            let float = b.ins().f32const(1.0);
            b.if_then(float, |_| {});
        }),
        E::NoInteger { role: "condition", given: F32 }
    );
    assert_eq!(
        error(|b| {
            let (one, small) = (number(b), b.ins().iconst(I8, 1));
            b.for_range(one, small, one, |_, _| {});
        }),
        E::ValueType { role: "end of the range", expected: I32, given: I8 }
    );
    assert_eq!(error(|b| b.switch_to_block(far)), E::UnknownBlock { block: far });
    assert_eq!(error(|b| b.seal_block(far)), E::UnknownBlock { block: far });
    assert_eq!(
        error(|b| {
            b.append_block_param(far, I32);
        }),
        E::UnknownBlock { block: far }
    );
    assert_eq!(
        error(|b| {
            b.append_block_param(block, I32);
        }),
        E::LateBlockParam { block }
    );
    assert_eq!(error(|b| b.seal_block(block)), E::BlockSealed { block });
    assert_eq!(
        error(|b| {
            b.return_();
            b.ins().nop();
        }),
        E::BlockEnded { block }
    );
    assert_eq!(
        error(|b| {
            let next = b.create_block();
            b.switch_to_block(next);
        }),
        E::BlockOpen { block }
    );
    assert_eq!(
        error(|b| {
            let next = b.create_block();
            b.ins().jump(next, &[]);
            b.switch_to_block(next);
            b.return_();
            b.switch_to_block(block);
        }),
        E::BlockEnded { block }
    );
    assert_eq!(
        error(|b| {
            let next = b.create_block();
            b.ins().jump(next, &[]);
        }),
        E::BlockEmpty { block: Block::from_u32(1) }
    );
    assert!(matches!(
        error(|b| {
            let one = number(b);
            b.while_loop(|_| one, KernelBuilder::seal_all_blocks);
        }),
        E::BlockSealed { .. }
    ));
    assert!(matches!(
        error(|b| {
            let one = number(b);
            b.if_then(one, KernelBuilder::seal_all_blocks);
        }),
        E::BlockSealed { .. }
    ));
    assert!(matches!(
        error(|b| {
            for _ in 0..4097 {
                b.param(ParamType::I8);
            }
        }),
        E::TooManyParameters { index: 4096, limit: 4096 }
    ));
}

/// Where a kernel prints is an argument behind all others, also of parameters that are added later.
#[test]
fn printing_takes_an_argument_and_no_branch() {
    for arch in ARCHS {
        let source = built(arch, |b| {
            let x = b.scalar::<u8>("x");
            b.print("{}", &[x]);
            b.scalar::<u64>("y");
            b.print("again", &[]);
        });
        let words = source.params().iter().map(|param| param.ty().words(arch.word())).sum();
        assert_eq!(source.argument_words(), words + 1);
        let func = source.function();
        assert_eq!(func.layout.blocks().count(), 1);
        let offset = ArgumentBlock::argument(words, arch.word()).cast_signed();
        let arguments = func.dfg.block_params(func.layout.entry_block().unwrap())[0];
        let loads = insts(func).into_iter().filter(|&inst| {
            let data = &func.dfg.insts[inst];
            func.dfg.inst_args(inst) == [arguments] && data.load_store_offset() == Some(offset)
        });
        assert_eq!(loads.count(), 1);
    }
}

#[test]
fn ranges_with_a_constant_step_take_one_comparison() {
    for (step, comparisons) in [(Some(1), 1), (Some(-3), 1), (Some(0), 0), (None, 4)] {
        let source = built(ArchId::HARP32, |b| {
            let lane = b.lane_id();
            let step = match step {
                Some(step) => b.ins().iconst(I32, step),
                None => lane,
            };
            b.for_range(lane, lane, step, |_, _| {});
        });
        assert_eq!(source.to_string().matches("icmp").count(), comparisons, "{step:?}");
    }
}

/// The side that is not likely goes through a block of its own, which is cold.
#[test]
fn hints_mark_the_other_side() {
    for likely in [true, false] {
        let source = built(ArchId::HARP32, |b| {
            let lane = b.lane_id();
            let hinted = if likely { b.likely(lane) } else { b.unlikely(lane) };
            assert_eq!(hinted, lane);
            b.if_then(hinted, |b| {
                b.lane_count();
            });
        });
        let func = source.function();
        let layout = &func.layout;
        let entry = layout.entry_block().unwrap();
        let cold: Vec<bool> =
            func.block_successors(entry).map(|block| layout.is_cold(block)).collect();
        assert_eq!(cold, [!likely, likely]);
    }
}

#[test]
fn an_unfinished_kernel_is_an_error() {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let wanted = BuildErrorKind::NotFinalized { name: "test".to_owned() };
    assert_eq!(source.finished().unwrap_err().kind, wanted);
    let b = KernelBuilder::new(&mut source);
    let block = Block::from_u32(0);
    assert_eq!(b.finalize().unwrap_err().kind, BuildErrorKind::BlockOpen { block });
    // A builder that was dropped leaves nothing behind.
    drop(KernelBuilder::new(&mut source));
    let mut b = KernelBuilder::new(&mut source);
    b.return_();
    b.finalize().unwrap();
    assert_eq!(insts(source.finished().unwrap()).len(), 1);
}

#[test]
fn functions_from_text_must_be_kernels() {
    let parse = |text| cranelift_reader::parse_functions(text).unwrap().remove(0);
    let kernel = parse("function %k(i32) {\nblock0(v0: i32):\n    return\n}");
    let source = KernelSource::from_function(kernel.clone(), ArchId::HARP32, &[ParamType::I8]);
    let source = source.unwrap();
    assert_eq!((source.name(), source.params()), ("k", [Param::unnamed(ParamType::I8)].as_slice()));
    assert!(source.finished().is_ok());

    let error = KernelSource::from_function(kernel.clone(), ArchId::HARP64, &[]).unwrap_err();
    assert!(matches!(error.kind, BuildErrorKind::Signature { .. }));
    assert!(KernelSource::from_function(kernel, ArchId::HARP32, &[ParamType::F64]).is_ok());
}

#[test]
fn the_frontend_configuration_comes_from_the_triple() {
    for (arch, pointer_bytes) in [("harp32", 4), ("harp64+x", 8), ("4b16/16/8/4", 4)] {
        let triple = target_lexicon::Triple::from(arch.parse::<ArchId>().unwrap());
        let config = super::frontend_config(&triple).unwrap();
        assert_eq!(config.pointer_bytes(), pointer_bytes);
    }
    let other = target_lexicon::Triple::host();
    assert!(super::frontend_config(&other).is_err());
}
