// The words of our enums: one table each, in enum order.
#include <array>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt {

namespace {
template <class Enum, std::size_t N>
const char* word(const std::array<const char*, N>& words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? words[index] : "unknown";
}
}  // namespace

const char* to_text(TensorKind v) {
  static constexpr std::array words = {"intermediate", "weight", "kv", "input"};
  return word(words, v);
}
const char* to_text(Source v) {
  static constexpr std::array words = {"disk",  "repacked", "kv",    "compute",
                                       "input", "device",   "buffer"};
  return word(words, v);
}
const char* to_text(Component v) {
  static constexpr std::array words = {"other", "embedding", "attention", "ffn",      "moe",
                                       "ssm",   "norm",      "output",    "kv-cache", "input"};
  return word(words, v);
}
const char* to_text(Role v) {
  static constexpr std::array words = {"",     "Q",     "K",      "V",        "QKV",   "O",
                                       "gate", "up",    "down",   "router",   "norm",  "bias",
                                       "conv", "state", "scores", "residual", "logits"};
  return word(words, v);
}
const char* to_text(InputLabel v) {
  static constexpr std::array words = {
      "",           "token ids",  "rope positions", "cache positions", "output ids", "mask",
      "embeddings", "state copy", "other"};
  return word(words, v);
}
const char* to_text(SlotKind v) {
  static constexpr std::array words = {"token ids",  "positions",     "cache positions",
                                       "output ids", "experts",       "expert scores",
                                       "rows",       "attended cells"};
  return word(words, v);
}
const char* to_text(Phase v) {
  static constexpr std::array words = {"prompt", "generate", "encode", "embed", "other"};
  return word(words, v);
}
const char* to_text(Timing v) {
  static constexpr std::array words = {"fast", "learned", "exact", "none"};
  return word(words, v);
}
const char* to_text(Level v) {
  static constexpr std::array words = {"off", "minimal", "detailed", "verbose"};
  return word(words, v);
}
const char* to_text(SessionState v) {
  static constexpr std::array words = {"running", "done", "cancelled", "failed", "recovered"};
  return word(words, v);
}
const char* to_text(Category v) {
  static constexpr std::array words = {"layer",  "infrastructure",    "embedding",
                                       "output", "cross_layer_input", "cross_layer_output"};
  return word(words, v);
}

}  // namespace tt
