#!/usr/bin/env bash
# ./tt: its verbs, what it builds for each, and its messages.
# shellcheck source=tests/build_script/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

# Inside a build environment. CMake and ninja are fake: configuring creates a build.ninja,
# building creates programs that print their name and arguments.
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

# TT_CACHE=/a/larger/disk, which has other files, too.
test_clean_all_removes_only_its_own_folders() {
  local id=0123456789ab
  mkdir -p "$cache/ccache/0" "$cache/npm/x" "$cache/systems" "$cache/root-$id/usr" "$TT_CACHE/ccache" "$TT_CACHE/npm" \
    "$TT_CACHE/root-$id" "$TT_CACHE/root-mine" "$cache/root-mine" "$work/models"
  : >"$cache/root-$id.lock"
  ln -s "$work/models" "$cache/models"
  "$tree/tt" clean --all 2>/dev/null
  [[ ! -e $cache/ccache && ! -e $cache/npm && ! -e $cache/systems && ! -e $cache/root-$id ]] || fail "left: $(ls "$cache")"
  [[ -d $TT_CACHE/ccache && -d $TT_CACHE/npm && -d $TT_CACHE/root-$id && -d $TT_CACHE/root-mine &&
    -d $cache/root-mine && -d $cache/models/ ]] || fail 'a folder of another program was removed'
}

# An earlier version created no folder of its own in TT_CACHE: the caches there may belong to others.
test_clean_all_keeps_caches_in_a_shared_folder() {
  mkdir -p "$TT_CACHE/root-0123456789ab" "$TT_CACHE/ccache" "$TT_CACHE/npm"
  : >"$TT_CACHE/root-0123456789ab.lock"
  contains "$("$tree/tt" clean --all 2>&1)" 'ccache and npm in it are kept'
  [[ -d $TT_CACHE/ccache && -d $TT_CACHE/npm && ! -e $TT_CACHE/root-0123456789ab ]] || fail "$(ls "$TT_CACHE")"
}

test_a_folder_called_tensor_trace_is_the_cache_itself() {
  contains "$(TT_CACHE=$work/x/tensor-trace/ "$tree/tt" help)" "Caches are in $work/x/tensor-trace (TT_CACHE)"
  contains "$("$tree/tt" help)" "Caches are in $work/disk/tensor-trace (TT_CACHE)"
  contains "$(unset TT_CACHE XDG_CACHE_HOME; "$tree/tt" help)" "Caches are in $HOME/.cache/tensor-trace "
}

# Prints the cache folders that a build gets. Ninja runs ccache in the build folder and npm in
# webui/, so the paths must be absolute.
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

test_caches_of_the_build_are_outside_the_tree() {
  inside
  equals "$(caches_of_a_build)" "$cache/ccache $cache/npm"
  equals "$(unset TT_CACHE; caches_of_a_build)" \
    "$HOME/.cache/tensor-trace/ccache $HOME/.cache/tensor-trace/npm"
  equals "$(CCACHE_DIR=$work/mine caches_of_a_build)" "$work/mine $cache/npm"
}

