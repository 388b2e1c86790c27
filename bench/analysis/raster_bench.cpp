// Latency of queries on a session of 100 million accesses, on one core. Budgets: first raster
// of 1400 x 800 pixels, including opening, 500 ms; any later raster of the whole session or a
// window, 50 ms (p95); a page of accesses at any position, with a filter, 20 ms (p95); top N,
// per layer, per op kind, hot and cold 50 ms (p95); memory of the session index 256 MB. One
// iteration is one query.
//
// raster_bench [SESSION [ROUNDS]]: SESSION is a file of make_big_session; default: the default
// session of the benchmarks (big_session.h).

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <functional>
#include <print>
#include <random>
#include <string>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/weights/sequentiality.h"
#include "bench/analysis/big_session.h"
#include "bench/analysis/stopwatch.h"
#include "bench/budget.h"

namespace {

using tt::bench::anonymous_mb;
using tt::bench::Elapsed;
using tt::bench::Stopwatch;

void report(const std::string& name, const std::vector<Elapsed>& times, double budget) {
  const auto at = [&](double Elapsed::* of, double share) {
    std::vector<double> sorted;
    for (const Elapsed& each : times) sorted.push_back(each.*of);
    std::ranges::sort(sorted);
    return sorted[std::min(sorted.size() - 1,
                           static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
  };
  const double wall_ms = at(&Elapsed::wall_ms, 0.95), cpu_ms = at(&Elapsed::cpu_ms, 0.95);
  std::println("{:<44} {:>5} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}  {}", name, times.size(),
               at(&Elapsed::cpu_ms, 0.5), cpu_ms, at(&Elapsed::wall_ms, 0.5), wall_ms,
               tt::bench::compare_with_budget(cpu_ms, tt::bench::Bound::AtMost, budget));
}

template <class Ask>
void measure(const std::string& name, int rounds, double budget, Ask ask) {
  std::vector<Elapsed> times;
  for (int i = 0; i < rounds; ++i) {
    const Stopwatch watch;
    if (!ask()) {
      std::println(stderr, "{} returned no result", name);
      std::exit(1);
    }
    times.push_back(watch.elapsed());
  }
  report(name, times, budget);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tt;
  const std::filesystem::path session =
      argc > 1 ? argv[1] : bench::default_session(argv[0], bench::DefaultModel::Dense, 100'000'000);
  if (session.empty()) return 1;
  const int rounds = argc > 2 ? std::stoi(argv[2]) : 100;
  const double before = anonymous_mb();
  const Stopwatch opened;
  const auto reader = SessionReader::open(session);
  if (!reader) return 1;
  const auto index = SessionIndex::build(*reader);
  if (!index) return 1;
  const Elapsed built = opened.elapsed();
  const AxisQuery time{.axis = Axis::Time, .pixels = 1400};
  const AxisQuery token{.axis = Axis::Token, .pixels = 1400};
  const AxisQuery file{.axis = Axis::File, .pixels = 800};
  if (!raster(*index, {.x = time, .y = file, .value = Value::Touched})) return 1;
  const Elapsed first = opened.elapsed();
  std::uint64_t accesses = 0, ops = 0;
  for (const IndexedStep& step : index->steps()) accesses += step.totals.accesses;
  for (const Series& series : index->series())
    ops += std::uint64_t{series.ran} * series.steps.size();
  std::println("{} steps, {} ops, {} accesses, {} series", index->steps().size(), ops, accesses,
               index->series().size());
  const double memory = anonymous_mb() - before;
  const auto at_most = [](double figure, double budget) {
    return bench::compare_with_budget(figure, bench::Bound::AtMost, budget);
  };
  std::println("index {:.0f} ms CPU, {:.0f} ms wall clock", built.cpu_ms, built.wall_ms);
  std::println("first raster including opening {:.0f} ms CPU, {:.0f} ms wall clock, {}",
               first.cpu_ms, first.wall_ms, at_most(first.cpu_ms, 500));
  std::println("memory of the open session {:.1f} MB, {}", memory, at_most(memory, 256));

  std::println("{:<44} {:>5} {:>9} {:>9} {:>9} {:>9}  {}", "ms CPU; ms wall clock", "n", "p50",
               "p95", "p50", "p95", "budget, p95 of CPU time");
  std::mt19937_64 random(1);
  const auto end = index->steps().back().end.v;
  const auto tokens = static_cast<std::int64_t>(token_end(index->steps().back()));
  // A random window; the logarithm of its size is uniformly distributed.
  const auto window = [&](std::int64_t size, double least) {
    const double share = std::pow(least, std::uniform_real_distribution<double>()(random));
    const auto wide =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(size)));
    const auto from = static_cast<std::int64_t>(std::uniform_real_distribution<double>()(random) *
                                                static_cast<double>(size - wide));
    return Range<std::int64_t>{from, from + wide};
  };
  struct Picture {
    const char* name;
    AxisQuery x;
    Axis y;
  };
  const Picture pictures[] = {
      {"time x file", time, Axis::File},       {"time x op", time, Axis::Op},
      {"token x layer", token, Axis::Layer},   {"token x tensor", token, Axis::Tensor},
      {"token x expert", token, Axis::Expert}, {"time x buffer", time, Axis::Buffer}};
  for (const Picture& p : pictures) {
    for (const Value value : {Value::Touched, Value::Time}) {
      RasterQuery query{.x = p.x, .y = {.axis = p.y, .pixels = 800}, .value = value};
      const std::string name = std::string(p.name) + ", " + to_text(value);
      measure(name + ", whole", std::max(3, rounds / 5), 50,
              [&] { return raster(*index, query).has_value(); });
      measure(name + ", windows", rounds, 50, [&] {
        query.x.range = window(p.x.axis == Axis::Time ? end : tokens, 1e-6);
        return raster(*index, query).has_value();
      });
    }
  }
  // Neither axis is time: for the whole session and for windows of time.
  struct Map {
    Axis x, y;
    Value value;
  };
  const Map maps[] = {
      {Axis::Layer, Axis::Component, Value::Time},    {Axis::Tensor, Axis::OpKind, Value::Time},
      {Axis::Layer, Axis::Expert, Value::Touched},    {Axis::Component, Axis::Source, Value::Time},
      {Axis::File, Axis::Layer, Value::Touched},      {Axis::Buffer, Axis::OpKind, Value::Touched},
      {Axis::Tensor, Axis::Component, Value::Touched}};
  for (const Map& map : maps) {
    const std::string name =
        std::format("{} x {}, {}", to_text(map.x), to_text(map.y), to_text(map.value));
    RasterQuery query{.x = {.axis = map.x, .pixels = 1400},
                      .y = {.axis = map.y, .pixels = 800},
                      .value = map.value};
    measure(name + ", whole", std::max(3, rounds / 5), 50,
            [&] { return raster(*index, query).has_value(); });
    measure(name + ", windows", rounds, 50, [&] {
      query.filter.time = window(end, 1e-6);
      return raster(*index, query).has_value();
    });
  }
  for (const Axis bytes : {Axis::File, Axis::Buffer}) {
    RasterQuery query{.x = {.axis = bytes, .pixels = 1400},
                      .y = {.axis = Axis::All, .pixels = 1},
                      .value = Value::Accesses};
    const std::string name = std::string("memory map of the ") + to_text(bytes);
    std::int64_t size = 0;
    measure(name + ", whole", std::max(3, rounds / 5), 50, [&] {
      const auto whole = raster(*index, query);
      size = whole ? whole->x.size : 0;
      return size > 0;
    });
    measure(name + ", windows", rounds, 50, [&] {
      query.x.range = window(size, 1e-6);
      return raster(*index, query).has_value();
    });
  }
  // Each filter, on rasters where many accesses match.
  struct Filtered {
    const char* name;
    TraceFilter filter;
  };
  std::vector<Filtered> filters(8);
  filters[0] = {"of a phase", {.phase = Phase::Generate}};
  filters[1] = {"of two layers", {.layers = {LayerId{3}, LayerId{4}}}};
  filters[2] = {"of a component", {.component = Component::Attention}};
  filters[3] = {"of an op kind", {.op = "MUL_MAT"}};
  filters[4] = {"of a source", {.source = Source::Disk}};
  filters[5] = {"of a tensor pattern", {.tensor = "ffn_"}};
  filters[6] = {"of a kind of tensor", {.kind = TensorKind::Weight}};
  filters[7] = {"of all of these",
                {.phase = Phase::Generate,
                 .layers = {LayerId{3}, LayerId{4}},
                 .component = Component::Attention,
                 .op = "MUL_MAT",
                 .tensor = "attn_",
                 .kind = TensorKind::Weight,
                 .source = Source::Disk}};
  for (const Filtered& f : filters) {
    for (const Picture& p :
         {Picture{"time x file", time, Axis::File}, Picture{"token x layer", token, Axis::Layer}}) {
      RasterQuery query{
          .x = p.x, .y = {.axis = p.y, .pixels = 800}, .value = Value::Touched, .filter = f.filter};
      const std::string name = std::format("{} {}", p.name, f.name);
      measure(name + ", whole", std::max(3, rounds / 5), 50,
              [&] { return raster(*index, query).has_value(); });
      measure(name + ", windows", rounds, 50, [&] {
        query.x.range = window(p.x.axis == Axis::Time ? end : tokens, 1e-6);
        return raster(*index, query).has_value();
      });
    }
  }
  for (const Axis by : {Axis::Layer, Axis::OpKind, Axis::Component, Axis::Tensor, Axis::Expert}) {
    measure(std::string("breakdown by ") + to_text(by), rounds, 50, [&] {
      return breakdown(*index, {.by = by, .filter = {}, .order = Order<Value>{Value::Time, true}})
          .has_value();
    });
  }
  for (const Axis by : {Axis::Token, Axis::Step}) {
    const std::string of = to_text(by);
    measure("breakdown by " + of, rounds, 50,
            [&] { return breakdown(*index, {.by = by}).has_value(); });
    measure("the slowest 1,000 by " + of, rounds, 50, [&] {
      return breakdown(*index, {.by = by,
                                .filter = {},
                                .order = Order<Value>{Value::Time, true},
                                .page = {.from = 0, .limit = 1000}})
          .has_value();
    });
  }
  for (const Axis by : {Axis::Tensor, Axis::Token, Axis::Step}) {
    measure(std::string("hot and cold by ") + to_text(by), rounds, 50,
            [&] { return hot_cold(*index, {.by = by, .page = {0, 1000}}).has_value(); });
  }
  measure("sequential reads, gap 128 KiB", std::max(3, rounds / 5), 50, [&] {
    return sequentiality(*index, {}, kDefaultGap, {.from = 0, .limit = 1000}).has_value();
  });
  // A page starts at a random step. The index exists already, as in a server after the first
  // query.
  const auto page = [&](const std::string& name, const AccessFilter& filter,
                        Order<AccessSort> order = {}, std::optional<Phase> phase = {}) {
    measure("page of accesses, " + name, rounds, 20, [&] {
      const StepId step{static_cast<std::uint32_t>(random() % index->steps().size())};
      AccessQuery query{.phase = phase, .filter = filter, .order = order};
      (order.descending ? query.last_step.emplace() : query.first_step) = step;
      return access_page(*reader, query, std::nullopt, 1000, never_cancel, [&] { return &*index; })
          .has_value();
    });
  };
  const Order<AccessSort> backward{AccessSort::ByTime, true};
  AccessFilter of_layer, of_tensor, of_expert, of_no_expert, of_none;
  of_layer.tensor.layers = LayerSet::one(LayerId{3});
  of_layer.tensor.source = Source::Disk;
  of_tensor.tensor.name = "token_embd.weight";
  of_expert.tensor.layers = LayerSet::one(LayerId{3});
  of_expert.expert = 17;
  of_no_expert.expert = 1000;
  of_none.tensor.name = "no such tensor";
  page("all", {});
  page("of a layer on disk", of_layer);
  page("of a layer on disk, backward", of_layer, backward);
  page("of one tensor", of_tensor);
  page("of an expert of a layer", of_expert);
  page("of a nonexistent expert", of_no_expert);
  page("of a nonexistent expert, backward", of_no_expert, backward);
  page("of a layer, of a nonexistent phase", of_layer, {}, Phase::Encode);
  page("of a nonexistent tensor", of_none);
  page("of a nonexistent tensor, backward", of_none, backward);
  // Sorted pages that start after a random row.
  const auto sorted = [&](const std::string& name, const AccessFilter& filter,
                          Order<AccessSort> order) {
    std::vector<AccessId> cursors;
    while (cursors.size() < static_cast<std::size_t>(rounds)) {
      const StepId step{static_cast<std::uint32_t>(random() % index->steps().size())};
      const auto rows = access_table(*reader, step, filter, {}, {.from = 0, .limit = 10'000});
      if (!rows || rows->rows.empty()) continue;
      cursors.push_back(rows->rows[random() % rows->rows.size()].place);
    }
    measure("page sorted by " + name, rounds, 20, [&] {
      const AccessId after = cursors.back();
      cursors.pop_back();
      return access_page(*reader, {.phase = {}, .filter = filter, .order = order}, after, 1000,
                         never_cancel, [&] { return &*index; })
          .has_value();
    });
  };
  for (const auto& [name, filter] :
       {std::pair{"all", AccessFilter{}}, std::pair{"of a layer on disk", of_layer}}) {
    sorted(std::string("bytes, ") + name, filter, {AccessSort::ByBytes, true});
    sorted(std::string("offset, ") + name, filter, {AccessSort::ByOffset, false});
    sorted(std::string("tensor, ") + name, filter, {AccessSort::ByTensor, false});
  }
  return tt::bench::exit_code();
}
