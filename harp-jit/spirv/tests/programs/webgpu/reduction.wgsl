// The sum, the least and the greatest of many numbers; groups combine theirs and add to the result with atomics.

struct Result { sum: atomic<i32>, least: atomic<i32>, greatest: atomic<i32>, counts: array<atomic<u32>, 2> }

@group(0) @binding(0) var<storage, read> data: array<i32>;
@group(0) @binding(1) var<storage, read_write> result: Result;

struct Part { sum: i32, least: i32, greatest: i32 }

var<workgroup> parts: array<Part, 32>;

fn both(a: Part, b: Part) -> Part {
    return Part(a.sum + b.sum, min(a.least, b.least), max(a.greatest, b.greatest));
}

@compute @workgroup_size(32)
fn reduce(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) own: u32,
    @builtin(num_workgroups) groups: vec3u,
) {
    var part = Part(0, 2147483647, -2147483647 - 1);
    for (var i = id.x; i < arrayLength(&data); i += groups.x * 32u) {
        let n = data[i];
        part = both(part, Part(n, n, n));
        atomicAdd(&result.counts[n & 1], 1u);
    }
    parts[own] = part;
    for (var half = 16u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if own < half { parts[own] = both(parts[own], parts[own + half]); }
    }
    if own == 0u {
        atomicAdd(&result.sum, parts[0].sum);
        atomicMin(&result.least, parts[0].least);
        atomicMax(&result.greatest, parts[0].greatest);
    }
}
