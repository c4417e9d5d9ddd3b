//! Divergent control flow of every shape, on machines with and without extension X, against the same
//! code written for the host.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_bench::array::Array;
use harp_emu::TrapKind;
use harp_isa::abi::ArgumentBlock;
use harp_jit::{ArchId, CompileOptions, KernelSource, OptLevel, ParamType};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError, Report};
use harp_tests::functions::checked;

const ARCHS: [&str; 8] = [
    "harp32",
    "harp64+x",
    "harp64",
    "4w8/2/8/2",
    "4w16/4/32/2+x",
    "4b16/8/2/3",
    "8w64/64/64/1",
    "4w12/3/1/2",
];

/// Work-items of each launch: no multiple of anything.
const COUNT: usize = 75;

/// A kernel whose body has its number `v1`, as a word, and `%put`, which adds a number to what the lane has
/// put before, rotated. `word` stands for the machine's word.
fn source(arch: ArchId, body: &str) -> KernelSource {
    let bytes = arch.word().bytes();
    let text = format!(
        "function %k(word) {{
            fn0 = %harp_global_id_x() -> word
            ss0 = explicit_slot 8
        block0(v0: word):
            v1 = call fn0()
            v90 = load.word notrap aligned readonly v0+{}
            v91 = iconst.word {bytes}
            v92 = imul v1, v91
            v93 = iadd v90, v92
            v94 = iconst.word 0
            store notrap aligned v94, v93
            {body}
        }}",
        ArgumentBlock::argument(0, arch.word())
    );
    let mut expanded = String::new();
    let mut number = 1000;
    for line in text.lines() {
        match line.trim_start().strip_prefix("put ") {
            Some(value) => {
                let value = value.trim();
                expanded += &format!(
                    "v{0} = load.word notrap aligned v93
                    v{1} = iconst.word 31
                    v{2} = imul v{0}, v{1}
                    v{3} = iadd v{2}, {value}
                    store notrap aligned v{3}, v93\n",
                    number,
                    number + 1,
                    number + 2,
                    number + 3
                );
                number += 4;
            }
            None => expanded += &format!("{line}\n"),
        }
    }
    let word = format!("i{}", arch.word().bits());
    let text = expanded.replace("word", &word);
    let func = cranelift_reader::parse_functions(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    KernelSource::from_function(func.into_iter().next().unwrap(), arch, &[ParamType::Pointer])
        .unwrap()
}

fn launch(arch: ArchId, body: &str, opt_level: OptLevel) -> (Vec<u32>, Report) {
    let (given, report) = try_launch(arch, body, opt_level);
    (given, report.unwrap())
}

fn try_launch(
    arch: ArchId,
    body: &str,
    opt_level: OptLevel,
) -> (Vec<u32>, Result<Report, LaunchError>) {
    let source = source(arch, body);
    let options = CompileOptions { opt_level, ..checked() };
    let kernel = source.compile(&options).unwrap_or_else(|error| panic!("{error}"));
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let out = Array::of_ints(&device, &[0; COUNT]).unwrap();
    let args: [Arg; 1] = [out.arg()];
    let report = device.launch(&kernel, LaunchConfig::grid_1d(COUNT), &args);
    (out.words(&device).unwrap(), report)
}

/// What a work-item puts, on the host.
#[derive(Default)]
struct Host(u32);

impl Host {
    fn put(&mut self, value: u32) {
        self.0 = self.0.wrapping_mul(31).wrapping_add(value);
    }
}

fn check(body: &str, host: impl Fn(u32, &mut Host)) {
    let wanted: Vec<u32> = (0..COUNT as u32)
        .map(|i| {
            let mut result = Host::default();
            host(i, &mut result);
            result.0
        })
        .collect();
    for arch in ARCHS {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let (given, _) = launch(arch.parse().unwrap(), body, opt_level);
            assert_eq!(given, wanted, "{arch}, {opt_level:?}");
        }
    }
}

/// `while (n < i % 8) { put(n); n++ } put(n)`
const WHILE: &str = "
        v2 = iconst.word 7
        v3 = band v1, v2
        v4 = iconst.word 1
        jump block1(v94)
    block1(v5: word):
        v6 = icmp ult v5, v3
        brif v6, block2, block3
    block2:
        put v5
        v7 = iadd v5, v4
        jump block1(v7)
    block3:
        put v5
        return";

