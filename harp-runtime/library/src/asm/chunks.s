/* The end of a walk over a grid.

   A line comes here after the last full chunk. %r3: descriptor, %r2: the end of what this warp may have to do, the
   last chunk included, which may have surplus lanes. It belongs to this warp if its next work-items are below. */
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p0, @p0
  @p0 ? jmpi finish
        ori %r1, %item, #0

/* The last chunk, with surplus lanes, which are held back from the kernel; %r1: position in the first dimension,
   the others are stored. */
remainder:
        ldi %r3, descriptor
        ld %r2, %r3, D_ITEMS
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p1, @p0
        ldi %r0, runtime.arguments
hold_back:
  @p0 ? split
held_back:
  @p1 ? jmpi remainder_end
        jali %ra, runtime.kernel
remainder_end:
        join
