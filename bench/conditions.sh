#!/usr/bin/env bash
# Is what disturbs a recording named, and is a quiet recording called clean? Records sessions of
# 4 kinds: quiet; busy: twice as many busy loops as processors run beside; limited: in a cgroup with
# 30 % of a processor; disk: in a cgroup with less memory than the model, so that weights are read
# again and again, from a disk that is limited to 200 MB/s if the kernel can (blkio, io).
# Budget: all sessions of each kind, 20 by default. Prints a line per session, then the score.
# About 4 minutes. Needs root and cgroup v1 or v2; removes its groups.
#
# usage: ./tt bench conditions [--sessions N] [--first] [KIND ...]
# --first: quiet and disk run before all other programs (SCHED_FIFO), for a machine that is not quiet.
set -euo pipefail
bin=${TT_BIN:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)/build/release/bin}
tt=$bin/tt sessions=20 first=() kinds=()
while (($# > 0)); do
  case $1 in
    --sessions) sessions=${2:?--sessions needs a number}; shift ;;
    --first) first=(chrt -f 1) ;;
    quiet | busy | limited | disk) kinds+=("$1") ;;
    *) echo "conditions: unknown kind '$1': quiet, busy, limited, disk" >&2; exit 2 ;;
  esac
  shift
done
((${#kinds[@]} > 0)) || kinds=(quiet busy limited disk)

work=$(mktemp -d)
busy=() groups=()
# shellcheck disable=SC2329  # called by trap
cleanup() {
  ((${#busy[@]} == 0)) || kill "${busy[@]}" 2>/dev/null || true
  for group in "${groups[@]}"; do rmdir "$group" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# group CONTROLLER V1-FILE V1-VALUE V2-FILE V2-VALUE: makes a limited group and adds it to `groups`.
group() {
  local folder=/sys/fs/cgroup/tt-conditions-$1-$$ file=$4 value=$5
  [[ ! -d /sys/fs/cgroup/$1 ]] || folder=/sys/fs/cgroup/$1/tt-conditions-$$ file=$2 value=$3
  mkdir -p "$folder" && groups+=("$folder") && echo "$value" >"$folder/$file"
}

# Runs a program in the groups named in the first argument: sh writes its own id and becomes it.
# shellcheck disable=SC2329  # its name is an argument
in_groups() {
  sh -c 'for group in $0; do echo $$ >"$group/cgroup.procs"; done; exec "$@"' "$@"
}

# MAJOR:MINOR of the whole disk of a file, or nothing.
disk_of() {
  local device
  device=$(stat -c '%Hd:%Ld' "$1")
  if [[ -e /sys/dev/block/$device/partition ]]; then
    cat "$(dirname "$(readlink -f "/sys/dev/block/$device")")/dev"
  elif [[ -e /sys/dev/block/$device ]]; then
    echo "$device"
  fi
}

"$tt" model small -q -o "$work/small.gguf"
score='' missed=0
for kind in "${kinds[@]}"; do
  expected=clean before=("${first[@]}") tokens=60 model=$work/small.gguf
  case $kind in
    # Long enough that the few milliseconds that any system takes now and then are less than 5 %.
    quiet) tokens=600 ;;
    busy)
      expected=contended before=() tokens=12
      for ((i = 0; i < 2 * $(nproc); ++i)); do
        (while :; do :; done) &
        busy+=($!)
      done
      ;;
    limited)
      expected=throttled tokens=30
      group cpu cpu.cfs_quota_us 30000 cpu.max '30000 100000'
      before=(in_groups "${groups[-1]}")
      ;;
    disk)
      expected=disk tokens=4 model=$work/large.gguf
      "$tt" model tinyllama-1.1b --layers 8 -q -o "$model"
      size=$(stat -c %s "$model") limits=()
      group memory memory.limit_in_bytes $((size * 6 / 10)) memory.max $((size * 6 / 10))
      limits+=("${groups[-1]}")
      if device=$(disk_of "$model") && [[ -n $device ]] &&
        group blkio blkio.throttle.read_bps_device "$device 200000000" io.max "$device rbps=200000000" 2>/dev/null; then
        limits+=("${groups[-1]}")
      fi
      before=(in_groups "${limits[*]}" "${first[@]}")
      ;;
  esac
  right=0
  for ((i = 0; i < sessions; ++i)); do
    # Pages that are in memory already belong to another group.
    [[ $kind != disk ]] || { sync "$model"; dd if="$model" iflag=nocache count=0 2>/dev/null; }
    "${before[@]}" "$tt" record -m "$model" --no-repack -p 'What is the KV cache?' -n "$tokens" \
      --temp 0 --ignore-eos -q -o "$work/$kind.ttrace" --force >/dev/null
    line=$("$tt" show "$work/$kind.ttrace" --json |
      python3 -c 'import json, sys
c = json.load(sys.stdin)["conditions"]
print(c["verdict"], *(f"{c[k + "_percent"]:.2f}" for k in ("cpu", "cpu_wait", "throttled", "blocked")))')
    [[ ${line%% *} != "$expected" ]] || right=$((right + 1))
    printf '%-8s %s\n' "$kind" "$line"
  done
  ((${#busy[@]} == 0)) || kill "${busy[@]}" 2>/dev/null || true
  busy=()
  score+="$kind: $right of $sessions sessions are $expected"$'\n'
  ((right == sessions)) || missed=1
done
echo 'columns: verdict; % of the time of the threads: on a processor, waiting for one, throttled, blocked'
printf '%s' "$score"
exit $missed
