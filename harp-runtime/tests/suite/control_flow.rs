//! Loops, cases and checks of the kernel builder, against the same in Rust.

use harp_runtime::prelude::*;
use harp_runtime::{LaunchTrap, TrapSite};

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/1/1", "4w16/16/64/2+x"];

fn machines() -> impl Iterator<Item = ArchId> {
    MACHINES.into_iter().map(|id| id.parse().expect("the list holds ids"))
}

/// Work-items of a launch: full warps of most machines, and a part of one.
const ITEMS: usize = 70;

fn compiled(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    let mut source = KernelSource::new("k", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().expect("the kernel is well formed");
    let options = CompileOptions { check_code: true, ..CompileOptions::default() };
    source.compile(&options).unwrap_or_else(|error| panic!("{arch}: {error}\n{source}"))
}

/// Checks that the kernel stores `wanted(i)` for work-item `i`: `build` gets the work-item's number as an `i64`
/// and gives the value to store.
fn check(
    name: &str,
    build: impl Fn(&mut KernelBuilder<'_>, Value) -> Value,
    wanted: impl Fn(i64) -> i64,
) {
    for arch in machines() {
        let kernel = compiled(arch, |b| {
            let (out, i) = (b.buffer::<i64>("out"), b.global_id(0));
            let wide = if arch.word().bytes() == 8 { i } else { b.ins().uextend(types::I64, i) };
            let value = build(b, wide);
            b.store(out, i, value);
        });
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let out = device.buffer_from_slice(&[-77_i64; ITEMS]).unwrap();
        let config = LaunchConfig::grid_1d(ITEMS).with_fuel(10_000_000);
        device.launch(&kernel, config, &[Arg::from(&out)]).unwrap();
        let wanted: Vec<i64> = (0..ITEMS as i64).map(&wanted).collect();
        assert_eq!(device.read(&out).unwrap(), wanted, "{name} on {arch}");
    }
}

fn int(b: &mut KernelBuilder<'_>, value: i64) -> Value {
    b.ins().iconst(types::I64, value)
}

/// The sum of what a loop's rounds add.
fn summed(
    b: &mut KernelBuilder<'_>,
    build: impl FnOnce(&mut KernelBuilder<'_>, &dyn Fn(&mut KernelBuilder<'_>, Value)),
) -> Value {
    let (sum, zero) = (b.declare_var(types::I64), int(b, 0));
    b.def_var(sum, zero);
    build(b, &|b, value| {
        let old = b.use_var(sum);
        let thrice = b.ins().imul_imm_s(old, 3);
        let new = b.ins().iadd(thrice, value);
        b.def_var(sum, new);
    });
    b.use_var(sum)
}

/// What [`summed`] computes of these.
fn sum(values: impl IntoIterator<Item = i64>) -> i64 {
    values.into_iter().fold(0, |sum: i64, value| sum.wrapping_mul(3).wrapping_add(value))
}

/// The counters of a range with a step of either sign.
fn range(start: i64, end: i64, step: i64) -> Vec<i64> {
    let more = |&at: &i64| step > 0 && at < end || step < 0 && at > end;
    std::iter::successors(Some(start), |at| Some(at + step)).take_while(more).collect()
}

#[test]
fn ranges_are_signed_and_go_both_ways() {
    let cases =
        [(-2, 2, 1), (-2, 2, 3), (2, -2, -1), (5, -6, -4), (2, -2, 1), (-2, 2, -1), (0, 3, 0)];
    for (start, end, step) in cases {
        let build = |b: &mut KernelBuilder<'_>, _| {
            let [start, end, step] = [start, end, step].map(|value| int(b, value));
            summed(b, |b, add| b.for_range(start, end, step, |b, i| add(b, i)))
        };
        check(&format!("{start}..{end} by {step}"), build, |_| sum(range(start, end, step)));
    }
    // A step that is no constant, and differs between lanes; with ends that do.
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let small = b.ins().band_imm_u(i, 7);
        let step = b.ins().iadd_imm_s(small, -3);
        let [start, end] = [5, 0].map(|by| b.ins().iadd_imm_s(step, by));
        let end = b.ins().isub(end, small);
        summed(b, |b, add| b.for_range(start, end, step, |b, i| add(b, i)))
    };
    let wanted = |i| {
        let step = (i & 7) - 3;
        sum(range(step + 5, step - (i & 7), step))
    };
    check("dynamic", build, wanted);
}

