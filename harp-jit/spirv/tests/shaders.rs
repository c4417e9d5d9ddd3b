//! Compute shaders, which naga made of WGSL.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use harp_jit::{CompileOptions, ParamType};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError};
use harp_spirv::SpirvModule;
use support::{Case, Level, MACHINES, STRATEGIES, bytes, numbers};

/// Tests a module on all machines; the strategies take turns.
fn everywhere(name: &str, test: impl Fn(&Case)) {
    for (number, id) in MACHINES.into_iter().enumerate() {
        let arch = id.parse().unwrap();
        let module = SpirvModule::parse(&bytes(&format!("{name}.spv"))).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let divergence = STRATEGIES[number];
        test(&Case { arch, level: Level::Optimized, divergence, module, device });
    }
}

fn groups(items: usize, group: usize) -> LaunchConfig {
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
