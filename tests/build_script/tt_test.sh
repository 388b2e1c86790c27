#!/usr/bin/env bash
# ./tt: its verbs, what it builds for them and what it says.
# shellcheck source=tests/build_script/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# Inside an environment. CMake and ninja are played: configuring leaves a
# build.ninja, building leaves programs that print their name and arguments.
inside() {
  export TT_INSIDE=test-system
  program cmake <<'BODY'
case $1 in
  --version) echo cmake version 99.0 ;;
  -S) mkdir -p "$2/build/$4"; : >"$2/build/$4/build.ninja" ;;
  --build)
    mkdir -p "$2/bin"
    for name in tt tt-server step_queue_bench sql_fuzz; do
      [[ -x $2/bin/$name ]] || printf '#!/bin/bash\necho "%s: $*"\n' "$name" >"$2/bin/$name"
      chmod +x "$2/bin/$name"
    done ;;
esac
BODY
  program ninja <<'BODY'
[[ -e $2/bin/tt ]] && echo 'ninja: no work to do.' || echo '[1/1] work'
BODY
  program ctest <<'BODY'
echo '100% tests passed, 0 tests failed out of 1'
BODY
}

calls_of() { grep -c "^$1" "$calls" || true; }

test_help_lists_every_verb() {
  local help verb
  help=$("$tree/tt" help)
  while read -r verb; do
    contains "$help" "  $verb "
  done < <(sed -nE 's/^verb_([a-z]+)\(.*/\1/p' "$tree/tt" | grep -v '^other$')
  equals "$("$tree/tt")" "$help"
}

test_help_and_clean_need_no_environment() {
  program unshare <<<'exit 1'
  mkdir -p "$tree/build/dev"
  "$tree/tt" help >/dev/null
  "$tree/tt" clean
  [[ ! -e $tree/build ]] || fail 'build/ is still there'
  equals "$(calls_of unshare)" 0
}

# TT_CACHE=/a/larger/disk, on which others keep things, too.
test_clean_all_removes_only_what_it_made() {
  local id=0123456789ab
  mkdir -p "$cache/ccache/0" "$cache/npm/x" "$cache/root-$id/usr" "$TT_CACHE/ccache" "$TT_CACHE/npm" \
    "$TT_CACHE/root-$id" "$TT_CACHE/root-mine" "$cache/root-mine" "$work/models"
  : >"$cache/root-$id.lock"
  ln -s "$work/models" "$cache/models"
  "$tree/tt" clean --all 2>/dev/null
  [[ ! -e $cache/ccache && ! -e $cache/npm && ! -e $cache/root-$id ]] || fail "left: $(ls "$cache")"
  [[ -d $TT_CACHE/ccache && -d $TT_CACHE/npm && -d $TT_CACHE/root-$id && -d $TT_CACHE/root-mine &&
    -d $cache/root-mine && -d $cache/models/ ]] || fail 'something of others is gone'
}

# An earlier version made no folder of its own in it: nobody can tell whose they are.
test_clean_all_leaves_caches_in_a_folder_that_others_use() {
  mkdir -p "$TT_CACHE/root-0123456789ab" "$TT_CACHE/ccache" "$TT_CACHE/npm"
  : >"$TT_CACHE/root-0123456789ab.lock"
  contains "$("$tree/tt" clean --all 2>&1)" 'ccache and npm in it are kept'
  [[ -d $TT_CACHE/ccache && -d $TT_CACHE/npm && ! -e $TT_CACHE/root-0123456789ab ]] || fail "$(ls "$TT_CACHE")"
}

test_a_folder_called_tensor_trace_is_taken_as_it_is() {
  contains "$(TT_CACHE=$work/x/tensor-trace/ "$tree/tt" help)" "Caches are in $work/x/tensor-trace (TT_CACHE)"
  contains "$("$tree/tt" help)" "Caches are in $work/disk/tensor-trace (TT_CACHE)"
  contains "$(unset TT_CACHE XDG_CACHE_HOME; "$tree/tt" help)" "Caches are in $HOME/.cache/tensor-trace "
}

# A build that only writes down where it was told to keep its caches. Ninja starts ccache in
# the build's folder and npm in webui/, so these have to be whole paths.
caches_of_a_build() {
  program cmake <<BODY
case \$1 in
  -S) mkdir -p "\$2/build/\$4" ;;
  --build) printf '%s\n' "\$CCACHE_DIR" "\$npm_config_cache" >"$work/caches" ;;
esac
BODY
  "$tree/tt" build 2>/dev/null
  paste -sd' ' "$work/caches"
}

test_caches_of_the_build_lie_outside_the_tree() {
  inside
  equals "$(caches_of_a_build)" "$cache/ccache $cache/npm"
  equals "$(unset TT_CACHE; caches_of_a_build)" \
    "$HOME/.cache/tensor-trace/ccache $HOME/.cache/tensor-trace/npm"
  equals "$(CCACHE_DIR=$work/mine caches_of_a_build)" "$work/mine $cache/npm"
}