#[test]
fn unsigned_ranges_count_beyond_the_sign() {
    let build = |b: &mut KernelBuilder<'_>, _| {
        let [start, end, step] =
            [0x7fff_fffe_i64, 0x8000_0003, 2].map(|value| b.ins().iconst(types::I32, value));
        summed(b, |b, add| {
            b.for_range_unsigned(start, end, step, |b, i| {
                let wide = b.ins().uextend(types::I64, i);
                add(b, wide);
            });
        })
    };
    check("unsigned", build, |_| sum(range(0x7fff_fffe, 0x8000_0003, 2)));
}

#[test]
fn rounds_and_loops_are_left_early() {
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let [zero, ten, one] = [0, 10, 1].map(|value| int(b, value));
        summed(b, |b, add| {
            b.for_range(zero, ten, one, |b, k| {
                let bits = b.ins().bxor(i, k);
                let odd = b.ins().band_imm_u(bits, 1);
                b.continue_if(odd);
                add(b, k);
                let enough = b.ins().icmp(IntCC::SignedGreaterThan, k, i);
                b.break_if(enough);
                add(b, one);
            });
        })
    };
    let wanted = |i: i64| {
        let mut added = Vec::new();
        for k in 0..10 {
            if (i ^ k) & 1 != 0 {
                continue;
            }
            added.push(k);
            if k > i {
                break;
            }
            added.push(1);
        }
        sum(added)
    };
    check("for_range", build, wanted);

    // The same in a loop with a condition, in which the counter is stepped first; and nested.
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let (k, minus_one, one) = (b.declare_var(types::I64), int(b, -1), int(b, 1));
        summed(b, |b, add| {
            b.def_var(k, minus_one);
            b.while_loop(
                |b| {
                    let k = b.use_var(k);
                    b.ins().icmp_imm_s(IntCC::SignedLessThan, k, 9)
                },
                |b| {
                    let old = b.use_var(k);
                    let new = b.ins().iadd(old, one);
                    b.def_var(k, new);
                    let bits = b.ins().bxor(i, new);
                    let odd = b.ins().band_imm_u(bits, 1);
                    b.if_then(odd, KernelBuilder::continue_);
                    add(b, new);
                    b.while_loop(|_| one, KernelBuilder::break_);
                    let enough = b.ins().icmp(IntCC::SignedGreaterThan, new, i);
                    b.break_if(enough);
                    add(b, one);
                },
            );
        })
    };
    check("while_loop", build, wanted);
}

#[test]
fn loops_have_results() {
    // Rounds of Collatz's sequence, by the value with which the last round began.
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let (start, zero) = (b.ins().iadd_imm_s(i, 1), int(b, 0));
        let [end, rounds] = b.loop_with([start, zero], |b, [n, rounds]| {
            let done = b.ins().icmp_imm_s(IntCC::Equal, n, 1);
            b.break_if(done);
            let odd = b.ins().band_imm_u(n, 1);
            let (half, thrice) = (b.ins().ushr_imm_u(n, 1), b.ins().imul_imm_s(n, 3));
            let next = b.ins().iadd_imm_s(thrice, 1);
            let next = b.select(odd, next, half);
            [next, b.ins().iadd_imm_s(rounds, 1)]
        });
        b.ins().imul(end, rounds)
    };
    let wanted = |i| {
        let (mut n, mut rounds) = (i + 1, 0);
        while n != 1 {
            n = if n & 1 == 0 { n / 2 } else { 3 * n + 1 };
            rounds += 1;
        }
        rounds
    };
    check("collatz", build, wanted);

    // Values that leave a loop, or a round, with others than it began with.
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let (zero, one) = (int(b, 0), int(b, 1));
        let [result] = b.loop_with([zero], |b, [k]| {
            let next = b.ins().iadd(k, one);
            let early = b.ins().icmp_imm_s(IntCC::SignedLessThan, k, 3);
            b.continue_if_with(early, &[next]);
            let negative = b.ins().ineg(k);
            let small = b.ins().icmp(IntCC::SignedLessThan, i, k);
            b.break_if_with(small, &[negative]);
            [b.ins().iadd(next, one)]
        });
        result
    };
    let wanted = |i| {
        let mut k = 0;
        loop {
            if k < 3 {
                k += 1;
                continue;
            }
            if i < k {
                break -k;
            }
            k += 2;
        }
    };
    check("with values", build, wanted);
}

