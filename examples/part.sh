#!/bin/bash
# Runs one part of a sweep, unless it is done:
#
#   examples/part.sh results 3 80 wgconv verify --worker 'python3 worker.py' --random 10000
#
# Writes results/part3.jsonl, and results/part3.done when it has ended with 0 or 1 (a result is wrong). A part of bench that
# was interrupted goes on; others begin again.
set -eu
[ $# -ge 5 ] || { echo "usage: examples/part.sh RESULTS PART PARTS WGCONV COMMAND ..." >&2; exit 2; }
results=$1 part=$2 parts=$3
shift 3
end=$results/part$part.done
[ ! -s "$end" ] || exit "$(cat "$end")"
mkdir -p "$results"
again=--force
[ "$2" != bench ] || again=--resume
status=0
"$@" --shard "$part/$parts" --jsonl "$results/part$part.jsonl" "$again" || status=$?
# A run in which nothing could be judged exits with 2, as one with a wrong option does.
if [ "$status" -le 1 ] || { [ "$status" = 2 ] && grep -qs '"kind":"case"' "$results/part$part.jsonl"; }; then
  echo "$status" >"$end"
fi
exit "$status"
