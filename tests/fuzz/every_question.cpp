#include "tests/fuzz/every_question.h"

#include <array>
#include <expected>
#include <filesystem>
#include <format>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/aggregate/session_statistics.h"
#include "analysis/attention/heads.h"
#include "analysis/attention/kv_use.h"
#include "analysis/experts/expert_pinning.h"
#include "analysis/experts/experts.h"
#include "analysis/graph/graph_part.h"
#include "analysis/report/comparison.h"
#include "analysis/report/report.h"
#include "analysis/report/validation.h"
#include "analysis/sql/query.h"
#include "analysis/sql/trace_tables.h"
#include "analysis/tables/node_table.h"
#include "analysis/tables/op_table.h"
#include "analysis/tables/session_overview.h"
#include "analysis/tables/step_summary.h"
#include "analysis/tables/template_list.h"
#include "analysis/tables/tensor_table.h"
#include "analysis/weights/compression.h"
#include "analysis/weights/pattern.h"
#include "analysis/weights/reuse.h"
#include "analysis/weights/sequentiality.h"
#include "api/exchange/export.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/text/graph_dot.h"
#include "tests/fuzz/limits.h"
#include "tracer/format/access/access.h"

namespace tt::fuzz {

namespace {

#ifdef TT_FUZZ
constexpr bool kAll = false;
#else
constexpr bool kAll = true;
#endif

constexpr std::uint32_t kEverything = std::numeric_limits<std::uint32_t>::max();

// A few bytes can validly encode lists of millions of numbers. A query then takes as long as
// for a session of that size, and no limit for small sessions applies.
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;

bool is_small(const SessionReader& reader) {
  std::size_t numbers = 0;
  const auto steps = reader.step_count();
  for (std::uint32_t id = 0; steps && id < *steps && numbers <= kMostNumbers; ++id) {
    const auto step = reader.step(StepId{id});
    if (!step) continue;  // damaged
    for (const SlotValues& slot : step->slots) numbers += slot.ints.size() + slot.floats.size();
  }
  return numbers <= kMostNumbers;
}

constexpr PageRange kPage{.from = 0, .limit = 100};
class Questions {
 public:
  Questions(const std::filesystem::path& file, const SessionReader& reader)
      : file_(file), reader_(reader) {}

  // Where not all parts run (TT_FUZZ), `input` selects which one does.
  std::uint32_t ask_of(std::span<const std::uint8_t> input) {
    constexpr std::array kParts{&Questions::rows,       &Questions::graphs,  &Questions::weights,
                                &Questions::experts,    &Questions::exports, &Questions::run_folder,
                                &Questions::sql_tables, &Questions::sums};
    const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
    [[maybe_unused]] const std::size_t chosen =
        std::hash<std::string_view>{}(bytes) % kParts.size();
    for (std::size_t i = 0; i < kParts.size(); ++i)
      if (kAll || i == chosen) (this->*kParts[i])();
    return answered_;
  }

 private:
  // Runs one query within its own limits.
  template <class Question>
  std::invoke_result_t<Question> answer(const char* name, Question question) {
    const Limits limits(name);
    auto answer = question();
    answered_ += answer.has_value();
    return answer;
  }
  template <class Question>
  void ask(const char* name, Question question) {
    static_cast<void>(answer(name, question));
  }

  void rows() {
    ask("info", [&] { return reader_.info(); });
    ask("losses", [&] { return reader_.losses(); });
    ask("overview", [&] { return session_overview(reader_); });
    ask("steps", [&] { return step_summaries(reader_, kPage); });
    ask("templates", [&] { return template_list(reader_); });
    ask("tokens", [&] { return reader_.tokens(0, kEverything); });
    ask("ops", [&] { return op_table(reader_, StepId{0}, {}, {.by = OpSort::ByDuration}, kPage); });
    for (const AccessSort by : {AccessSort::ByTime, AccessSort::ByOffset}) {
      ask("accesses",
          [&] { return access_page(reader_, {.order = {.by = by}}, std::nullopt, 100); });
    }
    ask("walk", [&] {
      return reader_.for_each_step(StepId{0}, kEverything, [&](const Step& step) {
        answered_ += reader_.allocation(step.allocation).has_value();
        const auto graph = reader_.graph(step.graph);
        if (!graph) return true;
        std::uint64_t touched = 0;
        for_each_access(**graph, accesses_of(**graph), step,
                        [&](const StepAccess& row) { touched += row.touched.v; });
        answered_ += touched > 0;
        return true;
      });
    });
  }

  void graphs() {
    const auto ids = answer("template ids", [&] { return reader_.template_ids(); });
    if (!ids) return;
    for (const TemplateId id : *ids) {
      ask("nodes", [&] { return node_table(reader_, id, kPage); });
      ask("tensors",
          [&] { return tensor_table(reader_, id, {}, {.by = TensorSort::BySize}, kPage); });
      ask("graph", [&] {
        auto part = part_of_template(reader_, id, LayerSet::all());
        if (part) answered_ += !to_dot(*part).empty() && !collapsed_dot(*part).empty();
        return part;
      });
    }
  }

