#!/bin/sh
# Run by tasks/mesa26.sh inside its Debian: installs what checks SPIR-V and translates it, and builds the layer that reads
# drivers' statistics, and Intel's drm-shim, which Debian leaves out of mesa-drm-shim, from its Mesa source (some minutes).
# What is there is kept.
set -eu
export DEBIAN_FRONTEND=noninteractive
install="apt-get install -y -qq --no-install-recommends -t trixie-backports"
layer=/usr/local/lib/machine_code
if [ ! -e /usr/bin/spirv-cross ] || [ ! -e /usr/bin/spirv-val ]; then
  apt-get update -qq
  $install gcc libc6-dev libvulkan-dev spirv-cross spirv-tools >/dev/null
fi
if [ ! -e $layer/libwgconv_machine_code.so ] || [ $layer/libwgconv_machine_code.so -ot bench/machine_code/layer.c ]; then
  sh bench/machine_code/build.sh $layer
fi
[ ! -e /usr/local/lib/libintel_noop_drm_shim.so ] || exit 0
sed 's/^deb /deb-src /; s/-backports//' /etc/apt/sources.list.d/backports.list >/etc/apt/sources.list.d/source.list
apt-get update -qq
$install meson ninja-build gcc g++ pkg-config python3-mako python3-yaml python3-packaging bison flex \
  libdrm-dev zlib1g-dev libexpat1-dev libzstd-dev libelf-dev libudev-dev xz-utils dpkg-dev >/dev/null
rm -rf /tmp/mesa
mkdir /tmp/mesa
cd /tmp/mesa
apt-get source -qq --download-only mesa/trixie
tar xf mesa_*.orig.tar.xz --strip-components=1
meson setup b -Dvulkan-drivers= -Dgallium-drivers= -Dplatforms= -Dglx=disabled -Degl=disabled -Dgbm=disabled \
  -Dopengl=false -Dgles1=disabled -Dgles2=disabled -Dllvm=disabled -Dvalgrind=disabled -Dlibunwind=disabled \
  -Dxmlconfig=disabled -Dshader-cache=disabled -Dbuildtype=release -Dtools=drm-shim,intel >/dev/null
ninja -C b src/intel/tools/libintel_noop_drm_shim.so | tail -n 1
cp b/src/intel/tools/libintel_noop_drm_shim.so /usr/local/lib/
rm -rf /tmp/mesa