test_a_relative_cache_folder_begins_where_the_user_stands() {
  inside
  mkdir "$work/here"
  cd "$work/here"
  local here
  here=$(pwd -P)
  equals "$(TT_CACHE=disk caches_of_a_build)" "$here/disk/tensor-trace/ccache $here/disk/tensor-trace/npm"
  equals "$(TT_CACHE=../tensor-trace caches_of_a_build)" "${here%/*}/tensor-trace/ccache ${here%/*}/tensor-trace/npm"
  contains "$(TT_CACHE=. "$tree/tt" help)" "Caches are in $here/tensor-trace (TT_CACHE)"
  contains "$(TT_CACHE=/ "$tree/tt" help)" 'Caches are in /tensor-trace (TT_CACHE)'
}

test_says_what_it_does_and_how_long_it_takes() {
  inside
  local output what
  output=$("$tree/tt" build --install "$work/prefix" 2>&1)
  for what in 'configuring release' 'building release' "installing in $work/prefix"; do
    contains "$output" "tt: $what"$'\n'
    [[ $output =~ "tt: $what: done in "[0-9]+' s' ]] || fail "not how long '$what' took: $output"
  done
  rm -r "$tree/build"
  program cmake <<'BODY'
[[ $1 != -S ]] || { mkdir -p "$2/build/$4"; sleep 1.1; }
BODY
  output=$("$tree/tt" build 2>&1)
  [[ $output =~ 'configuring release: done in '[1-9] ]] || fail "took more than a second: $output"
}

test_unknown_verb_goes_to_the_program() {
  inside
  mkdir -p "$tree/cli/commands"
  : >"$tree/cli/commands/record_command.cpp"
  equals "$("$tree/tt" record --model 'a b.gguf' 2>/dev/null)" 'tt: record --model a b.gguf'
}

test_mistyped_verb_is_told_before_anything_is_set_up() {
  program c++ <<<'echo 99'
  program pkg-config <<<'echo 99'
  printf '#!/bin/sh\necho "root.sh $*" >>"%s"\n' "$calls" >"$tree/docker/root.sh"
  refused "$tree/tt" recrod
  contains "$said" "unknown verb 'recrod'"
  equals "$(cat "$calls")" ''
}

test_run_passes_options_to_the_server() {
  inside
  equals "$("$tree/tt" run --model m.gguf --port 0 2>/dev/null)" 'tt-server: --model m.gguf --port 0'
  contains "$(cat "$calls")" '--preset release'
}

test_second_run_neither_configures_nor_builds() {
  inside
  "$tree/tt" run >/dev/null 2>&1
  equals "$(calls_of cmake)" 2
  equals "$("$tree/tt" run 2>&1)" 'tt-server: '
  equals "$(calls_of cmake)" 2
}

test_builds_of_one_preset_wait_for_each_other() {
  inside
  program cmake <<BODY
case \$1 in
  -S) mkdir -p "\$2/build/\$4"; : >"\$2/build/\$4/build.ninja" ;;
  --build)
    echo begins >>"$work/order"
    for ((tries = 0; tries < 200; ++tries)); do
      ! grep -q waiting "$work"/said.* || break
      sleep 0.05
    done
    echo ends >>"$work/order" ;;
esac
BODY
  "$tree/tt" build dev 2>"$work/said.one" &
  "$tree/tt" build dev 2>"$work/said.two"
  wait $!
  equals "$(paste -sd' ' "$work/order")" 'begins ends begins ends'
  contains "$(cat "$work"/said.*)" 'waiting for another ./tt that builds dev'
}

test_another_environment_starts_a_new_build_folder() {
  inside
  "$tree/tt" run >/dev/null 2>&1
  touch "$tree/build/release/old.o"
  contains "$(TT_INSIDE=newer-system "$tree/tt" run 2>&1)" 'build/release was made on another system'
  [[ ! -e $tree/build/release/old.o ]] || fail 'objects of two systems are mixed'
}

test_ci_makes_warnings_errors() {
  inside
  CI=true "$tree/tt" build dev 2>/dev/null
  contains "$(cat "$calls")" '--preset dev -DTT_WERROR=ON'
  "$tree/tt" build dev 2>/dev/null
  contains "$(cat "$calls")" '--preset dev -DTT_WERROR=OFF'
}

test_test_ends_with_the_summary_of_ctest() {
  inside
  local output
  output=$("$tree/tt" test -R queue 2>&1)
  equals "${output##*$'\n'}" '100% tests passed, 0 tests failed out of 1'
  contains "$(cat "$calls")" '-R queue'
  equals "$(calls_of 'ctest --preset dev')" 1
  equals "$(calls_of ctest)" 1
}

