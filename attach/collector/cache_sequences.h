// Which tokens are of the same sequence of the KV cache (of one slot of llama-server), from the
// cells of the cache. A pure value.
//
// A cache has a stream per sequence, or all sequences share one. In a shared one, a token attends
// only to cells of its own sequence, so any one of them tells which it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tt::attach {

// Of the tokens of a step. All streams together are numbered cell by cell.
struct StepCells {
  std::span<const std::int64_t> own;  // in which each token is stored
  // In its stream, the first two that each token attends to, its own one among them; -1: there is
  // no second one. Empty: not known.
  std::span<const std::array<std::int64_t, 2>> attended;
  std::int64_t per_stream = 0;  // cells
  std::int64_t streams = 0;
};

class CacheSequences {
 public:
  // A number per token, the same in all steps. Empty: not known.
  std::vector<std::uint32_t> of(const StepCells& cells) const;
  // Adds a step; `sequences` as by of().
  void add(const StepCells& cells, std::span<const std::uint32_t> sequences);
  // Cells may have moved, or steps are missing. The sequences get new numbers.
  void forget() { by_cell_.clear(); }

 private:
  std::unordered_map<std::int64_t, std::uint32_t> by_cell_;  // in a shared stream
  std::uint32_t next_ = 0;
};

}  // namespace tt::attach
