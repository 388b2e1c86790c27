#pragma once

#include <gguf.h>

#include <cstdint>
#include <span>
#include <string>

// Tokenizers of generated models. Each function writes the tokenizer.* keys with exactly
// `size` tokens. Synthetic pieces are all letter strings of increasing length, so that English
// text has two to three letters per token.
namespace tt::modelgen::detail {

// Minimum size: bytes, special tokens and single characters.
inline constexpr std::int64_t kMinVocab = 512;
// Maximum size: letter strings have at most four letters.
inline constexpr std::int64_t kMaxVocab = 200'000;

// SentencePiece as in llama. Falls back to bytes, so every text can be tokenized without loss.
// With a ChatML template; <|im_end|> ends a turn.
void write_llama_vocabulary(gguf_context* gguf, std::int64_t size);

// The same tokenizer with learned pieces. Turns are marked with the user-defined tokens <user>,
// <reply> and <stop>, which are also parsed in plain text, so that a corpus can contain
// conversations. Returns the number of tokens.
std::int64_t write_learned_vocabulary(gguf_context* gguf, std::span<const std::string> pieces);
std::int64_t learned_vocabulary_size(std::span<const std::string> pieces);

// WordPiece as in bert, lower case. Text beyond ASCII becomes [UNK].
void write_bert_vocabulary(gguf_context* gguf, std::int64_t size);

// Unigram as in t5. Text beyond ASCII becomes <unk>.
void write_t5_vocabulary(gguf_context* gguf, std::int64_t size);

// RWKV's greedy trie over bytes: every text can be tokenized without loss.
void write_rwkv_vocabulary(gguf_context* gguf, std::int64_t size);

}  // namespace tt::modelgen::detail
