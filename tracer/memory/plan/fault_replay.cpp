#include "tracer/memory/plan/fault_replay.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <utility>

namespace tt {

namespace {

constexpr std::uint64_t kMinPiece = 64U << 10;
constexpr std::uint64_t kMaxPieces = 64U << 10;  // of all files
// Tokens of a replay without a recorded routing.
constexpr std::size_t kDenseTokens = 8, kRoutedTokens = 32;

// Pieces of the files are its pages, numbered through all files.
class PageCache {
 public:
  PageCache(std::uint32_t pieces, std::uint64_t capacity) : capacity_(capacity), pages_(pieces) {}

  void keep(std::uint32_t piece) { pages_[piece].where = Where::Kept; }
  bool contains(std::uint32_t piece) const { return pages_[piece].where != Where::Disk; }
  void use(std::uint32_t piece) { pages_[piece].used = true; }
  void add(std::uint32_t piece) {
    pages_[piece].used = pages_[piece].second_round = false;
    append(piece, Where::Inactive);
  }
  void shrink() {
    while (list(Where::Inactive).size + list(Where::Active).size > capacity_) drop_one();
  }

 private:
  enum class Where : std::uint8_t { Disk, Inactive, Active, Kept };
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Page {
    std::uint32_t before = kNone, after = kNone;
    Where where = Where::Disk;
    bool used = false, second_round = false;
  };
  struct List {
    std::uint32_t first = kNone, last = kNone;
    std::uint64_t size = 0;
  };
  List& list(Where where) { return lists_[where == Where::Active]; }

  void append(std::uint32_t piece, Where where) {
    List& to = list(where);
    Page& page = pages_[piece];
    page.where = where;
    page.before = to.last;
    page.after = kNone;
    (to.last == kNone ? to.first : pages_[to.last].after) = piece;
    to.last = piece;
    ++to.size;
  }
  std::uint32_t take_first(Where where) {
    List& from = list(where);
    const std::uint32_t piece = from.first;
    from.first = pages_[piece].after;
    (from.first == kNone ? from.last : pages_[from.first].before) = kNone;
    --from.size;
    pages_[piece].where = Where::Disk;
    return piece;
  }
  void drop_one() {
    while (list(Where::Active).size > list(Where::Inactive).size) {
      const std::uint32_t piece = take_first(Where::Active);
      add(piece);
    }
    const std::uint32_t piece = take_first(Where::Inactive);
    Page& page = pages_[piece];
    if (!std::exchange(page.used, false)) return;
    if (std::exchange(page.second_round, !page.second_round)) {
      append(piece, Where::Active);
    } else {
      append(piece, Where::Inactive);
    }
  }

  const std::uint64_t capacity_;  // pieces that are not kept
  std::vector<Page> pages_;
  std::array<List, 2> lists_;
};

}  // namespace

FaultReplay::FaultReplay(const WeightOrder& order, const Routing& routing)
    : routing_(routing.end() - static_cast<std::ptrdiff_t>(std::min(kMaxTokens, routing.size())),
               routing.end()),
      tokens_(order.experts.empty() ? kDenseTokens
              : routing_.empty()    ? kRoutedTokens
                                    : routing_.size()) {
  std::vector<SlotId> lists;
  auto dense = order.weights.begin();
  const auto add_dense = [&](auto is_before) {
    for (; dense != order.weights.end() && is_before(*dense); ++dense)
      reads_.push_back({.range = dense->range.file});
  };
  for (const ExpertUse& use : order.experts) {
    add_dense([&](const WeightUse& weight) { return weight.op < use.op; });
    const auto list = std::ranges::find(lists, use.list);
    reads_.push_back({.range = use.range.file,
                      .routed = true,
                      .list = static_cast<std::uint32_t>(list - lists.begin()),
                      .slice = use.slice,
                      .stride = use.stride,
                      .experts = use.experts,
                      .per_token = std::min(use.per_token, use.experts)});
    if (list == lists.end()) lists.push_back(use.list);
  }
  add_dense([](const WeightUse&) { return true; });
  for (const Read& read : reads_) {
    if (read.range.file >= file_ends_.size()) file_ends_.resize(read.range.file + 1);
    std::uint64_t& end = file_ends_[read.range.file];
    end = std::max(end, read.range.offset + read.range.length);
  }
}

void FaultReplay::each_range(std::size_t token,
                             const std::function<void(const FileRange&)>& f) const {
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(token + 1));
  for (const Read& read : reads_) {
    if (!read.routed) {
      f(read.range);
      continue;
    }
    const auto slice = [&](std::uint32_t expert) {
      f(FileRange{.file = read.range.file,
                  .offset = read.range.offset + expert * read.stride,
                  .length = read.slice});
    };
    if (token < routing_.size() && read.list < routing_[token].size()) {
      for (const std::uint32_t expert : routing_[token][read.list]) slice(expert);
    } else {
      for (std::uint32_t i = 0; i < read.per_token && read.experts > 0; ++i)
        slice(static_cast<std::uint32_t>(random() % read.experts));
    }
  }
}

double FaultReplay::bytes_per_token(std::uint64_t around, std::uint64_t room,
                                    std::span<const FileRange> kept) const {
  std::uint64_t all = 0;
  for (const std::uint64_t end : file_ends_) all += end;
  const std::uint64_t piece = std::max(kMinPiece, all / kMaxPieces);
  std::vector<std::uint32_t> first_of_file = {0};
  for (const std::uint64_t end : file_ends_)
    first_of_file.push_back(first_of_file.back() + static_cast<std::uint32_t>(end / piece + 1));
  std::vector<std::uint32_t> pieces;
  for (const FileRange& range : kept) {
    if (range.file >= file_ends_.size()) continue;
    // Pieces that are kept in whole.
    const std::uint64_t end =
        std::min((range.offset + range.length) / piece, file_ends_[range.file] / piece + 1);
    for (std::uint64_t at = (range.offset + piece - 1) / piece; at < end; ++at)
      pieces.push_back(first_of_file[range.file] + static_cast<std::uint32_t>(at));
  }
  PageCache cache(first_of_file.back(),
                  room / piece - std::min<std::uint64_t>(room / piece, pieces.size()));
  for (const std::uint32_t at : pieces) cache.keep(at);

  const auto half = static_cast<std::uint32_t>(around / 2 / piece);
  std::uint64_t read = 0;
  const auto fault = [&](std::uint32_t file, std::uint32_t missing) {
    const std::uint32_t first = first_of_file[file], end = first_of_file[file + 1];
    const std::uint32_t from = missing - std::min(missing - first, half);
    const std::uint32_t to = std::min(end, missing + std::max(half, 1U));
    for (std::uint32_t at = from; at < to; ++at) {
      if (cache.contains(at)) continue;
      cache.add(at);
      ++read;
    }
    cache.shrink();
  };
  for (std::size_t token = 0; token < tokens_; ++token) {
    if (token == first_counted()) read = 0;
    each_range(token, [&](const FileRange& range) {
      if (range.empty()) return;
      const std::uint32_t first = first_of_file[range.file];
      const std::uint64_t last = (range.offset + range.length - 1) / piece;
      for (std::uint64_t at = range.offset / piece; at <= last; ++at) {
        const std::uint32_t number = first + static_cast<std::uint32_t>(at);
        if (!cache.contains(number)) fault(range.file, number);
        cache.use(number);
      }
    });
  }
  const std::size_t counted = tokens_ - first_counted();
  return counted == 0 ? 0 : static_cast<double>(read * piece) / static_cast<double>(counted);
}

}  // namespace tt
