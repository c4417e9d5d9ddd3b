//! Compute shaders, which naga made of WGSL, or which are assembly of SPIR-V.

use crate::support::{Case, Level, MACHINES, STRATEGIES, bytes, dot_of_bytes, numbers};
use harp_jit::{CompileOptions, ParamType};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError};
use harp_spirv::SpirvModule;

/// Tests a module on all machines; the strategies take turns.
pub(crate) fn everywhere(name: &str, test: impl Fn(&Case)) {
    for (number, id) in MACHINES.into_iter().enumerate() {
        let arch = id.parse().unwrap();
        let module = SpirvModule::parse(&bytes(&format!("{name}.spv"))).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let divergence = STRATEGIES[number];
        test(&Case { arch, level: Level::Optimized, divergence, module, device });
    }
}

pub(crate) fn groups(items: usize, group: usize) -> LaunchConfig {
    LaunchConfig::grid_1d(items.next_multiple_of(group)).with_groups_1d(group)
}

/// Particles: position, mass, velocity, and the bits of the kind.
fn particles() -> Vec<f32> {
    let mut random = numbers(21).map(|n| (n % 64) as f32 / 4.0 - 8.0);
    let mut all = Vec::new();
    for kind in 0..21_u32 {
        all.extend(random.by_ref().take(7));
        all.push(f32::from_bits(kind));
    }
    all
}

#[test]
fn buffers_of_structures_are_changed() {
    everywhere("particles", |case| {
        let turn = [[0.0, 2.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.0, -1.0]];
        let mut settings = vec![0.25_f32, 0.5, f32::from_bits(21), 0.0];
        for column in turn {
            settings.extend(column);
            settings.push(99.0);
        }
        let before = particles();
        let (state, kinds) = (case.buffer(&before), case.buffer(&[10_u32, 20, 30, 40]));
        let args = [Arg::from(&state), Arg::from(&case.buffer(&settings)), Arg::from(&kinds)];
        case.launch("move_all", groups(21, 8), &args);
        let after = case.read(&state);
        for (before, given) in before.chunks(8).zip(after.chunks(8)) {
            let mut wanted = before.to_vec();
            for _ in 0..2 {
                for axis in 0..3 {
                    wanted[axis] += wanted[4 + axis] * 0.25;
                }
                if wanted[1] < 0.0 {
                    wanted[1] = -wanted[1];
                    wanted[5] *= -0.5;
                }
            }
            let speed = [wanted[4], wanted[5], wanted[6]];
            for row in 0..3 {
                wanted[4 + row] = (0..3).map(|column| turn[column][row] * speed[column]).sum();
            }
            assert_eq!(given[..7], wanted[..7], "{before:?} on {case}");
            assert_eq!(given[7].to_bits(), before[7].to_bits(), "{case}");
        }
        assert_eq!(case.read(&kinds), [16, 25, 35, 45], "{case}");
    });
}

#[test]
fn work_groups_add_up() {
    everywhere("particles", |case| {
        let (before, sums) = (particles(), case.zeros::<f32>(3));
        let args = [Arg::from(&case.buffer(&before)), Arg::from(&sums)];
        case.launch("total_mass", groups(21, 8), &args);
        let masses: Vec<f32> = before.chunks(8).map(|particle| particle[3]).collect();
        let wanted: Vec<f32> = masses.chunks(8).map(|group| group.iter().sum()).collect();
        assert_eq!(case.read(&sums), wanted, "{case}");
    });
}

