#!/bin/bash
# Runs a suite on several machines with GNU parallel, one part at a time on each. The machines need only ssh; the script
# copies the program, the one file of `deno task compile`, and the suite:
#
#   examples/parallel.sh dist/wgconv bench/suites/vgg16.txt server1,server2,server3
#
# Without machines, the parts run here one after the other. Run the same command again to continue.
set -eu
wgconv=$1
suite=$2
machines=${3:-:}
parts=$(echo "$machines" | tr , '\n' | wc -l)
parallel --quote --jobs 1 --sshlogin "$machines" --basefile "$wgconv" --basefile "$suite" --return 'part{}.jsonl' --cleanup \
  "$wgconv" bench --suite "$suite" --op all --shard "{}/$parts" --jsonl 'part{}.jsonl' --resume ::: $(seq "$parts") ||
  failed=$?
"$wgconv" report part*.jsonl
exit "${failed:-0}"
