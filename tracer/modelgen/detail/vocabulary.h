#pragma once

#include <gguf.h>

#include <cstdint>
#include <span>
#include <string>

// Tokenizers of generated models. Each writes the tokenizer.* keys of exactly
// `size` tokens. Synthetic pieces are all letter strings of growing length, so
// English text comes out at two to three letters per token.
namespace tt::modelgen::detail {

// Room that each needs for bytes, special tokens and single characters.
inline constexpr std::int64_t kMinVocab = 512;
// Four-letter strings are the last that are made.
inline constexpr std::int64_t kMaxVocab = 200'000;

// SentencePiece as in llama: bytes as fallback, so every text survives the round
// trip. With a ChatML template; <|im_end|> ends a turn.
void write_llama_vocabulary(gguf_context* gguf, std::int64_t size);

// The same tokenizer over learned pieces. Turns are marked by the user-defined
// tokens <user>, <reply> and <stop>, which plain text may contain: that is how
// a corpus can hold conversations. Returns the number of tokens.
std::int64_t write_learned_vocabulary(gguf_context* gguf, std::span<const std::string> pieces);
std::int64_t learned_vocabulary_size(std::span<const std::string> pieces);

// WordPiece as in bert, lower case. Text beyond ASCII becomes [UNK].
void write_bert_vocabulary(gguf_context* gguf, std::int64_t size);

// Unigram as in t5. Text beyond ASCII becomes <unk>.
void write_t5_vocabulary(gguf_context* gguf, std::int64_t size);

// RWKV's greedy trie over bytes: every text survives the round trip.
void write_rwkv_vocabulary(gguf_context* gguf, std::int64_t size);

}  // namespace tt::modelgen::detail
