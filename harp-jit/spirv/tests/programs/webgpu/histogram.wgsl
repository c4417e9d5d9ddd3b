// How often each brightness occurs in a picture: counted in each group's memory, then added up.

@group(0) @binding(0) var<storage, read> colours: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>, 16>;

var<workgroup> bins: array<atomic<u32>, 16>;

fn brightness(colour: u32) -> u32 {
    let parts = vec3u(colour & 255u, extractBits(colour, 8u, 8u), extractBits(colour, 16u, 8u));
    return dot(parts, vec3u(54u, 183u, 19u)) >> 8u;
}

@compute @workgroup_size(8, 2)
fn count(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) own: u32) {
    let index = id.y * 64u + id.x;
    if index < arrayLength(&colours) { atomicAdd(&bins[brightness(colours[index]) / 16u], 1u); }
    workgroupBarrier();
    let sum = atomicLoad(&bins[own]);
    if sum > 0u { atomicAdd(&counts[own], sum); }
}
