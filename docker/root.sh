#!/usr/bin/env bash
# The build environment as a folder, for machines without a Docker engine: a Debian
# system with the packages of docker/packages.txt. mmdebstrap unpacks it into the cache;
# it is entered with a private mount namespace and chroot.
#
#   docker/root.sh enter CMD ARGS...  run CMD in the environment; create it if missing
#   docker/root.sh create             create the environment only
#   docker/root.sh path               print the path of the current environment
#   docker/root.sh remove [DIR]       delete it, or an older environment in the same cache
#   docker/root.sh remove-all         delete all environments
#
# Inside, these host folders are visible at their own paths: every top-level folder that is
# not part of a Debian system (/home, /mnt, /data, ...), the current folder, this tree, and
# the folders of files named in ARGS or TT_* variables, including files that do not exist
# yet. All other folders belong to the environment and are read-only, because the host does
# not see files written there and loses them with the environment. (To change the
# environment from a shell inside it: mount -o remount,bind,rw /)
#
# Safe to interrupt and repeat: a folder gets its final name only when it is complete. A
# lock file next to it serializes creation and removal; each running command holds a shared
# lock.
set -euo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin  # chroot; not on the PATH of `su` without a dash

suite=forky
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
tree=${here%/*}
# shellcheck source=docker/cache.sh
source "$here/cache.sh"
disk_mib=4500  # an environment has 3,400 MiB; unpacking needs more

say() { printf 'tt: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

packages() { sed -E 's/[[:space:]]*#.*//; /^$/d' "$here/packages.txt" | sort; }

# The path depends on the package list without comments: another list is another environment.
root_path() {
  local key
  key=$({ echo "$suite $(uname -m)"; packages; } | sha256sum | cut -c1-12)
  echo "$cache/root-$key"
}

# --- creating -----------------------------------------------------------------

require_privileges() {
  [[ $(id -u) == 0 ]] || die "this system lacks '${TT_MISSING:-?}'; the build environment that provides it needs root:
    sudo $tree/tt ...
  or, with Docker:
    docker compose -f $here/compose.yaml up"
  ! unshare --mount true 2>/dev/null || return 0
  ! unshare --mount --propagation unchanged true 2>/dev/null ||
    die "the root folder of this system is not a mount point (a chroot?). Before entering the chroot, run:
    mount --bind DIR DIR"
  die "this machine does not let root mount (a container?). Start it with
    docker run --privileged ...
  or use the image of $here/Dockerfile, which needs no mounts"
}

require_mmdebstrap() {
  command -v mmdebstrap >/dev/null && return
  command -v apt-get >/dev/null || die "mmdebstrap is missing and cannot be installed without apt-get. Use Docker instead:
    docker compose -f $here/compose.yaml up"
  say "installing mmdebstrap with apt-get"
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y \
         --no-install-recommends mmdebstrap debian-archive-keyring gpg gpgv; } >&2; then
    die "mmdebstrap could not be installed; this command must succeed first:
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
  [[ ! -e $partial ]] || { say "removing an incomplete environment of an interrupted set-up"; remove "$partial"; }
  say "setting up the build environment (Debian $suite, about 4 minutes, 3.5 GB) in $root"
  # In the background, so that the trap below runs immediately on a signal.
  # Check-Valid-Until is off because mirrors can be older than the one-week validity of
  # Release files. With force-unsafe-io dpkg does not sync each file; `sync` below does it
  # once.
  mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
    --dpkgopt=force-unsafe-io --include="$(packages | paste -sd,)" "$suite" "$partial" >&2 &
  unpacking=$!
  trap 'kill "$unpacking" || true; wait "$unpacking" || true; say "interrupted; the next ./tt restarts the set-up"; exit 130' INT TERM
  wait "$unpacking" || die "the build environment could not be set up (see above); try again, or with another network:
    $tree/tt shell true"
  trap - INT TERM
  # Mounted from the host on every entry.
  rm -f "$partial/etc/resolv.conf" "$partial/etc/hosts"
  sync --file-system "$partial"
  mv -T "$partial" "$root"
  say "the build environment is ready ($((SECONDS - began)) s)"
}

