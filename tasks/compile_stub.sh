#!/bin/sh
# wgconv @VERSION@ in one file: this script, the program and Deno @DENO@, each gzipped, from byte @HEADER@ on.
# The first start unpacks the two into a directory of the user's; every start checks them and runs them from there.

fail() {
  printf 'wgconv: Cannot %s\n' "$1" >&2
  exit 5
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
# They would change what `ls` shows.
unset BLOCK_SIZE LS_BLOCK_SIZE TIME_STYLE

# A directory of this user's own, no link to one.
ours() {
  [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]
}

# A mode as `ls` shows it: of a directory that others cannot open, and of one in which anyone can rename anything.
closed() {
  case $1 in drwx--[-S]---*) ;; *) return 1 ;; esac
}
open() {
  case $1 in d????????[tT]*) return 1 ;; d???????w*) ;; *) return 1 ;; esac
}

# The mode of a directory.
mode() (
  # shellcheck disable=SC2046 # the first word of several
  set -- $(LC_ALL=C ls -dln "$1" 2>/dev/null)
  echo "$1"
)

# Whether the two files are there, whole, this user's, untouched since they were unpacked and out of reach of others.
sound() {
  ours "$dir" && { [ -z "$own" ] || ours "$own"; } || return
  for file in complete wgconv.js deno; do
    # shellcheck disable=SC3013 # POSIX has -nt since 2024, dash and busybox for longer
    [ -f "$dir/$file" ] && [ ! -L "$dir/$file" ] && [ -O "$dir/$file" ] && [ ! "$dir/$file" -nt "$dir/complete" ] ||
      return
  done
  [ -x "$dir/deno" ] || return
  # A line a file in the order of their names: mode, links, owner, group, size, three words of a date, name.
  # shellcheck disable=SC2046 # splits them
  set -- $(cd "$dir" && LC_ALL=C ls -dln . .. ../.. complete deno wgconv.js 2>/dev/null)
  [ $# = 54 ] && closed "$1" && { [ -z "$own" ] || closed "${10}"; } && ! open "${10}" && ! open "${19}" || return
  case "${28} ${37} ${41} ${46} ${50}" in
    "-rw-------"*" -rwx------"*" @DENO_BYTES@ -rw-------"*" @PROGRAM_BYTES@") ;;
    *) return 1 ;;
  esac
}

# Whether the two files are those that were packed, as far as a tool can be had that tells.
same() {
  for file in wgconv.js deno; do
    [ -f "$dir/$file" ] && [ ! -L "$dir/$file" ] && [ -O "$dir/$file" ] || return
  done
  sums=$(cd "$dir" && { sha256sum wgconv.js deno || shasum -a 256 wgconv.js deno; } 2>/dev/null) || return
  [ "$sums" = "@PROGRAM_SHA256@  wgconv.js
@DENO_SHA256@  deno" ]
}

# What a failed unpacking leaves: nothing.
clean() {
  rm -rf "$new"
  rmdir "$dir" ${own:+"$own"} 2>/dev/null
}

# Unpacks, or repairs. Files come by renaming, Deno last: parallel first starts do no harm. The mark that all are there
# comes after them; where it is missing, sums tell whether they have to be unpacked again.
unpack() (
  umask 077
  set -f
  new=
  refuse() {
    # shellcheck disable=SC2086 # joins the lines of what a tool said
    fail "unpack into $dir: $(echo ${1:-a tool ended without a word}); $hint"
  }
  # Of what came out of this file: a tool that read it whole and wrote nothing found the fault in it.
  damaged() {
    command -v gzip >/dev/null || return
    ! { tail -c +@BUNDLE_FROM@ "$0" | head -c @BUNDLE_BYTES@ | gzip -t; } 2>/dev/null ||
      ! { tail -c +@DENO_FROM@ "$0" | gzip -t; } 2>/dev/null
  }
  unread() {
    # shellcheck disable=SC2086 # joins the lines of what a tool said
    ! damaged || fail "unpack $0: it is damaged ($(echo ${1:-cut off})); get the file again"
    refuse "$1"
  }
  trap clean EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  said=$(mkdir -p "$base" 2>&1) || refuse "$said"
  for folder in "$base" "$base/.."; do
    [ "$folder" = "$own" ] || ! open "$(mode "$folder")" || refuse "everyone can write into $folder"
  done
  [ -z "$own" ] || ours "$own" || refuse "$own is no directory of this user"
  said=$(mkdir -p "$dir" 2>&1) || refuse "$said"
  ours "$dir" || refuse "it is no directory of this user"
  # Others may have put anything there: what is not held against a sum goes.
  closed "$(mode "$dir")" || said=$(rm -rf "$dir/cache" "$dir/complete" 2>&1) || refuse "$said"
  said=$(chmod 700 ${own:+"$own"} "$dir" 2>&1) || refuse "$said"
  same && (: >"$dir/complete") 2>/dev/null && sound && return
  made=$(mktemp -d "$dir/new.XXXXXX" 2>&1) || refuse "$made"
  new=$made
  said=$({ tail -c +@BUNDLE_FROM@ "$0" | head -c @BUNDLE_BYTES@ | gzip -dc >"$new/wgconv.js"; } 2>&1) ||
    unread "$said"
  said=$({ tail -c +@DENO_FROM@ "$0" | gzip -dc >"$new/deno"; } 2>&1) || unread "$said"
  said=$(chmod 700 "$new/deno" 2>&1) || refuse "$said"
  said=$({ : >"$new/complete"; } 2>&1) || refuse "$said"
  for file in wgconv.js deno complete; do
    # A directory, or a link to one, would take the file into itself.
    [ ! -d "$dir/$file" ] || said=$(rm -rf "${dir:?}/$file" 2>&1) || refuse "$said"
    said=$(mv -f "$new/$file" "$dir/" 2>&1) || refuse "$said"
  done
)

# Another first start may be putting its files into their places while this one looks: found whole once is enough, since
# the next moment Deno may be newer than the mark.
whole=
for _ in 1 2 3 4 5; do
  sound && whole=yes && break
  unpack || exit
done
[ -n "$whole" ] || sound ||
  fail "run from $dir: programs may not run there, or its files do not keep their modes; $hint"
# What an unpacking left that was killed; one that still goes on is younger.
for left in "$dir"/new.*; do
  [ ! -d "$left" ] || find "$left" -prune -mmin +60 -exec rm -rf {} + 2>/dev/null
done

# Deno gives /proc only to programs that may do everything.
if [ -r /proc/driver/nvidia/version ]; then
  read -r WGCONV_NVIDIA_DRIVER </proc/driver/nvidia/version && export WGCONV_NVIDIA_DRIVER
fi
export DENO_DIR="$dir/cache" DENO_NO_UPDATE_CHECK=1
# shellcheck disable=SC2086 # native code may run only where WGCONV_DAWN names it
exec "$dir/deno" run @FLAGS@ ${WGCONV_DAWN:+--allow-ffi} "$dir/wgconv.js" "$@"
exit 5
