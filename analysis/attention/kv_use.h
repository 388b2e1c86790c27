// KV cache traffic per step: bytes read that the same step wrote (fresh), bytes read that an
// earlier step wrote (cached), and bytes written. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// KV cache traffic of the ops of one layer in one step, in bytes.
struct KvLayer {
  LayerId layer;   // of the op; the cache may be named after another layer
  Bytes fresh{};   // read, written by this step
  Bytes cached{};  // read, last written by an earlier step of this session
  // Read, but not written by any step of this session: the padding of a view (kernels other
  // than flash attention read all of it), and a prefix reused from an earlier request.
  Bytes other{};
  Bytes written{};
  friend bool operator==(const KvLayer&, const KvLayer&) = default;
};

struct KvStep {
  StepId step;
  Phase phase = Phase::Other;
  std::uint32_t first_token = 0, n_tokens = 0;
  std::vector<KvLayer> layers;  // layers that accessed a cache, by number; kNoLayer first
  // Recurrent states, which a step reads and writes completely.
  Bytes state_read{}, state_written{};
  friend bool operator==(const KvStep&, const KvStep&) = default;
};

// The steps `range`. Also reads all earlier steps, because their writes are needed.
std::expected<Page<KvStep>, TraceError> kv_use(const SessionReader& reader, PageRange range,
                                               const ContinueCheck& keep_going = never_cancel);

Fields<Page<KvStep>> fields_of(const Page<KvStep>*);

// For a session without accesses to either.
inline constexpr const char* kNoKvAccesses =
    "The session has no accesses to a KV cache or a recurrent state: the model has none, or it was "
    "recorded at the level minimal.";

}  // namespace tt
