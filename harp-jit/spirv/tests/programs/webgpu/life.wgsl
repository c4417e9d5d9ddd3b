// Conway's game of life on a torus.

@group(0) @binding(0) var<uniform> size: vec2u;
@group(0) @binding(1) var<storage, read> now: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

fn cell(x: u32, y: u32) -> u32 {
    return now[(y % size.y) * size.x + x % size.x];
}

@compute @workgroup_size(4, 4)
fn generation(@builtin(global_invocation_id) id: vec3u) {
    let x = id.x;
    let y = id.y;
    if x >= size.x || y >= size.y { return; }
    var living = 0u;
    for (var dy = 0u; dy < 3u; dy++) {
        for (var dx = 0u; dx < 3u; dx++) {
            if dx != 1u || dy != 1u { living += cell(x + size.x + dx - 1u, y + size.y + dy - 1u); }
        }
    }
    let index = y * size.x + x;
    switch living {
        case 2u: { next[index] = now[index]; }
        case 3u: { next[index] = 1u; }
        default: { next[index] = 0u; }
    }
}
