#!/usr/bin/env bash
# docker/root.sh: creating, entering and removing the environment, with fake programs for
# unpacking and mounting.
# shellcheck source=tests/build_script/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

root_sh=$tree/docker/root.sh
root=$("$root_sh" path)

program id <<<'echo 0'
program df <<<'echo Avail; echo 90000M'
program unshare <<'BODY'
while [[ $1 == --* || $1 == private ]]; do shift; done
exec "$@"
BODY
program mount <<<''
program chroot <<'BODY'
shift
exec "$@"
BODY
# Like the real one: the folder is the last argument.
# shellcheck disable=SC2016  # expanded when it runs
unpack='folder=${!#}; mkdir -p "$folder/etc" "$folder/usr/share/pack"; echo x >"$folder/usr/share/pack/x"'
program mmdebstrap <<<"$unpack"

test_is_set_up_once_with_the_listed_packages() {
  "$root_sh" create 2>/dev/null
  "$root_sh" create 2>/dev/null
  equals "$(calls_of mmdebstrap)" 1
  contains "$(cat "$calls")" 'libllama-dev,'
  [[ -d $root && ! -e $root.partial ]] || fail "not complete: $root"
}

test_is_synced_to_disk_before_it_gets_its_final_name() {
  program sync <<<'exit 1'
  fails "$root_sh" create 2>/dev/null
  contains "$(cat "$calls")" "sync --file-system $root.partial"
  [[ ! -e $root ]] || fail 'has its final name already'
}

test_prints_each_step_and_its_duration() {
  local output
  program mmdebstrap <<<"sleep 1.1; $unpack"
  output=$("$root_sh" create 2>&1)
  contains "$output" "setting up the build environment (Debian forky, about 4 minutes, 3.5 GB) in $root"
  [[ $output =~ 'the build environment is ready ('[1-9][0-9]*' s)' ]] || fail "no duration: $output"
}

test_changed_package_but_not_a_changed_comment_is_another_environment() {
  echo '# a remark' >>"$tree/docker/packages.txt"
  equals "$("$root_sh" path)" "$root"
  echo 'hello' >>"$tree/docker/packages.txt"
  [[ $("$root_sh" path) != "$root" ]] || fail 'same folder for another list'
}

test_interrupted_set_up_is_repeated() {
  program mmdebstrap <<<"$unpack; touch '$work/unpacking'; exec sleep 60"
  "$root_sh" create 2>"$work/stderr" &
  wait_until test -e "$work/unpacking"
  kill -TERM $!
  if wait $!; then fail 'an interrupted set-up succeeded'; fi
  contains "$(cat "$work/stderr")" 'interrupted'
  [[ ! -e $root && -e $root.partial ]] || fail 'an incomplete folder has the final name'

  program mmdebstrap <<<"[[ ! -e \${!#} ]] || exit 1; $unpack"
  "$root_sh" create 2>/dev/null
  [[ -d $root && ! -e $root.partial ]] || fail 'was not repeated'
}

test_failed_set_up_is_repeated() {
  program mmdebstrap <<<"$unpack; exit 1"
  fails "$root_sh" create 2>/dev/null
  contains "$output" 'could not be set up'
  program mmdebstrap <<<"$unpack"
  "$root_sh" create 2>/dev/null
  [[ -d $root ]] || fail 'was not repeated'
}

test_two_processes_set_up_one_environment() {
  program mmdebstrap <<<"sleep 0.5; $unpack"
  "$root_sh" create 2>/dev/null &
  "$root_sh" create 2>/dev/null
  wait $!
  equals "$(calls_of mmdebstrap)" 1
}

test_removes_nothing_outside_the_cache() {
  local id=0123456789ab
  mkdir -p "$work/precious/root-$id" "$cache/sub/root-$id" "$cache/other" "$cache/root-mine" "$cache/root-$id"
  ln -s "$work/precious" "$cache/root-link"
  for dir in / /root "$work/precious" "$work/precious/root-$id" "$TT_CACHE" "$cache" "$cache/other" \
    "$cache/sub/root-$id" "$cache/root-mine" "$cache/root-$id" "$cache/root-link" \
    "$cache/root-x/../../../precious" "$cache/root-link/root-$id"; do
    [[ ! -e $dir ]] || fails "$root_sh" remove "$dir"
    contains "$output" 'cannot remove'
  done
  "$root_sh" remove-all
  [[ -d $work/precious/root-$id && -d $cache/other && -d $cache/sub/root-$id && -d $cache/root-mine &&
    -d $cache/root-$id ]] || fail 'a folder of another program was removed'
}

test_removes_an_environment() {
  "$root_sh" create 2>/dev/null
  "$root_sh" remove 2>/dev/null
  [[ ! -e $root ]] || fail 'was not removed'
}

