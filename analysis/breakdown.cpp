#include "analysis/breakdown.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/raster.h"

namespace tt {

namespace {

constexpr std::array kParts = {std::pair{Value::BytesRead, &TraceSums::bytes_read},
                               std::pair{Value::BytesWritten, &TraceSums::bytes_written},
                               std::pair{Value::Reads, &TraceSums::reads},
                               std::pair{Value::Writes, &TraceSums::writes},
                               std::pair{Value::Executions, &TraceSums::executions},
                               std::pair{Value::Time, &TraceSums::time_ns}};

constexpr std::uint32_t kEveryRow = std::numeric_limits<std::uint32_t>::max();

// One row of `by` for everything there is, by phase.
using Asked = std::expected<Raster, TraceError>;

class Summing {
 public:
  Summing(const SessionIndex& index, const SessionReader& reader, const KeepGoing& keep_going)
      : index_(index), reader_(reader), keep_going_(keep_going) {}

  // Calls `cell(row, phase, value)` for what each row of `by` has in each phase.
  template <class Cell>
  Asked ask(Axis by, const TraceFilter& filter, Value value, Cell cell) {
    auto found = raster(index_, reader_,
                        {.x = {.axis = by, .pixels = kEveryRow},
                         .y = {.axis = Axis::Phase, .pixels = kEveryRow},
                         .value = value,
                         .filter = filter},
                        keep_going_);
    if (!found) return found;
    for (std::uint32_t y = 0; y < found->y.pixels; ++y) {
      for (std::uint32_t x = 0; x < found->x.pixels; ++x)
        cell(x, found->y.rows[y], found->cells[std::size_t{y} * found->x.pixels + x]);
    }
    return found;
  }

 private:
  const SessionIndex& index_;
  const SessionReader& reader_;
  const KeepGoing& keep_going_;
};

void add(BreakdownRow& row, const std::string& phase, double TraceSums::* part, double value) {
  row.all.*part += value;
  if (phase == to_text(Phase::Prompt)) row.prompt.*part += value;
  if (phase == to_text(Phase::Generate)) row.generate.*part += value;
}

bool comes_before(const BreakdownRow& a, const BreakdownRow& b, Order<Value> order) {
  const double of_a = a.all.of(order.by), of_b = b.all.of(order.by);
  return order.descending ? of_b < of_a : of_a < of_b;
}

}  // namespace

double TraceSums::of(Value value) const {
  if (value == Value::Touched) return bytes();
  if (value == Value::Accesses) return accesses();
  for (const auto& [of, part] : kParts)
    if (of == value) return this->*part;
  return 0;
}

TraceSums& TraceSums::operator+=(const TraceSums& other) {
  for (const auto& [value, part] : kParts) this->*part += other.*part;
  return *this;
}

std::expected<Breakdown, TraceError> breakdown(const SessionIndex& index,
                                               const SessionReader& reader,
                                               const BreakdownQuery& query,
                                               const KeepGoing& keep_going) {
  Breakdown out{.by = query.by, .rows = {}, .total = {}, .disk = {}, .buffer = {}};
  out.damaged_steps = static_cast<std::uint32_t>(index.damaged().size());
  out.total.name = "total";
  Summing summing(index, reader, keep_going);
  for (const auto& [value, part] : kParts) {
    const auto rows = summing.ask(query.by, query.filter, value,
                                  [&](std::uint32_t row, const std::string& phase, double v) {
                                    if (out.rows.size() <= row) out.rows.resize(row + 1);
                                    add(out.rows[row], phase, part, v);
                                  });
    if (!rows) return std::unexpected(rows.error());
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
      BreakdownRow& row = out.rows[i];
      row.key = rows->x.rows.empty() ? rows->x.range.from + static_cast<std::int64_t>(i)
                                     : rows->x.keys[i];
      row.name = rows->x.rows.empty() ? std::to_string(row.key) : rows->x.rows[i];
    }
    const auto total = summing.ask(
        Axis::All, query.filter, value,
        [&](std::uint32_t, const std::string& phase, double v) { add(out.total, phase, part, v); });
    if (!total) return std::unexpected(total.error());
    TraceFilter mapped = query.filter;
    if (mapped.source && *mapped.source != Source::Disk) continue;
    mapped.source = Source::Disk;
    const auto disk =
        summing.ask(Axis::All, mapped, value,
                    [&](std::uint32_t, const std::string&, double v) { out.disk.*part += v; });
    if (!disk) return std::unexpected(disk.error());
  }
  for (const auto& [value, part] : kParts) out.buffer.*part = out.total.all.*part - out.disk.*part;
  std::erase_if(out.rows, [](const BreakdownRow& row) { return row.all == TraceSums{}; });
  if (query.order) {
    std::ranges::stable_sort(out.rows, [&](const BreakdownRow& a, const BreakdownRow& b) {
      return comes_before(a, b, *query.order);
    });
  }
  return out;
}

const char* to_text(Heat heat) {
  constexpr std::array kWords = {"hot", "warm", "cold"};
  return kWords[std::to_underlying(heat)];
}

std::expected<HotCold, TraceError> hot_cold(const SessionIndex& index, const SessionReader& reader,
                                            const HotQuery& query, const KeepGoing& keep_going) {
  auto rows = breakdown(index, reader,
                        {.by = query.by,
                         .filter = query.filter,
                         .order = Order<Value>{.by = query.value, .descending = true}},
                        keep_going);
  if (!rows) return std::unexpected(rows.error());
  HotCold out{.by = query.by, .value = query.value, .rows = {}, .classes = {}};
  const auto count = static_cast<double>(rows->rows.size());
  const auto hot = static_cast<std::size_t>(std::ceil(count * query.hot_share));
  const auto cold = static_cast<std::size_t>(std::floor(count * query.cold_share));
  for (std::size_t i = 0; i < rows->rows.size(); ++i) {
    HotCold::Row row{.row = std::move(rows->rows[i])};
    row.heat = i < hot ? Heat::Hot : i >= rows->rows.size() - cold ? Heat::Cold : Heat::Warm;
    if (query.by == Axis::Tensor)
      row.size = index.names().tensors()[static_cast<std::size_t>(row.row.key)].size;
    HotCold::Class& of = out.classes[std::to_underlying(row.heat)];
    ++of.rows;
    of.size += row.size;
    of.sums += row.row.all;
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tt
