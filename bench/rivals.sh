#!/bin/bash
# Calibrates this host's NVIDIA GPUs and holds what auto chooses against its rivals, a shard a GPU:
#
#   bench/rivals.sh OUT [GPUs, such as 0,1; - is whichever it may open] [options of planner_rivals.ts ...]
#
# Writes OUT/calibration<GPU>.json, OUT/rivals<GPU>.jsonl and .txt in place of those of a run before. Pipelines are made ahead, a
# process a core, which the driver keeps on disk: made one after the other they take longer than all that is timed. With one
# GPU it is calibrated twice, with several each once. Each GPU chooses by its own first model, the others say how often they
# would choose the same. RIVALS_JS may name a bundle of planner_rivals.ts and WGCONV_JS one of main.ts, where there is no network.
set -eu
if [ $# = 0 ]; then
  sed -n '4p' "$0" | sed 's/^# *//' >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
out=$1
gpus=${2:--}
shift $(($# < 2 ? $# : 2))
rivals=${RIVALS_JS:-$here/planner_rivals.ts}
wgconv=${WGCONV_JS:-$here/../main.ts}
export DENO_DIR=${DENO_DIR:-$HOME/.cache/deno}
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
mkdir -p "$out"
rm -f "$out"/calibration*.json "$out"/rivals*.jsonl "$out"/rivals*.txt
read -ra all <<< "${gpus//,/ }"
alone() { "$here/../examples/one_gpu.sh" "$@"; }
measure() { XDG_CACHE_HOME="$cache/$2" alone "$1" /dev/null deno run -A --no-check "$wgconv" calibrate --output "$out/$2.json"; }
# Waits for all jobs of the shell; fails where one did.
all_done() {
  local failed=0 job
  for job in $(jobs -p); do wait "$job" || failed=1; done
  return $failed
}

for gpu in "${all[@]}"; do measure "$gpu" "calibration$gpu" & done
all_done
[ ${#all[@]} != 1 ] || measure "${all[0]}" "calibration${all[0]}_again"
# The models with a GPU's own first.
models() {
  local own="$out/calibration$1.json" list model
  list=$own
  for model in "$out"/calibration*.json; do [ "$model" = "$own" ] || list="$list,$model"; done
  echo "$list"
}

jobs=$(nproc)
for ((job = 1; job <= jobs; job++)); do
  gpu=${all[$((job % ${#all[@]}))]}
  alone "$gpu" /dev/null deno run -A --no-check "$rivals" --compile --third 1 --shard "$job/$jobs" --device-model "$(models "$gpu")" "$@" > /dev/null &
done
all_done
for ((part = 0; part < ${#all[@]}; part++)); do
  gpu=${all[$part]}
  alone "$gpu" "$out/gpu$gpu.log" deno run -A --no-check "$rivals" --third 1 --shard "$((part + 1))/${#all[@]}" \
    --device-model "$(models "$gpu")" --jsonl "$out/rivals$gpu.jsonl" "$@" > "$out/rivals$gpu.txt" &
done
failed=0
all_done || failed=1
tail -q -n 2 "$out"/rivals*.txt
exit $failed
