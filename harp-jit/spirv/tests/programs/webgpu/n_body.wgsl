// Bodies that attract each other: groups load tiles of bodies, all of which a work-item then looks at.

struct Body { position: vec3f, mass: f32, velocity: vec3f }

@group(0) @binding(0) var<storage, read> before: array<Body>;
@group(0) @binding(1) var<storage, read_write> after: array<Body>;
@group(0) @binding(2) var<uniform> step: f32;

const TILE = 16u;
var<workgroup> tile: array<vec4f, TILE>;

fn pull(own: vec3f, other: vec4f) -> vec3f {
    let away = other.xyz - own;
    let inverse = inverseSqrt(dot(away, away) + 0.01);
    return away * (other.w * inverse * inverse * inverse);
}

@compute @workgroup_size(TILE)
fn advance(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) own: u32) {
    let count = arrayLength(&before);
    let index = min(id.x, count - 1u);
    var body = before[index];
    var force = vec3f();
    for (var start = 0u; start < count; start += TILE) {
        var other = vec4f();
        if start + own < count { other = vec4f(before[start + own].position, before[start + own].mass); }
        tile[own] = other;
        workgroupBarrier();
        for (var n = 0u; n < TILE; n++) { force += pull(body.position, tile[n]); }
        workgroupBarrier();
    }
    body.velocity += force * step;
    body.position += body.velocity * step;
    if id.x < count { after[id.x] = body; }
}
