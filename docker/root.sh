#!/usr/bin/env bash
# The build environment as a folder, for machines without a Docker engine: the
# Debian suite below with docker/packages.txt, unpacked by mmdebstrap into the
# cache and entered with a private mount namespace and chroot.
#
#   docker/root.sh enter CMD ARGS...  run CMD inside; sets up what is missing
#   docker/root.sh create             only set up
#   docker/root.sh path               where the environment of this list lies
#   docker/root.sh remove [DIR]       delete it, or an older one beside it
#   docker/root.sh remove-all         delete it and all older ones
#
# Inside, every folder of the host that a Debian system does not have itself
# (/home, /mnt, /data, ...) lies under its own path, and so do the current
# folder, this tree and the folders of files named in ARGS or in TT_* variables,
# also of those that are yet to be made. All else is the environment's own and
# read-only there: what was written into it would be unknown to the host and gone
# with the environment. (A shell that is to change it: mount -o remount,bind,rw /)
#
# Safe to interrupt and to repeat: a folder gets its final name only when it is
# complete. A lock beside it keeps two set-ups apart, and a removal away from
# users: whoever is inside holds it shared.
set -euo pipefail

suite=forky
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
tree=${here%/*}
# shellcheck source=docker/cache.sh
source "$here/cache.sh"
disk_mib=4500  # a finished environment takes 3,400 MiB, unpacking it some more

say() { printf 'tt: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

packages() { sed -E 's/[[:space:]]*#.*//; /^$/d' "$here/packages.txt" | sort; }

# A changed list is another environment; its comments do not matter.
root_path() {
  local key
  key=$({ echo "$suite $(uname -m)"; packages; } | sha256sum | cut -c1-12)
  echo "$cache/root-$key"
}

# --- creating -----------------------------------------------------------------

require_privileges() {
  [[ $(id -u) == 0 ]] || die "this system lacks '${TT_MISSING:-?}'; the build environment that has it needs root:
    sudo $tree/tt ...
  or, with Docker:
    docker compose -f $here/compose.yaml up"
  ! unshare --mount true 2>/dev/null || return 0
  ! unshare --mount --propagation unchanged true 2>/dev/null ||
    die "the root folder of this system is no mount point (a chroot?). Before it is entered:
    mount --bind DIR DIR"
  die "this machine does not let root mount (a container?). Start it with
    docker run --privileged ...
  or use the image of $here/Dockerfile, which needs no mounts"
}

require_mmdebstrap() {
  command -v mmdebstrap >/dev/null && return
  command -v apt-get >/dev/null || die "mmdebstrap is missing, and there is no apt-get to install it. With Docker:
    docker compose -f $here/compose.yaml up"
  say "installing mmdebstrap with apt-get"
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
         --no-install-recommends mmdebstrap debian-archive-keyring gpg gpgv; } >&2; then
    die "mmdebstrap could not be installed; this command has to succeed first:
    apt-get update && apt-get install -y mmdebstrap debian-archive-keyring"
  fi
}

require_disk() {
  local free_mib
  free_mib=$(df --output=avail -BM "$cache" | tail -n 1 | tr -dc 0-9)
  ((free_mib >= disk_mib)) || die "$cache has $free_mib MiB free, the build environment needs $disk_mib:
    TT_CACHE=/a/larger/disk $tree/tt ..."
}

# Needs the exclusive lock.
create() {
  local root=$1 partial=$1.partial began=$SECONDS unpacking
  require_mmdebstrap
  require_disk
  [[ ! -e $partial ]] || { say "removing what an interrupted set-up left"; remove "$partial"; }
  say "setting up the build environment (Debian $suite, about 4 minutes, 3.5 GB) in $root"
  # In the background, so that a signal is answered at once and reaches it.
  # Release files are valid for a week; mirrors may lag behind that. Files are made
  # durable all at once, not each by itself.
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt=force-unsafe-io --include="$(packages | paste -sd,)" "$suite" "$partial" >&2 &
  unpacking=$!
  trap 'kill "$unpacking" || true; wait "$unpacking" || true; say "interrupted; the next ./tt starts over"; exit 130' INT TERM
  wait "$unpacking" || die "the build environment could not be set up (see above); try again, or with another network:
    $tree/tt shell true"
  trap - INT TERM
  # Filled in from the host on every entry.
  rm -f "$partial/etc/resolv.conf" "$partial/etc/hosts"
  sync --file-system "$partial"
  mv -T "$partial" "$root"
  say "the build environment is ready ($((SECONDS - began)) s)"
}

