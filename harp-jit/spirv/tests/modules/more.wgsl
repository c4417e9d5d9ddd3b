// The rest of the functions of floats.

@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = input[id.x];
    let at = id.x * 9u;
    output[at] = sin(v) + cos(v) * 2.0;
    output[at + 1u] = vec4(tan(v.x), asin(v.y / 128.0), acos(v.z / 128.0), atan(v.w));
    output[at + 2u] = vec4(sinh(v.x / 32.0), cosh(v.y / 32.0), tanh(v.z), asinh(v.w));
    output[at + 3u] = vec4(acosh(abs(v.x) + 1.0), atanh(v.y / 128.0), atan2(v.z, v.w), pow(abs(v.x) + 0.5, 1.25));
    output[at + 4u] = vec4(exp(v.x / 16.0), log(abs(v.y) + 0.5), exp2(v.z / 16.0), log2(abs(v.w) + 0.5));
    output[at + 5u] = vec4(refract(normalize(v.xy + vec2(0.01)), vec2(0.6, 0.8), 0.75), degrees(v.x), radians(v.y));
    output[at + 6u] = vec4(faceForward(v.xy, v.yz, v.zw), fma(v.x, v.y, v.z), saturate(v.w));
    output[at + 7u] = unpack4x8unorm(pack4x8unorm(v / 8.0)) + unpack4x8snorm(pack4x8snorm(v / 8.0)) * 2.0;
    output[at + 8u] = vec4(unpack2x16float(pack2x16float(v.xy)), unpack2x16unorm(pack2x16unorm(v.zw / 8.0)));
}

@compute @workgroup_size(4)
fn matrices(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = input[id.x];
    let a = mat4x4<f32>(v, v.yzwx, vec4(1.0, 2.0, 0.0, 0.5), v.wzyx);
    let b = mat3x4<f32>(v.zwxy, vec4(1.0), v * 2.0);
    output[id.x * 9u] = a * v;
    output[id.x * 9u + 1u] = v * a;
    let c = a * b;
    output[id.x * 9u + 2u] = c[0] + c[1] * 2.0 + c[2] * 3.0;
    let t = transpose(b);
    output[id.x * 9u + 3u] = vec4(t[0], t[3].y);
    output[id.x * 9u + 4u] = vec4(determinant(a), determinant(mat3x3<f32>(v.xyz, v.yzx, vec3(1.0, 0.0, 2.0))), 0.0, 0.0);
    let d = a + a * 2.0 - mat4x4<f32>(v, v, v, v);
    output[id.x * 9u + 5u] = d[1] + d[3];
}
