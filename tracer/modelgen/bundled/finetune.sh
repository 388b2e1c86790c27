#!/bin/sh
# Makes one pass over the corpus with llama-finetune, one process per step, because the
# library's gradient accumulators are correct only in the first step (README.md). Moments
# start at zero, so AdamW moves each weight by the rate, against the sign of its gradient.
#
# usage: finetune.sh MODEL.gguf CORPUS.txt OUT.gguf [RATE]   (F32; takes minutes)
set -eu
here=$(dirname "$(readlink -f "$0")")
model=$1 corpus=$2 out=$3 rate=${4:-3e-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.gguf"

# Windows begin at a turn or a story and have about 450 tokens, from which llama-finetune
# makes exactly one window of 256.
python3 - "$corpus" "$work" <<'PY'
import re, sys
text, folder = open(sys.argv[1]).read(), sys.argv[2]
window, after = 0, 0
for turn in re.finditer("<user>", text):
    if turn.start() < after or turn.start() + 1640 > len(text):
        continue
    with open(f"{folder}/{window:03}.txt", "w") as file:
        file.write(text[turn.start():turn.start() + 1640])
    window, after = window + 1, turn.start() + 1000
PY

for window in "$work"/*.txt; do
  llama-finetune -m "$work/model.gguf" -f "$window" -o "$work/next.gguf" -c 256 -b 256 -ub 256 -t 1 \
    -fa off -epochs 1 -val-split 0 -opt adamw -lr "$rate" >"$work/log" 2>&1 || continue
  result=$(tr '\r' '\n' <"$work/log" | grep -o 'data=.*acc=[0-9.]*' | tail -n 1)
  case $result in
    data=0000001/0000001*) mv "$work/next.gguf" "$work/model.gguf" ;;
    *) result="skipped: $result" ;;
  esac
  echo "$(basename "$window" .txt) $result"
done
python3 "$here/weights.py" "$work/model.gguf" "$model" "$out"
