// Loops that work-items leave in different rounds, and what they do last in a round.

@group(0) @binding(0) var<storage, read> keys: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> shared_words: array<atomic<u32>>;

// How many of the subgroup have this key: a round for each key.
fn with_key(key: u32) -> u32 {
    loop {
        if (subgroupBroadcastFirst(key) == key) {
            return subgroupAdd(1u);
        }
    }
    return 0u;
}

@compute @workgroup_size(24)
fn rounds(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let i = id.x;
    let key = keys[i];
    var count = 0u;
    var round = 0u;
    loop {
        if (subgroupBroadcastFirst(key) == key) {
            count = subgroupAdd(1u);
            if (subgroupMin(lane) == lane) {
                round += 100u;
            }
            break;
        }
        round += 1u;
    }
    counts[3u * i] = count;
    counts[3u * i + 1u] = round;
    counts[3u * i + 2u] = with_key(key);
}

// Who has the lock gives it back in the same round.
@compute @workgroup_size(24)
fn turns() {
    loop {
        if (atomicCompareExchangeWeak(&shared_words[0], 0u, 1u).exchanged) {
            let count = atomicLoad(&shared_words[1]);
            atomicStore(&shared_words[1], count + 1u);
            atomicStore(&shared_words[0], 0u);
            break;
        }
    }
}
