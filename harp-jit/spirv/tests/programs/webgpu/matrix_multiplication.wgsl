// Matrices of any sizes: groups load tiles, what is outside counts as zero.

struct Sizes { rows: u32, inner: u32, columns: u32 }

@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> product: array<f32>;
@group(1) @binding(0) var<uniform> sizes: Sizes;

const TILE = 4u;
var<workgroup> lefts: array<array<f32, TILE>, TILE>;
var<workgroup> rights: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn multiply(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) own: vec3u) {
    var sum = 0.0;
    for (var start = 0u; start < sizes.inner; start += TILE) {
        let x = start + own.x;
        let y = start + own.y;
        lefts[own.y][own.x] = 0.0;
        rights[own.y][own.x] = 0.0;
        if id.y < sizes.rows && x < sizes.inner { lefts[own.y][own.x] = left[id.y * sizes.inner + x]; }
        if y < sizes.inner && id.x < sizes.columns { rights[own.y][own.x] = right[y * sizes.columns + id.x]; }
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) { sum = fma(lefts[own.y][k], rights[k][own.x], sum); }
        workgroupBarrier();
    }
    if id.y < sizes.rows && id.x < sizes.columns { product[id.y * sizes.columns + id.x] = sum; }
}
