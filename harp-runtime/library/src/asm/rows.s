/* The walk over grids of two and three dimensions by rows: each row is padded to whole chunks, so that all lanes of a
   warp are in one row. It takes the place of the walk over a volume.

   D_ROW is the length of a padded row, and %item a number among padded work-items. It is below D_ROUNDED on entry: warps
   without work have halted already. Chunks begin at multiples of the number of lanes in each row, so the lanes agree
   on whether the chunk has surplus lanes. */
volume:
        ldi %r0, runtime.arguments
        ldi %r3, descriptor
        ld %r3, %r3, D_ROW
        mod %r1, %item, %r3
        div %r2, %item, %r3
OUTER
        ld %r2, %r0, A_EXTENT_X
        ld %r3, %fp, L_LANES
        mod %r3, %r2, %r3
        sub %r3, %r2, %r3
        sub %r3, %r1, %r3
        isneg @p0, %r3
  @p0 ? jmpi row_full

/* The end of a row, with surplus lanes: they are held back from the kernel. */
        sub %r3, %r1, %r2
        isneg @p0, %r3
        notp @p1, @p0
  @p0 ? split
  @p1 ? jmpi row_end
        jali %ra, runtime.kernel
row_end:
        join
        jmpi row_next
row_full:
        jali %ra, runtime.kernel
volume_returned:
row_next:
NEXT
        isneg @p0, %r2
  @p0 ? jmpi volume
        jmpi finish
