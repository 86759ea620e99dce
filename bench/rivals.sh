#!/bin/bash
# Calibrates this host's NVIDIA GPUs and holds what auto chooses against its rivals, a shard a GPU:
#
#   bench/rivals.sh OUT [GPUs, such as 0,1; - is whichever it may open] [options of planner_rivals.ts ...]
#
# Writes OUT/calibration<GPU>.json, OUT/rivals<GPU>.jsonl and .txt. Pipelines are made ahead, a process a core, which the driver
# keeps on disk: made one after the other they take longer than all that is timed. With one GPU it is calibrated twice, with
# several each once; the first model chooses, the others say how often they would choose the same. RIVALS_JS may name a bundle of
# planner_rivals.ts and WGCONV_JS one of main.ts, where there is no network.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
gpus=${2:--}
shift $(($# < 2 ? $# : 2))
rivals=${RIVALS_JS:-$here/planner_rivals.ts}
wgconv=${WGCONV_JS:-$here/../main.ts}
mkdir -p "$out"
read -ra all <<< "${gpus//,/ }"
alone() { "$here/../examples/one_gpu.sh" "$@"; }
measure() { XDG_CACHE_HOME=$(mktemp -d) alone "$1" /dev/null deno run -A --no-check "$wgconv" calibrate --output "$2"; }

for gpu in "${all[@]}"; do measure "$gpu" "$out/calibration$gpu.json" & done
wait
[ ${#all[@]} != 1 ] || measure "${all[0]}" "$out/calibration${all[0]}_again.json"
models=$(echo "$out"/calibration*.json | tr ' ' ,)

jobs=$(nproc)
for ((job = 1; job <= jobs; job++)); do
  alone "${all[$((job % ${#all[@]}))]}" /dev/null deno run -A --no-check "$rivals" --compile --third 1 --shard "$job/$jobs" --device-model "$models" "$@" > /dev/null &
done
wait
failed=0
for ((part = 0; part < ${#all[@]}; part++)); do
  gpu=${all[$part]}
  alone "$gpu" "$out/gpu$gpu.log" deno run -A --no-check "$rivals" --third 1 --shard "$((part + 1))/${#all[@]}" --device-model "$models" \
    --jsonl "$out/rivals$gpu.jsonl" "$@" > "$out/rivals$gpu.txt" &
done
for job in $(jobs -p); do wait "$job" || failed=1; done
tail -q -n 2 "$out"/rivals*.txt
exit $failed
