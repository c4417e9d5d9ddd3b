#!/bin/sh
# Makes the modules of all programs here, or of those named: `make.sh opencl/gemm.cl`. Nothing in the build runs it.
#
# OpenCL C takes clang-14, opt-14 and llvm-spirv-14 of Debian's packages clang-14, llvm-14 and llvm-spirv-14; WGSL takes
# the command of naga-cli. llvm-spirv knows neither the reductions that clang makes of operations on components, nor
# `freeze`, which clang puts between a quotient and a remainder; SPIR-V has no values that would need it.
set -e
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- opencl/*.cl webgpu/*.wgsl
for source in "$@"; do
    name=${source%.*}
    case $source in
    *.cl)
        for bits in 32 64; do
            for level in 0 2; do
                target=spir; [ $bits = 64 ] && target=spir64
                clang-14 -S -target $target -cl-std=CL1.2 -O$level -fno-slp-vectorize \
                    -Xclang -finclude-default-header -emit-llvm "$source" -o - |
                    sed 's/ = freeze \(.*\) \([^ ]*\)$/ = bitcast \1 \2 to \1/' |
                    opt-14 -enable-new-pm=0 -instsimplify -o module.bc
                llvm-spirv-14 module.bc -o "$name.$bits.O$level.spv"
                rm module.bc
            done
        done ;;
    *.wgsl) naga --spirv-version 1.3 "$source" "$name.spv" ;;
    esac
done