  void weights() {
    ask("compression", [&] {
      auto sizes = session_weights(reader_);
      if (sizes) answered_ += compression(*sizes).total.tensors > 0;
      return sizes;
    });
    ask("heads", [&] { return head_table(reader_); });
    ask("kv", [&] { return kv_use(reader_, kPage); });
    ask("determinism", [&] { return determinism(reader_); });
    ask("pattern", [&] { return access_pattern(reader_); });
    for (const Grain grain : {Grain::Tensor, Grain::Part}) {
      const auto reads = answer(
          "reads", [&] { return weight_reads(reader_, {.from = 0, .limit = kEverything}, grain); });
      if (!reads) continue;
      const Limits limits("reuse");
      const std::array<Bytes, 2> sizes{Bytes{1000}, reads->distinct_bytes()};
      ask("reuse", [&] {
        return reuse(*reads, {.grain = grain, .capacities = {sizes.begin(), sizes.end()}});
      });
    }
  }

  void experts() {
    const auto use = answer("experts", [&] { return expert_use(reader_, std::nullopt); });
    if (use && !use->empty()) {
      ask("router", [&] {
        return router_detail(reader_, use->front().layer, use->front().router, std::nullopt, {});
      });
    }
    ask("token experts", [&] { return token_experts(reader_, std::nullopt, kPage); });
    ask("pinning", [&] { return expert_pinning(reader_, {}); });
  }

  void exports() {
    for (const exchange::FormatFacts& format : exchange::formats()) {
      ask(std::string(format.extension).c_str(), [&] {
        return exchange::export_session(
            reader_, {.format = format.format, .level = exchange::LogLevel::Verbose},
            [](std::string_view) { return std::expected<void, TraceError>{}; });
      });
    }
  }

  // Writes the run folder, including its statistics and images.
  void run_folder() {
    std::filesystem::path folder = file_;
    folder += "-folder";
    ask("run folder", [&] { return exchange::export_run_folder(reader_, {}, folder); });
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // Reads the first rows of every table and view.
  void sql_tables() {
    for (const auto names : {sql::trace_table_names(), sql::trace_view_names()})
      for (const std::string_view name : names)
        ask("table", [&] { return rows_of(std::format("SELECT * FROM {} LIMIT 500", name)); });
  }
  std::expected<std::uint64_t, std::string> rows_of(const std::string& statement) {
    auto reader = SessionReader::open(file_);
    if (!reader) return std::unexpected(reader.error().message);
    auto query = sql::Query::prepare(*std::move(reader), statement);
    if (!query) return std::unexpected(query.error().message);
    std::uint64_t rows = 0;
    for (;; ++rows) {
      const auto row = query->next();
      if (!row) return std::unexpected(row.error().message);
      if (*row == nullptr) return rows;
    }
  }

  void sums() {
    const auto index = answer("index", [&] { return SessionIndex::build(reader_); });
    if (index) sums_of(*index);
  }
  void sums_of(const SessionIndex& index) {
    ask("statistics",
        [&] { return std::expected<SessionStatistics, TraceError>(session_statistics(index)); });

    for (const Axis by : {Axis::Token, Axis::Tensor, Axis::OpKind, Axis::Layer, Axis::Expert})
      ask("breakdown", [&] { return breakdown(index, {.by = by}); });
    ask("hot", [&] { return hot_cold(index, {}); });
    const std::array<std::pair<Axis, Axis>, 4> pictures{{{Axis::Token, Axis::Layer},
                                                         {Axis::Time, Axis::File},
                                                         {Axis::Step, Axis::Buffer},
                                                         {Axis::Expert, Axis::Op}}};
    for (const auto& [x, y] : pictures) {
      for (const Value value : {Value::Touched, Value::Faults}) {
        ask("raster", [&] {
          return raster(
              index,
              {.x = {.axis = x, .pixels = 40}, .y = {.axis = y, .pixels = 30}, .value = value});
        });
      }
    }
    ask("sequentiality", [&] { return sequentiality(index, {}, kUsualGap, kPage); });
    const ComparedSession self{.index = index, .reader = reader_};
    ask("comparison", [&] { return compare(self, self, kPage); });
    ask("report", [&] {
      auto figures = report_figures(file_, index, reader_);
      if (figures) answered_ += !report_of(*figures).title.empty();
      return figures;
    });
  }

  const std::filesystem::path& file_;
  const SessionReader& reader_;
  std::uint32_t answered_ = 0;
};

}  // namespace

std::uint32_t ask_every_question(std::span<const std::uint8_t> input,
                                 const std::filesystem::path& file, const SessionReader& reader) {
  return is_small(reader) ? Questions(file, reader).ask_of(input) : 0;
}

}  // namespace tt::fuzz
