// How many steps numbers take to 1 by Collatz's rule; -1 where they grow too large.

@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

fn steps(start: u32) -> u32 {
    var n = start;
    var count = 0u;
    loop {
        if n <= 1u { break; }
        if n % 2u == 0u {
            n /= 2u;
        } else {
            if n >= 0x55555555u { return 0xffffffffu; }
            n = 3u * n + 1u;
        }
        count++;
    }
    return count;
}

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3u) {
    numbers[id.x] = steps(numbers[id.x]);
}
