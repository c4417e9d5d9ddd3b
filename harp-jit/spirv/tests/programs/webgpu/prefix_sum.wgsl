// Exclusive prefix sums (Blelloch, 1990): up and down a tree in each group, then the sums of groups are added.

const ITEMS = 16u;
const LEN = 2u * ITEMS;

@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> totals: array<u32>;

var<workgroup> tree: array<u32, LEN>;

@compute @workgroup_size(ITEMS)
fn scan(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) own: u32) {
    let first = group.x * LEN + 2u * own;
    for (var n = 0u; n < 2u; n++) {
        if first + n < arrayLength(&data) { tree[2u * own + n] = data[first + n]; }
        else { tree[2u * own + n] = 0u; }
    }
    var step = 1u;
    for (var pairs = ITEMS; pairs > 0u; pairs >>= 1u) {
        workgroupBarrier();
        if own < pairs {
            let left = step * (2u * own + 1u) - 1u;
            tree[left + step] += tree[left];
        }
        step *= 2u;
    }
    workgroupBarrier();
    if own == 0u {
        totals[group.x] = tree[LEN - 1u];
        tree[LEN - 1u] = 0u;
    }
    for (var pairs = 1u; pairs <= ITEMS; pairs <<= 1u) {
        step /= 2u;
        workgroupBarrier();
        if own < pairs {
            let left = step * (2u * own + 1u) - 1u;
            let before = tree[left];
            tree[left] = tree[left + step];
            tree[left + step] += before;
        }
    }
    workgroupBarrier();
    for (var n = 0u; n < 2u; n++) {
        if first + n < arrayLength(&data) { data[first + n] = tree[2u * own + n]; }
    }
}

@compute @workgroup_size(ITEMS)
fn add(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&data) { data[id.x] += totals[id.x / LEN]; }
}
