//! Each work-item knows its place, in its group and in the grid.

use harp_jit::ir::Value;
use harp_jit::{ArchId, Kernel, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::{MACHINES, compile, device, run};

/// Words of a work-item's record.
const RECORD: usize = 17;

/// Each work-item adds 1 to the first word of its record and writes all that it knows of its place to the
/// others.
fn places_kernel(arch: ArchId) -> Kernel {
    compile(arch, |b| {
        let out = b.param(ParamType::Pointer);
        let mut values: Vec<Value> = Vec::new();
        for dim in 0..3 {
            values.push(b.global_id(dim));
            values.push(b.local_id(dim));
            values.push(b.group_id(dim));
            values.push(b.local_size(dim));
            values.push(b.group_size(dim));
        }
        values.push(b.local_index());
        let (x, y, z) = (b.global_id(0), b.global_id(1), b.global_id(2));
        let (wide, high) = (b.global_size(0), b.global_size(1));
        let plane = b.ins().imul(z, high);
        let row = b.ins().iadd(plane, y);
        let row = b.ins().imul(row, wide);
        let item = b.ins().iadd(row, x);
        let start = b.ins().imul_imm_s(item, RECORD as i64);
        let count = b.load_elem(b.word_int(), out, start);
        let count = b.ins().iadd_imm_s(count, 1);
        b.store_elem(count, out, start);
        for (index, value) in (1..).zip(values) {
            let index = b.ins().iadd_imm_s(start, index);
            b.store_elem(value, out, index);
        }
    })
}

fn check_places(device: &Device, kernel: &Kernel, extent: [usize; 3], group: [usize; 3]) {
    let [x, y, z] = extent;
    let items = x * y * z;
    let config = LaunchConfig::grid_3d(x, y, z).with_groups(group);
    let words = run(device, kernel, config, &vec![0; (items + 1) * RECORD]);
    for item in 0..items {
        let at = [item % extent[0], item / extent[0] % extent[1], item / (extent[0] * extent[1])];
        let mut expected = vec![1];
        let mut index = 0;
        let mut stride = 1;
        for dim in 0..3 {
            let (id, local) = (at[dim] / group[dim], at[dim] % group[dim]);
            let size = group[dim].min(extent[dim] - id * group[dim]);
            expected.extend([at[dim], local, id, size, group[dim]]);
            index += local * stride;
            stride *= size;
        }
        expected.push(index);
        let record = words[item * RECORD..][..RECORD].iter().map(|&word| word as usize);
        let arch = kernel.arch();
        let found: Vec<usize> = record.collect();
        assert_eq!(found, expected, "{arch}, {extent:?} by {group:?}, work-item {item}");
    }
    assert!(words[items * RECORD..].iter().all(|&word| word == 0), "surplus lanes wrote");
}

#[test]
fn each_work_item_knows_its_place_in_its_group() {
    for id in MACHINES {
        let arch: ArchId = id.parse().unwrap();
        let kernel = places_kernel(arch);
        assert!(kernel.uses_groups());
        let most = usize::from(arch.lanes()) * usize::from(arch.warps());
        for cores in [1, 3] {
            let device = device(arch, cores);
            for (extent, group) in [
                ([1, 1, 1], [1, 1, 1]),
                ([37, 1, 1], [5, 1, 1]),
                ([50, 1, 1], [most, 1, 1]),
                ([100, 1, 1], [15, 1, 1]),
                ([9, 7, 3], [2, 3, 2]),
                ([3, 5, 4], [1, 1, 15]),
                ([17, 2, 1], [8, 1, 1]),
            ] {
                check_places(&device, &kernel, extent, group);
            }
        }
    }
}