/// `do { put(n); n++ } while (n < i % 8); put(n)`
const DO_WHILE: &str = "
        v2 = iconst.word 7
        v3 = band v1, v2
        v4 = iconst.word 1
        jump block1(v94)
    block1(v5: word):
        put v5
        v7 = iadd v5, v4
        v6 = icmp ult v7, v3
        brif v6, block1(v7), block3
    block3:
        put v7
        return";

/// `if (i & 1 || i & 2) put(5) else put(7); put(i)`
const EITHER: &str = "
        v2 = iconst.word 1
        v3 = band v1, v2
        v4 = iconst.word 2
        v5 = band v1, v4
        v6 = iconst.word 5
        v7 = iconst.word 7
        brif v3, block2, block1
    block1:
        brif v5, block2, block3
    block2:
        put v6
        jump block4
    block3:
        put v7
        jump block4
    block4:
        put v1
        return";

#[test]
fn while_loops() {
    check(WHILE, |i, host| {
        (0..i % 8).for_each(|n| host.put(n));
        host.put(i % 8);
    });
}

#[test]
fn do_while_loops() {
    check(DO_WHILE, |i, host| {
        let mut n = 0;
        loop {
            host.put(n);
            n += 1;
            if n >= i % 8 {
                break;
            }
        }
        host.put(n);
    });
}

#[test]
fn short_circuits() {
    check(EITHER, |i, host| {
        host.put(if i & 3 != 0 { 5 } else { 7 });
        host.put(i);
    });
}

/// Nested loops with a way out of both, a way to the next round, and a return.
#[test]
fn break_continue_and_return() {
    let body = "
            v2 = iconst.word 3
            v3 = band v1, v2
            v4 = iconst.word 1
            v5 = iconst.word 5
            v6 = iconst.word 29
            v30 = iconst.word 4
            jump block1(v94, v94)
        block1(v10: word, v11: word):
            v12 = icmp ult v10, v5
            brif v12, block2(v94, v11), block9(v11)
        block2(v13: word, v14: word):
            v15 = iadd v13, v10
            v16 = icmp eq v15, v3
            v17 = iadd v13, v4
            brif v16, block5(v14), block3
        block3:
            put v15
            v18 = iadd v14, v15
            v19 = icmp ugt v18, v6
            brif v19, block8(v18), block4
        block4:
            v20 = icmp eq v18, v1
            brif v20, block7, block5(v18)
        block5(v21: word):
            v22 = icmp ult v17, v30
            brif v22, block2(v17, v21), block6
        block6:
            v23 = iadd v10, v4
            jump block1(v23, v21)
        block7:
            put v1
            return
        block8(v24: word):
            v25 = iadd v24, v1
            jump block9(v25)
        block9(v26: word):
            put v26
            return";
    check(body, |i, host| {
        let mut sum = 0;
        'outer: for a in 0..5 {
            for b in 0..4 {
                if a + b == i & 3 {
                    continue;
                }
                host.put(a + b);
                sum += a + b;
                if sum > 29 {
                    sum += i;
                    break 'outer;
                }
                if sum == i {
                    host.put(i);
                    return;
                }
            }
        }
        host.put(sum);
    });
}

/// Lanes that might have left a loop in its middle, and did not, leave it by its header later.
#[test]
fn exits_that_were_not_taken() {
    let body = "
            v2 = iconst.word 3
            v3 = band v1, v2
            v4 = iconst.word 1
            v5 = iconst.word 4
            v6 = band v1, v5
            v7 = iconst.word 8
            v8 = band v1, v7
            jump block1(v3)
        block1(v10: word):
            brif v10, block2, block8
        block2:
            brif v6, block3, block5
        block3:
            brif v8, block7, block4
        block4:
            jump block5
        block5:
            v11 = isub v10, v4
            jump block1(v11)
        block7:
            put v4
            return
        block8:
            put v1
            return";
    check(body, |i, host| {
        let out = i & 3 != 0 && i & 4 != 0 && i & 8 != 0;
        host.put(if out { 1 } else { i });
    });
}

