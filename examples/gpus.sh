#!/bin/bash
# Runs a sweep on this host, a process for each GPU (examples/one_gpu.sh):
#
#   examples/gpus.sh results all wgconv bench --suite vgg16 --op all
#   examples/gpus.sh results 0,1 wgconv bench --model resnet50.onnx --batch 8
#   PARTS=80 examples/gpus.sh results -,-,-,- wgconv verify --worker 'python3 worker.py' --random 10000
#   PARTS=8 examples/gpus.sh results -,- wgconv check --suite layers.txt --baseline none
#
# all are the host's NVIDIA GPUs. Each - is a process that takes whichever GPU it may open, or none. There are as many parts
# as processes, or PARTS: what is interrupted goes on with the parts that are left, when the same command runs again.
# Writes results/part1.jsonl, what it printed and a log for each part, and results.jsonl of all (examples/merge.sh).
set -eu
[ $# -ge 4 ] || { echo "usage: examples/gpus.sh RESULTS GPUS WGCONV COMMAND ..." >&2; exit 2; }
here=$(dirname "$0")
results=$1 gpus=$2
shift 2
[ "$gpus" != all ] ||
  gpus=$(for device in /dev/nvidia[0-9]*; do [ ! -e "$device" ] || echo "${device#/dev/nvidia}"; done | paste -sd ,)
[ -n "$gpus" ] || { echo "gpus.sh: this host has no NVIDIA GPU, give - for whichever WebGPU takes" >&2; exit 2; }
jobs=$(echo "$gpus" | tr , '\n' | wc -l)
parts=${PARTS:-$jobs}
mkdir -p "$results"
export here results gpus parts
# A process has a slot, and the slot a GPU. The last word is the part.
# shellcheck disable=SC2016 # It is expanded in each process.
seq "$parts" | xargs -n 1 -P "$jobs" --process-slot-var=slot bash -euc '
  gpu=$(cut -d, -f$((slot + 1)) <<<"$gpus") part=${!#}
  exec "$here/one_gpu.sh" "$gpu" "$results/part$part.log" "$here/part.sh" "$results" "$part" "$parts" "${@:1:$#-1}" >"$results/part$part.out"
' bash "$@" || true
"$here/merge.sh" "$results" "$parts"
