#include "analysis/kv_use.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/cell_set.h"
#include "analysis/derived_graphs.h"

namespace tt {

namespace {

// No cache has more cells; a file may say so.
constexpr std::int64_t kMostCells = std::int64_t{1} << 40;

// A cache by its name, which templates share.
struct Cache {
  CellSet written;       // by the steps before
  CellSet fresh;         // by this one
  bool columns = false;  // a V cache that is kept transposed: a cell is a column of it
};

std::vector<std::int64_t> numbers_below(const std::vector<std::int64_t>& numbers,
                                        std::int64_t end) {
  std::vector<std::int64_t> out;
  for (const std::int64_t n : numbers)
    if (n >= 0 && n < std::min(end, kMostCells)) out.push_back(n);
  return out;
}

// The cells of a cache that an access touches; none: it does not go by cells.
std::optional<CellSet> cells_of(const GraphTemplate& graph, const Access& access, const Step& step,
                                bool columns) {
  const Tensor& view = graph.tensor(access.tensor);
  const Tensor& root = graph.tensor(graph.root(access.tensor));
  const std::uint64_t stride = columns ? root.nb[0] : root.nb[1];
  const std::int64_t cells = root.ne[1];
  if (stride == 0 || cells <= 0 || cells > kMostCells) return std::nullopt;
  const std::uint64_t from = view.view_offset / stride;
  const auto first =
      static_cast<std::int64_t>(columns ? from % static_cast<std::uint64_t>(cells)
                                        : std::min(from, static_cast<std::uint64_t>(kMostCells)));
  if (access.extent == Extent::All) {
    std::int64_t most = 0;
    for (std::size_t d = columns ? 0 : 1; d < view.ne.size(); ++d)
      if (view.nb[d] == stride) most = std::max(most, std::min(view.ne[d], kMostCells));
    if (most == 0) return std::nullopt;
    return CellSet::stretch(first, first + most);
  }
  if (access.extent == Extent::Experts || access.slot.v >= step.slots.size()) return std::nullopt;
  std::vector<std::int64_t> rows = numbers_below(step.slots[access.slot.v].ints, view.ne[1]);
  if (access.stride == stride) return CellSet::of(std::move(rows)).moved(first);
  if (!columns || view.ne[0] != 1) return std::nullopt;
  for (std::int64_t& row : rows) row %= cells;  // one element of it
  return CellSet::of(std::move(rows));
}

// SET_ROWS of single elements: one index for each.
bool writes_columns(const GraphTemplate& graph, const Access& access) {
  return access.write && access.extent == Extent::Rows && graph.tensor(access.tensor).ne[0] == 1 &&
         graph.tensor(graph.root(access.tensor)).ne[0] > 1;
}

// Bytes of a read by who wrote its cells.
void add_read(KvLayer& sum, const std::optional<CellSet>& cells, Bytes touched,
              const Cache& cache) {
  const std::uint64_t all = cells ? cells->size() : 0;
  if (all == 0 || touched.v % all != 0) {
    sum.other += touched;
    return;
  }
  const std::uint64_t cell = touched.v / all;
  const CellSet before = cells->common(cache.written);
  const std::uint64_t fresh = cells->common(cache.fresh).size();
  const std::uint64_t cached = before.size() - before.common(cache.fresh).size();
  sum.fresh.v += cell * fresh;
  sum.cached.v += cell * cached;
  sum.other.v += cell * (all - fresh - cached);
}

class KvWalk {
 public:
  // Accesses of caches and states are the only ones looked at.
  KvStep add(const DerivedGraph& derived, const Step& step) {
    const GraphTemplate& graph = *derived.graph;
    const std::vector<Access>& accesses = accesses_of_caches(step.graph, derived);
    KvStep out{.step = step.id,
               .phase = step.phase,
               .first_token = step.first_token,
               .n_tokens = step.n_tokens,
               .layers = {}};
    std::vector<StepAccess> rows;
    for_each_access(graph, accesses, step, [&](const StepAccess& row) { rows.push_back(row); });
    for (const StepAccess& row : rows) {
      if (!row.write) continue;
      const Access& access = accesses[row.access];
      Cache& cache = cache_of(graph, access);
      cache.columns |= writes_columns(graph, access);
      if (const auto cells = cells_of(graph, access, step, cache.columns)) cache.fresh.add(*cells);
    }
    std::map<LayerId, KvLayer> layers;
    for (const StepAccess& row : rows) add_row(graph, accesses[row.access], row, step, layers, out);
    for (const auto& [layer, sum] : layers) {
      out.layers.push_back(sum);
      out.layers.back().layer = layer;
    }
    for (auto& [name, cache] : caches_) cache.written.add(std::exchange(cache.fresh, {}));
    return out;
  }

 private:
  const std::vector<Access>& accesses_of_caches(TemplateId id, const DerivedGraph& derived) {
    const auto [at, fresh] = accesses_.try_emplace(id);
    if (fresh) {
      const GraphTemplate& graph = *derived.graph;
      std::ranges::copy_if(derived.accesses, std::back_inserter(at->second), [&](const Access& a) {
        return graph.tensor(graph.root(a.tensor)).kind == TensorKind::Kv;
      });
    }
    return at->second;
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
    const Cache& cache = cache_of(graph, access);
    add_read(sum, cells_of(graph, access, step, cache.columns), row.touched, cache);
  }

  std::map<TemplateId, std::vector<Access>> accesses_;
  std::map<std::string, Cache> caches_;
};

}  // namespace

std::expected<Page<KvStep>, TraceError> kv_use(const SessionReader& reader, PageRange range,
                                               const KeepGoing& keep_going) {
  const auto total = reader.step_count();
  if (!total) return std::unexpected(total.error());
  Page<KvStep> page{.total = *total, .rows = {}};
  DerivedGraphs graphs(reader);
  KvWalk walk;
  std::expected<void, TraceError> result;
  const auto walked = reader.for_each_step(
      StepId{0}, std::numeric_limits<std::uint32_t>::max(), [&](const Step& step) {
        if (!keep_going()) result = std::unexpected(cancelled_error());
        if (!result || (step.id.v >= range.from && !range.holds(step.id.v))) return false;
        const auto derived = graphs.of(step.graph);
        if (!derived) {
          result = std::unexpected(derived.error());
          return false;
        }
        KvStep row{.step = step.id,
                   .phase = step.phase,
                   .first_token = step.first_token,
                   .n_tokens = step.n_tokens,
                   .layers = {}};
        if (*derived != nullptr) row = walk.add(**derived, step);
        if (range.holds(step.id.v)) page.rows.push_back(std::move(row));
        return true;
      });
  if (!walked) return std::unexpected(walked.error());
  if (!result) return std::unexpected(result.error());
  return page;
}

}  // namespace tt
