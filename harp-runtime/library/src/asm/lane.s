/* What a lane's control block says of the lane. %sp: the block, %lane: the lane's number, %r0: core, %r1: warp,
   %ra: the block of the warp's lane 0. Changes %r0 and %ra. */
        addi %ra, %ra, L_SCRATCH
        st %ra, %sp, L_SCRATCH_ADDRESS
        st %lane, %sp, L_LANE
        st %r1, %sp, L_WARP
        st %r0, %sp, L_CORE
        ldi %r0, #0
        st %r0, %sp, L_Y
        st %r0, %sp, L_Z
