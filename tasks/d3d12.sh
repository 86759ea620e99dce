#!/bin/sh
# d3d12.sh ROOT ARGUMENTS...: runs wgconv for Windows on Direct3D 12, in the Debian of mesa26.sh: Deno for Windows under Wine, wgpu's
# HLSL, Microsoft's compiler (FXC, which npm's package webgpu brings), Wine's Direct3D 12 on lavapipe. It computes; adapter 0
# is Wine's "GeForce GTX 470". Needs npm, and dist/wgconv.js (deno task bundle). Exits with 75 where it may not mount.
set -eu
root=$1
shift
sh tasks/mesa26.sh "$root" true
if [ ! -e "$root/usr/bin/xvfb-run" ]; then
  unshare --mount sh -c 'mount -t proc proc "$1/proc" && DEBIAN_FRONTEND=noninteractive chroot "$1" \
    apt-get install -y -qq --no-install-recommends wine wine64 xvfb xauth >/dev/null' sh "$root"
fi
mkdir -p "$root/win" "$root/wine"
if [ ! -e "$root/win/d3dcompiler_47.dll" ]; then
  work=$(mktemp -d)
  (cd "$work" && npm pack -s "@deno/win32-x64@$(deno -V | cut -d ' ' -f 2)" webgpu@0.6.2 >/dev/null &&
    for file in *.tgz; do tar xzf "$file"; done)
  cp "$work/package/deno.exe" "$work/package/dist/win32-x64/d3dcompiler_47.dll" "$root/win/"
  rm -r "$work"
fi
cp dist/wgconv.js "$root/win/"
exec unshare --mount sh -c '
  root=$1
  shift
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" env -i HOME=/wine WINEPREFIX=/wine/prefix PATH=/usr/lib/wine:/usr/bin:/bin NO_COLOR=1 \
    XDG_RUNTIME_DIR=/tmp WINEDEBUG=-all "WINEDLLOVERRIDES=mscoree,mshtml=;d3dcompiler_47=n" \
    VK_DRIVER_FILES=/usr/share/vulkan/icd.d/lvp_icd.json \
    sh -c "cd /win && exec xvfb-run -a wine64 deno.exe run -A wgconv.js \"\$@\"" sh "$@"
' sh "$root" "$@"