# Returns with the environment in place and its lock held shared on descriptor 9,
# which the command that is run inside inherits.
ensure() {
  local root=$1
  mkdir -p "$cache"
  exec 9>>"$root.lock"
  flock --shared 9
  [[ ! -d $root ]] || return 0
  require_privileges
  flock --exclusive --nonblock 9 || { say "another ./tt is setting up; waiting"; flock --exclusive 9; }
  [[ -d $root ]] || create "$root"
  flock --shared 9
}

# --- removing -----------------------------------------------------------------

mounted_below() {
  # mountinfo writes a blank as \040
  DIR=${1// /\\040} awk '{ if ($5 == ENVIRON["DIR"] || index($5, ENVIRON["DIR"] "/") == 1) found = 1 }
                         END { exit !found }' /proc/self/mountinfo
}

# The real path of DIR, which must be an environment directly in the cache (or what
# an interrupted set-up left of one): so called, and with the lock that `ensure` made.
confined() {
  local real cache_real
  cache_real=$(realpath -m -- "$cache")
  real=$(realpath -m -- "$1")
  [[ ${real%/*} == "$cache_real" && ${real##*/} =~ ^root-[0-9a-f]{12}(\.partial)?$ &&
    -f ${real%.partial}.lock ]] ||
    die "refusing to remove $real: it is no build environment in $cache_real"
  echo "$real"
}

# Needs the exclusive lock.
remove() {
  local real
  real=$(confined "$1")
  ! mounted_below "$real" || die "refusing to remove $real: something is mounted there (findmnt lists it)"
  rm -rf --one-file-system -- "$real"
}

remove_unused() {
  local real
  [[ -e $1 ]] || return 0
  real=$(confined "$1")
  exec 9>>"${real%.partial}.lock"
  flock --exclusive --nonblock 9 || die "$real is in use by another ./tt; end that first"
  say "removing $real"
  remove "$real"
}

# What is called so and has no lock is not ours.
remove_all() {
  local lock
  for lock in "$cache"/root-*.lock; do
    [[ ${lock##*/} =~ ^root-[0-9a-f]{12}\.lock$ ]] || continue
    remove_unused "${lock%.lock}"
    remove_unused "${lock%.lock}.partial"
  done
}

# --- entering -----------------------------------------------------------------

# All below runs in the private mount namespace: it ends with the command.

# show DIR: the host's folder DIR is visible inside at the same path.
show() {
  [[ ! $root$1 -ef $1 ]] || return 0
  mkdir -p "$root$1"
  mount --rbind -- "$1" "$root$1"
}

# show_file SOURCE TARGET: one file of the host.
show_file() {
  [[ -r $1 && ! $root$2 -ef $1 ]] || return 0
  mkdir -p "$root${2%/*}"
  [[ -e $root$2 ]] || : >"$root$2"
  mount --bind -- "$(realpath -- "$1")" "$root$2"
}

# The path itself, or the folder above it that there is.
nearest() {
  local path
  path=$(realpath --canonicalize-missing --no-symlinks -- "$1" 2>/dev/null) || return
  while [[ ! -e ${path:-/} ]]; do path=${path%/*}; done
  echo "${path:-/}"
}

# hollow DIR: what it holds inside is at most what `show` and `show_file` put things on.
hollow() { [[ -z $(find "$root$1/" -xdev ! -type d ! -empty -print -quit 2>/dev/null) ]]; }

# A word of the caller that may be a path, also one that nothing is at yet: the nearest
# folder is shown, so that what is made there lies on the host. Its folder, since a model
# may be split into files that lie beside each other; in a folder that the environment has
# itself (/usr/share, /etc) only the file. Makes nothing on the host: the word may as well
# be a prompt. Fails where something new would lie in the environment.
show_named() {
  local path dir own=0
  [[ -e $1 || $1 == */* ]] || return 0  # else a plain name, of the current folder
  case $1 in /dev/* | /proc/* | /sys/*) return 0 ;; esac  # are the host's
  path=$(nearest "$1") || return 0
  for path in "$path" "$(realpath -- "$path")"; do
    dir=$path
    [[ -d $path ]] || dir=${path%/*}
    [[ ! $root$dir/ -ef $dir/ ]] || continue
    if hollow "$dir"; then
      show "$dir" || die "$dir cannot be made visible inside (see above)"
    else
      own=1
      [[ ! -f $path || -s $root$path ]] || show_file "$path" "$path"
    fi
  done
  return "$own"
}

# refuse PATH FOLDER: what would be PATH can lie in FOLDER.
refuse() {
  die "$1 would be lost: the build environment has a $(nearest "$1") of its own, which this system does not see.
  A new folder is seen by both:
    mkdir -p $2"
}

# A folder that the program makes if need be. It would make it inside where the nearest
# folder is one of the environment's own (/var/lib), so there it is made before.
show_folder() {
  show_named "$1" && return
  mkdir -p -- "$1"
  show_named "$1" || refuse "$1" "$1/tensor-trace"
}

# A file that the program makes if need be. Unlike a folder it cannot be made for it: some
# programs refuse to write what is there.
show_output() {
  local dir=${1%/*}
  show_named "$1" || [[ -e $1 ]] || { [[ ! -d $dir/ ]] || dir+=/tensor-trace; refuse "$1" "$dir"; }
}

show_host() {
  local dir name word option=
  for dir in /*/; do
    dir=${dir%/}
    case ${dir#/} in
      bin | boot | dev | etc | lib* | lost+found | proc | run | sbin | sys | usr | var) ;;
      *) show "$dir" || say "warning: $dir is not visible inside" ;;
    esac
  done
  for dir in /proc /sys /dev; do mount --rbind "$dir" "$root$dir"; done
  show /var/tmp
  # Sessions lie in a folder of the last two, unless another is named.
  for word in "$tree" "$cache" "$PWD" "${HOME:-}" "${XDG_DATA_HOME:-}"; do show_named "$word" || true; done
  for word in "$@"; do
    case $word in
      --*=*) option=${word%%=*} word=${word#*=} ;;
      -[a-z]/*) option=${word:0:2} word=${word:2} ;;
    esac
    case $option in
      --data-dir | --install) show_folder "$word" ;;
      -o | --output | --api-key-file) show_output "$word" ;;
      *) show_named "$word" || true ;;
    esac
    option=$word
  done
  for name in "${!TT_@}" CCACHE_DIR npm_config_cache; do
    case $name in
      TT_DATA_DIR | CCACHE_DIR | npm_config_cache) show_folder "${!name:-}" ;;
      TT_API_KEY_FILE) show_output "${!name}" ;;
      TT_API_KEY) ;;  # not to be seen among the arguments of a process
      *) show_named "${!name}" || true ;;
    esac
  done
}

# Names, certificates and npm's settings are the host's: without them npm does
# not reach its registry behind a proxy that signs with its own authority.
show_network() {
  local file
  show_file /etc/resolv.conf /etc/resolv.conf
  show_file /etc/hosts /etc/hosts
  for file in /etc/npmrc /usr/etc/npmrc /usr/local/etc/npmrc; do
    [[ ! -r $file ]] || { show_file "$file" /etc/npmrc; break; }
  done
  for file in "${SSL_CERT_FILE:-}" "${NODE_EXTRA_CA_CERTS:-}" /etc/ssl/certs/ca-certificates.crt \
    /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem; do
    [[ ! -r $file ]] || { show_file "$file" "$bundle"; break; }
  done
}

inside() {
  local root=$1 bundle=/etc/ssl/certs/ca-certificates.crt name unset=()
  shift
  mount --bind -- "$root" "$root"  # to be read-only here and not in the cache
  show_host "$@"
  show_network
  mount -o remount,bind,ro "$root" ||
    say "warning: what is written into the build environment's own folders (/usr, /var, ...) stays there"
  # Variables that point a compiler, a linker or Python at folders of the host.
  for name in CC CXX CPP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH \
    LIBRARY_PATH LD_LIBRARY_PATH LD_PRELOAD PKG_CONFIG_PATH CMAKE_PREFIX_PATH CMAKE_GENERATOR \
    PYTHONHOME PYTHONPATH SSL_CERT_DIR; do
    unset+=(-u "$name")
  done
  exec chroot "$root" env --chdir="$PWD" "${unset[@]}" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    SSL_CERT_FILE="$bundle" NODE_EXTRA_CA_CERTS="$bundle" \
    TT_INSIDE="${root##*/}" "$@"
}

enter() {
  (($# > 0)) || die "usage: docker/root.sh enter CMD ARGS..."
  local root
  root=$(root_path)
  ensure "$root"
  require_privileges
  exec unshare --mount --propagation private "$BASH" "${BASH_SOURCE[0]}" inside "$root" "$@"
}

verb=${1:-}
shift || true
case $verb in
  enter) enter "$@" ;;
  inside) inside "$@" ;;
  create) ensure "$(root_path)" ;;
  path) root_path ;;
  remove) remove_unused "${1:-$(root_path)}" ;;
  remove-all) remove_all ;;
  *) die "usage: docker/root.sh enter CMD ARGS... | create | path | remove [DIR] | remove-all" ;;
esac
