// Compares the orders of a file with a walk over every access that moves each read by itself and
// counts bytes word by word.
#include "analysis/weights/file_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/analysis/aggregate/indexed_session.h"
#include "tests/support/sessions/plausible_session.h"
#include "tracer/format/access/access.h"

namespace tt::test {
namespace {

using Place = std::pair<std::uint32_t, std::uint64_t>;  // file, offset

// A read of a mapped file, and the tensor that it is of.
struct Read {
  std::uint32_t step = 0, op = 0, access = 0;
  Place tensor;
  std::uint64_t at = 0, length = 0;  // in the tensor
  std::int32_t expert = -1;
};

struct NaiveOrder {
  std::vector<Place> order;  // tensors by first use
  std::map<Place, std::uint64_t> sizes;
  std::map<Place, std::string> names;
  std::map<Place, std::map<std::int32_t, std::uint64_t>> experts;  // reads
  std::vector<Read> reads;
};

NaiveOrder naive_order(const SessionReader& reader) {
  NaiveOrder naive;
  const auto walked = reader.for_each_step(StepId{0}, UINT32_MAX, [&](const Step& step) {
    if (step.graph.v == 0 || step.phase != Phase::Generate) return true;
    const auto graph = reader.graph(step.graph).value();
    // Also accesses that lists of the step would select, if it had any.
    const std::vector<Access> accesses = accesses_of(*graph);
    for (const Access& access : accesses) {
      const Tensor& owner = graph->tensor(graph->root(access.tensor));
      if (access.write || owner.file.empty() || access.op.v >= step.ops_run(graph->ops.size()))
        continue;
      const Place place(owner.file.file, owner.file.offset);
      if (naive.sizes.emplace(place, owner.file.length).second) naive.order.push_back(place);
      naive.names[place] = owner.name;
    }
    for_each_access(*graph, accesses, step, [&](const StepAccess& access) {
      const Tensor& owner = graph->tensor(graph->root(access.tensor));
      if (access.write || access.range.empty()) return;
      const Place place(owner.file.file, owner.file.offset);
      if (access.expert >= 0) ++naive.experts[place][access.expert];
      if (owner.source != Source::Disk) return;
      naive.reads.push_back({.step = step.id.v,
                             .op = access.op.v,
                             .access = access.access,
                             .tensor = place,
                             .at = access.range.offset - owner.file.offset,
                             .length = access.range.length,
                             .expert = access.expert});
    });
    return true;
  });
  EXPECT_TRUE(walked.has_value());
  return naive;
}

// The reads in a layout, in order.
LayoutReads expected_reads(const NaiveOrder& naive, FileLayout layout, std::uint64_t gap) {
  std::map<Place, std::uint64_t> offsets;
  std::map<std::uint32_t, std::uint64_t> ends;
  for (const auto& [place, size] : naive.sizes) ends.try_emplace(place.first, place.second);
  for (const Place& place : naive.order) {
    std::uint64_t& end = ends[place.first];
    offsets[place] = layout == FileLayout::Stored ? place.second : end;
    for (std::uint64_t size = 0; size < naive.sizes.at(place); size += 32) end += 32;
  }
  const auto moved = [&](const Read& read) {
    std::uint64_t at = read.at;
    if (layout == FileLayout::ExpertsByUse && read.expert >= 0) {
      const auto& uses = naive.experts.at(read.tensor);
      std::uint64_t before = 0;  // experts that come before this one
      for (const auto& [expert, reads] : uses)
        before += std::pair(-static_cast<std::int64_t>(reads), expert) <
                  std::pair(-static_cast<std::int64_t>(uses.at(read.expert)), read.expert);
      at = before * read.length;
    }
    return FileRange{
        .file = read.tensor.first, .offset = offsets.at(read.tensor) + at, .length = read.length};
  };
  LayoutReads sums;
  sums.layout = layout;
  std::optional<FileRange> last;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> words;  // of 4 bytes
  std::set<std::pair<std::uint32_t, std::uint64_t>> pages, blocks;
  const auto end_step = [&] {
    std::ranges::sort(words);
    const auto again = std::ranges::unique(words);
    words.erase(again.begin(), again.end());
    const std::uint64_t needed = words.size() * 4;
    sums.needed += Bytes{needed};
    sums.page_unneeded += Bytes{pages.size() * 4096 - needed};
    sums.readahead_unneeded += Bytes{blocks.size() * 131072 - needed};
    words.clear(), pages.clear(), blocks.clear();
  };
  for (std::size_t i = 0; i < naive.reads.size();) {
    // One access reads its parts in the order of the file.
    std::vector<FileRange> parts;
    const Read& first = naive.reads[i];
    for (; i < naive.reads.size(); ++i) {
      const Read& next = naive.reads[i];
      if (std::tuple(next.step, next.op, next.access) !=
          std::tuple(first.step, first.op, first.access))
        break;
      parts.push_back(moved(next));
    }
    std::ranges::sort(parts, {}, &FileRange::offset);
    for (const FileRange& part : parts) {
      const std::uint64_t end = last ? last->offset + last->length : 0;
      const bool follows =
          last && last->file == part.file && part.offset >= end && part.offset - end <= gap;
      ++sums.order.reads;
      sums.order.bytes += Bytes{part.length};
      sums.order.sequential += follows;
      if (follows) sums.order.sequential_bytes += Bytes{part.length};
      if (last && !follows) {
        ++sums.jumps;
        if (last->file == part.file) {
          const Bytes distance{part.offset > end ? part.offset - end : end - part.offset};
          sums.jump_bytes += distance;
          sums.longest_jump = std::max(sums.longest_jump, distance);
        }
      }
      last = part;
      EXPECT_EQ(part.offset % 4 + part.length % 4, 0U) << "counted in words of 4 bytes";
      const std::uint64_t last_byte = part.offset + part.length - 1;
      for (std::uint64_t word = part.offset / 4; word <= last_byte / 4; ++word)
        words.emplace_back(part.file, word);
      for (std::uint64_t page = part.offset / 4096; page <= last_byte / 4096; ++page)
        pages.emplace(part.file, page);
      for (std::uint64_t block = part.offset / 131072; block <= last_byte / 131072; ++block)
        blocks.emplace(part.file, block);
    }
    if (i == naive.reads.size() || naive.reads[i].step != first.step) end_step();
  }
  return sums;
}

TEST(FileOrder, MatchesReadsThatAreMovedOneByOne) {
  std::uint64_t reads = 0, experts = 0, gained = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const auto session = open_session(plausible_session(seed, 30));
    const std::uint64_t gap = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 100 : kDefaultGap;
    const NaiveOrder naive = naive_order(*session->reader);
    const auto found = file_order(*session->reader, gap, kAllRows);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->gap, gap);
    std::set<std::uint32_t> steps;
    for (const Read& read : naive.reads) steps.insert(read.step);
    EXPECT_EQ(found->steps, steps.size());

