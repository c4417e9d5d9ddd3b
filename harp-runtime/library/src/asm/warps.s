/* Functions for programs that make their own warps and lanes: `spawn_warp`, `call_par` and `lane_or` (Gupta 2016,
   sections 2.1.3 and 2.1.4.3).

   Each warp has as many stacks as lanes, and before these another one for the lane that runs alone. Of a warp's lone
   stack, as of that of the lane that calls `call_par`, four words are a frame: a function, its argument, and what %fp
   and %ra are after it.

   Not all lanes are active before `call_par` has started them, so there must be no split. */

/* spawn_warp(function, argument): starts a warp, whose lane 0 calls the function. Returns the number of the warp, or 0
   if all have been started. */
.perm x
.global
spawn_warp:
        subi %sp, %sp, (__WORD*4)
        st %r0, %sp, #0
        st %r1, %sp, __WORD
        st %ra, %sp, (__WORD*3)
        shri %r2, %sp, STACK_SHIFT
        shli %r2, %r2, STACK_SHIFT
        ld %r0, %r2, L_CORE
        ld %r1, %r2, L_WARP
        jali %ra, runtime.lock          /* between the count and the start no other warp may start one */
        ldi %r3, runtime.warps_place
        ld %r2, %r3, W_NEXT             /* %r2: the warp's number */
        ld %r1, %r3, W_WARPS
        sub %r1, %r2, %r1
        isneg @p0, %r1
  @p0 ? jmpi runtime.spawn_next
        ldi %r2, #0
        st %r2, %sp, (__WORD*2)
        jmpi runtime.spawn_end
runtime.spawn_next:
        st %r2, %sp, (__WORD*2)
        addi %r1, %r2, #1
        st %r1, %r3, W_NEXT
        ld %r1, %r3, W_LANES
        addi %r1, %r1, #1
        mul %r1, %r1, %r2
        shli %r1, %r1, STACK_SHIFT
        ld %r0, %r3, W_STACKS
        add %r0, %r0, %r1               /* %r0: the warp's lone stack */
        st %r2, %r0, L_WARP
        ldi %r1, #1
        shli %r1, %r1, STACK_SHIFT
        add %r0, %r0, %r1
        subi %r0, %r0, (__WORD*4)       /* %r0: its frame */
        ld %r1, %sp, #0
        st %r1, %r0, #0
        ld %r1, %sp, __WORD
        st %r1, %r0, __WORD
        ldi %r1, runtime.warp_end
        st %r1, %r0, (__WORD*3)
        ldi %r1, runtime.warp_start
        wspawn %fp, %r1, %r0            /* the new warp finds its frame in %fp */
runtime.spawn_end:
        shri %r2, %sp, STACK_SHIFT
        shli %r2, %r2, STACK_SHIFT
        ld %r0, %r2, L_CORE
        ld %r1, %r2, L_WARP
        jali %ra, runtime.unlock
        ld %r0, %sp, (__WORD*2)
        ld %ra, %sp, (__WORD*3)
        addi %sp, %sp, (__WORD*4)
        jmpr %ra

/* One lane. %r0 holds (lanes << half a word) | core. */
runtime.warp_start:
        shli %r0, %r0, HALF_WORD
        shri %r0, %r0, HALF_WORD
        shri %ra, %fp, STACK_SHIFT
        shli %ra, %ra, STACK_SHIFT
        ld %r1, %ra, L_WARP
        ldi %r2, #1
        ldi %r3, #0
        jmpi runtime.lanes_start
runtime.warp_end:
        halt

/* call_par(function, argument): one lane calls it, all lanes of the warp call the function, and the one lane goes on
   when they have returned. */
.global
call_par:
        subi %sp, %sp, (__WORD*4)
        st %r0, %sp, #0
        st %r1, %sp, __WORD
        st %fp, %sp, (__WORD*2)
        st %ra, %sp, (__WORD*3)
        ori %fp, %sp, #0
        ldi %r2, runtime.warps_place
        ld %r2, %r2, W_LANES
        subi %r3, %r2, #1
        jmpi runtime.par_test
runtime.par_next:
        clone %r3                       /* the new lane finds its number in %r3 */
        subi %r3, %r3, #1
runtime.par_test:
        rtop @p0, %r3
  @p0 ? jmpi runtime.par_next
        jalis %ra, %r2, runtime.par_start

/* All lanes from here on. */
runtime.par_start:
        shri %r0, %fp, STACK_SHIFT
        shli %r0, %r0, STACK_SHIFT
        ld %r1, %r0, L_WARP
        ld %r0, %r0, L_CORE
        addi %ra, %r2, #1
        mul %ra, %ra, %r1
        addi %ra, %ra, #1
        shli %ra, %ra, STACK_SHIFT
        ldi %sp, runtime.warps_place
        ld %sp, %sp, W_STACKS
        add %ra, %ra, %sp

/* %r0: core, %r1: warp, %r2: lanes that come here, %r3: the lane, %ra: the stack of lane 0, %fp: a frame. */
runtime.lanes_start:
        shli %sp, %r3, STACK_SHIFT
        add %sp, %sp, %ra
        st %r2, %sp, L_LANES
LANE
        ldi %r0, STACK_LIMIT
        add %r0, %sp, %r0
        st %r0, %sp, L_STACK_LIMIT
        ldi %r0, #1
        shli %r0, %r0, STACK_SHIFT
        add %sp, %sp, %r0
        subi %sp, %sp, (__WORD*5)       /* below the frame, if there is one in this stack */
        ld %r2, %fp, #0
        ld %r0, %fp, __WORD
        jalr %ra, %r2
        ldi %r0, runtime.lanes_end
        jmprt %r0
runtime.lanes_end:
        ori %sp, %fp, #0
        ld %fp, %sp, (__WORD*2)
        ld %ra, %sp, (__WORD*3)
        addi %sp, %sp, (__WORD*4)
        jmpr %ra

/* lane_or(warp, lane, value): 1 if the value is not 0 in any of the lanes that call it together, else 0. Which warp and
   lane that are, it knows without being told. */
.global
lane_or:
        shri %r3, %sp, STACK_SHIFT
        shli %r3, %r3, STACK_SHIFT
        ld %r3, %r3, L_SCRATCH_ADDRESS
        ldi %r0, #0
        ldi %r1, #1
        st %r0, %r3, #0
        rtop @p0, %r2
  @p0 ? st %r1, %r3, #0
        ld %r0, %r3, #0
        jmpr %ra

.perm rw
runtime.warps_place:
        .space W_SIZE