test_tests_do_not_run_with_the_callers_options() {
  inside
  # shellcheck disable=SC2016  # expanded when it runs
  program ctest <<<'[[ -z ${TT_HOST:-}${TT_MODEL:-} ]]'
  TT_HOST=0.0.0.0 TT_MODEL=/models/x.gguf "$tree/tt" test >/dev/null 2>&1 ||
    fail 'the tests see TT_HOST or TT_MODEL'
}

test_test_all_adds_the_sanitizers() {
  inside
  "$tree/tt" test --all >/dev/null 2>&1
  equals "$(sed -nE 's/^ctest --preset ([a-z-]+).*/\1/p' "$calls" | xargs)" 'asan-all tsan dev'
}

test_fuzz_gives_each_target_its_seconds() {
  inside
  local output
  output=$("$tree/tt" test --fuzz 7 2>&1)
  contains "$output" 'sql_fuzz: -max_total_time=7'
  contains "$output" 'no failures'
  contains "$(cat "$calls")" '--preset fuzz'
  equals "$(calls_of ctest)" 0
  refused "$tree/tt" test --fuzz soon
  contains "$said" 'a number of seconds'
  mkdir -p "$tree/tests/fuzz"
  : >"$tree/tests/fuzz/sql_fuzz.cpp"
  refused "$tree/tt" test --fuzz 7 sqll
  contains "$said" "no fuzz target 'sqll': sql"
  echo 'exit 1' >>"$tree/build/fuzz/bin/sql_fuzz"
  refused "$tree/tt" test --fuzz 7 sql
  contains "$said" 'failures in sql'
}

test_failing_test_is_a_failure() {
  inside
  program ctest <<<'exit 8'
  refused "$tree/tt" test
}

test_bench_chooses_by_name() {
  inside
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  contains "$("$tree/tt" bench queue --benchmark_min_time=0.01s 2>/dev/null)" \
    'step_queue_bench: --benchmark_min_time=0.01s'
  refused "$tree/tt" bench nonsense
  contains "$said" "no benchmark has 'nonsense' in its name"
}

test_bench_that_misses_its_budget_is_a_failure() {
  inside
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  "$tree/tt" bench >/dev/null 2>&1
  printf '#!/bin/bash\nexit 1\n' >"$tree/build/release/bin/step_queue_bench"
  refused "$tree/tt" bench
}

test_install_goes_to_the_prefix() {
  inside
  "$tree/tt" build --install "$work/prefix" 2>/dev/null
  contains "$(cat "$calls")" "cmake --install $tree/build/release --prefix $work/prefix"
}

test_unknown_preset_names_the_known() {
  inside
  refused "$tree/tt" build fast
  contains "$said" 'use release, dev, asan or tsan'
}

test_works_from_another_folder_and_through_a_link() {
  inside
  ln -s "$tree/tt" "$work/link"
  cd /
  equals "$("$work/link" --version 2>/dev/null)" 'tt: --version'
}

# node_modules may be incomplete after an interrupted `npm ci`: only the build decides
# whether it is complete.
test_fmt_and_lint_ask_the_build_for_the_packages() {
  inside
  for name in git npm python3 clang-format shellcheck clang-tidy; do program "$name" <<<''; done
  mkdir -p "$tree/webui/node_modules"
  for verb in fmt lint; do
    rm -rf "$tree/build"
    : >"$calls"
    "$tree/tt" "$verb" 2>/dev/null
    equals "$(grep -E -m 1 '^npm|--target' "$calls")" "cmake --build $tree/build/dev --target webui_packages"
  done
}

# The server receives the signal itself: `run` replaces the script by the server.
test_interrupt_reaches_the_server() {
  inside
  "$tree/tt" run >/dev/null 2>&1
  cat >"$tree/build/release/bin/tt-server" <<BODY
#!/usr/bin/env bash
trap 'echo finished >"$work/finished"; exit 0' TERM
echo \$\$ >"$work/pid"
while :; do sleep 0.05; done
BODY
  "$tree/tt" run 2>/dev/null &
  until_true test -s "$work/pid"
  equals "$(cat "$work/pid")" $!
  kill -TERM $!
  wait $! || fail 'the server did not end by itself'
  equals "$(cat "$work/finished")" finished
}

# A system, played, that has everything of the list; but it is no root's, and so the
# environment cannot be set up where something is missing.
system_with_everything() {
  local name
  # shellcheck disable=SC2016  # expanded when it runs
  while read -r name _; do program "$name" <<<'[[ $1 != --version ]] || echo v99.0'; done \
    < <(sed -nE 's/.*# (program|rival|tool): (.*)/\2/p' "$tree/docker/packages.txt")
  program unshare <<<'exit 0'
  program id <<<'echo 1000'
  sed -i -E "s|# file: (.*)|# file: $work/files/[p]ackage|" "$tree/docker/packages.txt"
  mkdir -p "$work/files"
  touch "$work/files/package"
  inside
  unset TT_INSIDE
}