#[test]
fn entry_points_say_what_they_take() {
    let module = SpirvModule::parse(&bytes("particles.spv")).unwrap();
    let [first, second] = module.entry_points() else { panic!("there are two") };
    assert_eq!((first.name(), first.local_size()), ("move_all", Some([8, 1, 1])));
    let bindings = |entry: &harp_spirv::EntryPoint| {
        entry.params().iter().map(|param| param.binding.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(bindings(first), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(bindings(second), [(0, 0), (0, 3)]);
    let arch = MACHINES[0].parse().unwrap();
    let kernel = module.kernel("move_all", arch).unwrap();
    let kernel = kernel.compile(&CompileOptions::default()).unwrap();
    let names: Vec<_> = kernel.params().iter().map(|param| param.name().unwrap()).collect();
    assert_eq!(names, ["particles", "settings", "kinds"]);
    assert!(kernel.params().iter().all(|param| param.ty() == ParamType::SizedPointer));
    // The length of what begins at an address is not known.
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let error = device.launch(&kernel, groups(8, 8), &[const { 64 }; 3].map(Arg::address));
    let error = error.unwrap_err();
    assert!(matches!(error, LaunchError::ArgumentType { .. }), "{error}");
    assert!(error.to_string().contains("`particles`"), "{error}");
}

#[test]
fn variables_of_a_binding_are_one_buffer() {
    everywhere("bindings", |case| {
        let before = [0.75_f32, -2.0, 100.0, 3.5];
        let (numbers, totals, doubled) =
            (case.buffer(&before), case.zeros::<u32>(4), case.zeros::<f32>(4));
        let args = [Arg::from(&totals), Arg::from(&doubled), Arg::from(&numbers)];
        case.launch("main", groups(4, 2), &args);
        assert_eq!(case.read(&numbers), before.map(|number| 2.0 * number), "{case}");
        assert_eq!(case.read(&doubled), before.map(|number| 2.0 * number), "{case}");
        // The exponent has grown by one.
        assert_eq!(case.read(&totals), [(1 << 23) + 2 + 10; 4], "{case}");
    });
}

#[test]
fn a_constant_sets_the_size_of_work_groups() {
    let bytes = bytes("bindings.spv");
    let size = |values: &[(u32, u64)]| {
        let module = SpirvModule::parse_specialized(&bytes, values).unwrap();
        module.entry_points()[0].local_size()
    };
    assert_eq!(size(&[]), Some([2, 1, 1]));
    assert_eq!(size(&[(3, 7)]), Some([7, 1, 1]));
    let module = SpirvModule::parse(&bytes).unwrap();
    let params = module.entry_points()[0].params().iter();
    let params: Vec<_> =
        params.map(|param| (param.name.as_deref().unwrap(), param.binding.unwrap())).collect();
    assert_eq!(params, [("outs[0]", (0, 0)), ("outs[1]", (0, 0)), ("numbers", (0, 1))]);
}

#[test]
fn variables_have_their_initial_values() {
    everywhere("initial", |case| {
        let out = case.zeros::<u32>(64);
        case.launch("tables", groups(64, 4), &[Arg::from(&out)]);
        let initial = |index: u32| if index.is_multiple_of(3) { 7 } else { 5 };
        let wanted = (0..64).map(|item: u32| {
            let prime = [2, 5, 7, 1, 8][item as usize % 5];
            let parts = [prime + initial(item), initial(item + 1), prime, initial(item)];
            parts.into_iter().fold(0, |sum, part| sum * 70 + part)
        });
        assert_eq!(case.read(&out), wanted.collect::<Vec<_>>(), "{case}");
    });
}

#[test]
fn blocks_of_work_groups_are_the_same_memory() {
    everywhere("blocks", |case| {
        let out = case.zeros::<u32>(12);
        case.launch("main", groups(12, 4), &[Arg::from(&out)]);
        let wanted: Vec<u32> = (0..12).map(|item| ((item % 4) as f32 + 0.5).to_bits()).collect();
        assert_eq!(case.read(&out), wanted, "{case}");
    });
}

#[test]
fn memory_of_work_groups_is_cleared() {
    everywhere("initial", |case| {
        // Many groups, so that later ones get the memory of earlier ones.
        let out = case.zeros::<u32>(2048);
        case.launch("cleared", groups(2048, 8), &[Arg::from(&out)]);
        let wanted: Vec<u32> = (0..2048).map(|item| item / 8).collect();
        assert_eq!(case.read(&out), wanted, "{case}");
    });
}

fn inputs() -> Vec<f32> {
    let edges = [0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1.5, 7.25, -0.125, 3.0, 100.75, -63.5];
    let random = numbers(22).take(20).map(|n| (n % 4096) as f32 / 256.0 - 8.0);
    edges.into_iter().chain(random).collect()
}

#[test]
fn functions_of_floats_are_right() {
    everywhere("functions", |case| {
        let input = inputs();
        let items = input.len() / 4;
        let output = case.zeros::<f32>(32 * items);
        case.launch(
            "floats",
            groups(items, 4),
            &[Arg::from(&case.buffer(&input)), Arg::from(&output)],
        );
        for (v, given) in input.chunks(4).zip(case.read(&output).chunks(32)) {
            let v: Vec<f64> = v.iter().copied().map(f64::from).collect();
            let each = |compute: &dyn Fn(usize) -> f64| [0, 1, 2, 3].map(compute);
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            let root = |x: f64, y: f64| (x * x + y * y).sqrt();
            let reflected = 2.0 * (0.6 * v[0] + 0.8 * v[1]);
            let part = ((v[0] + 1.0) / 4.0).clamp(0.0, 1.0);
            let exponent = f64::from(given[27]);
            let wanted = [
                each(&|c| {
                    v[c].floor()
                        + v[c].ceil() * 2.0
                        + v[c].trunc() * 4.0
                        + (v[c] - v[c].floor()) * 8.0
                }),
                each(&|c| {
                    let next = v[(c + 1) % 4];
                    v[c].abs() + sign(v[c]) * 2.0 + v[c].min(next) * 4.0 + v[c].max(next) * 8.0
                }),
                each(&|c| v[c].clamp(-1.0, 2.0) + (v[c] * 0.75 + v[3 - c] * 0.25) * 4.0),
                [
                    (0..4).map(|c| v[c] * v[3 - c]).sum(),
                    v.iter().map(|x| x * x).sum::<f64>().sqrt(),
                    root(v[0] - v[2], v[1] - v[3]),
                    v[0] * v[3] - v[1] * v[2],
                ],
                [
                    v[1] * v[3] - v[2] * v[2],
                    v[2] * v[1] - v[0] * v[3],
                    v[0] * v[2] - v[1] * v[1],
                    if v[0] < 0.5 { 0.0 } else { 1.0 },
                ],
                [
                    v[0] - reflected * 0.6,
                    v[1] - reflected * 0.8,
                    part * part * (3.0 - 2.0 * part),
                    v[1].abs().sqrt(),
                ],
                [v[0].fract(), v[0].trunc(), v[1] / exponent.exp2(), exponent],
                [v[0].round_ties_even(), v[1] % 1.5, 1.0 / (v[2].abs() + 1.0).sqrt(), v[3] * 4.0],
            ];
            for (at, (&given, &wanted)) in given.iter().zip(wanted.as_flattened()).enumerate() {
                let error = (f64::from(given) - wanted).abs();
                let limit = wanted.abs() * 1e-5 + 1e-4;
                assert!(error <= limit, "result {at} of {v:?}: {given}, not {wanted} on {case}");
            }
            assert!(given[26] == 0.0 || (0.5..1.0).contains(&given[26].abs()), "{v:?} on {case}");
        }
    });
}

#[test]
fn functions_of_integers_are_right() {
    everywhere("functions", |case| {
        let input = inputs();
        let items = input.len() / 4;
        let bits = case.zeros::<u32>(24 * items);
        let args = [Arg::from(&case.buffer(&input)), Arg::from(&bits)];
        case.launch("integers", groups(items, 4), &args);
        for (v, given) in input.chunks(4).zip(case.read(&bits).chunks(24)) {
            let u: Vec<u32> = v.iter().map(|x| x.to_bits()).collect();
            let top = |x: u32| 31_u32.wrapping_sub(x.leading_zeros());
            let each = |compute: &dyn Fn(usize) -> u32| [0, 1, 2, 3].map(compute);
            let unorm = |x: f32| ((x / 8.0).clamp(0.0, 1.0) * 255.0).round_ties_even() as u32;
            let snorm =
                |x: f32| ((x / 8.0).clamp(-1.0, 1.0) * 127.0).round_ties_even() as i32 as u8;
            let packed = |parts: [u32; 4]| (0..4).fold(0, |all, n| all | parts[n] << (8 * n));
            let wanted = [
                each(&|c| {
                    let lowest = if u[c] == 0 { u32::MAX } else { u[c].trailing_zeros() };
                    let sum = u[c].count_ones().wrapping_add(u[c].reverse_bits());
                    sum.wrapping_add(lowest.wrapping_mul(3))
                }),
                each(&|c| {
                    let differing = (u[c] as i32 ^ (u[c] as i32 >> 31)) as u32;
                    top(differing).wrapping_add(top(u[c]).wrapping_mul(5))
                }),
                each(&|c| (u[c] >> 3 & 127).wrapping_add((u[c] as i32 >> 20) as u32)),
                each(&|c| {
                    let mask = 0x7ff << 5;
                    let inserted = (u[c] & !mask) | (u[(c + 1) % 4] << 5 & mask);
                    inserted / (u[3 - c] | 1)
                }),
                [
                    packed([0, 1, 2, 3].map(|c| unorm(v[c]))),
                    packed([0, 1, 2, 3].map(|c| snorm(v[c]).into())),
                    // Halves are compared in the tests of halves.
                    given[18],
                    (u[0] as i32).wrapping_div(u[1] as i32 | 1) as u32,
                ],
                each(&|c| (v[c] as i32 as u32).wrapping_add(v[c].abs() as u32)),
            ];
            assert_eq!(given, wanted.as_flattened(), "{v:?} on {case}");
        }
    });
}

#[test]
fn structured_control_flow_is_control_flow() {
    everywhere("functions", |case| {
        let bits = case.zeros::<u32>(4 * 60);
        case.launch("flow", groups(60, 4), &[Arg::from(&bits)]);
        for (id, given) in (0..).zip(case.read(&bits).chunks(4)) {
            let (mut sum, mut n) = (0_u32, id);
            while n <= 40 {
                match n % 5 {
                    0 => sum += 1,
                    1 | 3 => {
                        sum += 10;
                        n += 1;
                    }
                    2 => sum *= 2,
                    _ => sum += n,
                }
                n += 3;
                if sum > 500 {
                    break;
                }
            }
            let last = if sum % 2 == 0 { 8 } else { 7 };
            let wanted = [sum, n, u32::from(n > 40 && sum < 100), last];
            assert_eq!(given, wanted, "{id} on {case}");
        }
    });
}

/// Compares floats that some rounding may have changed.
fn close(given: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(given.len(), wanted.len());
    for (at, (&given, &wanted)) in given.iter().zip(wanted).enumerate() {
        let error = (f64::from(given) - wanted).abs();
        let limit = wanted.abs() * 2e-4 + 2e-4;
        assert!(error <= limit, "result {at}: {given}, not {wanted} {what}");
    }
}

fn wide(v: &[f32]) -> Vec<f64> {
    v.iter().copied().map(f64::from).collect()
}

#[test]
fn more_functions_of_floats_are_right() {
    everywhere("more", |case| {
        let input = inputs();
        let items = input.len() / 4;
        let output = case.zeros::<f32>(36 * items);
        case.launch(
            "main",
            groups(items, 4),
            &[Arg::from(&case.buffer(&input)), Arg::from(&output)],
        );
        for (v, given) in input.chunks(4).zip(case.read(&output).chunks(36)) {
            let v = wide(v);
            let each = |compute: &dyn Fn(usize) -> f64| [0, 1, 2, 3].map(compute);
            let (x, y) = (v[0] + 0.01, v[1] + 0.01);
            let length = (x * x + y * y).sqrt();
            let (x, y) = (x / length, y / length);
            let dot = 0.6 * x + 0.8 * y;
            let k = 1.0 - 0.75 * 0.75 * (1.0 - dot * dot);
            let refracted =
                |c: f64, n: f64| if k < 0.0 { 0.0 } else { 0.75 * c - (0.75 * dot + k.sqrt()) * n };
            let side = if v[2] * v[1] + v[3] * v[2] < 0.0 { 1.0 } else { -1.0 };
            let unorm = |x: f64, scale: f64| ((x / 8.0).clamp(0.0, 1.0) * scale).round() / scale;
            let snorm = |x: f64| ((x / 8.0).clamp(-1.0, 1.0) * 127.0).round() / 127.0;
            let wanted = [
                each(&|c| v[c].sin() + v[c].cos() * 2.0),
                [v[0].tan(), (v[1] / 128.0).asin(), (v[2] / 128.0).acos(), v[3].atan()],
                [(v[0] / 32.0).sinh(), (v[1] / 32.0).cosh(), v[2].tanh(), v[3].asinh()],
                [
                    (v[0].abs() + 1.0).acosh(),
                    (v[1] / 128.0).atanh(),
                    v[2].atan2(v[3]),
                    (v[0].abs() + 0.5).powf(1.25),
                ],
                [
                    (v[0] / 16.0).exp(),
                    (v[1].abs() + 0.5).ln(),
                    (v[2] / 16.0).exp2(),
                    (v[3].abs() + 0.5).log2(),
                ],
                [refracted(x, 0.6), refracted(y, 0.8), v[0].to_degrees(), v[1].to_radians()],
                [v[0] * side, v[1] * side, v[0] * v[1] + v[2], v[3].clamp(0.0, 1.0)],
                each(&|c| unorm(v[c], 255.0) + snorm(v[c]) * 2.0),
                [v[0], v[1], unorm(v[2], 65535.0), unorm(v[3], 65535.0)],
            ];
            let what = format!("of {v:?} on {case}");
            // Halves have 11 bits, and fractions that are halfway may be rounded either way.
            for c in 0..2 {
                assert!((f64::from(given[32 + c]) - v[c]).abs() <= v[c].abs() / 2048.0, "{what}");
            }
            close(&given[..28], &wanted.as_flattened()[..28], &what);
            for (&given, wanted) in given[28..32].iter().zip(wanted[7]) {
                assert!((f64::from(given) - wanted).abs() < 0.02, "{what}");
            }
            close(&given[34..], &wanted[8][2..], &what);
        }
    });
}

#[test]
fn matrices_are_multiplied() {
    everywhere("more", |case| {
        let input = inputs();
        let items = input.len() / 4;
        let output = case.zeros::<f32>(36 * items);
        let args = [Arg::from(&case.buffer(&input)), Arg::from(&output)];
        case.launch("matrices", groups(items, 4), &args);
        for (v, given) in input.chunks(4).zip(case.read(&output).chunks(36)) {
            let v: [f64; 4] = wide(v).try_into().unwrap();
            let [x, y, z, w] = v;
            let a = [v, [y, z, w, x], [1.0, 2.0, 0.0, 0.5], [w, z, y, x]];
            let b = [[z, w, x, y], [1.0; 4], v.map(|c| c * 2.0)];
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            let times = |column: &[f64; 4]| {
                [0, 1, 2, 3].map(|row| (0..4).map(|c| a[c][row] * column[c]).sum::<f64>())
            };
            let product = [times(&b[0]), times(&b[1]), times(&b[2])];
            let determinant3 = |m: [[f64; 3]; 3]| {
                m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
                    - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                    + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
            };
            let without = |row: usize| {
                [1, 2, 3].map(|column: usize| {
                    let rows: Vec<f64> =
                        (0..4).filter(|&r| r != row).map(|r| a[column][r]).collect();
                    [rows[0], rows[1], rows[2]]
                })
            };
            let determinant: f64 = (0..4)
                .map(|row| if row % 2 == 0 { 1.0 } else { -1.0 } * a[0][row] * determinant3(without(row)))
                .sum();
            let sum = [0, 1, 2, 3].map(|r| 3.0 * a[1][r] - v[r] + 3.0 * a[3][r] - v[r]);
            let wanted = [
                times(&v),
                [0, 1, 2, 3].map(|c| dot(&v, &a[c])),
                [0, 1, 2, 3].map(|r| product[0][r] + 2.0 * product[1][r] + 3.0 * product[2][r]),
                [b[0][0], b[1][0], b[2][0], b[1][3]],
                [determinant, determinant3([[x, y, z], [y, z, x], [1.0, 0.0, 2.0]]), 0.0, 0.0],
                sum,
            ];
            let largest = v.iter().fold(1.0_f64, |most, c| most.max(c.abs())).powi(3);
            for (at, (&given, &wanted)) in given.iter().zip(wanted.as_flattened()).enumerate() {
                let error = (f64::from(given) - wanted).abs();
                assert!(
                    error <= largest * 1e-4,
                    "result {at} of {v:?}: {given}, not {wanted} on {case}"
                );
            }
        }
    });
}

#[test]
fn floats_are_changed_atomically_and_rounded_to_half() {
    // Any order gives the same sum.
    let given = [1.0_f32, 2049.0, 2051.0, -4097.0, 0.5, 65519.0, -0.0, 3.0];
    let halves = [1.0_f32, 2048.0, 2052.0, -4096.0, 0.5, 65504.0, -0.0, 3.0];
    everywhere("rare", |case| {
        let out = case.buffer(&[[0.0_f32, 100.0, -100.0].as_slice(), &[7.0; 8]].concat());
        let args = [Arg::from(&case.buffer(&given)), Arg::from(&out)];
        case.launch("floats", groups(8, 8), &args);
        let out = case.read(&out);
        assert_eq!(out[..3], [given.iter().sum(), -4097.0, 65519.0], "{case}");
        assert_eq!(
            out[3..].iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            halves.map(f32::to_bits),
            "{case}"
        );
    });
}

/// Pairs of words: both ends and signs of all numbers, and any.
fn pairs() -> Vec<u32> {
    let ends = [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x7f80_7f80, 0x8181_ff01];
    let all = ends.iter().flat_map(|&x| ends.map(|y| [x, y]));
    let any = numbers(5).map(|n| [n as u32, (n >> 32) as u32]);
    all.chain(any).take(64).flatten().collect()
}

#[test]
fn carries_borrows_and_long_products() {
    let input = pairs();
    everywhere("rare", |case| {
        let out = case.zeros::<u32>(64 * 8);
        case.launch("carries", groups(64, 8), &[Arg::from(&case.buffer(&input)), Arg::from(&out)]);
        for (pair, given) in input.chunks(2).zip(case.read(&out).chunks(8)) {
            let (x, y) = (pair[0], pair[1]);
            let (sum, carry) = x.overflowing_add(y);
            let (difference, borrow) = x.overflowing_sub(y);
            let product = u64::from(x) * u64::from(y);
            let signed = i64::from(x.cast_signed()) * i64::from(y.cast_signed());
            let signed = signed.cast_unsigned();
            let wanted = [
                [sum, carry.into(), difference, borrow.into()],
                [product as u32, (product >> 32) as u32, signed as u32, (signed >> 32) as u32],
            ];
            assert_eq!(given, wanted.as_flattened(), "{x:#x} and {y:#x} on {case}");
        }
    });
}

#[test]
fn products_of_integer_vectors() {
    let input = pairs();
    everywhere("rare", |case| {
        let out = case.zeros::<u32>(64 * 7);
        case.launch("dots", groups(64, 8), &[Arg::from(&case.buffer(&input)), Arg::from(&out)]);
        for (pair, given) in input.chunks(2).zip(case.read(&out).chunks(7)) {
            let dot = |signs| dot_of_bytes(pair[0], pair[1], signs);
            let [first, second] = [0, 1].map(|at| i64::from(pair[at].cast_signed()));
            let within = |sum: i64| sum.clamp(i32::MIN.into(), i32::MAX.into());
            let wanted = [
                dot([true, true]),
                dot([false, false]),
                dot([true, false]),
                within(dot([true, true]) + first),
                (dot([false, false]) + i64::from(pair[0])).min(u32::MAX.into()),
                within(dot([true, false]) + first),
                first.wrapping_mul(first).wrapping_add(second.wrapping_mul(second)),
            ];
            assert_eq!(given, wanted.map(|number| number as u32), "{pair:x?} on {case}");
        }
    });
}

#[test]
fn matrices_lie_in_memory_by_rows_or_columns() {
    everywhere("rare", |case| {
        let rows = [[2.0_f32, 1.0, -1.0], [0.0, 4.0, 0.5], [1.0, 0.0, 8.0]];
        let mut memory: Vec<f32> =
            rows.iter().flat_map(|row| [row[0], row[1], row[2], 9.0]).collect();
        memory.resize(31, 9.0);
        let buffer = case.buffer(&memory);
        // The columns of a matrix that turns by a right angle.
        let pushed = [0.5_f32, 0.0, 1.0, -1.0, 0.0].map(Arg::from);
        let args = [[Arg::from(&buffer)].as_slice(), &pushed].concat();
        case.launch("pushed", groups(8, 8), &args);
        let after = case.read(&buffer);
        assert_eq!(after[..12], memory[..12], "{case}");
        for (row, column) in (0..3).flat_map(|row| [0, 1, 2].map(|column| (row, column))) {
            let product: f32 = (0..3).map(|at| rows[row][at] * after[12 + 4 * column + at]).sum();
            let wanted = if row == column { 1.0 } else { 0.0 };
            assert!(
                (product - wanted).abs() < 1e-6,
                "row {row}, column {column}: {product} on {case}"
            );
        }
        let turned = [rows[1].map(|x| -0.5 * x), rows[0].map(|x| 0.5 * x)];
        assert_eq!((&after[24..27], &after[28..31]), (&turned[0][..], &turned[1][..]), "{case}");
        assert_eq!((after[15], after[27]), (9.0, 9.0), "{case}");
    });
}

#[test]
fn buffers_may_be_elements_of_an_array() {
    everywhere("rare", |case| {
        let kernel = case.module.kernel("several", case.arch).unwrap();
        let names = kernel.entry_point().params().iter().map(|param| param.name.as_deref());
        assert!(names.eq(["arrays[0]", "arrays[1]", "arrays[2]"].map(Some)), "{case}");
        let buffers = [8, 11, 16].map(|len| case.buffer(&vec![len; len as usize]));
        case.launch("several", groups(8, 8), &buffers.each_ref().map(Arg::from));
        for ((buffer, which), len) in buffers.iter().zip(0..).zip([8, 11, 16]) {
            let wanted = (0..len).map(|id| if id < 8 && id % 3 == which { len + 11 } else { len });
            assert_eq!(case.read(buffer), wanted.collect::<Vec<u32>>(), "buffer {which} on {case}");
        }
    });
}
