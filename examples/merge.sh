#!/bin/bash
# Puts the parts of a sweep together as RESULTS.jsonl, and counts its verdicts:
#
#   examples/merge.sh results 80
#
# Exits with 1 where a result is wrong, with 2 where no part had a problem to run, and with 5 where parts are missing: run
# the sweep's command again.
set -eu
[ $# = 2 ] || { echo "usage: examples/merge.sh RESULTS PARTS" >&2; exit 2; }
results=$1 parts=$2
ended=$(cat "$results"/part*.done 2>/dev/null | wc -l)
cat "$results"/part*.jsonl >"$results.jsonl" 2>/dev/null || true
echo "$results.jsonl: $ended of $parts parts"
{ grep -o '"verdict":"[a-z]*"' "$results.jsonl" || true; } | sort | uniq -c
[ "$ended" = "$parts" ] || exit 5
grep -q '"kind":"case"' "$results.jsonl" || { echo "merge.sh: nothing ran" >&2; exit 2; }
! grep -q 1 "$results"/part*.done