#[test]
fn cases_are_chosen_by_value() {
    let build = |b: &mut KernelBuilder<'_>, i: Value| {
        let low = b.ins().ireduce(types::I8, i);
        let key = b.ins().iadd_imm_s(low, -3);
        let result = b.declare_var(types::I64);
        // 255 is -1 as an unsigned integer.
        b.switch(key, &[0, 255, -3, 60], |b, case| {
            let value = match case {
                Some(key) => int(b, 100 + key),
                None => b.ins().ineg(i),
            };
            b.def_var(result, value);
        });
        b.use_var(result)
    };
    let wanted = |i: i64| match i - 3 {
        0 => 100,
        -1 => 355,
        -3 => 97,
        60 => 160,
        _ => -i,
    };
    check("switch", build, wanted);
    let nothing = |b: &mut KernelBuilder<'_>, i| {
        b.switch(i, &[], |_, case| assert_eq!(case, None));
        i
    };
    check("no cases", nothing, |i| i);
}

#[test]
fn constants_are_the_words_own() {
    for arch in machines() {
        let kernel = compiled(arch, |b| {
            let (ints, floats) = (b.buffer::<u64>("ints"), b.buffer::<f64>("floats"));
            let (i, word) = (b.word_const(0), b.word_const(-2));
            let float = b.float_const(0.1);
            let wide = match b.word_int() {
                types::I64 => (word, float),
                _ => (b.ins().uextend(types::I64, word), b.ins().fpromote(types::F64, float)),
            };
            b.store(ints, i, wide.0);
            b.store(floats, i, wide.1);
            let one = b.word_const(1);
            b.return_if(one);
            b.store(floats, i, wide.1);
            b.trap_if(one, TrapCode::unwrap_user(1));
        });
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let (ints, floats) =
            (device.buffer_zeroed::<u64>(1).unwrap(), device.buffer_zeroed::<f64>(1).unwrap());
        device
            .launch(&kernel, LaunchConfig::grid_1d(9), &[(&ints).into(), (&floats).into()])
            .unwrap();
        let float = if arch.word().bytes() == 8 { 0.1 } else { f64::from(0.1_f32) };
        assert_eq!(device.read(&ints).unwrap(), [arch.word().mask() - 1]);
        assert_eq!(device.read(&floats).unwrap(), [float]);
    }
}

/// The trap of a kernel launched over [`ITEMS`] work-items, if it traps.
fn trap_of(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> Option<LaunchTrap> {
    let kernel = compiled(arch, build);
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    match device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &[]) {
        Ok(_) => None,
        Err(LaunchError::Trap(trap)) => {
            assert!(matches!(trap.site, TrapSite::Kernel { .. }), "{arch}: {trap}");
            Some(*trap)
        }
        Err(error) => panic!("{arch}: {error}"),
    }
}

#[test]
fn failed_assertions_have_their_message_and_place() {
    for arch in machines() {
        let mut line = 0;
        let trap = trap_of(arch, |b| {
            let i = b.global_id(0);
            let any = b.ins().icmp_imm_s(IntCC::NotEqual, i, -1);
            b.assert(any, "this one holds");
            // Of assertions at the same place each has its own message.
            for (bound, message) in [(1000, "below 1000"), (5, "below 5")] {
                let small = b.ins().icmp_imm_s(IntCC::SignedLessThan, i, bound);
                line = line!() + 1;
                b.assert(small, message);
            }
        });
        let trap = trap.unwrap();
        assert_eq!(trap.message.as_deref(), Some("below 5"), "{trap}");
        assert_eq!(trap.trap_code.as_deref(), Some("user129"));
        let place = trap.place.clone().unwrap();
        assert_eq!((place.line, place.file.ends_with("control_flow.rs")), (line, true));
        let text = trap.to_string();
        let start = format!("kernel `k` at {place}: assertion failed: below 5: ");
        assert!(text.starts_with(&start), "{text}");
        let none = trap_of(arch, |b| {
            let i = b.global_id(0);
            let large = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, i, ITEMS as i64);
            b.trap_if(large, TrapCode::unwrap_user(2));
        });
        assert_eq!(none, None);
        let coded = trap_of(arch, |b| {
            let i = b.global_id(0);
            let last = b.ins().icmp_imm_s(IntCC::Equal, i, ITEMS as i64 - 1);
            b.trap_if(last, TrapCode::unwrap_user(2));
        });
        let coded = coded.unwrap();
        assert_eq!((coded.trap_code.as_deref(), &coded.message), (Some("user2"), &None));
    }
}

