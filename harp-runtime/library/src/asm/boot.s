/* Boot code: warp 0 of each core starts here with only lane 0 active. It starts the other warps. Every
   warp that has work activates all lanes of the machine, sets up their stacks and enters the walker,
   whose text follows.

   When a warp starts, %r0 holds (lanes << half a word) | core. The host replaces some register names
   in the text: %item, the callee-saved register that holds a lane's work-item, and, if the machine has
   enough registers, %stride and %end. Until kernels run every register is free.

   Not all lanes are active between here and the walker, so there must be no split. */

.perm x
.entry
boot:
        ldi %r2, descriptor
        ld %r3, %r2, D_WARPS
        ldi %r2, warp_start
        ldi %r1, #1
        jmpi spawn_test
spawn:  wspawn %r1, %r2, %r1            /* the new warp finds its number in %r1 */
        addi %r1, %r1, #1
spawn_test:
        sub %item, %r1, %r3
        isneg @p0, %item
  @p0 ? jmpi spawn
        ldi %r1, #0

/* One lane per warp; %r1: the warp's number in its core. */
warp_start:
        shri %r2, %r0, HALF_WORD        /* %r2: lanes of the machine */
        shli %r0, %r0, HALF_WORD
        shri %r0, %r0, HALF_WORD        /* %r0: core */
        ldi %r3, descriptor
        ld %item, %r3, D_WARPS
        mul %item, %item, %r0
        add %item, %item, %r1
        mul %item, %item, %r2           /* %item: the first work-item of the warp */
        ld %fp, %r3, D_ROUNDED
        sub %fp, %item, %fp
        isneg @p0, %fp
  @p0 ? jmpi start_lanes
        halt
LANES
        ld %ra, %r3, D_STACK_SHIFT
        add %item, %item, %fp
        shl %sp, %item, %ra
        ld %ra, %r3, D_STACKS
        add %sp, %sp, %ra               /* %sp: the lane control block, at the stack's base */
        st %r2, %sp, L_LANES
        ld %ra, %r3, D_STACK_SHIFT
        shl %ra, %fp, %ra
        sub %ra, %sp, %ra               /* %ra: the lane control block of the warp's lane 0 */
LANE
        ld %r0, %r3, D_STACK_LIMIT
        add %r0, %sp, %r0
        st %r0, %sp, L_STACK_LIMIT
        ld %r2, %r3, D_STACK_SKEW
        mul %r2, %r2, %fp               /* %fp: the lane's number */
        ori %fp, %sp, #0
        sub %sp, %sp, %r2
        ld %r2, %r3, D_STACK_TOP
        add %sp, %sp, %r2
