// A flock: each boid steers towards the others near it, away from those too near, and along with them.

struct Boid { position: vec2f, velocity: vec2f }

struct Rules {
    step: f32,
    cohesion_distance: f32,
    separation_distance: f32,
    alignment_distance: f32,
    cohesion: f32,
    separation: f32,
    alignment: f32,
}

@group(0) @binding(0) var<uniform> rules: Rules;
@group(0) @binding(1) var<storage, read> before: array<Boid>;
@group(0) @binding(2) var<storage, read_write> after: array<Boid>;

@compute @workgroup_size(16)
fn update(@builtin(global_invocation_id) id: vec3u) {
    let index = id.x;
    if index >= arrayLength(&before) { return; }
    var own = before[index];
    var centre = vec2f();
    var heading = vec2f();
    var away = vec2f();
    var near = 0u;
    var alongside = 0u;
    for (var i = 0u; i < arrayLength(&before); i++) {
        if i == index { continue; }
        let other = before[i];
        let far = distance(other.position, own.position);
        if far < rules.cohesion_distance {
            centre += other.position;
            near++;
        }
        if far < rules.separation_distance { away -= other.position - own.position; }
        if far < rules.alignment_distance {
            heading += other.velocity;
            alongside++;
        }
    }
    if near > 0u { centre = centre / f32(near) - own.position; }
    if alongside > 0u { heading /= f32(alongside); }
    own.velocity += centre * rules.cohesion + away * rules.separation + heading * rules.alignment;
    own.velocity = normalize(own.velocity) * clamp(length(own.velocity), 0.0, 0.1);
    own.position += own.velocity * rules.step;
    if own.position.x < -1.0 { own.position.x = 1.0; }
    if own.position.x > 1.0 { own.position.x = -1.0; }
    if own.position.y < -1.0 { own.position.y = 1.0; }
    if own.position.y > 1.0 { own.position.y = -1.0; }
    after[index] = own;
}
