#!/bin/sh
# mesa26.sh ROOT COMMAND...: runs COMMAND in the checkout on the CPU driver of Mesa 26, which has subgroup matrices (8x8x8, of
# f16 and int8) where Debian 12's and 13's own have none. ROOT is a Debian 13 system with it and its drm-shims, made here where
# there is none yet (1.1 GB, some minutes). Mounts are the command's own and end with it. MESA26_ENV: further variables, A=B.
# Exits with 75 where it may not mount.
set -eu
root=$1
shift
driver=usr/share/vulkan/icd.d/lvp_icd.json
if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
  echo "mesa26: mounting and chroot are not allowed here" >&2
  exit 75
fi
if [ ! -e "$root/usr/lib/x86_64-linux-gnu/libamdgpu_noop_drm_shim.so" ]; then
  command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null
  mirror=${WGCONV_DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' |
    grep -v security | head -n 1)}
  [ -e "$root/etc/debian_version" ] ||
    debootstrap --variant=minbase --include=ca-certificates trixie "$root" "$mirror" >/dev/null
  # A proxy that apt needs here it needs there.
  for file in /etc/apt/apt.conf.d/*; do
    if grep -qi proxy "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
  done
  cp /etc/resolv.conf "$root/etc/"
  echo "deb $mirror trixie-backports main" >"$root/etc/apt/sources.list.d/backports.list"
  chroot "$root" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends \
    -t trixie-backports mesa-vulkan-drivers libvulkan1 mesa-drm-shim >/dev/null
fi
deno=$(command -v deno)
cache=$(deno info --json | sed -n 's/^ *"denoDir": "\(.*\)",$/\1/p')
exec unshare --mount sh -c '
  root=$1 deno=$2 cache=$3 driver=$4
  shift 4
  mkdir -p "$root/checkout" "$root/deno-cache" "$root/usr/local/bin"
  touch "$root/usr/local/bin/deno"
  mount -t proc proc "$root/proc"
  mount --bind "$deno" "$root/usr/local/bin/deno"
  mount --bind "$cache" "$root/deno-cache"
  mount --bind . "$root/checkout"
  exec chroot "$root" env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DENO_DIR=/deno-cache \
    NO_COLOR=1 XDG_RUNTIME_DIR=/tmp "VK_DRIVER_FILES=/$driver" WGCONV_TEST_BACKEND=dawn \
    "WGCONV_TEST_MATRIX=${WGCONV_TEST_MATRIX:-}" ${MESA26_ENV:-} sh -c "cd /checkout && exec \"\$@\"" sh "$@"
' sh "$root" "$deno" "$cache" "$driver" "$@"
