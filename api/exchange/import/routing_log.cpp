#include "api/exchange/import/routing_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/exchange/import/imported_row.h"
#include "api/exchange/import/log_lines.h"
#include "api/exchange/rows/session_metadata.h"
#include "tracer/format/file/input_file.h"
#include "tracer/text/parse_number.h"

namespace tt::exchange {
namespace {

// The columns of a routing log; rank and score are optional.
enum Field : std::size_t { kToken, kLayer, kExpert, kRank, kScore };
constexpr std::array<std::string_view, 5> kFields = {"token", "layer", "expert", "rank", "score"};
constexpr std::size_t kRequired = 3;
constexpr std::uint32_t kMaxLayer = 1U << 16, kMaxExpert = 1U << 15;

struct RoutedExpert {
  std::uint32_t token = 0, layer = 0, expert = 0;
  std::uint32_t rank = kNone;  // kNone: not in the log
  std::uint32_t row = 0;       // order in the log
  float score = std::numeric_limits<float>::quiet_NaN();
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\"";
  const std::size_t from = text.find_first_not_of(kSpaces);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kSpaces) - from + 1);
}

// The values are numbers, so a comma is always a separator.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    cells.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

bool has_required(const auto& has) {
  return std::ranges::all_of(std::span(kFields).first(kRequired), has);
}

using Values = std::array<std::optional<double>, kFields.size()>;

class RoutingImport {
 public:
  RoutingImport(std::filesystem::path log, std::filesystem::path session)
      : log_(std::move(log)), session_(std::move(session)) {}

  std::expected<ImportCounts, TraceError> run(const ContinueCheck& keep_going) {
    if (const WriteResult done = read(keep_going); !done) return std::unexpected(done.error());
    if (rows_.empty()) return std::unexpected(wrong("The log has no choices."));
    return write(keep_going);
  }

 private:
  TraceError wrong(const std::string& what) const { return damaged(log_, line_, what); }

  WriteResult read(const ContinueCheck& keep_going) {
    auto in = InputFile::open(log_);
    if (!in) return std::unexpected(std::move(in.error()));
    std::string line;
    constexpr std::uint64_t kLinesPerCheck = 1U << 14;
    while (read_line(in->stream(), line)) {
      if (line_++ % kLinesPerCheck == 0 && !keep_going()) return std::unexpected(cancelled_error());
      if (trimmed(line).empty()) continue;
      const auto values = line.find_first_not_of(" \t") != std::string::npos &&
                                  line[line.find_first_not_of(" \t")] == '{'
                              ? json_values(line)
                              : csv_values(line);
      if (!values) return std::unexpected(values.error());
      if (!values->has_value()) continue;  // a header
      if (const WriteResult added = add(**values); !added) return added;
    }
    return in->finished();
  }

  using Parsed = std::expected<std::optional<Values>, TraceError>;

  Parsed json_values(const std::string& line) {
    const auto json = parse_json(line, kImportLimits);
    if (!json || !json->is_object())
      return std::unexpected(wrong("The line is not a JSON object."));
    Values values;
    for (const auto& [name, value] : json->items()) {
      const auto field = std::ranges::find(kFields, name);
      if (field == kFields.end()) {
        ignored_.insert(name);
      } else if (value.is_number()) {
        values[static_cast<std::size_t>(field - kFields.begin())] = value.get<double>();
      } else if (!value.is_null()) {
        return std::unexpected(wrong(std::format("\"{}\" must be a number.", name)));
      }
    }
    return values;
  }