# without THING [VERB ARGS]: ./tt run, or VERB, asks for an environment that has it.
without() {
  local thing=$1
  shift
  (($# > 0)) || set -- run
  refused "$tree/tt" "$@"
  contains "$said" "lacks '$thing'"
  contains "$said" "sudo $tree/tt"
}

test_a_system_that_has_everything_builds_natively() {
  system_with_everything
  equals "$("$tree/tt" run 2>/dev/null)" 'tt-server: '
  equals "$(calls_of unshare)" 0
}

test_missing_library_leads_to_the_environment() {
  system_with_everything
  # shellcheck disable=SC2016  # expanded when it runs
  program pkg-config <<<'[[ $* != *ggml* ]]'
  without 'ggml >= 0.27'
}

test_missing_program_leads_to_the_environment() {
  system_with_everything
  sed -i 's/# program: npm/# program: npm-of-nobody/' "$tree/docker/packages.txt"
  without npm-of-nobody
}

test_old_program_leads_to_the_environment() {
  system_with_everything
  program node <<<'echo v22.9.1'
  without 'node >= 22.12'
  program node <<<'echo v22.12.0'
  equals "$("$tree/tt" run 2>/dev/null)" 'tt-server: '
}

test_missing_header_leads_to_the_environment() {
  system_with_everything
  # shellcheck disable=SC2016  # expanded when it runs
  program c++ <<<'[[ $* != *-E* ]] || ! grep -q minja'
  without minja/chat-template.hpp
}

test_old_compiler_leads_to_the_environment() {
  system_with_everything
  # shellcheck disable=SC2016  # expanded when it runs
  program c++ <<<'[[ $* != *compiler_check.cpp* ]]'
  without 'a C++23 compiler'
}

test_missing_file_leads_to_the_environment() {
  system_with_everything
  rm "$work/files/package"
  without "$work/files/[p]ackage" test
}

# Who builds and runs need not have clang-tidy, a browser or gtest.
test_only_what_the_verb_needs_is_asked_for() {
  system_with_everything
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  # shellcheck disable=SC2016  # expanded when it runs
  program pkg-config <<<'[[ $* != *of-nobody* ]]'
  rm "$work/files/package"
  local list=$tree/docker/packages.txt kind
  cp "$list" "$work/whole_list"
  sed -i -E 's/# (rival|tool|test): .*/&-of-nobody/' "$list"
  equals "$("$tree/tt" run 2>/dev/null)" 'tt-server: '
  equals "$("$tree/tt" --version 2>/dev/null)" 'tt: --version'
  "$tree/tt" build 2>/dev/null
  "$tree/tt" build release --install "$work/prefix" 2>/dev/null
  equals "$(calls_of unshare)" 0
  refused "$tree/tt" bench
  contains "$said" "-of-nobody'"
  sed -E 's/# (tool|test): .*/&-of-nobody/' "$work/whole_list" >"$list"
  "$tree/tt" bench >/dev/null 2>&1 || fail 'a bench is none of a linter'

  touch "$work/files/package"
  for kind in rival tool test; do
    sed -E "s/# $kind: .*/&-of-nobody/" "$work/whole_list" >"$list"
    for verb in test fmt lint shell 'build dev' 'build asan' 'build tsan --install /opt/x'; do
      # shellcheck disable=SC2086  # words
      refused "$tree/tt" $verb
      contains "$said" "-of-nobody'"
    done
  done
  cp "$work/whole_list" "$list"
  equals "$("$tree/tt" shell echo native)" native
}

# As where all is there that a build needs, but not all that tests need.
test_run_on_the_system_and_tests_in_the_environment_spoil_nothing() {
  system_with_everything
  "$tree/tt" run >/dev/null 2>&1
  TT_INSIDE=root-of-debian "$tree/tt" test -R queue >/dev/null 2>&1
  equals "$(calls_of 'cmake -S')" 2
  equals "$("$tree/tt" run 2>&1)" 'tt-server: '
  TT_INSIDE=root-of-debian "$tree/tt" test -R queue >/dev/null 2>&1
  equals "$(calls_of 'cmake -S')" 2
  contains "$(TT_INSIDE=root-of-debian "$tree/tt" run 2>&1)" 'build/release was made on another system'
}

test_the_page_and_the_list_ask_for_the_same_node() {
  local wanted
  wanted=$(sed -nE 's/.*# program: node >= (.*)/\1/p' "$tree/docker/packages.txt")
  contains "$(cat "$source_tree/webui/package.json")" "\"node\": \">=$wanted\""
}

run_named_test "$1"
