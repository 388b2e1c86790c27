#include "analysis/attention/kv_use.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/attention/byte_set.h"
#include "analysis/common/rebuilt.h"
#include "analysis/common/walk_steps.h"
#include "analysis/fields/page_fields.h"

namespace tt {

namespace {

// Limits for values of untrusted files; no cache is larger or has more ranges.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;
constexpr std::size_t kMaxRanges = std::size_t{1} << 23;

// The state of one cache. Caches are identified by name, which templates share.
struct Cache {
  ByteSet written;  // by earlier steps
  ByteSet fresh;    // by the current step
};

// Blocks of equal length.
struct Blocks {
  std::vector<std::uint64_t> begins;
  std::uint64_t length = 0;
};

// Repeats all blocks `count` times at distance `stride`. False if a limit is exceeded.
bool repeat(Blocks& blocks, std::int64_t count, std::uint64_t stride) {
  if (count <= 0) {
    blocks.begins.clear();
    return true;
  }
  const auto more = static_cast<std::uint64_t>(count) - 1;
  if (more == 0 || stride == 0) return true;
  std::uint64_t far = 0;
  if (__builtin_mul_overflow(more, stride, &far) || far > kMaxBytes) return false;
  if (blocks.begins.size() == 1 && stride <= blocks.length) {
    blocks.length += far;
    return true;
  }
  const std::size_t once = blocks.begins.size();
  if (more > kMaxRanges / std::max<std::size_t>(once, 1)) return false;
  for (std::uint64_t k = 1; k <= more; ++k)
    for (std::size_t i = 0; i < once; ++i) blocks.begins.push_back(blocks.begins[i] + k * stride);
  return true;
}

// The blocks of a view's memory: of all rows, or of its first row. None: limit exceeded.
std::optional<Blocks> blocks_of(const Tensor& view, bool all_rows) {
  if (view.view_offset > kMaxBytes) return std::nullopt;
  struct Repeat {
    std::int64_t count;
    std::uint64_t stride;
  };
  std::vector<Repeat> repeats;
  for (std::size_t d = 0; d < view.ne.size(); ++d) {
    if (d == 1 && !all_rows) continue;
    const std::int64_t in_block = d == 0 ? std::max<std::int64_t>(view.block_elements, 1) : 1;
    repeats.push_back({view.ne[d] / in_block, view.nb[d]});
  }
  // Smallest stride first, so that contiguous memory stays one block.
  std::ranges::stable_sort(repeats, {}, &Repeat::stride);
  Blocks blocks{.begins = {view.view_offset}, .length = view.block_bytes};
  for (const auto& [count, stride] : repeats)
    if (!repeat(blocks, count, stride)) return std::nullopt;
  return blocks;
}

// The bytes of a cache that an access touches; none: unknown.
std::optional<ByteSet> bytes_of(const GraphTemplate& graph, const Access& access,
                                const Step& step) {
  const Tensor& view = graph.tensor(access.tensor);
  auto blocks = blocks_of(view, access.extent == Extent::All);
  if (!blocks) return std::nullopt;
  if (access.extent == Extent::All) return ByteSet::of(std::move(blocks->begins), blocks->length);
  if (access.extent == Extent::Experts || access.slot.v >= step.slots.size()) return std::nullopt;
  const auto& rows = step.slots[access.slot.v].ints;
  if (rows.size() > kMaxRanges / std::max<std::size_t>(blocks->begins.size(), 1))
    return std::nullopt;
  std::vector<std::uint64_t> begins;
  begins.reserve(rows.size() * blocks->begins.size());
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= view.ne[1]) continue;
    std::uint64_t far = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(row), view.nb[1], &far) ||
        far > kMaxBytes)
      return std::nullopt;
    for (const std::uint64_t begin : blocks->begins) begins.push_back(begin + far);
  }
  return ByteSet::of(std::move(begins), blocks->length);
}

// Classifies the bytes of a read by the step that wrote them.
void add_read(KvLayer& sum, const std::optional<ByteSet>& bytes, Bytes touched,
              const Cache& cache) {
  if (!bytes || bytes->size() != touched.v) {
    sum.other += touched;
    return;
  }
  const ByteSet before = bytes->common(cache.written);
  const std::uint64_t fresh = bytes->common(cache.fresh).size();
  const std::uint64_t cached = before.size() - before.common(cache.fresh).size();
  sum.fresh.v += fresh;
  sum.cached.v += cached;
  sum.other.v += touched.v - fresh - cached;
}

class KvWalk {
 public:
  // Reads only the accesses to caches and recurrent states.
  KvStep add(const DerivedGraph& derived, const Step& step) {
    const GraphTemplate& graph = *derived.graph;
    const std::vector<Access>& accesses = accesses_of_caches(step.graph, derived).all;
    KvStep out{.step = step.id,
               .phase = step.phase,
               .first_token = step.first_token,
               .n_tokens = step.n_tokens,
               .layers = {}};
    write(derived, step);
    std::map<LayerId, KvLayer> layers;
    for_each_access(graph, accesses, step, [&](const StepAccess& row) {
      add_row(graph, accesses[row.access], row, step, layers, out);
    });
    for (const auto& [layer, sum] : layers) {
      out.layers.push_back(sum);
      out.layers.back().layer = layer;
    }
    end_step();
    return out;
  }
  // A step before the requested range: only its writes are needed.
  void skip(const DerivedGraph& derived, const Step& step) {
    write(derived, step);
    end_step();
  }

