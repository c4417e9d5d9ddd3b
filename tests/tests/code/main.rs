//! Compiled code on machines: functions on one lane, kernels on devices, what code and images hold.

mod accesses;
mod base_images;
mod call_images;
mod checks;
mod code_quality;
mod divergence;
mod floats;
mod functions;
mod groups;
mod growth;
mod harpbench;
mod host_code;
mod integers;
mod modules;
mod pressure;
mod saxpy;
mod scalar;
mod traps;
mod votes;
mod workloads;
