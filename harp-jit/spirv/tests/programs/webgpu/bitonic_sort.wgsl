// Bitonic sorting (Batcher, 1968): what a group can do in its memory, and a step over global memory.

struct Step { height: u32, distance: u32 }

@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<uniform> step: Step;

const ITEMS = 16u;
var<workgroup> part: array<f32, 2u * ITEMS>;

fn swap(a: ptr<function, f32>, b: ptr<function, f32>) {
    let c = *a;
    *a = *b;
    *b = c;
}

@compute @workgroup_size(ITEMS)
fn local_sort(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) own: u32) {
    let start = group.x * 2u * ITEMS;
    part[own] = data[start + own];
    part[own + ITEMS] = data[start + own + ITEMS];
    for (var height = 2u; height <= 2u * ITEMS; height *= 2u) {
        for (var distance = height / 2u; distance > 0u; distance /= 2u) {
            workgroupBarrier();
            let left = 2u * own - (own & (distance - 1u));
            var a = part[left];
            var b = part[left + distance];
            let ascending = ((start + left) & height) == 0u;
            if (a > b) == ascending { swap(&a, &b); }
            part[left] = a;
            part[left + distance] = b;
        }
    }
    workgroupBarrier();
    data[start + own] = part[own];
    data[start + own + ITEMS] = part[own + ITEMS];
}

@compute @workgroup_size(ITEMS)
fn global_step(@builtin(global_invocation_id) id: vec3u) {
    let left = 2u * id.x - (id.x & (step.distance - 1u));
    var a = data[left];
    var b = data[left + step.distance];
    if (a > b) == ((left & step.height) == 0u) { swap(&a, &b); }
    data[left] = a;
    data[left + step.distance] = b;
}
