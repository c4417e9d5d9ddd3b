#!/bin/sh
# Makes modules from their sources in a folder: this one, or the one that is named. Nothing in the build runs it.
#
# OpenCL C takes Debian's clang-14 and llvm-spirv-14, assembly spirv-as of spirv-tools, WGSL the command of naga-cli.
# llvm-spirv does not always write blocks behind their dominators, which spirv-val refuses. A file's first line may have other options for clang: `// options: ...`.
# With `// clang-22 options: ...` clang-22 makes the module alone, by LLVM's own back end. Assembly is of SPIR-V 1.3, unless its first
# line has another version: `; version: ...`.
set -e
cd "${1:-$(dirname "$0")}"
for source in *.cl; do
    [ -e "$source" ] || continue
    name=${source%.cl}
    options=$(sed -n '1s,^// options: ,,p' "$source")
    own=$(sed -n '1s,^// clang-22 options: ,,p' "$source")
    for bits in 32 64; do
        for level in 0 2; do
            fixed="-c -O$level -fno-discard-value-names -ffile-prefix-map=$PWD=. -Xclang -finclude-default-header"
            if [ -n "$own" ]; then
                clang-22 -target spirv$bits-unknown-unknown $fixed $own "$source" -o "$name.$bits.O$level.spv"
                continue
            fi
            target=spir; [ $bits = 64 ] && target=spir64
            clang-14 -target $target -cl-std=CL1.2 $fixed $options -emit-llvm "$source" -o module.bc
            llvm-spirv-14 -spirv-ext=+SPV_INTEL_subgroups module.bc -o "$name.$bits.O$level.spv"
            rm module.bc
        done
    done
done
for source in *.spvasm; do
    [ -e "$source" ] || continue
    module=${source%.spvasm}.spv
    version=$(sed -n '1s,^; version: ,,p' "$source")
    spirv-as --target-env "spv${version:-1.3}" "$source" -o "$module"
    spirv-val --target-env "spv${version:-1.3}" "$module"
done
for source in *.wgsl; do
    [ -e "$source" ] || continue
    naga -g --spirv-version 1.3 "$source" "${source%.wgsl}.spv"
done
