#!/usr/bin/env bash
# package.sh BUILD OUTPUT: makes, from the release build in the folder BUILD, in the folder OUTPUT:
#
#   tensor-trace-VERSION-linux-x86_64.tar.zst   runs on any x86-64 Linux, from any folder
#   tensor-trace-VERSION-linux-x86_64.tar.gz    the same, larger, for systems without zstd
#   tensor-trace_VERSION_amd64.deb              for the Debian suite of the build environment
#   tensor_trace-VERSION-py3-none-any.whl       the Python package
#   SHA256SUMS                                  their checksums
#
# Runs in the build environment, as part of `./tt package`.
set -euo pipefail

build=$(realpath "$1") output=$(realpath "$2")
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
programs=("$build/bin/tt" "$build/bin/tt-server" "$build/bin/tt-worker" "$build/lib/tensor_trace.so")

die() { printf 'tt: %s\n' "$*" >&2; exit 1; }

# --- the archive --------------------------------------------------------------

# libraries_of FILE...: the paths of all libraries that the files are loaded with, and the loader.
libraries_of() { ldd "$@" | sed -nE 's@^[^/]*(/[^ ]+) \(0x[0-9a-f]+\)$@\1@p' | sort -u; }

# The folder of the backends of the libggml of the programs.
backend_folder() {
  libraries_of "${programs[@]}" | sed -nE 's@/libggml\.so\.([0-9]+)$@/ggml/backends\1@p' | xargs realpath
}

# The package that owns a file. A library may be known by its path before /usr was merged.
package_of() { dpkg-query --search "$1" 2>/dev/null | sed -n '1s/:.*//p'; }

# The tree that `cmake --install` makes, in which the programs are replaced by launchers
# (launcher.cpp) and moved to the loader and the libraries.
make_archive_tree() {
  local root=$1 libraries=$1/lib/tensor-trace backends name path
  cmake --install "$build" --prefix "$root" --strip >/dev/null
  rm -r "$root/lib/systemd"  # it contains the path of the installation
  mv "$root/share/doc/tensor-trace/copyright" "$root/share/doc/tensor-trace/LICENSE"
  mv "$root/bin/tt" "$root/bin/tt-server" "$root/libexec/tensor-trace/tt-worker" "$libraries/"
  for name in tt tt-server; do install "$build/package/tt_launcher" "$root/bin/$name"; done
  install "$build/package/tt_worker_launcher" "$root/libexec/tensor-trace/tt-worker"
  strip "$root"/bin/* "$root/libexec/tensor-trace/tt-worker"

  # As in the system: beside libggml (tracer/engine/backends.cpp).
  backends=$(backend_folder)
  name=ggml/${backends##*/}
  mkdir -p "$libraries/$name"
  cp "$backends"/libggml-cpu-*.so "$backends/libggml-rpc.so" "$libraries/$name/"

  libraries_of "${programs[@]}" "$libraries/$name"/*.so >"$work/libraries"
  while read -r path; do
    case ${path##*/} in
      ld-linux-*) install "$path" "$libraries/ld.so" ;;
      *) install -m 644 "$path" "$libraries/" ;;
    esac
  done <"$work/libraries"
  [[ -x $libraries/ld.so ]] || die 'the loader was not found'
  check_archive_tree "$root"
  add_licences "$root/share/doc/tensor-trace/libraries"
}

# Fails if a program or a library of the archive needs a library, or a version of its symbols, that
# the archive does not have: it would depend on the system that it is unpacked on. The two libraries
# that programs of the system load have tests of their own (analysis/sql, attach).
check_archive_tree() {
  local libraries=$1/lib/tensor-trace file found
  find "$libraries" -type f ! -name ld.so ! -name libtt_attach.so ! -name tensor_trace.so >"$work/objects"
  while read -r file; do
    found=$("$libraries/ld.so" --inhibit-cache --library-path "$libraries" --list "$file" 2>&1) ||
      die "${file##*/} of the archive cannot be loaded: $found"
    found=$(sed -nE "s@.* => (.*) \(0x[0-9a-f]+\)\$@\1@p; /not found/p" <<<"$found" | grep -v "^$libraries/") || true
    [[ -z $found ]] || die "${file##*/} of the archive needs $found"
  done <"$work/objects"
}

# The licences of the libraries, as Debian describes them.
add_licences() {
  local path package
  mkdir -p "$1"
  { while read -r path; do package_of "$(realpath "$path")"; done <"$work/libraries"
    package_of "$(backend_folder)/libggml-rpc.so"; } | sort -u >"$work/packages"
  [[ $(grep -c . "$work/packages") -gt 10 ]] || die 'the packages of the libraries were not found'
  while read -r package; do
    cp -L "/usr/share/doc/$package/copyright" "$1/$package"
  done <"$work/packages"
  cp -rL /usr/share/common-licenses "$1/"
}

# Node.js compresses: it is on the package list because of the page.
make_archive() {
  local name=tensor-trace-$version-linux-x86_64
  make_archive_tree "$work/$name"
  # One time for all files, that of the newest program: the server keeps results of the same build
  # only, which it recognizes by the time of its file.
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+w,go=u-w \
    --mtime="@$(stat -c %Y "${programs[@]}" | sort -n | tail -n 1)" -cf "$work/$name.tar" "$name"
  gzip -9 -n <"$work/$name.tar" >"$output/$name.tar.gz"
  node <"$work/$name.tar" >"$output/$name.tar.zst" \
    -e 'const { constants, createZstdCompress } = require("node:zlib");
      const level = { [constants.ZSTD_c_compressionLevel]: 19, [constants.ZSTD_c_windowLog]: 27 };
      process.stdin.pipe(createZstdCompress({ params: level })).pipe(process.stdout);'
}

# --- the Debian package -------------------------------------------------------

# The packages of the libraries that the programs name themselves, at least as new as here.
debian_depends() {
  local path package
  objdump -p "${programs[@]}" | sed -n 's/^ *NEEDED *//p' | sort -u >"$work/needed"
  libraries_of "${programs[@]}" | grep -F -f "$work/needed" | while read -r path; do
    package_of "$(realpath "$path")"
  done | sort -u | while read -r package; do
    printf '%s (>= %s)\n' "$package" "$(dpkg-query -W -f '${Version}' "$package" | sed 's/-[^-]*$//')"
  done | paste -sd, | sed 's/,/, /g'
}

make_deb() {
  local depends
  depends=$(debian_depends)
  [[ $depends == *libllama* ]] || die "the packages of the libraries were not found: $depends"
  (cd "$work" && umask 022 && cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/cpack" \
    -D CPACK_DEBIAN_PACKAGE_DEPENDS="$depends") >"$work/log" 2>&1 || { cat "$work/log" >&2; die 'cpack failed'; }
  mv "$work"/cpack/*.deb "$output/"
}

# ------------------------------------------------------------------------------

[[ $(uname -m) == x86_64 ]] || die 'packages are made on x86-64 only'
command -v dpkg-deb >/dev/null || die 'packages are made on Debian or in its build environment only'
rm -rf -- "$output"
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
make_archive
make_deb
cp "$build"/python/tensor_trace-*.whl "$output/"
cd "$output"
sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
