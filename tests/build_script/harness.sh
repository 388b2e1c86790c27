# shellcheck shell=bash
# For the tests of ./tt and docker/root.sh: copies of the scripts in a temporary folder, and
# fake programs on PATH that only record their arguments. Nothing is set up, built or mounted.
set -euo pipefail

source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
tree=$work/tree
calls=$work/calls
# The cache folder that the scripts derive from TT_CACHE.
# shellcheck disable=SC2034  # read by the tests
cache=$work/disk/tensor-trace
mkdir -p "$tree/docker" "$tree/cmake" "$work/bin" "$work/home"
cp "$source_tree/tt" "$source_tree/CMakePresets.json" "$tree/"
cp "$source_tree/docker/"{cache.sh,packages.txt,root.sh} "$tree/docker/"
cp "$source_tree/cmake/compiler_check.cpp" "$tree/cmake/"
: >"$calls"

# The variables of the ./tt that runs these tests do not apply.
unset "${!TT_@}" CI CCACHE_DIR npm_config_cache XDG_CACHE_HOME XDG_DATA_HOME
export PATH=$work/bin:$PATH HOME=$work/home TT_CACHE=$work/disk

# program NAME, body on stdin: a fake program that records its call, then runs the body.
program() {
  { printf '#!/usr/bin/env bash\nprintf "%%s\\n" "%s $*" >>"%s"\n' "$1" "$calls"; cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# contains TEXT PART, equals ACTUAL EXPECTED
contains() { [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"; }
equals() { [[ $1 == "$2" ]] || fail "got '$1', expected '$2'"; }

# calls_of PROGRAM: how often it was called.
calls_of() { grep -c "^$1" "$calls" || true; }

# wait_until CMD...: waits until CMD succeeds, at most 10 s.
wait_until() {
  local tries=0
  until "$@" 2>/dev/null; do
    ((++tries < 200)) || fail "still false after 10 s: $*"
    sleep 0.05
  done
}

# fails CMD...: CMD must fail; its output is in $output.
# shellcheck disable=SC2034  # read by the tests
fails() {
  if output=$("$@" 2>&1); then fail "succeeded: $*"; fi
}

run_named_test() {
  declare -F "$1" >/dev/null || fail "no such test: $1"
  "$1"
}
