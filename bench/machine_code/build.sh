#!/bin/sh
# build.sh [FOLDER]: builds the layer and its manifest, into dist/machine_code where nothing is said. Needs gcc and
# Vulkan's headers (Debian: libvulkan-dev); the folder runs on any machine with glibc of that age.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/../../dist/machine_code}
mkdir -p "$out"
gcc -std=gnu11 -O2 -Wall -Wextra -Wno-missing-field-initializers -shared -fPIC -fvisibility=hidden -s \
  -o "$out/libwgconv_machine_code.so" "$here/layer.c" -lpthread
cp "$here/wgconv_machine_code.json" "$out/"
