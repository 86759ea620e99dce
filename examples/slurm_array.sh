#!/bin/bash
# A suite spread over a SLURM array, a part a task and a GPU a part:
#
#   sbatch --array=1-8 examples/slurm_array.sh vgg16 results
#   wgconv report results/*.jsonl
#
# from the project's folder, whose examples/one_gpu.sh records which GPU a task has, and its use (results/part1.log).
# A task that was preempted or ran out of time goes on where it ended when it is run again.
#SBATCH --job-name=wgconv
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=01:00:00
#SBATCH --requeue
set -eu
[ -n "${2:-}" ] && [ -n "${SLURM_ARRAY_TASK_ID:-}" ] || {
  echo "usage: sbatch --array=1-8 examples/slurm_array.sh SUITE RESULTS" >&2
  exit 2
}
suite=$1
results=$2
mkdir -p "$results"
part=$SLURM_ARRAY_TASK_ID
of=$SLURM_ARRAY_TASK_COUNT
exec "$SLURM_SUBMIT_DIR/examples/one_gpu.sh" - "$results/part$part.log" \
  wgconv bench --suite "$suite" --op all --shard "$part/$of" --jsonl "$results/part$part.jsonl" --resume
