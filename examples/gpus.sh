#!/bin/bash
# Runs a suite on all NVIDIA GPUs of this host with GNU parallel. Each process runs one part of the suite and sees one
# GPU (examples/one_gpu.sh):
#
#   examples/gpus.sh dist/wgconv vgg16 results [GPUs, such as 0,1] [options ...]
#
# Writes results/part1.jsonl and so on, and a log of the GPU beside each. Run the same command again to continue parts
# that were interrupted.
set -eu
[ $# -ge 3 ] || { echo "usage: examples/gpus.sh WGCONV SUITE RESULTS [GPUs, such as 0,1] [options ...]" >&2; exit 2; }
here=$(dirname "$0")
wgconv=$1
suite=$2
results=$3
shift 3
gpus=
case "${1:-}" in [0-9]* | - | -,*) gpus=$1; shift ;; esac
[ -n "$gpus" ] || gpus=$(for device in /dev/nvidia[0-9]*; do [ ! -e "$device" ] || echo "${device#/dev/nvidia}"; done | paste -sd ,)
[ -n "$gpus" ] || { echo "gpus.sh: this host has no NVIDIA GPU, give - for whichever WebGPU takes" >&2; exit 2; }
parts=$(echo "$gpus" | tr , '\n' | wc -l)
mkdir -p "$results"
echo "$gpus" | tr , '\n' | parallel --quote --jobs "$parts" \
  "$here/one_gpu.sh" {} "$results/part{#}.log" \
  "$wgconv" bench --suite "$suite" --shard "{#}/$parts" --jsonl "$results/part{#}.jsonl" --resume "$@" ||
  failed=$?
"$wgconv" report "$results"/part*.jsonl
exit "${failed:-0}"
