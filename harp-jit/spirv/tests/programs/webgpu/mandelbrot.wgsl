// The Mandelbrot set: how many steps until a point escapes, as a colour.

struct View { centre: vec2f, scale: f32, limit: u32 }

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read_write> picture: array<u32>;

fn steps(c: vec2f) -> u32 {
    var z = vec2f();
    for (var n = 0u; n < view.limit; n++) {
        let squares = z * z;
        if squares.x + squares.y > 4.0 { return n; }
        z = vec2f(squares.x - squares.y, 2.0 * z.x * z.y) + c;
    }
    return view.limit;
}

@compute @workgroup_size(8, 4)
fn draw(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let size = groups.xy * vec2u(8u, 4u);
    let offset = vec2f(id.xy) - vec2f(size / 2u);
    let n = steps(view.centre + offset * view.scale);
    picture[id.y * size.x + id.x] = select(0xff000000u | n * 0x010305u, 0xff000000u, n == view.limit);
}
