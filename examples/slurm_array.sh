#!/bin/bash
# Runs a sweep as a SLURM array: one part and one GPU per task.
#
#   sbatch --array=1-8 examples/slurm_array.sh results bench --suite vgg16 --op all
#   sbatch --array=1-8 examples/slurm_array.sh results bench --model resnet50.onnx --batch 8
#   sbatch --array=1-500%100 examples/slurm_array.sh results verify --worker 'python3 worker.py' --random 1000000
#   sbatch --array=1-8 examples/slurm_array.sh results check --suite layers.txt --baseline none
#   examples/merge.sh results 8
#
# Run it from the project's folder: examples/one_gpu.sh logs each task's GPU and its use (results/part1.log). A part that
# was preempted or ran out of time runs again or goes on (examples/part.sh); one that is done is left as it is.
#SBATCH --job-name=wgconv
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=01:00:00
#SBATCH --requeue
set -eu
[ -n "${2:-}" ] && [ -n "${SLURM_ARRAY_TASK_ID:-}" ] || {
  echo "usage: sbatch --array=1-8 examples/slurm_array.sh RESULTS COMMAND ..." >&2
  exit 2
}
results=$1
shift
mkdir -p "$results"
part=$SLURM_ARRAY_TASK_ID
here=$SLURM_SUBMIT_DIR/examples
exec "$here/one_gpu.sh" - "$results/part$part.log" \
  "$here/part.sh" "$results" "$part" "$SLURM_ARRAY_TASK_COUNT" wgconv "$@"
