// Buffers of structures, uniforms, matrices, functions with pointers, private and workgroup variables.

struct Particle { position: vec3<f32>, mass: f32, velocity: vec3<f32>, kind: u32 }
struct Settings { step: f32, damping: f32, count: u32, turn: mat3x3<f32> }

@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(1) var<uniform> settings: Settings;
@group(0) @binding(2) var<storage, read_write> kinds: array<atomic<u32>, 4>;

var<private> steps: u32 = 2u;

fn advance(p: ptr<function, Particle>, step: f32) {
    (*p).position += (*p).velocity * step;
    if (*p).position.y < 0.0 {
        (*p).position.y = -(*p).position.y;
        (*p).velocity.y *= -settings.damping;
    }
    steps += 1u;
}

@compute @workgroup_size(8)
fn move_all(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= arrayLength(&particles) { return; }
    var p = particles[i];
    while steps < 4u {
        advance(&p, settings.step);
    }
    p.velocity = settings.turn * p.velocity;
    particles[i] = p;
    atomicAdd(&kinds[p.kind & 3u], 1u);
}

var<workgroup> shared_sums: array<f32, 8>;

@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(8)
fn total_mass(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) own: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    shared_sums[own] = select(0.0, particles[min(id.x, arrayLength(&particles) - 1u)].mass, id.x < arrayLength(&particles));
    for (var half = 4u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if own < half { shared_sums[own] += shared_sums[own + half]; }
    }
    if own == 0u { sums[group.x] = shared_sums[0]; }
}
