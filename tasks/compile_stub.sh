#!/bin/sh
# wgconv @VERSION@ in one file: this script, the program and Deno @DENO@, each gzipped, from byte @HEADER@ on.
# The first start unpacks the two into a directory of the user's; every start runs them from there.

fail() {
  printf 'wgconv: Cannot %s\n' "$1" >&2
  exit 5
}

# A directory of this user's own, no link to one.
ours() {
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]
}

case ${XDG_CACHE_HOME-} in
  /*)
    own=
    base=$XDG_CACHE_HOME
    ;;
  *)
    own=${TMPDIR:-/tmp}/wgconv-$(id -u)
    base=$own
    ;;
esac
dir=$base/@SHA256@
hint='set XDG_CACHE_HOME to a directory of your own with @SPACE@ MiB of room'

# What a failed unpacking leaves: nothing.
clean() {
  rm -rf "$new"
  rmdir "$dir" ${own:+"$own"} 2>/dev/null
}

# Both files come by renaming, Deno last: parallel first starts do no harm, and a start finds all or nothing.
unpack() (
  umask 077
  set -f
  new=
  refuse() {
    # shellcheck disable=SC2086 # joins the lines of what a tool said
    fail "unpack into $dir: $(echo ${1:-a tool ended without a word}); $hint"
  }
  trap clean EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  said=$(mkdir -p "$base" 2>&1) || refuse "$said"
  [ -z "$own" ] || ours "$own" || refuse "$own is no directory of this user"
  said=$(mkdir -p "$dir" 2>&1) || refuse "$said"
  ours "$dir" || refuse "it is no directory of this user"
  said=$(chmod 700 ${own:+"$own"} "$dir" 2>&1) || refuse "$said"
  made=$(mktemp -d "$dir/new.XXXXXX" 2>&1) || refuse "$made"
  new=$made
  said=$({ tail -c +@BUNDLE_FROM@ "$0" | head -c @BUNDLE_BYTES@ | gzip -dc >"$new/wgconv.js"; } 2>&1) ||
    refuse "$said"
  said=$({ tail -c +@DENO_FROM@ "$0" | gzip -dc >"$new/deno"; } 2>&1) || refuse "$said"
  said=$(chmod 700 "$new/deno" 2>&1) || refuse "$said"
  said=$(mv -f "$new/wgconv.js" "$dir/" 2>&1 && mv -f "$new/deno" "$dir/" 2>&1) || refuse "$said"
)

present() {
  [ -f "$dir/wgconv.js" ] && [ -x "$dir/deno" ]
}

if present; then
  { [ -z "$own" ] || ours "$own"; } && ours "$dir" ||
    fail "run from $dir: it is no directory of this user; $hint"
else
  unpack || exit
  present || fail "run from $dir: programs may not run there; $hint"
fi

# Deno gives /proc only to programs that may do everything.
if [ -r /proc/driver/nvidia/version ]; then
  read -r WGCONV_NVIDIA_DRIVER </proc/driver/nvidia/version && export WGCONV_NVIDIA_DRIVER
fi
export DENO_DIR="$dir/cache" DENO_NO_UPDATE_CHECK=1
# shellcheck disable=SC2086 # native code may run only where WGCONV_DAWN names it
exec "$dir/deno" run @FLAGS@ ${WGCONV_DAWN:+--allow-ffi} "$dir/wgconv.js" "$@"
exit 5
