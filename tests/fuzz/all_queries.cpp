#include "tests/fuzz/all_queries.h"

#include <array>
#include <expected>
#include <filesystem>
#include <format>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analysis/accesses/access_table.h"
#include "analysis/aggregate/raster.h"
#include "analysis/aggregate/row_figures.h"
#include "analysis/aggregate/session_statistics.h"
#include "analysis/analyses.h"
#include "analysis/findings/session_figures.h"
#include "analysis/findings/session_findings.h"
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

constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

// A few bytes can validly encode lists of millions of numbers. A query then takes as long as
// for a session of that size, and no limit for small sessions applies.
constexpr std::size_t kMaxNumbers = std::size_t{1} << 20;

bool is_small(const SessionReader& reader) {
  std::size_t numbers = 0;
  const auto steps = reader.step_count();
  for (std::uint32_t id = 0; steps && id < *steps && numbers <= kMaxNumbers; ++id) {
    const auto step = reader.step(StepId{id});
    if (!step) continue;  // damaged
    for (const SlotValues& slot : step->slots) numbers += slot.ints.size() + slot.floats.size();
  }
  return numbers <= kMaxNumbers;
}

constexpr PageRange kPage{.from = 0, .limit = 100};
class QueryRunner {
 public:
  QueryRunner(const std::filesystem::path& file, const SessionReader& reader)
      : file_(file), reader_(reader) {}

  // Where not all parts run (TT_FUZZ), `input` selects which one does.
  std::uint32_t run(std::span<const std::uint8_t> input) {
    constexpr std::array kParts{&QueryRunner::rows,       &QueryRunner::graphs,
                                &QueryRunner::questions,  &QueryRunner::exports,
                                &QueryRunner::run_folder, &QueryRunner::sql_tables,
                                &QueryRunner::sums};
    const std::string_view bytes(reinterpret_cast<const char*>(input.data()), input.size());
    [[maybe_unused]] const std::size_t chosen =
        std::hash<std::string_view>{}(bytes) % kParts.size();
    for (std::size_t i = 0; i < kParts.size(); ++i)
      if (kAll || i == chosen) (this->*kParts[i])();
    return succeeded_;
  }

 private:
  // Runs one query within its own limits.
  template <class QueryFn>
  std::invoke_result_t<QueryFn> answer(const char* name, QueryFn query) {
    const Limits limits(name);
    auto answer = query();
    succeeded_ += answer.has_value();
    return answer;
  }
  template <class QueryFn>
  void run_query(const char* name, QueryFn query) {
    static_cast<void>(answer(name, query));
  }

  void rows() {
    run_query("info", [&] { return reader_.info(); });
    run_query("losses", [&] { return reader_.losses(); });
    run_query("overview", [&] { return session_overview(reader_); });
    run_query("steps", [&] { return step_summaries(reader_, kPage); });
    run_query("templates", [&] { return template_list(reader_); });
    run_query("tokens", [&] { return reader_.tokens(0, kNoLimit); });
    run_query("ops",
              [&] { return op_table(reader_, StepId{0}, {}, {.by = OpSort::ByDuration}, kPage); });
    for (const AccessSort by : {AccessSort::ByTime, AccessSort::ByOffset}) {
      run_query("accesses",
                [&] { return access_page(reader_, {.order = {.by = by}}, std::nullopt, 100); });
    }
    run_query("walk", [&] {
      return reader_.for_each_step(StepId{0}, kNoLimit, [&](const Step& step) {
        succeeded_ += reader_.allocation(step.allocation).has_value();
        const auto graph = reader_.graph(step.graph);
        if (!graph) return true;
        std::uint64_t touched = 0;
        for_each_access(**graph, accesses_of(**graph), step,
                        [&](const StepAccess& row) { touched += row.touched.v; });
        succeeded_ += touched > 0;
        return true;
      });
    });
  }

