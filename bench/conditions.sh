#!/usr/bin/env bash
# Is what disturbs a recording named, and is a quiet recording called clean? 20 sessions each of:
# quiet; busy programs beside (twice as many as processors); a CPU limit (cgroup, 30 %); a memory
# limit (cgroup, less than the model), so that the model is read from the disk again and again.
# Budget: all 20. Prints one line per case, with the shares of the threads' time of every session.
# Needs root and cgroup v1 or v2; the groups are removed at the end.
#
# usage: ./tt shell bench/conditions.sh TT MODEL [SESSIONS [CASE ...]]
# The case disk needs a model that is larger than the rest of the process: tinyllama-1.1b.
# --first before these: run before all other programs (SCHED_FIFO), for a machine that is not quiet.
set -euo pipefail
first=()
[[ ${1:-} == --first ]] && first=(chrt -f 1) && shift
tt=${1:?the program tt} model=${2:?a model file} sessions=${3:-20}
cases=("${@:4}")
[[ ${#cases[@]} -gt 0 ]] || cases=(quiet busy limited disk)
work=$(mktemp -d)
busy=() groups=()
# shellcheck disable=SC2329  # called by trap
cleanup() {
  for pid in "${busy[@]}"; do kill "$pid" 2>/dev/null || true; done
  for group in "${groups[@]}"; do rmdir "$group" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# group CONTROLLER V1-FILE V1-VALUE V2-FILE V2-VALUE: prints the procs file of a new limited group.
group() {
  local folder
  if [[ -d /sys/fs/cgroup/$1 ]]; then
    folder=/sys/fs/cgroup/$1/tt-conditions-$$
    mkdir -p "$folder"
    echo "$3" >"$folder/$2"
  else
    folder=/sys/fs/cgroup/tt-conditions-$1-$$
    mkdir -p "$folder"
    echo "$5" >"$folder/$4"
  fi
  echo "$folder"
}

record() {
  local name=$1
  shift
  "$@" "$tt" record -m "$model" --no-repack -p 'What is the KV cache?' -n "$tokens" --temp 0 --ignore-eos \
    -q -o "$work/$name.ttrace" --force
}

# In a group: sh writes its own id and becomes the program.
# shellcheck disable=SC2329  # its name is an argument
in_group() { sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$@"; }

missed=0
for case in "${cases[@]}"; do
  expected=clean before=("${first[@]}") tokens=60
  case $case in
    quiet) ;;
    busy)
      expected=contended before=()
      for ((i = 0; i < 2 * $(nproc); ++i)); do
        (while :; do :; done) &
        busy+=($!)
      done
      ;;
    limited)
      expected=throttled
      groups+=("$(group cpu cpu.cfs_quota_us 30000 cpu.max '30000 100000')")
      before=(in_group "${groups[-1]}")
      ;;
    disk)
      expected=disk tokens=8
      size=$(stat -c %s "$model")
      groups+=("$(group memory memory.limit_in_bytes $((size * 7 / 10)) memory.max $((size * 7 / 10)))")
      before=(in_group "${groups[-1]}" "${first[@]}")
      ;;
  esac
  right=0 lines=
  for ((i = 0; i < sessions; ++i)); do
    # Pages that are in memory already belong to another group.
    [[ $case == disk ]] && dd if="$model" iflag=nocache count=0 2>/dev/null
    record "$case" "${before[@]}" >/dev/null
    line=$("$tt" show "$work/$case.ttrace" --json |
      python3 -c 'import json, sys
c = json.load(sys.stdin)["conditions"]
print(c["verdict"], *(f"{c[k + "_percent"]:.2f}" for k in ("cpu", "cpu_wait", "throttled", "blocked")))')
    [[ ${line%% *} == "$expected" ]] && right=$((right + 1))
    lines+="  $line"$'\n'
  done
  for pid in "${busy[@]}"; do kill "$pid" 2>/dev/null || true; done
  busy=()
  echo "$case: $right of $sessions sessions are $expected (verdict, % of the threads' time: CPU, waiting, throttled, blocked)"
  printf '%s' "$lines"
  [[ $right == "$sessions" ]] || missed=1
done
exit $missed
