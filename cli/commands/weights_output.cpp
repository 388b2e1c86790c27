#include "cli/commands/weights_output.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "analysis/common/format_units.h"
#include "api/json/analysis/weights_json.h"
#include "api/text/csv_text.h"
#include "api/text/shape_text.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"

namespace tt::cli {

namespace {

constexpr Align kRight = Align::Right;

std::string number(double value) { return std::format("{:.4g}", value); }

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

std::string share_text(std::uint64_t part, std::uint64_t all) {
  if (part > 0 && part < all && static_cast<double>(part) < 1e-4 * static_cast<double>(all))
    return "< 0.01 %";
  return std::format("{:.2f} %",
                     all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

// "12.3 %"; "-": there is no such value.
std::string relative_text(double relative) { return std::format("{:.3f} %", 100 * relative); }
std::string relative_text(const std::optional<double>& relative) {
  return relative ? relative_text(*relative) : "-";
}

// A column of it: the part of the model's squared relative error that a MiB saved in this tensor
// costs.
constexpr const char* kPerMebibyte = "error per MiB saved";
std::string per_mebibyte_text(const std::optional<double>& error_per_byte) {
  return error_per_byte ? number(*error_per_byte * (1 << 20)) : "-";
}
template <class Number>
std::string number_or_empty(const std::optional<Number>& value) {
  return value ? std::format("{}", *value) : "";
}

const std::vector<Column> kStatisticsColumns = {
    {"min", kRight},   {"max", kRight},      {"mean", kRight},      {"std", kRight},
    {"zeros", kRight}, {"outliers", kRight}, {"not finite", kRight}};

std::vector<std::string> cells_of(const WeightStatistics& of) {
  return {number(of.min),
          number(of.max),
          number(of.mean),
          number(of.std),
          share_text(of.zeros, of.count),
          share_text(of.outliers, of.count),
          of.not_finite == 0 ? "" : std::to_string(of.not_finite)};
}

constexpr const char* kStatisticsCsv = "count,min,max,mean,std,rms,zeros,outliers,not_finite";
std::string csv_of(const WeightStatistics& of) {
  return std::format("{},{},{},{},{},{},{},{},{}", of.count, of.min, of.max, of.mean, of.std,
                     of.rms, of.zeros, of.outliers, of.not_finite);
}

void print_table(const std::vector<TensorSummary>& rows) {
  std::vector<Column> columns = {{"name"}, {"type"}, {"shape", kRight}, {"size", kRight}};
  columns.append_range(kStatisticsColumns);
  TextTable table(std::move(columns));
  for (const TensorSummary& row : rows) {
    std::vector<std::string> cells = {row.tensor->name, row.tensor->type,
                                      shape_text(row.tensor->ne),
                                      bytes_text(row.tensor->file.length)};
    if (row.why.empty()) {
      cells.append_range(cells_of(row.statistics));
    } else {
      cells.push_back(row.why);
    }
    table.add(std::move(cells));
  }
  table.print();
  print_line("\nOutliers are more than {} times the root mean square of their row.",
             WeightStatistics::kOutlier);
}

// "-0.31 to -0.29   ####      1,234"
void print_histogram(const WeightHistogram& histogram, double from, double to) {
  constexpr std::size_t kBins = 24, kWidth = 48;
  const auto bins = histogram.bins(from, to, kBins);
  const double most = std::ranges::max(bins, {}, &WeightHistogram::Bin::count).count;
  TextTable table({{"from", kRight}, {"to", kRight}, {"values", kRight}, {""}});
  for (const auto& bin : bins) {
    const double width = most > 0 ? std::ceil(kWidth * bin.count / most) : 0;
    table.add({number(bin.from), number(bin.to), std::format("{:.0f}", bin.count),
               std::string(static_cast<std::size_t>(width), '#')});
  }
  table.print();
}

// A line of quantiles.
void add_quantiles(TextTable& table, const char* of, const WeightHistogram& histogram) {
  std::vector<std::string> cells = {of};
  for (const int percent : kQuantiles) cells.push_back(number(histogram.quantile(percent / 100.0)));
  table.add(std::move(cells));
}

void print_table(const TensorDetails& details) {
  const GgufTensor& tensor = *details.tensor;
  const WeightStatistics& of = details.statistics;
  print_line("{}: {}, {}, {}", tensor.name, tensor.type, shape_text(tensor.ne),
             bytes_text(tensor.file.length));
  TextTable statistics(kStatisticsColumns);
  statistics.add(cells_of(of));
  put("\n");
  statistics.print();
  std::vector<Column> shares = {{"quantile"}};
  for (const int percent : kQuantiles) shares.push_back({std::format("{} %", percent), kRight});
  TextTable quantiles(std::move(shares));
  add_quantiles(quantiles, "values", details.histogram);
  if (details.scales.count() > 0) add_quantiles(quantiles, "block scales", details.scales);
  if (details.minima.count() > 0) add_quantiles(quantiles, "block minima", details.minima);
  put("\n");
  quantiles.print();
  put("\n");
  print_histogram(details.histogram, of.min, of.max);
  constexpr std::size_t kRows = 10;
  std::vector<Column> columns = {{"largest rows", kRight}, {"root mean square", kRight}};
  columns.append_range(kStatisticsColumns);
  TextTable rows(std::move(columns));
  for (const TensorDetails::Row* row : details.largest_rows(kRows)) {
    std::vector<std::string> cells = {std::to_string(row->row), number(row->statistics.rms)};
    cells.append_range(cells_of(row->statistics));
    rows.add(std::move(cells));
  }
  put("\n");
  rows.print();
}

// Over layers or components.
template <class Key, class Name>
void print_sums(const char* what, const std::map<Key, ErrorSum>& sums, const Name& name) {
  TextTable table({{what},
                   {"values", kRight},
                   {"RMSE", kRight},
                   {"relative error", kRight},
                   {"cosine", kRight},
                   {"max error", kRight}});
  for (const auto& [key, sum] : sums)
    table.add({name(key), std::to_string(sum.count()), number(sum.rmse()),
               relative_text(sum.relative()), std::format("{:.6f}", sum.cosine()),
               number(sum.max_error())});
  put("\n");
  table.print();
}

// The largest error first.
void print_table(const std::vector<TensorComparison>& rows) {
  TextTable table({{"name"},
                   {"type"},
                   {"reference"},
                   {"size", kRight},
                   {"RMSE", kRight},
                   {"relative error", kRight},
                   {"predicted", kRight},
                   {"cosine", kRight},
                   {"max error", kRight},
                   {kPerMebibyte, kRight},
                   {"reads", kRight}});
  std::vector<const TensorComparison*> sorted;
  for (const TensorComparison& row : rows) sorted.push_back(&row);
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const TensorComparison* row) { return row->error.all.relative(); });
  for (const TensorComparison* row : sorted) {
    const ErrorSum& sum = row->error.all;
    std::vector<std::string> cells = {row->tensor->name, row->tensor->type,
                                      row->reference == nullptr ? "-" : row->reference->type,
                                      bytes_text(row->tensor->file.length)};
    if (row->why.empty()) {
      cells.append_range(std::vector<std::string>{
          number(sum.rmse()), relative_text(sum.relative()), relative_text(row->predicted),
          std::format("{:.6f}", sum.cosine()), number(sum.max_error()),
          per_mebibyte_text(row->error_per_byte), row->reads ? number(*row->reads) : "-"});
    } else {
      cells.push_back(row->why);
    }
    table.add(std::move(cells));
  }
  table.print();
}

void print_csv(const std::vector<TensorComparison>& rows) {
  print_text(
      "name,type,reference_type,bytes,bytes_saved,rmse,relative_error,predicted_error,cosine,"
      "max_error,error_per_byte,reads\r\n");
  for (const TensorComparison& row : rows) {
    if (!row.why.empty()) continue;
    const ErrorSum& sum = row.error.all;
    put(std::format("{},{},{},{},{},{},{},{},{},{},{},{}\r\n", csv_text(row.tensor->name),
                    row.tensor->type, row.reference->type, row.tensor->file.length, row.bytes_saved,
                    sum.rmse(), sum.relative(), number_or_empty(row.predicted), sum.cosine(),
                    sum.max_error(), number_or_empty(row.error_per_byte),
                    number_or_empty(row.reads)));
  }
}

}  // namespace

void print_weights(const std::vector<TensorSummary>& rows, WeightsForm form) {
  if (form == WeightsForm::Table) return print_table(rows);
  if (form == WeightsForm::Json) return put_line(text_of(to_json(rows)));
  print_text("name,type,bytes,{}\r\n", kStatisticsCsv);
  for (const TensorSummary& row : rows)
    if (row.why.empty())
      put(std::format("{},{},{},{}\r\n", csv_text(row.tensor->name), row.tensor->type,
                      row.tensor->file.length, csv_of(row.statistics)));
}

void print_details(const TensorDetails& details, WeightsForm form) {
  if (form == WeightsForm::Table) return print_table(details);
  if (form == WeightsForm::Json) {
    Json json = to_json(details), rows = Json::array();
    for (const TensorDetails::Row& row : details.rows) rows.push_back(to_json(row));
    json["rows"] = std::move(rows);
    return put_line(text_of(json));
  }
  print_text("row,{}\r\n", kStatisticsCsv);
  for (const auto& [row, statistics] : details.rows)
    put(std::format("{},{}\r\n", row, csv_of(statistics)));
}

BlockPrinter::BlockPrinter(const GgufTensor& tensor, WeightsForm form)
    : is_json_(form == WeightsForm::Json) {
  if (is_json_) {
    const std::string head = text_of(tensor_json(tensor));
    put(head.substr(0, head.size() - 1) + R"(,"blocks":[)");
  } else {
    print_text(
        "row,from_value,scale,minimum,super_scale,scale_factor,super_minimum,minimum_factor,{}\r\n",
        kStatisticsCsv);
  }
}

void BlockPrinter::add(const WeightBlock& block) {
  if (is_json_) {
    put((is_first_ ? "\n" : ",\n") + text_of(to_json(block)));
    is_first_ = false;
    return;
  }
  const SuperBlock none;
  const bool has_super = block.super_block.has_value();
  const SuperBlock& of = has_super ? *block.super_block : none;
  put(std::format("{},{},{},{},{},{},{},{},{}\r\n", block.row, block.first, block.scale,
                  number_or_empty(block.minimum),
                  number_or_empty(has_super ? std::optional(of.scale) : std::nullopt),
                  number_or_empty(has_super ? std::optional(of.scale_factor) : std::nullopt),
                  number_or_empty(of.minimum), number_or_empty(of.minimum_factor),
                  csv_of(block.statistics)));
}

void BlockPrinter::end() {
  if (is_json_) print_line("]}}");
}

void print_errors(const ModelComparison& comparison, std::size_t rows, WeightsForm form) {
  if (form == WeightsForm::Json) return put_line(text_of(to_json(comparison)));
  if (form == WeightsForm::Csv) return print_csv(comparison.tensors);
  print_table(comparison.tensors);
  print_sums("layer", comparison.layers, [](LayerId layer) { return layer_text(layer); });
  print_sums("component", comparison.components,
             [](Component of) { return std::string(to_text(of)); });
  print_line("\nAll tensors that llama-quantize changes: relative error {} (root mean square).",
             relative_text(comparison.all.relative()));
  if (comparison.predicted)
    print_line("Predicted for these types, from {} rows of each tensor of the reference: {}.", rows,
               relative_text(*comparison.predicted));
}

void print_worst(const TensorComparison& row, WeightsForm form) {
  if (form == WeightsForm::Json) return put_line(text_of(json_with_worst(row)));
  if (form == WeightsForm::Csv) return print_csv({row});
  print_table(std::vector{row});
  TextTable rows({{"worst rows", kRight},
                  {"RMSE", kRight},
                  {"relative error", kRight},
                  {"max error", kRight}});
  for (const RowError& one : row.error.worst_rows)
    rows.add({std::to_string(one.row), number(one.error.rmse()),
              relative_text(one.error.relative()), number(one.error.max_error())});
  put("\n");
  rows.print();
  TextTable blocks({{"worst blocks: row", kRight},
                    {"from value", kRight},
                    {"RMSE", kRight},
                    {"max error", kRight}});
  for (const BlockError& one : row.error.worst_blocks)
    blocks.add({std::to_string(one.row), std::to_string(one.first), number(one.rmse),
                number(one.max_error)});
  put("\n");
  blocks.print();
}

void print_mix(const QuantizationMix& mix, WeightsForm form) {
  if (form == WeightsForm::Json) return put_line(text_of(to_json(mix)));
  if (form == WeightsForm::Csv) {
    print_text("name,type,bytes,relative_error,error_share,error_per_byte\r\n");
    for (const MixTensor& tensor : mix.tensors)
      put(std::format("{},{},{},{},{},{}\r\n", csv_text(tensor.name), tensor.type, tensor.bytes,
                      tensor.relative, tensor.error_share, number_or_empty(tensor.error_per_byte)));
    return;
  }
  TextTable table({{"name"},
                   {"type"},
                   {"size", kRight},
                   {"relative error", kRight},
                   {"share of the error", kRight},
                   {kPerMebibyte, kRight}});
  // First those that may be smaller: they cost least.
  std::vector<const MixTensor*> sorted;
  for (const MixTensor& tensor : mix.tensors)
    if (!tensor.is_fixed) sorted.push_back(&tensor);
  std::ranges::stable_sort(sorted, std::ranges::less(), [](const MixTensor* tensor) {
    return tensor->error_per_byte.value_or(std::numeric_limits<double>::infinity());
  });
  for (const MixTensor* tensor : sorted)
    table.add({tensor->name, tensor->type, bytes_text(tensor->bytes),
               relative_text(tensor->relative), format_percent(tensor->error_share, 1),
               per_mebibyte_text(tensor->error_per_byte)});
  table.print();
  TextTable sums({{"all tensors"}, {"size", kRight}, {"relative error", kRight}});
  sums.add({"this mix", bytes_text(mix.bytes), relative_text(mix.relative)});
  for (const UniformMix& one : mix.uniform)
    sums.add({one.type, bytes_text(one.bytes), relative_text(one.relative)});
  put("\n");
  sums.print();
  print_line("\nEstimated from {} rows. Errors are relative to the values of this file.",
             mix.rows_tried);
}

}  // namespace tt::cli
