// A discrete Fourier transform by radix two (Cooley and Tukey, 1965), in a group's memory.

const LEN = 32u;
const PI = 3.14159265;

@group(0) @binding(0) var<storage, read_write> signals: array<vec2f>;

var<workgroup> values: array<vec2f, LEN>;

fn product(a: vec2f, b: vec2f) -> vec2f {
    return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(LEN / 2u)
fn transform(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) own: u32) {
    let start = group.x * LEN;
    for (var n = own; n < LEN; n += LEN / 2u) {
        values[reverseBits(n) >> (countLeadingZeros(LEN) + 1u)] = signals[start + n];
    }
    for (var half = 1u; half < LEN; half *= 2u) {
        workgroupBarrier();
        let k = own % half;
        let first = (own - k) * 2u + k;
        let angle = -PI * f32(k) / f32(half);
        let odd = product(values[first + half], vec2f(cos(angle), sin(angle)));
        let even = values[first];
        values[first] = even + odd;
        values[first + half] = even - odd;
    }
    workgroupBarrier();
    for (var n = own; n < LEN; n += LEN / 2u) { signals[start + n] = values[n]; }
}
