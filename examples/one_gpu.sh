#!/bin/bash
# Runs a command that sees one NVIDIA GPU of this host, and logs which:
#
#   examples/one_gpu.sh 1 gpu1.log wgconv bench --suite vgg16
#
# 1 is the GPU of /dev/nvidia1, - is whichever the command may open. Vulkan takes the first device that a process may
# open and ignores CUDA_VISIBLE_DEVICES, so the script covers the other devices with /dev/null in a mount namespace. That
# needs root, or namespaces for users. In SLURM's cgroups (ConstrainDevices=yes) and in containers nothing is to cover.
# The log has each /dev/nvidia* that can be opened, the driver's description of its GPUs, and their use every second.
set -eu
[ $# -ge 3 ] || { echo "usage: examples/one_gpu.sh GPU LOG COMMAND ..." >&2; exit 2; }
gpu=$1
log=$2
shift 2
[ "$gpu" = - ] || [ -e "/dev/nvidia$gpu" ] || { echo "one_gpu.sh: there is no /dev/nvidia$gpu" >&2; exit 2; }
if [ "$gpu" != - ] && [ -z "${ONE_GPU:-}" ]; then
  others=
  for device in /dev/nvidia[0-9]*; do
    [ "$device" = "/dev/nvidia$gpu" ] || ! (exec 3<>"$device") 2>/dev/null || others="$others $device"
  done
  export ONE_GPU=$gpu
  [ -z "$others" ] || {
    user=
    [ "$(id -u)" = 0 ] || user=--map-root-user
    # shellcheck disable=SC2086 # Each device is a word.
    exec unshare --mount $user bash -euc '
      for device in '"$others"'; do mount --bind /dev/null "$device"; done
      exec "$@"' bash "$0" "$gpu" "$log" "$@"
  }
fi
{
  echo "GPU $gpu: $*"
  for device in /dev/nvidia[0-9]*; do
    if [ ! -e "$device" ]; then continue
    elif [ ! -c "$device" ] || [ "$(stat -c %t:%T "$device")" = 1:3 ]; then echo "$device is covered"
    elif (exec 3<>"$device") 2>/dev/null; then echo "$device can be opened"
    else echo "$device cannot be opened"; fi
  done
  cat /proc/driver/nvidia/gpus/*/information 2>/dev/null || true
} > "$log"
use=
if command -v nvidia-smi > /dev/null; then
  nvidia-smi --query-gpu=timestamp,index,uuid,utilization.gpu,memory.used --format=csv --loop=1 >> "$log" 2>&1 &
  use=$!
fi
status=0
"$@" || status=$?
[ -z "$use" ] || kill "$use" 2>/dev/null || true
exit "$status"