test_a_relative_cache_folder_is_relative_to_the_working_folder() {
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

test_prints_each_step_and_its_duration() {
  inside
  local output what
  output=$("$tree/tt" build --install "$work/prefix" 2>&1)
  for what in 'configuring release' 'building release' "installing in $work/prefix"; do
    contains "$output" "tt: $what"$'\n'
    [[ $output =~ "tt: $what: done in "[0-9]+' s' ]] || fail "no duration of '$what': $output"
  done
  rm -r "$tree/build"
  program cmake <<'BODY'
[[ $1 != -S ]] || { mkdir -p "$2/build/$4"; sleep 1.1; }
BODY
  output=$("$tree/tt" build 2>&1)
  [[ $output =~ 'configuring release: done in '[1-9] ]] || fail "no duration of one second: $output"
}

test_verb_of_the_program_runs_the_program() {
  inside
  mkdir -p "$tree/cli/commands"
  : >"$tree/cli/commands/record_command.cpp"
  equals "$("$tree/tt" record --model 'a b.gguf' 2>/dev/null)" 'tt: record --model a b.gguf'
  equals "$("$tree/tt" help record 2>/dev/null)" 'tt: record --help'
}

test_help_of_a_verb_sets_nothing_up() {
  program c++ <<<'echo 99'
  printf '#!/bin/sh\necho "root.sh $*" >>"%s"\n' "$calls" >"$tree/docker/root.sh"
  local how output
  for how in 'bench --help' 'bench -h' 'help bench'; do
    # shellcheck disable=SC2086
    output=$("$tree/tt" $how 2>&1) || fail "tt $how failed: $output"
    [[ $output =~ 'bench   [name]' && ! $output =~ 'fmt' ]] || fail "tt $how: $output"
  done
  [[ ! -s $calls ]] || fail "something was set up: $(<"$calls")"
}

test_mistyped_verb_is_rejected_before_anything_is_set_up() {
  program c++ <<<'echo 99'
  program pkg-config <<<'echo 99'
  printf '#!/bin/sh\necho "root.sh $*" >>"%s"\n' "$calls" >"$tree/docker/root.sh"
  fails "$tree/tt" recrod
  contains "$output" "unknown verb 'recrod'"
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

# With the real ninja, which decides whether there is anything to build.
test_verb_prints_nothing_of_the_build_when_it_is_up_to_date() {
  inside
  rm "$work/bin/ninja"
  mkdir -p "$tree/cli/commands"
  : >"$tree/cli/commands/hot_command.cpp"
  program cmake <<'BODY'
case $1 in
  -S)
    mkdir -p "$2/build/$4/bin"
    printf '%s\n' '#!/bin/sh' 'echo "tt: $*"' >"$2/source"
    printf '%s\n' 'rule program' '  command = cp $in $out && chmod +x $out' \
      "build bin/tt: program $2/source" 'build tt: phony bin/tt' >"$2/build/$4/build.ninja" ;;
  --build) ninja -C "$2" "${@:4}" ;;
esac
BODY
  contains "$("$tree/tt" hot s.ttrace 2>&1)" 'tt: building release: done'
  equals "$("$tree/tt" hot s.ttrace 2>&1)" 'tt: hot s.ttrace'
  equals "$("$tree/tt" --version 2>&1)" 'tt: --version'
  equals "$(calls_of cmake)" 2
  wait_until touch_newer "$tree/source"
  contains "$("$tree/tt" hot s.ttrace 2>&1)" 'tt: building release: done'
}

# touch_newer FILE: FILE is newer than the program that was built from it.
touch_newer() {
  touch "$1"
  [[ $1 -nt $tree/build/release/bin/tt ]]
}

test_builds_of_one_preset_wait_for_each_other() {
  inside
  program cmake <<BODY
case \$1 in
  -S) mkdir -p "\$2/build/\$4"; : >"\$2/build/\$4/build.ninja" ;;
  --build)
    echo begins >>"$work/order"
    for ((tries = 0; tries < 200; ++tries)); do
      ! grep -q waiting "$work"/stderr.* || break
      sleep 0.05
    done
    echo ends >>"$work/order" ;;
esac
BODY
  "$tree/tt" build dev 2>"$work/stderr.one" &
  "$tree/tt" build dev 2>"$work/stderr.two"
  wait $!
  equals "$(paste -sd' ' "$work/order")" 'begins ends begins ends'
  contains "$(cat "$work"/stderr.*)" 'waiting for another ./tt that builds dev'
}

test_another_environment_starts_a_new_build_folder() {
  inside
  "$tree/tt" run >/dev/null 2>&1
  touch "$tree/build/release/old.o"
  contains "$(TT_INSIDE=newer-system "$tree/tt" run 2>&1)" 'build/release was made on another system'
  [[ ! -e $tree/build/release/old.o ]] || fail 'objects of two systems are mixed'
}

