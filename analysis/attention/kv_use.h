// What steps did with KV caches: how much of what they read they had written
// themselves (fresh), and how much earlier steps had (cached). Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// What one layer's ops did with KV caches in one step, bytes.
struct KvLayer {
  LayerId layer;   // of the op, whichever layer the cache is named after
  Bytes fresh{};   // read of what this step wrote
  Bytes cached{};  // read of what an earlier step of this session wrote last
  // Read of what none of its steps wrote: the rest of a padded view (without flash
  // attention kernels read all of it), and a prefix that is kept from an earlier
  // request.
  Bytes other{};
  Bytes written{};
  friend bool operator==(const KvLayer&, const KvLayer&) = default;
};

struct KvStep {
  StepId step;
  Phase phase = Phase::Other;
  std::uint32_t first_token = 0, n_tokens = 0;
  std::vector<KvLayer> layers;  // that touched a cache, by number; kNoLayer first
  // Of recurrent states, which a step reads and writes whole.
  Bytes state_read{}, state_written{};
  friend bool operator==(const KvStep&, const KvStep&) = default;
};

// Steps `range`; every step up to its end is walked, for what they wrote.
std::expected<Page<KvStep>, TraceError> kv_use(const SessionReader& reader, PageRange range,
                                               const KeepGoing& keep_going = always);

}  // namespace tt
