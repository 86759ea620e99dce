#!/bin/sh
# translate.sh FOLDER: run by tasks/test_shims.ts inside its Debian: whether each FOLDER/*.spv is valid SPIR-V for Vulkan 1.3, and
# spirv-cross can say it in Metal's language. A line for each that fails, then how many there were.
set -u
count=0
for file in "$1"/*.spv; do
  count=$((count + 1))
  error=$(spirv-val --target-env vulkan1.3 "$file" 2>&1 && spirv-cross --msl --msl-version 20200 --output /dev/null "$file" 2>&1) ||
    echo "failed $(basename "$file" .spv): $(echo "$error" | head -n 1)"
done
echo "modules $count"