test_removes_the_remains_of_an_interrupted_set_up_but_not_a_running_one() {
  program mmdebstrap <<<"$unpack; touch '$work/unpacking'; exec sleep 60"
  "$root_sh" create 2>/dev/null &
  wait_until test -e "$work/unpacking"
  fails "$root_sh" remove-all
  contains "$output" 'in use'
  [[ -d $root.partial ]] || fail 'was removed during the set-up'
  kill -TERM $!
  wait $! || true
  "$root_sh" remove-all 2>/dev/null
  [[ ! -e $root.partial ]] || fail 'was not removed'
}

# Where an earlier version created it: directly in the TT_CACHE folder.
test_finds_an_environment_directly_in_the_cache_folder() {
  mkdir -p "$TT_CACHE/${root##*/}" "$TT_CACHE/root-mine"
  : >"$TT_CACHE/${root##*/}.lock"
  equals "$("$root_sh" path)" "$TT_CACHE/${root##*/}"
  "$root_sh" create
  equals "$(calls_of mmdebstrap)" 0
  "$root_sh" remove-all 2>/dev/null
  equals "$(ls "$TT_CACHE")" "$(printf '%s\n' "${root##*/}.lock" root-mine)"
}

test_removes_nothing_that_is_in_use() {
  "$root_sh" create 2>/dev/null
  "$root_sh" enter env bash -c "touch '$work/started'; exec sleep 60" 2>/dev/null &
  wait_until test -e "$work/started"
  fails "$root_sh" remove
  contains "$output" 'in use'
  kill $!
  wait $! || true
  "$root_sh" remove 2>/dev/null
}

test_files_in_arguments_are_visible_inside() {
  "$root_sh" create 2>/dev/null
  mkdir -p "$work/models"
  touch "$work/models/m.gguf"
  : >"$calls"
  cd "$work/models"
  "$root_sh" enter true --model=m.gguf
  contains "$(cat "$calls")" "mount --rbind -- $work/models $root$work/models"
}

# The first call leaves an empty folder, its mount point, in the environment.
test_an_earlier_mount_point_does_not_hide_its_parent_folder() {
  "$root_sh" create 2>/dev/null
  mkdir -p "$work/models/big"
  touch "$work/models/big/m.gguf" "$work/models/m.gguf"
  "$root_sh" enter true "$work/models/big/m.gguf"
  "$root_sh" enter true "$work/models/m.gguf"
  contains "$(cat "$calls")" "mount --rbind -- $work/models $root$work/models"$'\n'
}

test_does_not_mount_over_a_folder_of_the_environment() {
  "$root_sh" create 2>/dev/null
  mkdir -p "$root/usr/bin"
  echo tool >"$root/usr/bin/tool"
  "$root_sh" enter true /usr/bin/env
  [[ $(cat "$calls") != *"-- /usr/bin "* ]] || fail 'the programs of the host hide those inside'
}

# The programs inside create them, on the host.
test_output_files_are_created_in_folders_of_the_host() {
  "$root_sh" create 2>/dev/null
  mkdir -p "$work/media/disk"
  local words
  for words in "-o $work/media/disk/s.ttrace" "-o$work/media/disk/s.ttrace" "--out=$work/media/disk/x" \
    "--data-dir $work/media/disk/a/b" "--data-dir=$work/media/disk/a" "$work/media/disk/bare"; do
    : >"$calls"
    # shellcheck disable=SC2086  # words
    "$root_sh" enter true $words
    contains "$(cat "$calls")" "mount --rbind -- $work/media/disk $root$work/media/disk"
  done
  : >"$calls"
  TT_DATA_DIR=$work/media/disk/a/b "$root_sh" enter true
  contains "$(cat "$calls")" "mount --rbind -- $work/media/disk $root$work/media/disk"
  equals "$(ls "$work/media/disk")" ''
}

# Makes $work/own a folder like /var/lib, which exists on the host and in the environment.
own_folder() {
  "$root_sh" create 2>/dev/null
  mkdir -p "$work/own" "$root$work/own"
  echo something >"$root$work/own/x"
}

test_a_new_folder_below_one_of_the_environment_is_created_on_the_host() {
  own_folder
  TT_DATA_DIR=$work/own/b/c CCACHE_DIR=$work/own/d "$root_sh" enter true --data-dir "$work/own/a" --install="$work/own/e"
  local dir
  for dir in a b/c d e; do
    [[ -d $work/own/$dir ]] || fail "$dir is not on the host"
    contains "$(cat "$calls")" "mount --rbind -- $work/own/$dir $root$work/own/$dir"
  done
}

test_rejects_output_that_would_be_lost_in_the_environment() {
  own_folder
  fails "$root_sh" enter true -o "$work/own/s.ttrace"
  contains "$output" "$work/own/s.ttrace would be lost: the build environment has a $work/own of its own"
  contains "$output" "mkdir -p $work/own/tensor-trace"
  fails "$root_sh" enter true --output="$work/own/new/s.ttrace"
  contains "$output" "mkdir -p $work/own/new"
  ln -s "$work/own" "$work/link"
  fails "$root_sh" enter true -o "$work/link/s.ttrace"
  fails env TT_API_KEY_FILE="$work/own/key" "$root_sh" enter true
  fails "$root_sh" enter true --data-dir "$work/own"
  contains "$output" "mkdir -p $work/own/tensor-trace"
  equals "$(ls "$work/own")" ''
  equals "$(grep -c '^chroot' "$calls" || true)" 0

  echo secret >"$work/own/key"
  "$root_sh" enter true --api-key-file "$work/own/key"
  contains "$(cat "$calls")" "mount --bind -- $work/own/key $root$work/own/key"
}

test_arguments_that_only_look_like_paths_create_nothing() {
  own_folder
  "$root_sh" enter true --prompt "$work/own/help me/now" "$work/own/new" '/* all */ SELECT 1' /no_think \
    --model="$work/own/none.gguf" -o - -o /dev/stdout | cat
  equals "$(ls "$work/own")" ''
  [[ ! -e $root$work/own/new ]] || fail 'created inside'
}

test_a_key_is_not_passed_as_an_argument() {
  "$root_sh" create 2>/dev/null
  local name
  for name in realpath mkdir find; do program "$name" <<<"exec $(type -P "$name") \"\$@\""; done
  TT_API_KEY=/home/s3cret/x== "$root_sh" enter true
  contains "$(cat "$calls")" realpath
  [[ $(cat "$calls") != *s3cret* ]] || fail "visible to other users: $(grep s3cret "$calls")"
}

# Otherwise, output to a folder that no argument names would be lost without an error.
test_the_environment_itself_is_read_only_inside() {
  "$root_sh" create 2>/dev/null
  "$root_sh" enter true "$work/home"
  equals "$(grep -m 1 '^mount' "$calls")" "mount --bind -- $root $root"
  equals "$(grep '^mount' "$calls" | tail -n 1)" "mount -o remount,bind,ro $root"
}

# PATH after `su` without a dash on Debian.
test_programs_of_sbin_are_found_without_it_on_the_path() {
  "$root_sh" create 2>/dev/null
  # shellcheck disable=SC2016  # expanded when it runs
  program unshare <<<'echo "PATH=$PATH"'
  contains "$(PATH=$work/bin:/usr/bin:/bin "$root_sh" enter true)" ':/usr/sbin:/sbin'
}

test_a_cache_that_cannot_be_written_explains_what_to_do() {
  : >"$work/file"
  fails env TT_CACHE="$work/file" "$root_sh" create
  contains "$output" "$work/file/tensor-trace cannot be written"
  contains "$output" 'TT_CACHE=/a/writable/folder'
  equals "$(wc -l <<<"$output")" 2
}

test_certificates_of_the_host_are_used_inside() {
  "$root_sh" create 2>/dev/null
  echo certificate >"$work/own.crt"
  local output
  output=$(SSL_CERT_FILE=$work/own.crt LIBRARY_PATH=/opt/host/lib "$root_sh" enter env)
  contains "$(cat "$calls")" "mount --bind -- $work/own.crt $root/etc/ssl/certs/ca-certificates.crt"
  contains "$output" 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt'
  contains "$output" "TT_INSIDE=${root##*/}"
  [[ $output != *LIBRARY_PATH* ]] || fail 'the compiler would use LIBRARY_PATH of the host'
}

test_without_root_explains_what_to_do() {
  program id <<<'echo 1000'
  fails "$root_sh" create 2>/dev/null
  contains "$output" 'sudo '
  contains "$output" 'docker compose'
}

test_container_without_mounts_explains_what_to_do() {
  program unshare <<<'exit 1'
  fails "$root_sh" create 2>/dev/null
  contains "$output" '--privileged'
}

test_small_disk_explains_what_to_do() {
  program df <<<'echo Avail; echo 100M'
  fails "$root_sh" create 2>/dev/null
  contains "$output" 'TT_CACHE='
}

test_missing_mmdebstrap_is_installed() {
  rm "$work/bin/mmdebstrap"
  program apt-get <<BODY
[[ \$1 != install ]] || { printf '#!/bin/bash\n%s\n' '$unpack' >"$work/bin/mmdebstrap"; chmod +x "$work/bin/mmdebstrap"; }
BODY
  mkdir "$work/system"
  # A PATH without the real one.
  for tool in bash true sed sort uname sha256sum cut mkdir flock dirname tail tr paste sync mv rm env cat printf chmod; do
    ln -s "$(type -P "$tool")" "$work/system/$tool"
  done
  PATH=$work/bin:$work/system "$root_sh" create 2>/dev/null
  contains "$(cat "$calls")" 'apt-get update'
  [[ -d $root ]] || fail 'was not set up'
}

run_named_test "$1"