 private:
  struct CacheAccesses {
    std::vector<Access> all, writes;
  };

  void write(const DerivedGraph& derived, const Step& step) {
    const GraphTemplate& graph = *derived.graph;
    const std::vector<Access>& writes = accesses_of_caches(step.graph, derived).writes;
    for_each_access(graph, writes, step, [&](const StepAccess& row) {
      const Access& access = writes[row.access];
      Cache& cache = cache_of(graph, access);
      if (const auto bytes = bytes_of(graph, access, step)) cache.fresh.add(*bytes);
    });
  }
  void end_step() {
    for (auto& [name, cache] : caches_) cache.written.add(std::exchange(cache.fresh, {}));
  }
  const CacheAccesses& accesses_of_caches(TemplateId id, const DerivedGraph& derived) {
    const auto [at, fresh] = accesses_.try_emplace(id);
    CacheAccesses& of = at->second;
    if (fresh) {
      const GraphTemplate& graph = *derived.graph;
      std::ranges::copy_if(derived.accesses, std::back_inserter(of.all), [&](const Access& a) {
        return graph.tensor(graph.root(a.tensor)).kind == TensorKind::Kv;
      });
      std::ranges::copy_if(of.all, std::back_inserter(of.writes), &Access::write);
    }
    return of;
  }
  Cache& cache_of(const GraphTemplate& graph, const Access& access) {
    return caches_[graph.tensor(graph.root(access.tensor)).name];
  }
  void add_row(const GraphTemplate& graph, const Access& access, const StepAccess& row,
               const Step& step, std::map<LayerId, KvLayer>& layers, KvStep& out) {
    if (graph.tensor(graph.root(access.tensor)).role == Role::State) {
      (row.write ? out.state_written : out.state_read) += row.touched;
      return;
    }
    KvLayer& sum = layers[graph.op(access.op).layer];
    if (row.write) {
      sum.written += row.touched;
      return;
    }
    add_read(sum, bytes_of(graph, access, step), row.touched, cache_of(graph, access));
  }

  std::map<TemplateId, CacheAccesses> accesses_;
  std::map<std::string, Cache> caches_;
};

}  // namespace

std::expected<Page<KvStep>, TraceError> kv_use(const SessionReader& reader, PageRange range,
                                               const ContinueCheck& keep_going) {
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  if (auto known = needs_recorded_graphs(*info, "which cells of the KV cache a step wrote"); !known)
    return std::unexpected(known.error());
  const auto total = reader.step_count();
  if (!total) return std::unexpected(total.error());
  Page<KvStep> page{.total = *total, .rows = {}};
  KvWalk walk;
  // Also the steps before the range, because they filled the cache.
  const PageRange steps{.from = 0,
                        .limit = range.from + std::min<std::uint64_t>(range.limit, *total)};
  const auto walked = walk_derived_steps(reader, steps, keep_going,
                                         [&](const DerivedPtr& derived, const Step& step) {
                                           if (step.id.v < range.from) {
                                             if (derived != nullptr) walk.skip(*derived, step);
                                             return;
                                           }
                                           KvStep row{.step = step.id,
                                                      .phase = step.phase,
                                                      .first_token = step.first_token,
                                                      .n_tokens = step.n_tokens,
                                                      .layers = {}};
                                           if (derived != nullptr) row = walk.add(*derived, step);
                                           page.rows.push_back(std::move(row));
                                         });
  if (!walked) return std::unexpected(walked.error());
  return page;
}

static Fields<KvLayer> fields_of(const KvLayer*) {
  return Fields<KvLayer>()
      .add("layer", "", &KvLayer::layer)
      .add("fresh", "bytes read that this step wrote", &KvLayer::fresh)
      .add("cached", "bytes read that were last written by an earlier step", &KvLayer::cached)
      .add("other", "bytes read that no step of this session wrote: padding, or a reused prefix",
           &KvLayer::other)
      .add("written", "", &KvLayer::written);
}

static Fields<KvStep> fields_of(const KvStep*) {
  return Fields<KvStep>("KvStep")
      .add("step", "", &KvStep::step)
      .add("phase", "", &KvStep::phase)
      .add("first_token", "", &KvStep::first_token)
      .add("n_tokens", "", &KvStep::n_tokens)
      .add("state_read", "bytes of recurrent states read", &KvStep::state_read)
      .add("state_written", "bytes of recurrent states written", &KvStep::state_written)
      .add("layers", "layers that accessed a cache", &KvStep::layers);
}

Fields<Page<KvStep>> fields_of(const Page<KvStep>*) {
  return page_fields<KvStep>("KvSteps", "steps");
}

}  // namespace tt
