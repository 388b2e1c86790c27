// Names of the enum values: one table per enum, in enum order.
#include <array>

#include "tracer/format/access/access.h"
#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/name_of.h"
#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"

namespace tt {

const char* to_text(TensorKind v) {
  static constexpr std::array names = {"intermediate", "weight", "kv", "input"};
  return name_of(names, v);
}
const char* to_text(Source v) {
  static constexpr std::array names = {"disk",  "repacked", "kv",    "compute",
                                       "input", "device",   "buffer"};
  return name_of(names, v);
}
const char* to_text(Component v) {
  static constexpr std::array names = {"other", "embedding", "attention", "ffn",      "moe",
                                       "ssm",   "norm",      "output",    "kv-cache", "input"};
  return name_of(names, v);
}
const char* to_text(Role v) {
  static constexpr std::array names = {"",     "Q",     "K",      "V",        "QKV",   "O",
                                       "gate", "up",    "down",   "router",   "norm",  "bias",
                                       "conv", "state", "scores", "residual", "logits"};
  return name_of(names, v);
}
const char* to_text(InputLabel v) {
  static constexpr std::array names = {
      "",           "token ids",  "rope positions", "cache positions", "output ids", "mask",
      "embeddings", "state copy", "other"};
  return name_of(names, v);
}
const char* to_text(SlotKind v) {
  static constexpr std::array names = {"token ids",  "positions",     "cache positions",
                                       "output ids", "experts",       "expert scores",
                                       "rows",       "attended cells"};
  return name_of(names, v);
}
const char* to_text(Phase v) {
  static constexpr std::array names = {"prompt", "generate", "encode", "embed", "other"};
  return name_of(names, v);
}
const char* to_text(FaultKind kind) { return kind == FaultKind::Major ? "major" : "minor"; }

const char* to_text(Timing v) {
  static constexpr std::array names = {"fast", "learned", "exact", "none"};
  return name_of(names, v);
}
const char* to_text(Draft v) {
  static constexpr std::array names = {"none", "accepted", "rejected", "unknown"};
  return name_of(names, v);
}
const char* to_text(Level v) {
  static constexpr std::array names = {"off", "minimal", "detailed", "verbose"};
  return name_of(names, v);
}
const char* to_text(SessionState v) {
  static constexpr std::array names = {"running", "done", "cancelled", "failed", "recovered"};
  return name_of(names, v);
}
const char* to_text(Category v) {
  static constexpr std::array names = {"layer",  "infrastructure",    "embedding",
                                       "output", "cross_layer_input", "cross_layer_output"};
  return name_of(names, v);
}
const char* to_text(Extent v) {
  static constexpr std::array names = {"all", "rows", "experts", "cells"};
  return name_of(names, v);
}

}  // namespace tt
