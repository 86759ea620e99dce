# Installs lavapipe, a Vulkan driver for the CPU, on Linux unless it is there.
set -eu
# Windows and macOS have a GPU driver of their own.
[ "$(uname)" = Linux ] || exit 0
ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1 && exit 0
sudo apt-get update
sudo apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1
