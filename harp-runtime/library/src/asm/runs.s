/* Runs of chunks: what a warp does follows each other in memory. All lanes; %r3: descriptor, %fp: lane control block,
   %item: the lane's number among all that were started. Leaves %item: first work-item, %end: the end of the warp's
   run, %stride: the length of a chunk.

   Each warp has D_RUN work-items, and those whose first lane's number is below D_LONGER have one chunk more. */
        ld %stride, %fp, L_LANES
        ld %r2, %fp, L_LANE
        sub %item, %item, %r2
        div %r1, %item, %stride         /* %r1: the warp's number */
        ld %end, %r3, D_RUN
        mul %r1, %r1, %end
        ld %r0, %r3, D_LONGER
        sub %ra, %item, %r0
        isneg @p0, %ra
  @p0 ? ori %r0, %item, #0
        add %r1, %r1, %r0               /* %r1: the start of the run */
        add %end, %end, %r1
  @p0 ? add %end, %end, %stride
        add %item, %r1, %r2