    ASSERT_EQ(found->layouts.size(), naive.experts.empty() ? 2U : 3U);
    for (const LayoutReads& layout : found->layouts) {
      SCOPED_TRACE(to_text(layout.layout));
      EXPECT_EQ(layout, expected_reads(naive, layout.layout, gap));
      reads += layout.order.reads;
      experts += layout.layout == FileLayout::ExpertsByUse;
    }
    gained += found->layouts[1].order.sequential > found->layouts[0].order.sequential;

    std::vector<std::string> names;
    ASSERT_EQ(found->tensors.total, naive.order.size());
    for (std::size_t i = 0; i < naive.order.size(); ++i) {
      EXPECT_EQ(found->tensors.rows[i].tensor, naive.names.at(naive.order[i]));
      EXPECT_EQ(found->tensors.rows[i].file.offset, naive.order[i].second);
      names.push_back(found->tensors.rows[i].tensor);
    }
    EXPECT_EQ(weights_by_use(*session->reader).value(), names);
    const auto page = file_order(*session->reader, gap, {.from = 1, .limit = 2});
    ASSERT_TRUE(page.has_value());
    EXPECT_EQ(page->tensors.total, names.size());
    for (const PlacedTensor& row : page->tensors.rows)
      EXPECT_EQ(row.tensor, names[1 + static_cast<std::size_t>(&row - page->tensors.rows.data())]);
  }
  EXPECT_GT(reads, 1000U);
  EXPECT_GT(experts, 2U);
  EXPECT_GT(gained, 2U);
}

}  // namespace
}  // namespace tt::test
