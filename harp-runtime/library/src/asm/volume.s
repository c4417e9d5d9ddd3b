/* The walk over grids of two and three dimensions. It shares the last chunk with the walk over a line.

   %item is below D_ROUNDED on entry: warps without work have halted already. */
volume:
        ldi %r0, runtime.arguments
        ld %r1, %r0, A_EXTENT_X
        div %r2, %item, %r1
        mod %r1, %item, %r1
OUTER
        ldi %r3, descriptor
        ld %r2, %r3, D_FULL
        sub %r2, %item, %r2
        isneg @p0, %r2
        notp @p0, @p0
  @p0 ? jmpi remainder
        jali %ra, runtime.kernel
volume_returned:
NEXT
        isneg @p0, %r2
  @p0 ? jmpi volume
        jmpi finish
