/* Starts the other lanes of a warp as clones of lane 0, as any machine can. Leaves all lanes active, with the registers of
   lane 0 and the lane's number in %fp. */
start_lanes:
        subi %fp, %r2, #1
        jmpi clone_test
clone_next:
        clone %fp                       /* the new lane finds its number in %fp */
        subi %fp, %fp, #1
clone_test:
        rtop @p0, %fp
  @p0 ? jmpi clone_next
        jalis %ra, %r2, lane_start

/* All lanes from here on. The number of a lane's first work-item is also that of its stack. */
lane_start:
