#!/usr/bin/env bash
# test.sh [NAME ...]: tries what `./tt package` made in build/package, as a user of a new system
# would: in minimal systems of Debian, without anything of the build. Each function test_NAME is a
# test; without a NAME all run. Needs root and mmdebstrap, takes about 10 minutes the first time and
# 3 later. Exit code 77: skipped, because the package mirror does not answer.
#
# The systems are unpacked once, into the cache of ./tt.
set -euo pipefail
export PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=docker/cache.sh
source "$tree/docker/cache.sh"
output=$tree/build/package
user=1000  # has no entry in the user database

say() { printf 'tt: %s\n' "$*" >&2; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# Everything is mounted in a mount namespace of its own. The folders are removed where these mounts
# do not exist.
if [[ ${1:-} != inside ]]; then
  [[ $(id -u) == 0 ]] || fail 'package/test.sh needs root: it sets up minimal systems'
  command -v mmdebstrap >/dev/null || fail 'package/test.sh needs mmdebstrap: apt-get install mmdebstrap'
  work=$(mktemp -d)
  trap 'rm -rf --one-file-system -- "$work"' EXIT
  chmod 755 "$work"
  unshare --mount --propagation private "$BASH" "${BASH_SOURCE[0]}" inside "$work" "$@"
  exit
fi
work=$2
server=
shift 2

# --- systems ------------------------------------------------------------------

mount_kernel_folders() {
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
}

# system SUITE PACKAGES: sets $root to a new copy of a minimal system.
system() {
  local suite=$1 packages=$2 tar
  tar=$cache/systems/$suite-$(sha256sum <<<"$packages" | cut -c1-12)
  if [[ ! -f $tar.tar ]]; then
    say "setting up a minimal $suite"
    mkdir -p "${tar%/*}"
    # Check-Valid-Until as in docker/root.sh.
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
      --dpkgopt=force-unsafe-io ${packages:+--include="$packages"} "$suite" "$tar.partial.tar" >&2 || {
      rm -f "$tar.partial.tar"
      say "SKIPPED: the package mirror has no $suite, or does not answer"
      exit 77
    }
    mv "$tar.partial.tar" "$tar.tar"
  fi
  # A new folder each time: in one that is in use, /dev is that of the machine, and tar would write it.
  root=$(mktemp -d "$work/$suite-XXXXXX")
  chmod 755 "$root"
  tar -C "$root" -xf "$tar.tar"
  mount_kernel_folders
}

# Runs a command in the system as an ordinary user without HOME.
as_user() { chroot --userspec="$user:$user" "$root" /usr/bin/env -i PATH=/usr/bin:/bin "$@"; }
# Runs a command in the build environment.
built() { TT_CACHE=$cache "$tree/tt" shell "$@"; }

# unpack_archive FOLDER: unpacks the archive into a folder of the system that nobody can write.
# The programs are in $bin.
unpack_archive() {
  local folder=$root$1 name
  mkdir -p "$folder"
  built cmake -E chdir "$folder" cmake -E tar xf "$(compgen -G "$output/tensor-trace-*.tar.zst")"
  name=$(cd "$folder" && echo tensor-trace-*)
  mount --bind "$folder" "$folder"
  mount -o remount,bind,ro "$folder"
  # shellcheck disable=SC2034  # read by the tests
  bin=$1/$name/bin
}

# --- the programs -------------------------------------------------------------

# start_server PROGRAM OPTIONS: sets $address.
start_server() {
  local tries health
  : >"$work/address"
  chroot --userspec="$user:$user" "$root" /usr/bin/env -i PATH=/usr/bin:/bin "$@" --port 0 --data-dir /tmp/sessions --log-level error >"$work/address" &
  server=$!
  for ((tries = 0; tries < 600; ++tries)); do
    address=$(sed -n '/^http:/p' "$work/address")
    [[ -z $address ]] || break
    kill -0 "$server" 2>/dev/null || fail 'tt-server ended'
    sleep 0.05
  done
  [[ -n $address ]] || fail "tt-server printed no address: $(cat "$work/address")"
  for ((tries = 0; tries < 600; ++tries)); do
    health=$(curl --fail --silent "$address/api/v1/health" || true)
    [[ $health != *'"status":"ok"'* ]] || return 0
    sleep 0.1
  done
  fail "tt-server did not load its model: $health"
}

stop_server() {
  kill "$server"
  wait "$server" || fail "tt-server ended with $?"
  server=
}

# The verbs of tt: recording, every question, exports that other programs read.
check_tt() {
  local tt=$1 format
  [[ $(as_user "$tt" --version) == "tt $version" ]] || fail "tt --version: $(as_user "$tt" --version)"
  as_user "$tt" record -p 'Once upon a time' -n 16 -o /tmp/s.ttrace >/dev/null 2>&1 || fail 'tt record'
  as_user "$tt" parse --validate /tmp/s.ttrace >/dev/null || fail 'tt parse --validate'
  as_user "$tt" hot /tmp/s.ttrace | grep -q 'token_embd\|output' || fail 'tt hot'
  for format in parquet csv perfetto; do
    as_user "$tt" export --format "$format" /tmp/s.ttrace -o "/tmp/s.$format" >/dev/null || fail "tt export $format"
  done
  cp "$root"/tmp/s.{parquet,csv,perfetto} "$work/"
  [[ $(built duckdb -noheader -list -c "SELECT count(*) > 1000 AND count(*) = (SELECT count(*)
    FROM read_csv('$work/s.csv')) FROM '$work/s.parquet'") == true ]] || fail 'the CSV and Parquet files differ'
  [[ $(stat -c %s "$work/s.perfetto") -gt 10000 ]] || fail 'the Perfetto file is too small'
}

# The server: its name, its page, its worker (a grammar is compiled there), a recorded answer.
check_server() {
  local page script answer pid
  start_server "$@"
  pid=$(pgrep -P "$server" -x tt-server || pgrep -x tt-server | grep -x "$server") ||
    fail 'no process is called tt-server'
  page=$(curl --fail --silent "$address/")
  script=$(sed -nE 's/.*src="\.\/(assets\/[^"]+\.js)".*/\1/p' <<<"$page" | head -n 1)
  curl --fail --silent --output /dev/null "$address/$script" || fail "the page has no script: $page"
  answer=$(curl --fail --silent -H 'Content-Type: application/json' "$address/api/v1/generate" -d \
    '{"prompt": "Once", "max_tokens": 8, "stream": true, "grammar": "root ::= \"frog\" | \"lake\""}') ||
    fail 'a request with a grammar'
  answer=$(sed -nE 's/.*"generated":true.*"text":"([^"]*)".*/\1/p' <<<"$answer" | tr -d '\n')
  [[ $answer == frog || $answer == lake ]] || fail "the grammar was not obeyed: $answer"
  answer=$(curl --silent -H 'Content-Type: application/json' "$address/api/v1/generate" -d \
    '{"prompt": "Once", "grammar": "root ::= nothing"}')
  [[ $answer == *'"invalid_grammar"'* || $answer == *rammar* ]] || fail "a wrong grammar: $answer"
  grep -q tt-worker "/proc/$pid/task/$pid/children" 2>/dev/null || pgrep -x tt-worker >/dev/null ||
    fail 'there is no worker'
  stop_server
}

# The tests of the page's first minute, in Chromium, with the server of the system.
check_page() {
  local shared=$work/shared
  mkdir -p "$shared" "$root$shared"
  mount --bind "$shared" "$root$shared"
  cat >"$work/server.sh" <<SCRIPT
#!/bin/bash
while [[ \${1:-} == --port || \${1:-} == --data-dir ]]; do  # the first arguments of the tests
  [[ \$1 != --data-dir ]] || chown $user "\$2"
  options+=("\$1" "\$2")
  shift 2
done
exec chroot --userspec=$user:$user "$root" env -i PATH=/usr/bin:/bin "$1" "\${options[@]}" "\$@"
SCRIPT
  chmod +x "$work/server.sh"
  built env TMPDIR="$shared" TT_SERVER="$work/server.sh" \
    npm --prefix "$tree/webui" run test:e2e -- first_minute >"$work/page.log" 2>&1 ||
    { cat "$work/page.log" >&2; fail 'the page'; }
}

version=$(sed -nE 's/^project\(tensor-trace VERSION ([0-9.]+).*/\1/p' "$tree/CMakeLists.txt")

# --- tests --------------------------------------------------------------------

test_checksums() { (cd "$output" && sha256sum --check --quiet SHA256SUMS) || fail 'checksums'; }

# The commands of the README name these files.
test_readme() {
  local name
  while read -r name; do
    [[ -s $output/$name ]] || fail "README.md names $name"
  done < <(grep -oE 'tensor[-_]trace[-_][0-9.]+[-_][a-z0-9_-]+\.(tar\.gz|deb|whl)' "$tree/README.md" | sort -u)
}

# A new user of a minimal system who has the archive and the README: its command unpacks the archive
# and starts the server, which shows its page.
test_first_command() {
  local command
  command=$(sed -nE 's/^\| any Linux on x86-64 \| .(.*). \|$/\1/p' "$tree/README.md")
  [[ $command == *'&& '* ]] || fail 'README.md has no command for any Linux'
  system bullseye ''
  cp "$output"/tensor-trace-*.tar.gz "$root/tmp/"
  cat >"$root/srv/follow" <<'SCRIPT'
#!/bin/sh
cd /tmp
command=$1
shift
eval "$command \"\$@\""
SCRIPT
  chmod +x "$root/srv/follow"
  start_server /srv/follow "${command/"&& "/"&& exec "}"  # so that it can be stopped
  curl --fail --silent "$address/" | grep -q '<script' || fail 'there is no page'
  stop_server
}

# Two suites that are older than that of the build. The folder's name has a space and a colon.
check_archive() {
  system "$1" ''
  unpack_archive '/srv/a folder: mine'
  check_tt "$bin/tt"
  # The other archive has the same files. The system unpacks it with what it has.
  cp "$output"/tensor-trace-*.tar.gz "$root/srv/"
  as_user sh -c "cd /tmp && tar xf /srv/tensor-trace-*.tar.gz" || fail 'tar'
  diff -r "$root/tmp"/tensor-trace-* "$root${bin%/bin}" || fail 'the archives differ'
  # A link, as in ~/.local/bin, and a relative path.
  mkdir "$root/tmp/bin"
  ln -s "$bin/tt" "$root/tmp/bin/tt"
  [[ $(as_user env PATH=/tmp/bin:/usr/bin:/bin tt --version) == "tt $version" ]] || fail 'through a link'
  [[ $(as_user env --chdir="$bin" ./tt --version) == "tt $version" ]] || fail 'a relative path'
  # What README.md links to is there.
  local documents=$root${bin%/bin}/share/doc/tensor-trace link
  for link in $(grep -oE '\]\([^):#]+' "$documents/README.md" | cut -c3-); do
    [[ -e $documents/$link ]] || fail "README.md links to $link"
  done
  # Executes itself.
  as_user "$bin/tt" memory --try -m "$(compgen -G "$root$bin/../share/tensor-trace/*.gguf" | sed "s@^$root@@")" \
    --json >"$work/log" 2>&1 || fail "tt memory --try: $(cat "$work/log")"
  # Another llama.cpp in LD_LIBRARY_PATH is not used.
  : >"$root/tmp/libllama.so.0"
  as_user env LD_LIBRARY_PATH=/tmp "$bin/tt" --version >/dev/null || fail 'with LD_LIBRARY_PATH'
  check_server "$bin/tt-server"
  check_page "$bin/tt-server"
}
test_archive_bullseye() { check_archive bullseye; }
test_archive_bookworm() { check_archive bookworm; }

# A missing file is named.
test_incomplete_archive() {
  local folder=$work/incomplete message
  mkdir "$folder"
  built cmake -E chdir "$folder" cmake -E tar xf "$(compgen -G "$output/tensor-trace-*.tar.zst")"
  rm "$folder"/*/lib/tensor-trace/ld.so
  message=$(env "$folder"/*/bin/tt --version 2>&1) && fail 'started without its loader'
  [[ $message == *'ld.so: cannot be opened; unpack the whole archive'* ]] || fail "$message"
}

# tt from the archive starts within 50 ms more than that of the build: medians of 40 starts in turns.
test_start_time() {
  local folder=$work/start
  mkdir "$folder"
  built cmake -E chdir "$folder" cmake -E tar xf "$(compgen -G "$output/tensor-trace-*.tar.zst")"
  built python3 - "$tree/build/release/bin/tt" "$folder"/*/bin/tt <<'PYTHON' || fail 'the archive starts too slowly'
import statistics, subprocess, sys, time

times = {program: [] for program in sys.argv[1:]}
for _ in range(40):
    for program in times:
        began = time.perf_counter()
        subprocess.run([program, "--version"], check=True, stdout=subprocess.DEVNULL)
        times[program].append(1000 * (time.perf_counter() - began))
build, archive = (statistics.median(of) for of in times.values())
print(f"tt --version: build {build:.1f} ms, archive {archive:.1f} ms", file=sys.stderr)
sys.exit(archive - build >= 50)
PYTHON
}

# The Debian package in a system that has its dependencies; the wheel in a virtual environment.
test_deb() {
  local deb depends wheel file
  deb=$(compgen -G "$output/*.deb")
  wheel=$(compgen -G "$output/*.whl")
  depends=$(built dpkg-deb -f "$deb" Depends | sed -E 's/ \([^)]*\)//g; s/, /,/g')
  system forky "$depends,lintian,man-db,python3-matplotlib,python3-pandas,python3-venv"
  cp "$deb" "$wheel" "$root/srv/"
  chroot "$root" sh -c 'dpkg --install /srv/*.deb' >"$work/log" 2>&1 || { cat "$work/log" >&2; fail 'dpkg'; }
  as_user lintian --no-cfg --fail-on error,warning --info "/srv/${deb##*/}" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail 'lintian'; }
  cat "$work/log" >&2
  check_tt tt
  check_server tt-server
  check_page tt-server
  for file in share/bash-completion/completions/tt share/zsh/vendor-completions/_tt \
    share/fish/vendor_completions.d/tt.fish lib/systemd/system/tensor-trace.service \
    share/doc/tensor-trace/docs/operation.md; do
    [[ -s $root/usr/$file ]] || fail "there is no /usr/$file"
  done
  grep -q '^ExecStart=/usr/bin/tt-server$' "$root/usr/lib/systemd/system/tensor-trace.service" || fail 'the unit'
  # man is silent about its pages, and they have each verb and option.
  for file in tt tt-server; do
    [[ -z $(as_user env MANWIDTH=80 man --warnings -E UTF-8 -l "/usr/share/man/man1/$file.1.gz" 2>&1 >/dev/null) ]] ||
      fail "man $file has warnings"
    as_user env MANWIDTH=200 man "$file" >"$root/tmp/$file.txt"
  done
  for file in $(as_user tt --help | sed -nE 's/^  ([a-z-]+) .*/\1/p'); do
    grep -q "^ *tt $file " "$root/tmp/tt.txt" || fail "man tt has no $file"
  done
  for file in $(as_user tt-server --help | sed -nE 's/^ +(-.,)? +(--[a-z-]+).*/\2/p'); do
    grep -Eq "^ {5,7}(-.*)?$file" "$root/tmp/tt-server.txt" || fail "man tt-server has no $file"
  done
  # The wheel, without an index: what it needs is installed.
  as_user sh -c "python3 -m venv --system-site-packages /tmp/venv &&
    /tmp/venv/bin/pip --no-cache-dir --disable-pip-version-check install --quiet --no-index /srv/${wheel##*/}" >&2 ||
    fail 'the wheel cannot be installed'
  as_user env MPLCONFIGDIR=/tmp /tmp/venv/bin/python3 -c '
import tensor_trace as tt
session = tt.open("/tmp/s.ttrace")
assert session.reader and len(session.accesses()) > 1000
assert session._extension is not None
assert session.sql("SELECT count(*) AS n FROM access")["n"][0] == len(session.accesses())
assert tt.record("/usr/share/tensor-trace/pocket.gguf", "Once", "/tmp/r.ttrace", n_predict=4).info' || fail 'the Python package'
}

# image_system NAME: sets $root to what the last stage of docker/Dockerfile has: busybox, which needs
# no library, and the archive in /opt/tensor-trace.
image_system() {
  local busybox
  system forky busybox-static
  busybox=$root/bin/busybox
  root=$work/$1
  mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,opt,proc,dev,tmp,sessions}
  cp "$busybox" "$root/bin/"
  chroot "$root" /bin/busybox --install -s
  built cmake -E chdir "$root/opt" cmake -E tar xf "$(compgen -G "$output/tensor-trace-*.tar.zst")"
  mv "$root"/opt/tensor-trace-* "$root/opt/tensor-trace"
}

# The image, without Docker.
test_image() {
  local health bytes
  image_system image
  bytes=$(du -s --apparent-size -B1 "$root" | cut -f1)
  say "the image has $((bytes / 1000000)) MB"
  ((bytes <= 150000000)) || fail 'the image has more than 150 MB'
  mount_kernel_folders
  start_server /opt/tensor-trace/bin/tt-server
  health=$(sed -nE 's/^ +CMD (wget .*)/\1/p' "$tree/docker/Dockerfile")
  [[ -n $health ]] || fail 'docker/Dockerfile has no health check'
  as_user TT_PORT="${address##*:}" sh -c "$health" || fail 'the health check'
  ! as_user TT_PORT=9 sh -c "$health" 2>/dev/null || fail 'the health check of a server that does not run'
  stop_server
}

# The archive beside busybox alone, on a kernel as old as that of Ubuntu 20.04: the programs use
# neither libraries nor files of a distribution.
test_old_kernel() {
  local name
  image_system old_kernel
  cp "$tree/build/release/package/tt_old_kernel" "$root/bin/old_kernel"
  for name in tt tt-server; do
    printf '#!/bin/sh\nexec /bin/old_kernel /opt/tensor-trace/bin/%s "$@"\n' "$name" >"$root/opt/$name"
    chmod +x "$root/opt/$name"
  done
  mount_kernel_folders
  check_tt /opt/tt
  check_server /opt/tt-server
}

if (($# == 0)); then
  mapfile -t tests < <(declare -F | sed -n 's/^declare -f test_//p')
  set -- "${tests[@]}"
fi
for name in "$@"; do
  declare -F "test_$name" >/dev/null || fail "there is no test $name"
  began=$SECONDS
  # Not in a condition, in which -e would not apply.
  set +e
  (
    set -e
    trap '[[ -z $server ]] || kill "$server"' EXIT
    "test_$name"
  )
  status=$?
  set -e
  ((status == 0)) || exit "$status"
  say "passed: $name ($((SECONDS - began)) s)"
done
