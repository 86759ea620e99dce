#!/usr/bin/env bash
# Where the wall time of a convolution goes: a small one, and one of a 411 MB input with and without its check, each
# three times in a process of its own. One JSON line a run: the whole process by the shell's clock (wall_ms), its exit
# code, and what --timings says. Before them lines of WebGPU alone, without wgconv: what its adapter and device take.
#
#   bench/start_up.sh > start_up.jsonl                           the bundle: deno task bundle makes it
#   WGCONV="deno run -A main.ts" RUNS=5 bench/start_up.sh        another program, more runs
#
# Needs 1.3 GB of TMPDIR. The first run of a kernel on a machine compiles it; later ones find it in the driver's cache.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra wgconv <<< "${WGCONV:-deno run -A dist/wgconv.js}"
runs=${RUNS:-3}
data=$(mktemp -d "${TMPDIR:-/tmp}/wgconv-start-up-XXXXXX")
trap 'rm -rf "$data"' EXIT
export XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}

probe='const start = performance.now();
const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
const found = performance.now();
const device = await adapter?.requestDevice({ requiredFeatures: ["timestamp-query"] });
const opened = performance.now();
device?.destroy();
const ms = (value) => Number(value.toPrecision(4));
console.log(JSON.stringify({ case: Deno.args[0], adapter: adapter?.info.description ?? null,
  start_ms: ms(start), adapter_ms: ms(found - start), device_ms: ms(opened - found),
  close_ms: ms(performance.now() - opened) }));'
printf '%s' "$probe" > "$data/probe.js"

# webgpu NAME [VARIABLE=VALUE...]
webgpu() {
  local name=$1 run
  shift
  for ((run = 1; run <= runs; run++)); do env "$@" deno run -A "$data/probe.js" "$name"; done
}

# timed NAME ARGUMENTS...
timed() {
  local name=$1 run start end code
  shift
  for ((run = 1; run <= runs; run++)); do
    start=$(date +%s%N)
    code=0
    "${wgconv[@]}" conv "$@" --timings --json > "$data/said" || code=$?
    end=$(date +%s%N)
    printf '{"case":"%s","run":%d,"wall_ms":%d,"exit":%d,"timings":%s}\n' \
      "$name" "$run" $(((end - start) / 1000000)) "$code" "$(tail -n 1 "$data/said")"
  done
}

webgpu "webgpu, any backend"
webgpu "webgpu, vulkan" DENO_WEBGPU_BACKEND=vulkan
for manifest in /usr/share/vulkan/icd.d/nvidia*.json /etc/vulkan/icd.d/nvidia*.json; do
  [ -e "$manifest" ] || continue
  webgpu "webgpu, vulkan, NVIDIA's driver alone" DENO_WEBGPU_BACKEND=vulkan VK_DRIVER_FILES="$manifest"
done

"${wgconv[@]}" tensor make "$data/small.npy" --shape 1,16,32,32 --fill uniform11 --seed 1 > /dev/null
"${wgconv[@]}" tensor make "$data/small_w.npy" --shape 16,16,3,3 --fill normal --seed 2 > /dev/null
"${wgconv[@]}" tensor make "$data/x.npy" --shape 32,64,224,224 --fill uniform11 --seed 1 > /dev/null
channels=${CHANNELS:-64} side=${SIDE:-3}
"${wgconv[@]}" tensor make "$data/w.npy" --shape "$channels,64,$side,$side" --fill normal --seed 2 > /dev/null

small=(--input "$data/small.npy" --filter "$data/small_w.npy" --padding 1)
large=(--input "$data/x.npy" --filter "$data/w.npy" --padding same)
timed "small" "${small[@]}" --output "$data/y.npy"
timed "small, no check" "${small[@]}" --output "$data/y.npy" --check none
timed "411 MB" "${large[@]}" --output "$data/y.npy"
timed "411 MB, no check" "${large[@]}" --output "$data/y.npy" --check none
timed "411 MB, no output" "${large[@]}"
timed "411 MB, no check, no output" "${large[@]}" --check none
