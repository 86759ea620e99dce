#!/bin/bash
# Runs a suite as a SLURM array: one part and one GPU per task:
#
#   sbatch --array=1-8 examples/slurm_array.sh vgg16 results
#   wgconv report results/*.jsonl
#
# Run it from the project's folder: examples/one_gpu.sh logs each task's GPU and its use (results/part1.log). A task that
# was preempted or ran out of time continues when it runs again.
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
