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
# folder, this tree and the folders of files named in ARGS or in TT_* variables.
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
  say "setting up the build environment (Debian $suite, about 3 minutes, 3.5 GB) in $root"
  # In the background, so that a signal is answered at once and reaches it.
  # Release files are valid for a week; mirrors may lag behind that.
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --include="$(packages | paste -sd,)" "$suite" "$partial" >&2 &
  unpacking=$!
  trap 'kill "$unpacking" || true; wait "$unpacking" || true; say "interrupted; the next ./tt starts over"; exit 130' INT TERM
  wait "$unpacking" || die "the build environment could not be set up (see above); try again, or with another network:
    $tree/tt shell true"
  trap - INT TERM
  # Filled in from the host on every entry.
  rm -f "$partial/etc/resolv.conf" "$partial/etc/hosts"
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

# A path that the caller named. Its folder is shown, since a model may be split
# into files that lie beside each other; in a folder that the environment has
# itself (/usr/share, /etc) only the file.
show_named() {
  local path dir
  [[ -e $1 ]] || return 0
  for path in "$(realpath --no-symlinks -- "$1")" "$(realpath -- "$1")"; do
    dir=$path
    [[ -d $path ]] || dir=${path%/*}
    if [[ ! -e $root$dir/ || -z $(ls -A "$root$dir/") ]]; then
      show "${dir:-/}"
    elif [[ -f $path && ! -s $root$path ]]; then
      show_file "$path" "$path"
    fi
  done
}

show_host() {
  local dir name word
  for dir in /*/; do
    dir=${dir%/}
    case ${dir#/} in
      bin | boot | dev | etc | lib* | lost+found | proc | run | sbin | sys | usr | var) ;;
      *) show "$dir" || say "warning: $dir is not visible inside" ;;
    esac
  done
  for dir in /proc /sys /dev; do mount --rbind "$dir" "$root$dir"; done
  show /var/tmp
  for word in "$tree" "$cache" "$PWD" "$@"; do show_named "${word#--*=}"; done
  for name in "${!TT_@}"; do show_named "${!name}"; done
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
  show_host "$@"
  show_network
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
