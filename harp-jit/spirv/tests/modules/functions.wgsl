// Functions of GLSL.std.450, and control flow with merges.

@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> bits: array<vec4<u32>>;

@compute @workgroup_size(4)
fn floats(@builtin(global_invocation_id) id: vec3<u32>) {
    let v = input[id.x];
    let at = id.x * 8u;
    output[at] = floor(v) + ceil(v) * 2.0 + trunc(v) * 4.0 + fract(v) * 8.0;
    output[at + 1u] = abs(v) + sign(v) * 2.0 + min(v, v.yzwx) * 4.0 + max(v, v.yzwx) * 8.0;
    output[at + 2u] = clamp(v, vec4(-1.0), vec4(2.0)) + mix(v, v.wzyx, 0.25) * 4.0;
    output[at + 3u] = vec4(dot(v, v.wzyx), length(v), distance(v.xy, v.zw), determinant(mat2x2(v.xy, v.zw)));
    output[at + 4u] = vec4(cross(v.xyz, v.yzw), step(0.5, v.x));
    output[at + 5u] = vec4(reflect(v.xy, vec2(0.6, 0.8)), smoothstep(-1.0, 3.0, v.x), sqrt(abs(v.y)));
    let parts = modf(v.x);
    let scaled = frexp(v.y);
    output[at + 6u] = vec4(parts.fract, parts.whole, scaled.fract, f32(scaled.exp));
    output[at + 7u] = vec4(round(v.x), v.y % 1.5, inverseSqrt(abs(v.z) + 1.0), ldexp(v.w, 2));
}

@compute @workgroup_size(4)
fn integers(@builtin(global_invocation_id) id: vec3<u32>) {
    let u = bitcast<vec4<u32>>(input[id.x]);
    let i = bitcast<vec4<i32>>(input[id.x]);
    let at = id.x * 6u;
    bits[at] = countOneBits(u) + reverseBits(u) + firstTrailingBit(u) * 3u;
    bits[at + 1u] = vec4<u32>(firstLeadingBit(i)) + firstLeadingBit(u) * 5u;
    bits[at + 2u] = extractBits(u, 3u, 7u) + vec4<u32>(extractBits(i, 20u, 12u));
    bits[at + 3u] = insertBits(u, u.yzwx, 5u, 11u) / (u.wzyx | vec4(1u));
    bits[at + 4u] = vec4(pack4x8unorm(input[id.x] / 8.0), pack4x8snorm(input[id.x] / 8.0), pack2x16float(input[id.x].xy), u32(i.x / (i.y | 1)));
    bits[at + 5u] = vec4<u32>(vec4<i32>(input[id.x])) + vec4<u32>(abs(input[id.x]));
}

@compute @workgroup_size(4)
fn flow(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0u;
    var n = id.x;
    loop {
        if n > 40u { break; }
        switch n % 5u {
            case 0u: { sum += 1u; }
            case 1u, 3u: { sum += 10u; n += 1u; if n > 30u { continue; } }
            case 2u: { sum *= 2u; }
            default: { sum += n; }
        }
        continuing {
            n += 3u;
            break if sum > 500u;
        }
    }
    bits[id.x] = vec4(sum, n, u32(n > 40u && sum < 100u), select(7u, 8u, sum % 2u == 0u));
}
