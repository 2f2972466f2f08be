#!/bin/sh
# Builds tests/fixtures/*.so from tests/fixtures/demo.c: three machines, with symbols and stripped, and every kind of
# dynamic relocation. Needs clang and lld with its llvm-strip or GNU strip for the machine (Debian: clang lld llvm).
# The fixtures are committed, so that the tests need none of this; rerun it after a change of demo.c and commit both.
set -eu
cd "$(dirname "$0")/../tests/fixtures"
clang=${CLANG:-clang}
strip=${STRIP:-llvm-strip}

build() { # output target flags...
    output=$1 machine_target=$2
    shift 2
    "$clang" --target="$machine_target" -O2 -fPIC -ffreestanding -fno-asynchronous-unwind-tables -fno-ident -nostdlib -shared \
        -fuse-ld=lld -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-soname,libdemo.so "$@" demo.c -o "$output.so"
}

for machine in aarch64:aarch64-linux-gnu arm:armv7-linux-gnueabihf x86_64:x86_64-linux-gnu; do
    name=demo-${machine%%:*} target=${machine#*:}
    build "$name" "$target"
    "$strip" --strip-all -o "$name-stripped.so" "$name.so"
    build "$name-relr" "$target" -Wl,--pack-dyn-relocs=relr -Wl,--strip-all
    build "$name-android" "$target" -Wl,--pack-dyn-relocs=android -Wl,--strip-all
    build "$name-android-relr" "$target" -Wl,--pack-dyn-relocs=android+relr -Wl,--use-android-relr-tags -Wl,--strip-all
done
ls -l ./*.so