  Parsed csv_values(const std::string& line) {
    const std::vector<std::string_view> cells = cells_of(line);
    if (columns_.empty()) {
      for (const std::string_view cell : cells) {
        const auto field = std::ranges::find(kFields, cell);
        columns_.push_back(static_cast<std::size_t>(field - kFields.begin()));
        if (field == kFields.end()) ignored_.emplace(cell);
      }
      if (!has_required([&](std::string_view name) { return std::ranges::contains(cells, name); }))
        return std::unexpected(wrong("The header must have the columns token, layer and expert."));
      return std::nullopt;
    }
    Values values;
    for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
      if (columns_[i] == kFields.size() || cells[i].empty()) continue;
      values[columns_[i]] = parse_number<double>(cells[i]);
      if (!values[columns_[i]])
        return std::unexpected(wrong(std::format("\"{}\" is not a number.", cells[i])));
    }
    return values;
  }

  WriteResult add(const Values& values) {
    RoutedExpert row{.row = static_cast<std::uint32_t>(rows_.size())};
    const std::tuple<Field, std::uint32_t*, std::uint32_t> numbers[] = {
        {kToken, &row.token, kNone - 1},
        {kLayer, &row.layer, kMaxLayer},
        {kExpert, &row.expert, kMaxExpert},
        {kRank, &row.rank, static_cast<std::uint32_t>(kMaxRanks) - 1}};
    for (const auto& [field, place, most] : numbers) {
      const std::optional<double> value = values[field];
      if (!value && field == kRank) continue;
      if (!value) return std::unexpected(wrong(std::format("{} is missing.", kFields[field])));
      if (*value < 0 || *value > most || std::floor(*value) != *value) {
        return std::unexpected(
            wrong(std::format("{} must be a whole number from 0 to {}.", kFields[field], most)));
      }
      *place = static_cast<std::uint32_t>(*value);
    }
    if (values[kScore]) row.score = static_cast<float>(*values[kScore]);
    if (rows_.size() == kMaxRoutingRows) {
      return std::unexpected(
          wrong(std::format("The log has more than {} choices.", kMaxRoutingRows)));
    }
    rows_.push_back(row);
    return {};
  }

  // Sorts by token, layer and rank; choices without a rank keep their order.
  std::expected<ImportCounts, TraceError> write(const ContinueCheck& keep_going) {
    std::ranges::sort(rows_, {}, [](const RoutedExpert& row) {
      return std::tuple(row.token, row.layer, row.rank, row.row);
    });
    std::uint32_t ranks = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      RoutedExpert& row = rows_[i];
      const bool same = i > 0 && rows_[i - 1].token == row.token && rows_[i - 1].layer == row.layer;
      if (row.rank == kNone) row.rank = same ? rows_[i - 1].rank + 1 : 0;
      ranks = std::max(ranks, row.rank + 1);
      info_.n_layers = std::max(info_.n_layers, row.layer + 1);
      info_.n_experts = std::max(info_.n_experts, row.expert + 1);
    }
    if (std::cmp_greater(ranks, kMaxRanks))
      return std::unexpected(wrong(std::format("A token has {} experts in a layer.", ranks)));
    info_.n_experts_used = ranks;
    info_.id = safe_file_id("", session_.stem().string());
    info_.title = log_.filename().string();
    info_.facts.emplace_back("trace.imported_from", "routing log");
    ImportCounts counts;
    for (const std::string& name : ignored_) counts.ignored[name] = rows_.size();
    if (!ignored_.empty()) info_.facts.emplace_back("trace.import_ignored", ignored_text(counts));
    auto builder = SessionBuilder::create(session_, info_);
    if (!builder) return std::unexpected(builder.error());
    for (std::size_t at = 0; at < rows_.size();) {
      if (!keep_going()) return std::unexpected(cancelled_error());
      const std::size_t end = static_cast<std::size_t>(
          std::ranges::find_if(
              rows_.begin() + static_cast<std::ptrdiff_t>(at), rows_.end(),
              [&](const RoutedExpert& row) { return row.token != rows_[at].token; }) -
          rows_.begin());
      const auto added = add_token(*builder, std::span(rows_).subspan(at, end - at), counts.steps);
      if (!added) return std::unexpected(added.error());
      ++counts.steps;
      at = end;
    }
    info_.state = SessionState::Done;
    if (const WriteResult done = builder->finish(info_, {}); !done)
      return std::unexpected(done.error());
    return counts;
  }

  // One step, with an op for each layer. The log has no sizes, so the ops access no bytes.
  static WriteResult add_token(SessionBuilder& builder, std::span<const RoutedExpert> rows,
                               std::uint32_t index) {
    const Token token{.index = 0,
                      .id = 0,
                      .position = static_cast<std::int32_t>(
                          std::min<std::uint32_t>(rows.front().token, INT32_MAX)),
                      .generated = true,
                      .reused = false,
                      .text = {}};
    if (const WriteResult added = builder.add_tokens({token}); !added) return added;
    ImportedStep imported;
    imported.step.phase = Phase::Generate;
    imported.step.timing = Timing::None;
    imported.step.first_token = index;
    imported.step.n_tokens = 1;
    for (const RoutedExpert& routed : rows) {
      ImportedRow row;
      const bool new_layer = imported.rows.empty() || imported.rows.back().layer.v !=
                                                          static_cast<std::int32_t>(routed.layer);
      row.op = imported.rows.empty() ? 0 : imported.rows.back().op + (new_layer ? 1 : 0);
      row.operation_type = "MUL_MAT_ID";
      row.op_layer = row.layer = LayerId{static_cast<std::int32_t>(routed.layer)};
      row.tensor_name = std::format("blk.{}.ffn_exps.weight", routed.layer);
      row.kind = TensorKind::Weight;
      row.component = Component::Moe;
      row.extent = Extent::Experts;
      row.expert = static_cast<std::int32_t>(routed.expert);
      row.rank = static_cast<std::int32_t>(routed.rank);
      row.score = routed.score;
      imported.rows.push_back(std::move(row));
    }
    return builder.add_step(imported);
  }

  std::filesystem::path log_, session_;
  std::uint64_t line_ = 0;
  std::vector<std::size_t> columns_;  // of a CSV file: field per column; kFields.size(): ignored
  std::set<std::string> ignored_;     // names of columns or fields that are not kept
  std::vector<RoutedExpert> rows_;
  SessionInfo info_;
};

}  // namespace

bool is_routing_log(std::string_view first_line) {
  const std::string_view line = trimmed(first_line);
  if (!line.starts_with('{')) {
    const auto cells = cells_of(line);
    return has_required([&](std::string_view name) { return std::ranges::contains(cells, name); });
  }
  const auto json = parse_json(first_line, kImportLimits);
  return json && json->is_object() && !json->contains("event") && !json->contains("type") &&
         has_required([&](std::string_view name) { return json->contains(name); });
}

std::expected<ImportCounts, TraceError> import_routing_log(const std::filesystem::path& log,
                                                           const std::filesystem::path& session,
                                                           const ContinueCheck& keep_going) {
  return RoutingImport(log, session).run(keep_going);
}

}  // namespace tt::exchange
