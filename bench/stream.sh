#!/usr/bin/env bash
# How fast a convolution that is larger than memory goes through, and what it takes of the host, by check:
#
#   bench/stream.sh 20 > stream.jsonl        GiB of images of 1 MiB, from a disk; the bundle: deno task bundle makes it
#   WGCONV="deno run -A main.ts" bench/stream.sh 1 --chunk 48               another program, options of conv
#
# A JSON line a check: GiB/s in, the stream as the record has it, and the most resident memory in MiB. The input leaves the page
# cache before each, where this may drop it. Needs that much of TMPDIR, and python3.
set -euo pipefail
cd "$(dirname "$0")/.."
gib=${1:?how many GiB}
read -ra wgconv <<< "${WGCONV:-deno run -A dist/wgconv.js}"
data=$(mktemp -d "${TMPDIR:-/tmp}/wgconv-stream-XXXXXX")
trap 'rm -rf "$data"' EXIT

"${wgconv[@]}" tensor make "$data/part.npy" --shape 64,64,64,64 --fill uniform11 --seed 1 > /dev/null
"${wgconv[@]}" tensor make "$data/w.npy" --shape 16,64,3,3 --fill normal --seed 2 > /dev/null
# A part's values over and over, behind a header of as many images.
{
  printf "\x93NUMPY\x01\x00\x76\x00%-117s\n" \
    "{'descr': '<f4', 'fortran_order': False, 'shape': ($((gib * 1024)), 64, 64, 64), }"
  for ((part = 0; part < gib * 16; part++)); do tail -c $((64 << 20)) "$data/part.npy"; done
} > "$data/x.npy"

for check in none sample auto; do
  sync
  { echo 1 > /proc/sys/vm/drop_caches; } 2> /dev/null || true
  python3 - "$gib" "$check" "${wgconv[@]}" conv --input "$data/x.npy" --filter "$data/w.npy" --padding 1 \
    --output "$data/y.npy" --force --check "$check" --json "${@:2}" << 'END'
import json, resource, subprocess, sys
gib, check, *command = sys.argv[1:]
said = subprocess.run(command, stdout=subprocess.PIPE)
record = json.loads(said.stdout)
if "stream" not in record: sys.exit("all of it fits at once: give more GiB, or --chunk IMAGES")
print(json.dumps({"check": check, "exit": said.returncode, "gib_s": float(gib) / record["stream"]["seconds"],
                  "stream": record["stream"], "verdict": record["verdict"],
                  "peak_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024}), flush=True)
END
done
