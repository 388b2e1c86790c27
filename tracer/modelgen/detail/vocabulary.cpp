#include "tracer/modelgen/detail/vocabulary.h"

#include <llama.h>

#include <cassert>
#include <format>
#include <string_view>
#include <vector>

namespace tt::modelgen::detail {
namespace {

constexpr std::string_view kSpace = "\u2581";  // SentencePiece's visible space

constexpr const char* kChatMl =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

constexpr const char* kTurns =
    "{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "<reply>{{ message['content'] }}<stop>{% else %}<user>{{ message['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<reply>{% endif %}";

struct Token {
  std::string text;
  float score = 0;
  llama_token_type type = LLAMA_TOKEN_TYPE_NORMAL;
};

class Tokens {
 public:
  void add(std::string text, llama_token_type type = LLAMA_TOKEN_TYPE_NORMAL) {
    // Earlier pieces have priority in merges; special tokens are never merged.
    const float score =
        type == LLAMA_TOKEN_TYPE_NORMAL ? -static_cast<float>(tokens_.size()) : 0.0F;
    tokens_.push_back({std::move(text), score, type});
  }
  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      add(std::format("<0x{:02X}>", byte), LLAMA_TOKEN_TYPE_BYTE);
    }
  }
  std::size_t size() const { return tokens_.size(); }
  std::vector<Token>& all() { return tokens_; }

  void write(gguf_context* gguf, const char* model) const {
    std::vector<const char*> texts;
    std::vector<float> scores;
    std::vector<std::int32_t> types;
    for (const Token& token : tokens_) {
      texts.push_back(token.text.c_str());
      scores.push_back(token.score);
      types.push_back(token.type);
    }
    gguf_set_val_str(gguf, "tokenizer.ggml.model", model);
    gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(),
                      scores.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(),
                      types.size());
  }

 private:
  std::vector<Token> tokens_;
};

// Passes all strings of `length` lower-case letters to `take`, in order, until it returns false.
template <class Take>
bool letter_strings(int length, Take&& take) {
  std::string text(static_cast<std::size_t>(length), 'a');
  while (true) {
    if (!take(text)) {
      return false;
    }
    std::size_t at = text.size();
    while (at > 0 && text[at - 1] == 'z') {
      text[--at] = 'a';
    }
    if (at == 0) {
      return true;
    }
    ++text[at - 1];
  }
}

// Adds strings of two and more letters until there are `size` tokens: first as the start of a
// word, then as a continuation.
template <class Continuation, class Start>
void fill(Tokens& tokens, std::size_t size, Continuation&& continuation, Start&& start) {
  for (int length = 2; tokens.size() < size; ++length) {
    const auto add = [&](auto&& spell) {
      letter_strings(length, [&](const std::string& text) {
        if (tokens.size() < size) {
          tokens.add(spell(text));
        }
        return tokens.size() < size;
      });
    };
    add(start);
    add(continuation);
  }
}

std::string with_space(const std::string& text) { return std::string(kSpace) + text; }
std::string as_is(const std::string& text) { return text; }

void add_printable(Tokens& tokens) {
  for (char c = '!'; c <= '~'; ++c) {
    tokens.add(std::string(1, c));
  }
}

void set_u32(gguf_context* gguf, const char* key, std::size_t value) {
  gguf_set_val_u32(gguf, key, static_cast<std::uint32_t>(value));
}

void begin_llama(Tokens& tokens) {
  tokens.add("<unk>", LLAMA_TOKEN_TYPE_UNKNOWN);
  tokens.add("<s>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.add("</s>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.add_bytes();
}

void set_llama_specials(gguf_context* gguf, std::size_t end_of_turn, bool add_bos) {
  set_u32(gguf, "tokenizer.ggml.unknown_token_id", 0);
  set_u32(gguf, "tokenizer.ggml.bos_token_id", 1);
  set_u32(gguf, "tokenizer.ggml.eos_token_id", 2);
  set_u32(gguf, "tokenizer.ggml.eot_token_id", end_of_turn);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", add_bos);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_eos_token", false);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_space_prefix", true);
}

Tokens learned_tokens(std::span<const std::string> pieces) {
  Tokens tokens;
  begin_llama(tokens);
  tokens.add("<user>", LLAMA_TOKEN_TYPE_USER_DEFINED);
  tokens.add("<reply>", LLAMA_TOKEN_TYPE_USER_DEFINED);
  tokens.add("<stop>", LLAMA_TOKEN_TYPE_USER_DEFINED);
  for (const std::string& piece : pieces) {
    tokens.add(piece);
  }
  return tokens;
}

}  // namespace

void write_llama_vocabulary(gguf_context* gguf, std::int64_t size) {
  assert(size >= kMinVocab);
  const auto count = static_cast<std::size_t>(size);
  Tokens tokens;
  begin_llama(tokens);
  tokens.add(std::string(kSpace));
  tokens.add("\n");
  add_printable(tokens);
  fill(tokens, count - 2, as_is, with_space);
  tokens.add("<|im_start|>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.add("<|im_end|>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.write(gguf, "llama");
  set_llama_specials(gguf, count - 1, true);
  gguf_set_val_str(gguf, "tokenizer.chat_template", kChatMl);
}

std::int64_t learned_vocabulary_size(std::span<const std::string> pieces) {
  return static_cast<std::int64_t>(learned_tokens(pieces).size());
}

std::int64_t write_learned_vocabulary(gguf_context* gguf, std::span<const std::string> pieces) {
  const Tokens tokens = learned_tokens(pieces);
  tokens.write(gguf, "llama");
  set_llama_specials(gguf, 3 + 256 + 2, false);
  gguf_set_val_str(gguf, "tokenizer.chat_template", kTurns);
  return static_cast<std::int64_t>(tokens.size());
}

void write_bert_vocabulary(gguf_context* gguf, std::int64_t size) {
  assert(size >= kMinVocab);
  Tokens tokens;
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    tokens.add(special, LLAMA_TOKEN_TYPE_CONTROL);
  }
  for (char c = '!'; c <= '~'; ++c) {
    if (c < 'A' || c > 'Z') {  // the tokenizer converts text to lower case
      tokens.add(with_space(std::string(1, c)));
      tokens.add(std::string(1, c));
    }
  }
  fill(tokens, static_cast<std::size_t>(size), as_is, with_space);
  tokens.write(gguf, "bert");
  set_u32(gguf, "tokenizer.ggml.token_type_count", 2);
  set_u32(gguf, "tokenizer.ggml.padding_token_id", 0);
  set_u32(gguf, "tokenizer.ggml.unknown_token_id", 1);
  set_u32(gguf, "tokenizer.ggml.cls_token_id", 2);
  set_u32(gguf, "tokenizer.ggml.bos_token_id", 2);
  set_u32(gguf, "tokenizer.ggml.seperator_token_id", 3);  // the key is misspelled in the format
  set_u32(gguf, "tokenizer.ggml.eos_token_id", 3);
  set_u32(gguf, "tokenizer.ggml.mask_token_id", 4);
}

void write_t5_vocabulary(gguf_context* gguf, std::int64_t size) {
  assert(size >= kMinVocab);
  Tokens tokens;
  tokens.add("<pad>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.add("</s>", LLAMA_TOKEN_TYPE_CONTROL);
  tokens.add("<unk>", LLAMA_TOKEN_TYPE_UNKNOWN);
  tokens.add(std::string(kSpace));
  add_printable(tokens);
  fill(tokens, static_cast<std::size_t>(size), as_is, with_space);
  // Scores are log probabilities: the segmentation with the highest sum is used, so few long
  // pieces must cost less than many short ones.
  for (Token& token : tokens.all()) {
    token.score = token.type == LLAMA_TOKEN_TYPE_NORMAL ? -10.0F + token.score * 1e-5F : 0.0F;
  }
  tokens.write(gguf, "t5");
  set_u32(gguf, "tokenizer.ggml.padding_token_id", 0);
  set_u32(gguf, "tokenizer.ggml.eos_token_id", 1);
  set_u32(gguf, "tokenizer.ggml.unknown_token_id", 2);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_eos_token", true);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_space_prefix", true);
  gguf_set_val_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces", true);
}

void write_rwkv_vocabulary(gguf_context* gguf, std::int64_t size) {
  assert(size >= kMinVocab);
  Tokens tokens;
  tokens.add("<s>", LLAMA_TOKEN_TYPE_CONTROL);
  for (int byte = 0; byte < 256; ++byte) {
    tokens.add(std::format("\\x{:02x}", byte));
  }
  fill(tokens, static_cast<std::size_t>(size), as_is,
       [](const std::string& text) { return " " + text; });
  tokens.write(gguf, "rwkv");
  set_u32(gguf, "tokenizer.ggml.bos_token_id", 0);
  set_u32(gguf, "tokenizer.ggml.eos_token_id", 0);
  gguf_set_val_bool(gguf, "tokenizer.ggml.add_bos_token", false);
  gguf_set_val_str(gguf, "tokenizer.chat_template",
                   "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
                   "\n\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}");
}

}  // namespace tt::modelgen::detail