  void graphs() {
    const auto ids = answer("template ids", [&] { return reader_.template_ids(); });
    if (!ids) return;
    for (const TemplateId id : *ids) {
      run_query("nodes", [&] { return node_table(reader_, id, kPage); });
      run_query("tensors",
                [&] { return tensor_table(reader_, id, {}, {.by = TensorSort::BySize}, kPage); });
      run_query("graph", [&] {
        auto part = part_of_template(reader_, id, LayerSet::all());
        if (part) succeeded_ += !to_dot(*part).empty() && !collapsed_dot(*part).empty();
        return part;
      });
    }
  }

  // Every row of analysis/analyses.h: with its defaults, and with each word of its own parameters.
  void questions() {
    std::shared_ptr<const SessionIndex> index;
    const Subject subject{
        .reader = reader_,
        .index = [&](LeaveOut leave_out, const ContinueCheck& keep_going)
            -> std::expected<std::shared_ptr<const SessionIndex>, TraceError> {
          if (index != nullptr && leave_out == LeaveOut::Nothing) return index;
          return subject_of(reader_).index(leave_out, keep_going).transform([&](auto built) {
            return index = std::move(built);
          });
        }};
    for (const Analysis& row : analyses()) {
      ask(row, subject, row.example);
      for (const ParameterInfo& info : row.parameters) {
        if (info.name != "by" && info.name != "grain" && info.name != "value") continue;
        for (const std::string& word : info.words)
          ask(row, subject, std::format("{} {}={}", row.example, info.name, word));
      }
    }
  }
  void ask(const Analysis& row, const Subject& subject, const std::string& values) {
    const auto question = row.parse(parameter_text(values));
    if (!question) report_finding(std::string(row.name) + ": its example is rejected");
    run_query(row.name, [&] { return (*question)(subject, never_cancel); });
  }

  void exports() {
    for (const exchange::FormatInfo& format : exchange::formats()) {
      run_query(std::string(format.extension).c_str(), [&] {
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
    run_query("run folder", [&] { return exchange::export_run_folder(reader_, {}, folder); });
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  // Reads the first rows of every table and view.
  void sql_tables() {
    for (const auto names : {sql::trace_table_names(), sql::trace_view_names()})
      for (const std::string_view name : names)
        run_query("table",
                  [&] { return rows_of(std::format("SELECT * FROM {} LIMIT 500", name)); });
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
    run_query("statistics", [&] {
      return std::expected<SessionStatistics, TraceError>(session_statistics(index));
    });

    const std::array<std::pair<Axis, Axis>, 4> pictures{{{Axis::Token, Axis::Layer},
                                                         {Axis::Time, Axis::File},
                                                         {Axis::Step, Axis::Buffer},
                                                         {Axis::Expert, Axis::Op}}};
    for (const auto& [x, y] : pictures) {
      for (const Value value : {Value::Touched, Value::Faults, Value::Time}) {
        const RasterQuery query{
            .x = {.axis = x, .pixels = 40}, .y = {.axis = y, .pixels = 30}, .value = value};
        run_query("raster", [&] { return raster(index, query); });
        if (x != Axis::Token && x != Axis::Step) continue;
        run_query("row figures", [&] {
          return raster(index, query).and_then([&](const Raster& of) {
            return row_figures(index, query, of);
          });
        });
      }
    }
    const ComparedSession self{.index = index, .reader = reader_};
    run_query("comparison",
              [&] { return compare(self, self, {.by = Axis::Tensor, .tokens = kPage}); });
    run_query("findings", [&] {
      const auto figures = gather_session_figures(index, reader_);
      if (figures) succeeded_ += session_findings(*figures).empty() ? 0U : 1U;
      return figures;
    });
    run_query("report", [&] {
      auto figures = gather_report_data(file_, index, reader_);
      if (figures) succeeded_ += !report_of(*figures).title.empty();
      return figures;
    });
  }

  const std::filesystem::path& file_;
  const SessionReader& reader_;
  std::uint32_t succeeded_ = 0;
};

}  // namespace

std::uint32_t run_all_queries(std::span<const std::uint8_t> input,
                              const std::filesystem::path& file, const SessionReader& reader) {
  return is_small(reader) ? QueryRunner(file, reader).run(input) : 0;
}

}  // namespace tt::fuzz
