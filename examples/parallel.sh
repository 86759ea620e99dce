#!/bin/bash
# Runs a sweep on several machines with GNU parallel, one part at a time on each. The machines need only ssh; the script
# copies the program, the one file of `deno task compile`, and the files that FILES names. Run it in the project's folder:
#
#   FILES=bench/suites/vgg16.txt examples/parallel.sh server1,server2 results dist/wgconv bench --suite bench/suites/vgg16.txt
#   FILES=net.onnx examples/parallel.sh server1,server2 results dist/wgconv bench --model net.onnx
#   FILES=worker.py PARTS=100 examples/parallel.sh server1,server2 results dist/wgconv \
#     verify --worker 'python3 worker.py' --random 10000
#
# : is this machine. There are as many parts as machines, or PARTS. Run the same command again to continue.
set -eu
[ $# -ge 4 ] || { echo "usage: examples/parallel.sh MACHINES RESULTS WGCONV COMMAND ..." >&2; exit 2; }
machines=$1 results=$2
shift 2
parts=${PARTS:-$(echo "$machines" | tr , '\n' | wc -l)}
mkdir -p "$results"
files=()
for file in examples/part.sh "$1" ${FILES:-}; do files+=(--basefile "$file"); done
left=()
for part in $(seq "$parts"); do [ -s "$results/part$part.done" ] || left+=("$part"); done
[ ${#left[@]} = 0 ] ||
  parallel --quote --jobs 1 --sshlogin "$machines" "${files[@]}" --return "$results/part{}.jsonl" \
    --return "$results/part{}.done" --cleanup \
    examples/part.sh "$results" {} "$parts" "$@" ::: "${left[@]}" || true
examples/merge.sh "$results" "$parts"