# Otherwise a warning is seen only after a push.
test_warnings_are_errors_where_the_compiler_is_known() {
  inside
  "$tree/tt" build dev 2>/dev/null
  contains "$(cat "$calls")" '--preset dev -DTT_WERROR=ON'
  "$tree/tt" build release 2>/dev/null
  contains "$(cat "$calls")" '--preset release -DTT_WERROR=OFF'
  CI=true "$tree/tt" build release 2>/dev/null
  contains "$(cat "$calls")" '--preset release -DTT_WERROR=ON'
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

# A tree with two test programs. Configuring lists their files, as tests/CMakeLists.txt does.
tree_with_tests() {
  inside
  mkdir -p "$tree/tests/analysis" "$tree/tests/server"
  printf 'TEST(Raster, SumsAreExact) {}\nTEST_P(RasterGrid, HasAllCells) {}\n' >"$tree/tests/analysis/raster_test.cpp"
  printf 'TEST(RasterRoutes, ReturnJson) {}\nTEST_F(Live, SendsSteps) {}\n' >"$tree/tests/server/routes_test.cpp"
  printf '%s\t%s\n' analysis_test "$tree/tests/analysis/raster_test.cpp" \
    server_test "$tree/tests/server/routes_test.cpp" >"$work/programs.tsv"
  git init -q "$tree"
  program cmake <<BODY
[[ \$1 != -S ]] || { mkdir -p "\$2/build/\$4/tests"; : >"\$2/build/\$4/build.ninja"
  cp "$work/programs.tsv" "\$2/build/\$4/tests"; }
BODY
}

# tests_of NAME...: runs ./tt test NAME... and prints the targets that it builds, then those of
# all tests that it runs.
tests_of() {
  local pattern
  : >"$calls"
  "$tree/tt" test "$@" >/dev/null 2>&1
  equals "$(calls_of ctest)" 1
  pattern=$(sed -nE 's/^ctest --preset dev .*--tests-regex (.*)/\1/p' "$calls")
  sed -nE 's/^cmake --build .* --target (.*)/\1:/p' "$calls"
  printf '%s\n' Raster.SumsAreExact Sizes/RasterGrid.HasAllCells/7 RasterRoutes.ReturnJson \
    Live.SendsSteps webui.unit webui.e2e build_script.tt.help | grep -E "$pattern"
}

test_test_name_builds_and_runs_only_that_test() {
  tree_with_tests
  local raster='analysis_test: Raster.SumsAreExact Sizes/RasterGrid.HasAllCells/7'
  equals "$(tests_of raster | xargs)" "$raster"
  equals "$(tests_of raster_test | xargs)" "$raster"
  equals "$(tests_of Raster | xargs)" 'analysis_test: Raster.SumsAreExact'
  equals "$(tests_of RasterGrid | xargs)" 'analysis_test: Sizes/RasterGrid.HasAllCells/7'
  equals "$(tests_of Live.SendsSteps | xargs)" 'server_test: Live.SendsSteps'
  equals "$(tests_of raster Live | xargs)" \
    'analysis_test server_test: Raster.SumsAreExact Sizes/RasterGrid.HasAllCells/7 Live.SendsSteps'
  equals "$(tests_of webui.unit | xargs)" 'webui tt-server tt: webui.unit'
  equals "$(tests_of build_script.tt | xargs)" 'all: build_script.tt.help'
}

test_unknown_test_name_lists_the_suites() {
  tree_with_tests
  fails "$tree/tt" test rastr
  contains "$output" "no test is called 'rastr'"
  contains "$output" 'Live Raster RasterGrid RasterRoutes'
  equals "$(calls_of 'cmake --build')$(calls_of ctest)" 00
}

test_test_quick_builds_and_runs_only_the_unit_tests() {
  inside
  "$tree/tt" test --quick >/dev/null 2>&1
  equals "$(grep '^cmake --build' "$calls")" "cmake --build $tree/build/dev --target quick_tests"
  contains "$(grep '^ctest' "$calls")" '--preset dev'
  contains "$(grep '^ctest' "$calls")" '--label-regex ^quick$'
}

test_test_all_adds_the_sanitizers() {
  inside
  "$tree/tt" test --all >/dev/null 2>&1
  equals "$(sed -nE 's/^ctest --preset ([a-z-]+).*/\1/p' "$calls" | xargs)" 'asan-all tsan dev'
}

test_fuzz_runs_each_target_for_the_given_time() {
  inside
  local output
  output=$("$tree/tt" test --fuzz 7 2>&1)
  contains "$output" 'sql_fuzz: -max_total_time=7'
  contains "$output" 'fuzzing: no failures'
  contains "$(cat "$calls")" '--preset fuzz'
  equals "$(calls_of ctest)" 0
  fails "$tree/tt" test --fuzz soon
  contains "$output" 'needs a number of seconds'
  mkdir -p "$tree/tests/fuzz"
  : >"$tree/tests/fuzz/sql_fuzz.cpp"
  fails "$tree/tt" test --fuzz 7 sqll
  contains "$output" "there is no fuzz target 'sqll': sql"
  echo 'exit 1' >>"$tree/build/fuzz/bin/sql_fuzz"
  fails "$tree/tt" test --fuzz 7 sql
  contains "$output" 'failures in sql'
}

test_failing_test_is_a_failure() {
  inside
  program ctest <<<'exit 8'
  fails "$tree/tt" test
}

test_ci_runs_failed_tests_once_more_alone() {
  inside
  local log=$tree/build/dev/Testing/Temporary/LastTestsFailed.log
  program ctest <<BODY
[[ " \$* " != *" --rerun-failed --parallel 1 "* ]] || exit 0
mkdir -p "${log%/*}" && echo '7:Some.Test' >"$log" && exit 8
BODY
  CI='' fails "$tree/tt" test --quick
  equals "$(calls_of ctest)" 1
  CI=true "$tree/tt" test --quick 2>/dev/null || fail 'a test that passes alone is a failure'
  equals "$(calls_of ctest)" 3
  program ctest <<<'exit 8'
  CI=true fails "$tree/tt" test --quick
  equals "$(calls_of ctest)" 5
}

test_bench_selects_by_name() {
  inside
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  contains "$("$tree/tt" bench queue --benchmark_min_time=0.01s 2>/dev/null)" \
    'step_queue_bench: --benchmark_min_time=0.01s'
  fails "$tree/tt" bench nonsense
  contains "$output" "no benchmark has 'nonsense' in its name"
}

test_bench_that_misses_its_budget_is_a_failure() {
  inside
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  "$tree/tt" bench >/dev/null 2>&1
  printf '#!/bin/bash\nexit 1\n' >"$tree/build/release/bin/step_queue_bench"
  fails "$tree/tt" bench
}

test_install_goes_to_the_prefix() {
  inside
  "$tree/tt" build --install "$work/prefix" 2>/dev/null
  contains "$(cat "$calls")" "cmake --install $tree/build/release --prefix $work/prefix"
}

test_package_builds_and_then_packs() {
  inside
  mkdir "$tree/package"
  printf '#!/bin/bash\necho "packed: $*"\n' >"$tree/package/package.sh"
  chmod +x "$tree/package/package.sh"
  contains "$("$tree/tt" package 2>&1)" "packed: $tree/build/release $tree/build/package"
  [[ -x $tree/build/release/bin/tt ]] || fail 'nothing was built'
  fails "$tree/tt" package --tset
  contains "$output" "unknown argument '--tset'"
  fails "$tree/tt" package --test
  contains "$output" 'outside of the build environment'
}

test_unknown_preset_lists_the_presets() {
  inside
  fails "$tree/tt" build fast
  contains "$output" 'use release, dev, asan or tsan'
}

test_works_from_another_folder_and_through_a_link() {
  inside
  ln -s "$tree/tt" "$work/link"
  cd /
  equals "$("$work/link" --version 2>/dev/null)" 'tt: --version'
}

# --- first start on systems that differ from ours ---

test_without_home_the_folder_of_the_user_database_is_used() {
  local home
  home=$(getent passwd "$(id -u)" | cut -d: -f6)
  contains "$(env -u HOME -u TT_CACHE "$tree/tt" help 2>&1)" "Caches are in $home/.cache/tensor-trace"
}

test_a_locale_that_is_not_installed_prints_no_warning() {
  inside
  "$tree/tt" --version >/dev/null 2>&1
  local output
  output=$(LC_ALL=xx_YY.UTF-8 LANG=xx_YY.UTF-8 "$tree/tt" --version 'größe 1.ttrace' 2>&1)
  equals "$output" 'tt: --version größe 1.ttrace'
}

# read_only CMD...: runs CMD where nobody can write to the tree.
read_only() {
  if [[ $(id -u) == 0 ]]; then
    # shellcheck disable=SC2016  # expanded inside
    unshare --mount bash -c 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"' "$tree" "$@"
  else
    local status=0
    chmod -R a-w "$tree"
    "$@" || status=$?
    chmod -R u+w "$tree"
    return "$status"
  fi
}

test_a_checkout_that_cannot_be_written_runs_if_it_is_built() {
  inside
  fails read_only "$tree/tt" --version
  contains "$output" "build/release is not up to date, and $tree cannot be written by $(id -un)"
  equals "$(wc -l <<<"$output")" 1
  "$tree/tt" --version >/dev/null 2>&1
  equals "$(read_only "$tree/tt" --version s.ttrace 2>&1)" 'tt: --version s.ttrace'
  echo '{}' >"$tree/CMakePresets.json"  # something changed
  fails read_only "$tree/tt" --version
  contains "$output" 'not up to date'
  tree_with_tests
  fails read_only "$tree/tt" test raster
  contains "$output" "build/dev is not up to date, and $tree cannot be written"
  equals "$(wc -l <<<"$output")" 1
  fails read_only "$tree/tt" clean
  contains "$output" 'build/ cannot be removed by'
  equals "$(wc -l <<<"$output")" 1
}

test_an_unpacked_archive_says_what_needs_git() {
  tree_with_tests
  rm -rf "$tree/.git"
  for verb in 'test raster' fmt lint; do
    # shellcheck disable=SC2086  # words
    fails env GIT_CEILING_DIRECTORIES="$work" "$tree/tt" $verb
    contains "$output" 'needs a git repository'
    contains "$output" 'git init && git add . && git commit'
  done
  equals "$(calls_of cmake)" 0  # said before minutes of work
  GIT_CEILING_DIRECTORIES=$work "$tree/tt" test >/dev/null 2>&1 || fail 'all tests need no repository'
}

test_a_folder_with_spaces_and_other_characters_works() {
  local other="$work/my träces"
  inside
  cp -r "$tree" "$other"
  equals "$("$other/tt" --version 2>/dev/null)" 'tt: --version'
}

test_a_strict_umask_and_a_closed_stdin_do_not_matter() {
  inside
  (umask 077; "$tree/tt" --version >/dev/null 2>&1 <&-) || fail 'umask 077, no stdin'
  equals "$(env -u TMPDIR "$tree/tt" --version 2>/dev/null <&-)" 'tt: --version'
}

# An interrupted `npm ci` leaves an incomplete node_modules: only the build knows whether it is
# complete.
test_fmt_and_lint_build_the_packages_of_the_page_first() {
  inside
  for name in git npm clang-format shellcheck clang-tidy python3; do program "$name" <<<''; done
  mkdir -p "$tree/webui/node_modules"
  for verb in fmt lint; do
    rm -rf "$tree/build"
    : >"$calls"
    "$tree/tt" "$verb" 2>/dev/null
    equals "$(grep -E -m 1 '^npm|--target' "$calls")" "cmake --build $tree/build/dev --target webui_packages"
  done
}

# ./tt run replaces itself by the server, so that it gets the signal.
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
  wait_until test -s "$work/pid"
  equals "$(cat "$work/pid")" $!
  kill -TERM $!
  wait $! || fail 'the server did not end by itself'
  equals "$(cat "$work/finished")" finished
}

