// How much RAM a run needs so that each weight is read from the disk only once, by what needs it:
// the answer of the summary, of tt memory and of a comparison. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "analysis/index/session_index.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Bytes of the tensors of last_graph(), each once, without views.
struct ModelMemory {
  Bytes file{}, repacked{}, kv{}, recurrent{};  // `file`: and weights in plain memory
  Bytes touched_compute{};                      // the part of the compute buffers that ops touched
  std::optional<Bytes> compute;                 // reserved by llama.cpp; nullopt: not recorded
  std::optional<std::uint64_t> cache_tokens;    // for which `kv` has room
  std::string flash_attention{};  // on, off, auto: `compute` depends on it; "": unknown
  bool is_empty() const { return file.v + repacked.v + kv.v + recurrent.v == 0; }
  Bytes compute_buffers() const { return compute.value_or(touched_compute); }
  // Besides what the program itself needs. At least this, if `compute` is not recorded.
  Bytes enough() const { return file + repacked + kv + recurrent + compute_buffers(); }
};
bool is_recurrent_state(const Tensor& tensor);
ModelMemory model_memory(const GraphTemplate& graph, const SessionInfo& info);
// The graph of the last step that ran to its end, else of the last one; null: none. That of an
// interrupted step may lack layers.
std::expected<std::shared_ptr<const GraphTemplate>, TraceError> last_graph(
    const SessionIndex& index, const SessionReader& reader);
// Of last_graph(); empty: the session has none.
std::expected<ModelMemory, TraceError> model_memory(const SessionIndex& index,
                                                    const SessionReader& reader);
std::expected<ModelMemory, TraceError> model_memory(const SessionReader& reader,
                                                    const SessionInfo& info);

}  // namespace tt