/// A loop that lanes leave by three exits, none of which returns: which one still differs by lane, and each
/// lane's own trap is what ends the launch.
#[test]
fn exits_none_of_which_returns() {
    let body = "
            v2 = iconst.word 3
            v3 = band v1, v2
            v4 = iconst.word 1
            v5 = iconst.word 2
            jump block1(v3)
        block1(v10: word):
            brif v10, block2, block5
        block2:
            v11 = icmp eq v10, v5
            put v10
            brif v11, block6, block3
        block3:
            v12 = isub v10, v4
            v13 = icmp eq v12, v5
            brif v13, block7, block1(v12)
        block5:
            trap user1
        block6:
            trap user2
        block7:
            trap user3";
    for arch in ARCHS {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            match try_launch(arch.parse().unwrap(), body, opt_level).1 {
                Err(LaunchError::Trap(trap)) => {
                    assert_eq!(
                        trap.trap.kind,
                        TrapKind::GuestTrap,
                        "{arch}, {opt_level:?}: {trap}"
                    );
                    let code = trap.trap_code.as_deref().unwrap();
                    assert!(["user1", "user2", "user3"].contains(&code), "{arch}: {trap}");
                }
                other => panic!("{arch}, {opt_level:?}: {other:?}"),
            }
        }
    }
}

/// A switch whose cases fall through and share code.
#[test]
fn switches() {
    let body = "
            v2 = iconst.word 7
            v3 = band v1, v2
            v4 = ireduce.i16 v3
            v5 = uextend.i32 v4
            br_table v5, block5, [block1, block2, block3, block1, block4]
        block1:
            put v1
            jump block2
        block2:
            put v3
            brif v3, block3, block6
        block3:
            put v2
            jump block5
        block4:
            put v4
            jump block6
        block5:
            put v5
            jump block6
        block6:
            put v1
            return"
        .replace("put v4", "put v2")
        .replace("put v5", "put v3");
    check(&body, |i, host| {
        let n = i & 7;
        let (mut at, mut first) = (n.min(5), true);
        loop {
            at = match at {
                0 | 3 if first => {
                    host.put(i);
                    1
                }
                1 => {
                    host.put(n);
                    if n != 0 { 2 } else { 6 }
                }
                2 => {
                    host.put(7);
                    5
                }
                4 => {
                    host.put(7);
                    6
                }
                6 => break,
                _ => {
                    host.put(n);
                    6
                }
            };
            first = false;
        }
        host.put(i);
    });
}

/// A cycle with two entries, left from both.
#[test]
fn cycles_with_two_entries() {
    let body = "
            v2 = iconst.word 1
            v3 = band v1, v2
            v4 = iconst.word 3
            v5 = iconst.word 11
            brif v3, block1(v1), block2(v1)
        block1(v10: word):
            put v10
            v11 = iadd v10, v4
            v12 = icmp ugt v11, v5
            brif v12, block3(v11), block2(v11)
        block2(v13: word):
            v14 = iadd v13, v2
            v15 = icmp ugt v14, v5
            brif v15, block3(v10x), block1(v14)
        block3(v16: word):
            put v16
            return"
        .replace("v10x", "v14");
    check(&body, |i, host| {
        let (mut n, mut first) = (i, i & 1 == 1);
        loop {
            n += if first { 3 } else { 1 };
            if first {
                host.put(n - 3);
            }
            if n > 11 {
                break;
            }
            first = !first;
        }
        host.put(n);
    });
}

/// What divergence costs beside a launch that does nothing: loops of up to eight rounds, and a diamond of two conditions.
/// The figures may only become smaller.
#[test]
fn warp_instructions() {
    let wanted = [("harp32", [1090, 1080, 70]), ("harp64+x", [575, 585, 70])];
    for (arch, most) in wanted {
        let (_, nothing) = launch(arch.parse().unwrap(), "return", OptLevel::Speed);
        let programs = [("while", WHILE), ("do while", DO_WHILE), ("either", EITHER)];
        for ((name, body), most) in programs.into_iter().zip(most) {
            let (_, report) = launch(arch.parse().unwrap(), body, OptLevel::Speed);
            let issued = report.warp_instructions() - nothing.warp_instructions();
            assert!(issued <= most, "{name} on {arch}: {issued}");
            println!("{name} on {arch}: {issued}");
        }
    }
}