# A system that has all packages of the list. The user is not root, so the environment cannot be
# set up if a package is missing.
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

# without THING [VERB ARGS]: ./tt run, or VERB, needs an environment because THING is missing.
without() {
  local thing=$1
  shift
  (($# > 0)) || set -- run
  fails "$tree/tt" "$@"
  contains "$output" "lacks '$thing'"
  contains "$output" "sudo $tree/tt"
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
  sed -i 's/# program: npm/# program: npm-missing/' "$tree/docker/packages.txt"
  without npm-missing
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
  program c++ <<<'[[ $* != *-E* ]] || ! grep -q quickjs'
  without qjs/quickjs.h
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

# Building and running need no clang-tidy, browser or gtest.
test_only_packages_that_the_verb_needs_are_required() {
  system_with_everything
  mkdir "$tree/bench"
  : >"$tree/bench/step_queue_bench.cpp"
  # shellcheck disable=SC2016  # expanded when it runs
  program pkg-config <<<'[[ $* != *-missing* ]]'
  rm "$work/files/package"
  local list=$tree/docker/packages.txt kind
  cp "$list" "$work/whole_list"
  sed -i -E 's/# (rival|tool|test): .*/&-missing/' "$list"
  equals "$("$tree/tt" run 2>/dev/null)" 'tt-server: '
  equals "$("$tree/tt" --version 2>/dev/null)" 'tt: --version'
  "$tree/tt" build 2>/dev/null
  "$tree/tt" build release --install "$work/prefix" 2>/dev/null
  equals "$(calls_of unshare)" 0
  fails "$tree/tt" bench
  contains "$output" "-missing'"
  sed -E 's/# (tool|test): .*/&-missing/' "$work/whole_list" >"$list"
  "$tree/tt" bench >/dev/null 2>&1 || fail 'a bench needs no linter'

  touch "$work/files/package"
  for kind in rival tool test; do
    sed -E "s/# $kind: .*/&-missing/" "$work/whole_list" >"$list"
    for verb in test fmt lint shell 'build dev' 'build asan' 'build tsan --install /opt/x'; do
      # shellcheck disable=SC2086  # words
      fails "$tree/tt" $verb
      contains "$output" "-missing'"
    done
  done
  cp "$work/whole_list" "$list"
  equals "$("$tree/tt" shell echo native)" native
}

# A system that has the packages of the build, but not those of the tests.
test_run_on_the_system_and_tests_in_the_environment_use_separate_builds() {
  system_with_everything
  "$tree/tt" run >/dev/null 2>&1
  TT_INSIDE=root-of-debian "$tree/tt" test -R queue >/dev/null 2>&1
  equals "$(calls_of 'cmake -S')" 2
  equals "$("$tree/tt" run 2>&1)" 'tt-server: '
  TT_INSIDE=root-of-debian "$tree/tt" test -R queue >/dev/null 2>&1
  equals "$(calls_of 'cmake -S')" 2
  contains "$(TT_INSIDE=root-of-debian "$tree/tt" run 2>&1)" 'build/release was made on another system'
}

test_page_and_package_list_require_the_same_node_version() {
  local wanted
  wanted=$(sed -nE 's/.*# program: node >= (.*)/\1/p' "$tree/docker/packages.txt")
  contains "$(cat "$source_tree/webui/package.json")" "\"node\": \">=$wanted\""
}

run_named_test "$1"
