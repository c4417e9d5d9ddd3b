//! Sorting.

use harp_runtime::{Arg, LaunchConfig};

use super::{groups, opencl};
use crate::support::numbers;

fn keys(count: usize) -> Vec<u32> {
    numbers(6).map(|n| (n >> 30) as u32).take(count).collect()
}

fn sorted(keys: &[u32]) -> Vec<u32> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys
}

#[test]
fn bitonic_passes_sort() {
    let keys = keys(64);
    opencl("bitonic_sort", |case| {
        let pass = case.kernel("pass");
        for ascending in [true, false] {
            let data = case.buffer(&keys);
            for stage in 0..6_u32 {
                for step in 0..=stage {
                    let args = [stage, step, ascending.into()].map(Arg::from);
                    let args = [&[Arg::from(&data)], &args[..]].concat();
                    case.run(&pass, LaunchConfig::grid_1d(keys.len() / 2), &args);
                }
            }
            let mut wanted = sorted(&keys);
            if !ascending {
                wanted.reverse();
            }
            assert_eq!(case.read(&data), wanted, "{case}");
        }
        let data = case.buffer(&keys);
        let args = [Arg::from(&data), Arg::group::<u32>(16)];
        case.launch("sort_groups", groups(keys.len() / 2, 8), &args);
        let wanted: Vec<u32> = keys.chunks(16).flat_map(sorted).collect();
        assert_eq!(case.read(&data), wanted, "{case}");
    });
}

#[test]
fn digits_sort() {
    let (keys, group) = (keys(48), 16);
    opencl("radix_sort", |case| {
        let mut buffers = [case.buffer(&keys), case.zeros(keys.len())];
        let counts = case.zeros::<u32>(16 * keys.len() / group);
        let [count, scan, permute] = ["count", "scan", "permute"].map(|name| case.kernel(name));
        for shift in (0..32_u32).step_by(4) {
            let [from, to] = &buffers;
            let config = groups(keys.len(), group);
            case.run(&count, config, &[from.into(), (&counts).into(), shift.into()]);
            let args = [(&counts).into(), (counts.len() as u32).into(), Arg::group::<u32>(16)];
            case.run(&scan, groups(16, 16), &args);
            let digits = Arg::group::<u8>(group);
            let args = [from.into(), to.into(), (&counts).into(), shift.into(), digits];
            case.run(&permute, config, &args);
            buffers.reverse();
        }
        assert_eq!(case.read(&buffers[0]), sorted(&keys), "{case}");
    });
}
