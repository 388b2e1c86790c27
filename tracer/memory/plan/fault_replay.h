// What page faults read where nothing reads the weights ahead: the reads of some tokens, replayed
// on a model of the kernel's page cache. Pure.
//
// A page that is missing is read with those around it: the half of the readahead size before it,
// and the half after it, as far as they are missing, too. The cache has two lists, as Linux has. A
// page begins at the end of the inactive list. When it reaches the front, it is dropped if nobody
// used it since; if it was used once, it gets a second round; if it was used again in that one, it
// moves to the active list, which is at most as long as the other one. So pages that were read
// ahead and are not used yet are dropped before used ones, which are of no use until the next
// token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tracer/memory/plan/weight_order.h"

namespace tt {

class FaultReplay {
 public:
  // [token][list][...]: the experts that a token uses, by ExpertUse::list in the order of first
  // use.
  using Routing = std::vector<std::vector<std::vector<std::uint32_t>>>;
  // Tokens of a routing that are replayed at most. The first half of the tokens only fills the
  // cache.
  static constexpr std::size_t kMaxTokens = 256;
  // The last kMaxTokens of the routing. Without routing each expert is equally likely.
  explicit FaultReplay(const WeightOrder& order = {}, const Routing& routing = {});

  // Bytes per token. `around`: bytes that a fault reads; 0: only what is missing. `room`: bytes of
  // memory for all weights. `kept` are always in memory.
  double bytes_per_token(std::uint64_t around, std::uint64_t room,
                         std::span<const FileRange> kept = {}) const;

  std::size_t tokens() const { return tokens_; }
  std::size_t first_counted() const { return tokens_ / 2; }
  // Calls f for what a token reads, in the order of its ops. The range of an expert is that of its
  // slice.
  void each_range(std::size_t token, const std::function<void(const FileRange&)>& f) const;

 private:
  struct Read {
    FileRange range;  // of all slices
    bool routed = false;
    std::uint32_t list = 0;
    std::uint64_t slice = 0, stride = 0;
    std::uint32_t experts = 0, per_token = 0;
  };
  std::vector<Read> reads_;  // of a token, by op
  std::vector<std::uint64_t> file_ends_;
  Routing routing_;  // of the tokens that are replayed
  std::size_t tokens_ = 0;
};

}  // namespace tt
