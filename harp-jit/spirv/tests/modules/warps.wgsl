// What the lanes of a warp do together.

@group(0) @binding(0) var<storage, read> input: array<i32>;
@group(0) @binding(1) var<storage, read_write> output: array<array<i32, 16>>;
@group(0) @binding(2) var<storage, read_write> ballots: array<vec4<u32>>;

@compute @workgroup_size(24)
fn lanes(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let n = input[id.x];
    let out = &output[id.x];
    (*out)[0] = i32(size * 100u + lane);
    (*out)[1] = subgroupAdd(n);
    (*out)[2] = subgroupExclusiveAdd(n);
    (*out)[3] = subgroupInclusiveAdd(n);
    (*out)[4] = subgroupMul(n % 3 + 4);
    (*out)[5] = subgroupMin(n);
    (*out)[6] = subgroupMax(n);
    (*out)[7] = subgroupAnd(n | 16) + subgroupOr(n) * 3 + subgroupXor(n) * 5;
    (*out)[8] = subgroupBroadcastFirst(n) + subgroupBroadcast(n, 0u) * 2;
    (*out)[9] = subgroupShuffle(n, lane ^ 1u);
    (*out)[10] = subgroupShuffleXor(n, 1u);
    (*out)[11] = subgroupShuffleUp(n, 1u);
    (*out)[12] = subgroupShuffleDown(n, 1u);
    (*out)[13] = select(0, 1, subgroupAll(n > 0)) + select(0, 2, subgroupAny(n > 30));
    (*out)[14] = quadSwapX(n) + quadBroadcast(n, 1u) * 100;
    (*out)[15] = subgroupExclusiveMul(n % 3 + 4);
    ballots[id.x] = subgroupBallot((n & 1) == 1);
}
