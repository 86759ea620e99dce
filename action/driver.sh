# Installs lavapipe, a Vulkan driver for the CPU, unless it is there.
set -eu
ls /usr/share/vulkan/icd.d/lvp_icd*.json >/dev/null 2>&1 && exit 0
sudo apt-get update
sudo apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1
