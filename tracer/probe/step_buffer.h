// The buffer that the inference thread writes while a graph runs. Allocated when the model is
// loaded.
//
// One owner at a time (StepPool): the inference thread from acquire to submit, then the writer
// thread until release. A live view may read `op_ends` of the buffer in flight: op i is
// complete once `ops_done` > i (release store), and the values read are valid if `generation`
// is unchanged afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tracer/format/model/new_graph_op.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/known_graph.h"

namespace tt {

// Values of one slot, copied into StepBuffer::arena.
struct CapturedSlot {
  std::uint32_t slot = 0;   // index into the template's slots
  std::uint32_t count = 0;  // values
  std::size_t offset = 0;   // into the arena
  enum class Values : std::uint8_t { Int32, Int64, Float } values = Values::Int32;
};

struct StepBuffer {
  StepBuffer(std::size_t ops, std::size_t arena_bytes)
      : max_ops(ops),
        op_ends(std::make_unique<std::atomic<std::int64_t>[]>(ops)),
        arena(std::make_unique_for_overwrite<std::byte[]>(arena_bytes)),
        arena_size(arena_bytes) {
    captured.reserve(1024);
    stats.reserve(ops);  // unused pages are never touched
  }

  const std::size_t max_ops;
  std::atomic<std::uint64_t> generation{0};  // incremented when the buffer is acquired again
  std::atomic<std::uint32_t> ops_done{0};
  std::atomic<std::int64_t> first_op_ns{0};
  std::atomic<std::uint32_t> step_id{0};
  std::unique_ptr<std::atomic<std::int64_t>[]> op_ends;  // ns since session start
  mutable std::mutex new_op_mutex;
  std::optional<NewGraphOp> new_op;  // nullopt: the graph is known. Guarded by new_op_mutex

  // Below: only for the owner, never read by live views.
  KnownGraphPtr graph;
  AddressesPtr addresses;
  Step header;  // everything but op_ends, slots
  // Slot values. Not zeroed, so that unused pages are never touched.
  std::unique_ptr<std::byte[]> arena;
  std::size_t arena_size;
  std::size_t arena_used = 0;
  std::vector<CapturedSlot> captured;
  std::vector<ValueStats> stats;
  StepValues values;              // captured on request
  std::uint32_t slots_lost = 0;   // did not fit
  std::uint64_t page_faults = 0;  // if only counted (tracer/recorder/page_faults.h)
  bool count_mismatch = false;    // number of executed ops differs from the template
};

}  // namespace tt
