/* The walk over a grid of one dimension on machines with few registers: a warp takes every so many chunks, as
   stride and end are the same for all then and can be loaded anew for each chunk. All lanes; %r3: descriptor, %fp: lane control block, %item: first work-item.

   The starts of chunks are multiples of the number of lanes, and so are D_FULL, the end of the last
   chunk without surplus lanes, and D_ROUNDED, the end of the last chunk. So the lanes agree on each
   comparison. */
        ld %r0, %r3, D_SPATIAL
        rtop @p0, %r0
  @p0 ? jmpi volume
line:
        jmpi line_test
line_next:
        ldi %r0, runtime.arguments
        ori %r1, %item, #0
        jali %ra, runtime.kernel
line_returned:
        ldi %r3, descriptor
        ld %r2, %r3, D_STRIDE
        add %item, %item, %r2
line_test:
        ld %r2, %r3, D_FULL
        sub %r2, %item, %r2
        isneg @p0, %r2
  @p0 ? jmpi line_next
        ld %r2, %r3, D_ROUNDED