# Creates the environment if it is missing and returns with its lock held shared on
# descriptor 9. The command inside inherits the descriptor.
ensure() {
  local root=$1
  { mkdir -p "$cache" && [[ -w $cache ]]; } 2>/dev/null ||
    die "$cache cannot be written (TT_CACHE chooses another folder for the build environment):
    TT_CACHE=/a/writable/folder $tree/tt ..."
  exec 9>>"$root.lock"
  flock --shared 9
  [[ ! -d $root ]] || return 0
  require_privileges
  flock --exclusive --nonblock 9 || { say "another ./tt is setting up the environment; waiting"; flock --exclusive 9; }
  [[ -d $root ]] || create "$root"
  flock --shared 9
}

# --- removing -----------------------------------------------------------------

mounted_below() {
  # mountinfo escapes a space as \040
  DIR=${1// /\\040} awk '{ if ($5 == ENVIRON["DIR"] || index($5, ENVIRON["DIR"] "/") == 1) found = 1 }
                         END { exit !found }' /proc/self/mountinfo
}

# Prints the real path of DIR. DIR must be an environment, or an incomplete one, directly
# in the cache: it has the name pattern of an environment and a lock file made by `ensure`.
checked_environment() {
  local real cache_real
  cache_real=$(realpath -m -- "$cache")
  real=$(realpath -m -- "$1")
  [[ ${real%/*} == "$cache_real" && ${real##*/} =~ ^root-[0-9a-f]{12}(\.partial)?$ &&
    -f ${real%.partial}.lock ]] ||
    die "cannot remove $real: it is not a build environment in $cache_real"
  echo "$real"
}

# Needs the exclusive lock.
remove() {
  local real
  real=$(checked_environment "$1")
  ! mounted_below "$real" || die "cannot remove $real: something is mounted there (run findmnt to list mounts)"
  rm -rf --one-file-system -- "$real"
}

remove_unused() {
  local real
  [[ -e $1 ]] || return 0
  real=$(checked_environment "$1")
  exec 9>>"${real%.partial}.lock"
  flock --exclusive --nonblock 9 || die "$real is in use by another ./tt; stop it first"
  say "removing $real"
  remove "$real"
}

# Skips folders without a lock file: ./tt did not create them.
remove_all() {
  local lock
  for lock in "$cache"/root-*.lock; do
    [[ ${lock##*/} =~ ^root-[0-9a-f]{12}\.lock$ ]] || continue
    remove_unused "${lock%.lock}"
    remove_unused "${lock%.lock}.partial"
  done
}

# --- entering -----------------------------------------------------------------

# The functions below run in the private mount namespace, which ends with the command.

# show DIR: mounts the host's folder DIR inside at the same path.
show() {
  [[ ! $root$1 -ef $1 ]] || return 0
  [[ -d $root$1 ]] || mkdir -p "$root$1"
  mount --rbind -- "$1" "$root$1"
}

# show_file SOURCE TARGET: mounts one host file inside at TARGET.
show_file() {
  [[ -r $1 && ! $root$2 -ef $1 ]] || return 0
  [[ -d $root${2%/*} ]] || mkdir -p "$root${2%/*}"
  [[ -e $root$2 ]] || : >"$root$2"
  local source=$1
  [[ ! -L $1 ]] || source=$(realpath -- "$1")
  mount --bind -- "$source" "$root$2"
}

# Prints the path itself if it exists, otherwise its closest existing parent folder.
nearest_existing() {
  local path
  path=$(realpath --canonicalize-missing --no-symlinks -- "$1" 2>/dev/null) || return
  while [[ ! -e ${path:-/} ]]; do path=${path%/*}; done
  echo "${path:-/}"
}

# contains_only_mounts DIR: true if the environment's DIR contains only mount points of `show` and
# `show_file`.
contains_only_mounts() { [[ -z $(find "$root$1/" -xdev ! -type d ! -empty -print -quit 2>/dev/null) ]]; }

# show_named WORD: an argument that may be a path, possibly of a file that does not exist
# yet. Mounts the closest existing folder, so that new files are created on the host. Mounts
# the folder rather than the file, because the parts of a split model are in one folder. In
# a folder that belongs to the environment (/usr/share, /etc) mounts only the file. Creates
# nothing on the host, because WORD may also be a prompt. Fails if a new file would be
# created in the environment.
show_named() {
  local path dir own=0
  [[ -e $1 || $1 == */* ]] || return 0  # otherwise a name in the current folder
  [[ $1 != / && $1 == "$(cd -P -- "$1" 2>/dev/null && pwd)" && $root$1 -ef $1 ]] && return 0  # the usual case, quick
  case $1 in /dev/* | /proc/* | /sys/*) return 0 ;; esac  # shared with the host
  path=$(nearest_existing "$1") || return 0
  for path in "$path" "$(realpath -- "$path")"; do
    dir=$path
    [[ -d $path ]] || dir=${path%/*}
    [[ ! $root$dir/ -ef $dir/ ]] || continue
    if contains_only_mounts "$dir"; then
      show "$dir" || die "$dir cannot be made visible inside (see above)"
    else
      own=1
      [[ ! -f $path || -s $root$path ]] || show_file "$path" "$path"
    fi
  done
  return "$own"
}

# fail_unwritable PATH FOLDER: fails because PATH cannot be created; FOLDER is the suggested place.
fail_unwritable() {
  die "$1 would be lost: the build environment has a $(nearest_existing "$1") of its own, not visible to this system.
  Create a folder that is visible to both:
    mkdir -p $2"
}

# show_folder DIR: a folder that the program creates if it is missing. If its closest
# existing parent belongs to the environment (/var/lib), creates DIR on the host first.
show_folder() {
  show_named "$1" && return
  mkdir -p -- "$1"
  show_named "$1" || fail_unwritable "$1" "$1/tensor-trace"
}

# show_output FILE: a file that the program creates. It cannot be created in advance like a
# folder, because some programs do not overwrite existing files.
show_output() {
  local dir=${1%/*}
  show_named "$1" || [[ -e $1 ]] || { [[ ! -d $dir/ ]] || dir+=/tensor-trace; fail_unwritable "$1" "$dir"; }
}

# show_top_level: the host's top-level folders, with one call of mount(8), because each call
# costs 3 ms. mount reads its table only from a regular file.
show_top_level() {
  local dir folders=(/proc /sys /dev /var/tmp) table=$cache/mounts-$$
  for dir in /*/; do
    dir=${dir%/}
    case ${dir#/} in
      bin | boot | dev | etc | lib* | lost+found | proc | run | sbin | sys | usr | var) ;;
      *) folders+=("$dir") ;;
    esac
  done
  for dir in "${folders[@]}"; do
    [[ -d $root$dir ]] || mkdir -p "$root$dir"
    dir=${dir//\\/\\134} dir=${dir// /\\040}
    echo "$dir ${root// /\\040}$dir none rbind"
  done >"$table"
  mount --all --fstab "$table" || true
  rm "$table"
  for dir in "${folders[@]}"; do
    [[ $root$dir -ef $dir ]] || say "warning: $dir is not visible inside"
  done
}

show_host() {
  local name word option=
  show_top_level
  # The default session folder is in one of the last two.
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
      TT_API_KEY) ;;  # a secret; process arguments are visible to other users
      *) show_named "${!name}" || true ;;
    esac
  done
}

# Uses the host's DNS settings, certificates and npm settings. Without them npm cannot reach
# its registry through a proxy with its own certificate authority.
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
  mount --bind -- "$root" "$root"  # so that only this mount becomes read-only
  show_host "$@"
  show_network
  mount -o remount,bind,ro "$root" ||
    say "warning: files written to the build environment's own folders (/usr, /var, ...) are not visible to the host"
  # Unset variables that refer a compiler, linker or Python to host folders.
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
