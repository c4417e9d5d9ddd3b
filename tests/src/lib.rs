//! Oracles, generators and benchmark kernels.
