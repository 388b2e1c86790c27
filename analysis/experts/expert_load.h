// How evenly a router loads its experts, and how sure that is: entropy and Gini coefficient of the
// choices per expert, and the intervals of both that the number of tokens allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace tt {

// Of the distribution of choices, in bits. 0: always the same expert; log2(experts): uniform.
// `choices`: per expert, of those that were chosen at least once.
double load_entropy(std::span<const std::uint64_t> choices);
// Gini coefficient of the choices per expert. 0: uniform; 1 - 1 / experts: always the same expert.
double load_gini(std::vector<std::uint64_t> choices, std::uint32_t experts);

struct LoadInterval {
  double low = 0, high = 0;
  friend bool operator==(const LoadInterval&, const LoadInterval&) = default;
};
// Each contains the value that the router has on text of this kind with a confidence of 95 %.
struct LoadIntervals {
  LoadInterval entropy, gini;
  friend bool operator==(const LoadIntervals&, const LoadIntervals&) = default;
};

// The choices of one router in blocks of consecutive tokens, for a bootstrap (docs/experts.md).
// Tokens that follow each other choose alike, so blocks are drawn and not tokens. Memory: one
// number per block and expert that the block chose.
class LoadBlocks {
 public:
  // More blocks than this are merged in pairs, so a session of any length costs the same.
  static constexpr std::size_t kMaxBlocks = 256;
  static constexpr std::size_t kMinBlocks = 5;  // fewer say nothing
  static constexpr std::size_t kSamples = 200;

  // The experts of the next token; one that is listed twice counts twice.
  void add(std::span<const std::uint32_t> experts);
  // `experts`: to choose from. nullopt: fewer than kMinBlocks blocks, or no choices.
  std::optional<LoadIntervals> intervals(std::uint32_t experts) const;

 private:
  using Block = std::map<std::uint32_t, std::uint64_t>;  // choices by expert
  std::vector<Block> blocks_;
  std::uint64_t length_ = 1, last_ = 0;  // tokens of a block, and of the last one
};

}  // namespace tt