#[test]
fn uniform_values_are_checked() {
    for arch in machines() {
        // All types; and a value that differs between warps only.
        let uniform = |b: &mut KernelBuilder<'_>| {
            let i = b.global_id(0);
            let lanes = b.lane_count();
            let warp = b.ins().udiv(i, lanes);
            let byte = b.ins().ireduce(types::I8, warp);
            let wide = match b.word_int() {
                types::I64 => warp,
                _ => b.ins().uextend(types::I64, warp),
            };
            let nan = b.ins().f32const(f32::NAN);
            let double = b.ins().fcvt_from_uint(types::F64, warp);
            for value in [warp, byte, wide, nan, double] {
                let shared = b.assert_uniform(value);
                let ty = |b: &mut KernelBuilder<'_>, value| b.inner().func.dfg.value_type(value);
                assert_eq!(ty(b, shared), ty(b, value));
            }
            let zero = b.ins().icmp_imm_s(IntCC::Equal, byte, 0);
            let shared = b.assert_uniform(zero);
            b.if_then(shared, |b| {
                b.assert_uniform(warp);
            });
        };
        assert_eq!(trap_of(arch, uniform), None, "{arch}");
        if arch.lanes() == 1 {
            continue;
        }
        for wide in [false, true] {
            let mut line = 0;
            let trap = trap_of(arch, |b| {
                let (i, lane) = (b.global_id(0), b.lane_id());
                let odd = b.ins().icmp_imm_s(IntCC::Equal, lane, 1);
                let value = if wide { b.ins().uextend(types::I64, odd) } else { i };
                let high = if wide { b.ins().ishl_imm_u(value, 40) } else { value };
                line = line!() + 1;
                b.assert_uniform(high);
            });
            let trap = trap.unwrap_or_else(|| panic!("{arch}, {wide}"));
            assert_eq!(trap.place.as_ref().unwrap().line, line, "{trap}");
            assert_eq!(trap.message.as_deref(), Some("the value is uniform"));
            let all = u64::MAX >> (64 - arch.lanes());
            assert!(trap.trap.lanes != 0 && trap.trap.lanes != all, "{arch}: {trap}");
        }
    }
}

#[test]
fn convergence_is_checked() {
    for arch in machines() {
        // Also in the last warp, which is not full, and where all lanes agree on a condition.
        let together = |b: &mut KernelBuilder<'_>| {
            b.assert_convergent();
            let (i, one) = (b.global_id(0), b.word_const(1));
            let odd = b.ins().band(i, one);
            b.if_then(odd, |b| {
                b.ins().nop();
            });
            b.assert_convergent();
            let positive = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, i, -1);
            b.if_then(positive, KernelBuilder::assert_convergent);
        };
        assert_eq!(trap_of(arch, together), None, "{arch}");
        if arch.lanes() == 1 {
            continue;
        }
        let apart = trap_of(arch, |b| {
            let (i, one) = (b.global_id(0), b.word_const(1));
            let odd = b.ins().band(i, one);
            b.if_then(odd, KernelBuilder::assert_convergent);
        });
        let text = Some("all lanes of the warp are here");
        assert_eq!(apart.unwrap().message.as_deref(), text);
        let returned = trap_of(arch, |b| {
            let lane = b.lane_id();
            let first = b.ins().icmp_imm_s(IntCC::Equal, lane, 0);
            b.return_if(first);
            b.assert_convergent();
        });
        assert_eq!(returned.unwrap().message.as_deref(), text);
    }
}

