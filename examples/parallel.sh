#!/bin/bash
# A suite spread over machines with GNU parallel, a part a machine at a time. The machines need nothing but ssh and
# the one file of `deno task compile`, which goes there with the suite:
#
#   examples/parallel.sh dist/wgconv bench/suites/vgg16.txt server1,server2,server3
#
# Without machines, the parts run here one after the other.
set -eu
wgconv=$1
suite=$2
machines=${3:-:}
parts=$(echo "$machines" | tr , '\n' | wc -l)
parallel --quote --jobs 1 --sshlogin "$machines" --basefile "$wgconv" --basefile "$suite" --return 'part{}.jsonl' --cleanup \
  "$wgconv" bench --suite "$suite" --op all --shard "{}/$parts" --jsonl 'part{}.jsonl' ::: $(seq "$parts") ||
  failed=$?
"$wgconv" report part*.jsonl
exit "${failed:-0}"
