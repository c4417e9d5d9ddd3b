#!/bin/sh
# Makes the module that takes the place of kernel.cl where the documentation is tested. Nothing in the build runs it.
set -e
cd "$(dirname "$0")"
clang-14 -c -target spir -cl-std=CL1.2 -O2 -fno-discard-value-names -gline-tables-only -fdebug-compilation-dir=. \
    -Xclang -finclude-default-header -emit-llvm kernel.cl -o kernel.bc
llvm-spirv-14 kernel.bc -o kernel.spv
rm kernel.bc