/// Hints change what is expected of a branch, and not what the kernel does.
#[test]
fn hints_change_the_odds_of_branches() {
    for arch in machines() {
        let kernels = [None, Some(true), Some(false)].map(|hint| {
            let mut source = KernelSource::new("k", arch);
            let mut b = KernelBuilder::new(&mut source);
            let (data, i) = (b.buffer::<i64>("data"), b.global_id(0));
            let x = b.load(data, i);
            let large = b.ins().icmp_imm_s(IntCC::SignedGreaterThan, x, 60);
            let condition = match hint {
                None => large,
                Some(true) => b.likely(large),
                Some(false) => b.unlikely(large),
            };
            b.if_then(condition, |b| {
                let twice = b.ins().iadd(x, x);
                b.store(data, i, twice);
            });
            b.return_();
            b.finalize().unwrap();
            let options = CompileOptions { check_code: true, ..CompileOptions::default() };
            let report = source.explain(&options).unwrap();
            let odds = report.branches[0].odds;
            let agree = 0.99_f64.powi(arch.lanes().into());
            let expected = (odds.all_true.max(odds.all_false) - agree).abs() < 1e-6;
            assert_eq!(expected, hint.is_some(), "{arch}, {hint:?}: {report}");
            source.compile(&options).unwrap()
        });
        for kernel in &kernels {
            let device = Device::new(DeviceConfig::new(arch)).unwrap();
            let numbers: Vec<i64> = (0..ITEMS as i64).collect();
            let data = device.buffer_from_slice(&numbers).unwrap();
            device.launch(kernel, LaunchConfig::grid_1d(ITEMS), &[Arg::from(&data)]).unwrap();
            let wanted: Vec<i64> =
                numbers.iter().map(|&x| if x > 60 { 2 * x } else { x }).collect();
            assert_eq!(device.read(&data).unwrap(), wanted, "{arch}");
        }
    }
}

#[test]
fn misuse_is_an_error() {
    let error = |build: &dyn Fn(&mut KernelBuilder<'_>, Value)| {
        let mut source = KernelSource::new("k", ArchId::HARP32);
        let mut b = KernelBuilder::new(&mut source);
        let lane = b.lane_id();
        build(&mut b, lane);
        b.return_();
        let error = b.finalize().unwrap_err();
        assert!(error.place.as_ref().unwrap().file.ends_with("control_flow.rs"), "{error}");
        error.kind
    };
    use BuildErrorKind as E;
    assert_eq!(error(&|b, lane| b.break_if(lane)), E::NoLoop { method: "break_if" });
    assert_eq!(error(&|b, _| b.break_()), E::NoLoop { method: "break_" });
    let twice = |b: &mut KernelBuilder<'_>| {
        b.continue_();
        b.continue_();
    };
    assert!(matches!(error(&|b, lane| b.while_loop(|_| lane, twice)), E::BlockEnded { .. }));
    assert_eq!(
        error(&|b, lane| {
            b.while_loop(|_| lane, |_| {});
            b.continue_if_with(lane, &[]);
        }),
        E::NoLoop { method: "continue_if_with" }
    );
    assert_eq!(
        error(&|b, lane| b.while_loop(|_| lane, |b| b.break_if_with(lane, &[lane]))),
        E::LoopValues { expected: 0, given: 1 }
    );
    let (role, expected, given) = ("value of the loop", types::I32, types::I8);
    let small = E::ValueType { role, expected, given };
    assert_eq!(
        error(&|b, lane| {
            b.loop_with([lane], |b, _| [b.ins().iconst(types::I8, 0)]);
        }),
        small
    );
    assert_eq!(
        error(&|b, lane| b.switch(lane, &[1, 2, 1], |_, _| {})),
        E::DuplicateCase { given: 1 }
    );
    let ty = types::I32;
    let large = 1 << 32;
    assert_eq!(
        error(&|b, lane| b.switch(lane, &[large], |_, _| {})),
        E::Constant { given: large, ty }
    );
    assert_eq!(
        error(&|b, _| {
            b.word_const(-(1 << 31) - 1);
        }),
        E::Constant { given: -(1 << 31) - 1, ty }
    );
    let (role, given) = ("condition", types::F32);
    assert_eq!(
        error(&|b, _| {
            let float = b.float_const(1.0);
            b.assert(float, "");
        }),
        E::NoInteger { role, given }
    );
    assert!(matches!(
        error(&|b, lane| b.while_loop(
            |_| lane,
            |b| {
                b.seal_all_blocks();
                b.break_if(lane);
            }
        )),
        E::BlockSealed { .. }
    ));
    assert!(matches!(
        error(&|b, lane| b.while_loop(
            |b| {
                b.seal_all_blocks();
                lane
            },
            |_| {}
        )),
        E::BlockSealed { .. }
    ));
}
