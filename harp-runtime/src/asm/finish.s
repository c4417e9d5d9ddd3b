/* The end of a walk, and the walk over grids of two and three dimensions.

   Here after the last full chunk of a line. %r3: descriptor. The last chunk may have surplus
   lanes; it is this warp's if its next work-items lie before the rounded end. */
        ld %r2, %r3, D_ROUNDED
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p0, @p0
  @p0 ? jmpi finish
        ori %r1, %item, #0

/* The last chunk, with surplus lanes; %r1: position in the first dimension, the others stored. The
   one split of the runtime library holds surplus lanes back from the kernel. */
remainder:
        ldi %r3, descriptor
        ld %r2, %r3, D_ITEMS
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p1, @p0
        ldi %r0, runtime.arguments
  @p0 ? split
  @p1 ? jmpi remainder_end
        jali %ra, runtime.kernel
remainder_end:
        join

finish: ldi %r0, stop
        jmprt %r0
stop:   halt

/* Entered with %item before D_ROUNDED: warps without work have halted before. */
volume:
        ldi %r0, runtime.arguments
        ld %r1, %r0, A_EXTENT_X
        div %r2, %item, %r1
        mod %r1, %item, %r1
        ld %r0, %r0, A_EXTENT_Y
        mod %r3, %r2, %r0
        st %r3, %fp, L_Y
        div %r2, %r2, %r0
        st %r2, %fp, L_Z
        ldi %r0, runtime.arguments
        ldi %r3, descriptor
        ld %r2, %r3, D_FULL
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p0, @p0
  @p0 ? jmpi remainder
        jali %ra, runtime.kernel
        ldi %r3, descriptor
        ld %r2, %r3, D_STRIDE
        add %item, %item, %r2
        ld %r2, %r3, D_ROUNDED
        sub %r2, %item, %r2
        isneg @p0, %r2
  @p0 ? jmpi volume
        jmpi finish

/* Filled in by the host before each launch. */
.perm r
descriptor:
        .space D_COUNT
