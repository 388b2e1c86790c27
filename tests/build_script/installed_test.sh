#!/usr/bin/env bash
# installed_test.sh BUILD: the programs that `cmake --install` puts into an arbitrary prefix work,
# and configuring reports libraries that are missing or too old.
set -euo pipefail

build=$1
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
server=
finish() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  rm -rf -- "$work"
}
trap finish EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/prefix" >/dev/null
export PATH=$work/prefix/bin:$PATH HOME=$work
cd /

# The command line finds the bundled model, the server its page and its worker.
[[ $(command -v tt) == "$work/prefix/bin/tt" ]] || fail 'tt is not the installed one'
tt record --prompt 'Once upon a time' --n-predict 4 --output "$work/s.ttrace" >/dev/null 2>&1 ||
  fail 'tt record does not find the bundled model'
tt show "$work/s.ttrace" >/dev/null || fail 'tt show'
extension=$(find "$work/prefix" -name 'tensor_trace.so')
[[ -n $extension ]] || fail 'there is no extension for sqlite3'
for file in bash-completion/completions/tt zsh/site-functions/_tt fish/vendor_completions.d/tt.fish; do
  [[ -s $work/prefix/share/$file ]] || fail "there is no share/$file"
done
for page in tt tt-server; do
  [[ $(zcat "$work/prefix/share/man/man1/$page.1.gz") == ".TH ${page^^} 1 "* ]] || fail "there is no man page $page"
done
grep -qx "ExecStart=$work/prefix/bin/tt-server" "$work/prefix/lib/systemd/system/tensor-trace.service" ||
  fail 'the unit starts another program'
wheel=$(find "$work/prefix/share/tensor-trace/python" -name 'tensor_trace-*-py3-none-any.whl')
[[ -n $wheel ]] || fail 'there is no Python package'
# It finds the extension through tt on the PATH, and both read the same.
PYTHONPATH=$wheel python3 -c '
import sys, tensor_trace
rows = [len(tensor_trace.open(sys.argv[1], reader=of).accesses()) for of in ("decoder", "extension")]
assert rows[0] == rows[1] > 100, rows' "$work/s.ttrace" ||
  fail 'the Python package does not read a session'

output=$work/output
: >"$output"
tt-server --port 0 --data-dir "$work/sessions" --log-level error >"$output" &
server=$!
for ((tries = 0; tries < 600; ++tries)); do
  address=$(sed -n '/^http:/p' "$output")
  [[ -z $address ]] || break
  kill -0 "$server" 2>/dev/null || fail 'the server ended'
  sleep 0.05
done
[[ -n $address ]] || fail "no address: $(cat "$output")"
page=$(curl --fail --silent "$address/")
script=$(sed -nE 's/.*src="\.\/(assets\/[^"]+\.js)".*/\1/p' <<<"$page" | head -n 1)
[[ -n $script ]] || fail "the page has no script: $page"
curl --fail --silent --output /dev/null "$address/$script" || fail "no $script"
for ((tries = 0; tries < 600; ++tries)); do
  health=$(curl --fail --silent "$address/api/v1/health" || true)
  [[ $health != *'"status":"ok"'* ]] || break
  sleep 0.1
done
[[ $health == *'"status":"ok"'* ]] || fail "the model was not loaded: $health"

# Configuring names what is missing or too old, its package and what to do. The fake programs in
# $work/old report old versions.
mkdir "$work/old"
fake() { { echo '#!/bin/sh'; cat; } >"$work/old/$1"; chmod +x "$work/old/$1"; }
configure() {
  message=$(cmake -S "$tree" -B "$work/build" -G Ninja -DBUILD_TESTING=OFF "$@" 2>&1) && result=accepted || result=rejected
  message=$(tr -s ' \n' ' ' <<<"$message")  # CMake breaks lines
  rm -rf -- "$work/build"
}

fake pkg-config <<'BODY'
case "$*" in
  *libzstd*'>='*) echo 'Package libzstd is 1.0.0' >&2; exit 1 ;;
esac
exec /usr/bin/pkg-config "$@"
BODY
configure -DTT_WEBUI=OFF -DPKG_CONFIG_EXECUTABLE="$work/old/pkg-config"
[[ $result == rejected && $message == *'requires libzstd >= 1.5 (Debian package libzstd-dev)'*'./tt build'* ]] ||
  fail "$message"

fake c++ <<'BODY'
case "$*" in
  *header_check*) echo 'no such file' >&2; exit 1 ;;
esac
exec /usr/bin/c++ "$@"
BODY
configure -DTT_WEBUI=OFF -DCMAKE_CXX_COMPILER="$work/old/c++"
[[ $result == rejected && $message == *'requires qjs/quickjs.h (Debian package libqjs-dev)'*'./tt build'* ]] ||
  fail "$message"

fake node <<<'echo v18.1.0'
configure -DNODE_EXECUTABLE="$work/old/node"
[[ $result == accepted && $message == *'page is not built: it needs node >= 22.12, not 18.1.0.'*'./tt build'* ]] ||
  fail "$message"
