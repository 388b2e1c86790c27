#!/bin/sh
# Creates pocket.gguf: corpus, vocabulary, random model, training, llama-finetune,
# quantization. Takes about 15 minutes on one core.
#
# usage: train.sh BUILD_DIR   (a build tree of this project; needs llama-quantize, llama-finetune)
set -eu
here=$(dirname "$(readlink -f "$0")")
build=${1:?usage: train.sh BUILD_DIR}
cmake --build "$build" --target tt train_bundled_model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 "$here/corpus.py" > "$work/corpus.txt"
python3 "$here/vocabulary.py" "$work/corpus.txt" 762 > "$work/pieces.txt"
"$build/bin/tt" model small -o "$work/random.gguf" --quant f32 --pieces "$work/pieces.txt" \
  --layers 6 --embd 128 --heads 4 --kv-heads 4 --ff 384 --context 1024
nice -n 10 "$build/bin/train_bundled_model" "$work/random.gguf" "$work/corpus.txt" \
  "$work/trained.gguf" 900
nice -n 10 "$here/finetune.sh" "$work/trained.gguf" "$work/corpus.txt" "$work/tuned.gguf"
llama-quantize --override-kv general.name=str:pocket \
  --override-kv "general.description=str:A very small model that knows a little about memory" \
  "$work/tuned.gguf" "$here/pocket.gguf" Q8_0
