// A picture blurred along one axis: a group loads a tile with its border, of colours packed into words.

struct Settings { size: vec2u, radius: u32, vertical: u32 }

@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

const SPAN = 16u;
const MAX_RADIUS = 8u;
var<workgroup> tile: array<vec4f, SPAN + 2u * MAX_RADIUS>;

fn index_of(along: i32, across: u32) -> u32 {
    let vertical = settings.vertical != 0u;
    let last = i32(select(settings.size.x, settings.size.y, vertical)) - 1;
    let place = u32(clamp(along, 0, last));
    return select(across * settings.size.x + place, place * settings.size.x + across, vertical);
}

@compute @workgroup_size(SPAN)
fn blur(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let radius = min(settings.radius, MAX_RADIUS);
    let start = i32(group.x * SPAN) - i32(radius);
    for (var n = local.x; n < SPAN + 2u * radius; n += SPAN) {
        tile[n] = unpack4x8unorm(input[index_of(start + i32(n), group.y)]);
    }
    workgroupBarrier();
    var sum = vec4f();
    for (var n = 0u; n <= 2u * radius; n++) { sum += tile[local.x + n]; }
    let along = group.x * SPAN + local.x;
    if along < select(settings.size.x, settings.size.y, settings.vertical != 0u) {
        output[index_of(i32(along), group.y)] = pack4x8unorm(sum / f32(2u * radius + 1u));
    }
}
