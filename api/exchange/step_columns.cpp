#include "api/exchange/step_columns.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <variant>

namespace tt::exchange {
namespace {

using Column = StepColumns::Column;

std::uint64_t bits_of(const Column& column, const Cell& cell) {
  if (const auto* v = std::get_if<std::uint64_t>(&cell)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&cell)) return static_cast<std::uint64_t>(*v);
  if (const auto* v = std::get_if<float>(&cell)) return std::bit_cast<std::uint32_t>(*v);
  if (const auto* v = std::get_if<bool>(&cell)) return *v ? 1 : 0;
  if (const auto* v = std::get_if<std::string_view>(&cell)) {
    if (const auto known = column.places.find(std::string(*v)); known != column.places.end())
      return known->second;
    const auto found = column.places.find(utf8_of(*v));
    return found == column.places.end() ? 0 : found->second;
  }
  return 0;
}

bool is_null(const Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

void add_word(Column& column, std::string_view bytes) {
  column.places.try_emplace(utf8_of(bytes), 0);
}

// In order, so that the least and the greatest place are those of the words.
void sort_words(Column& column) {
  for (const auto& [word, place] : column.places) column.words.push_back(word);
  std::ranges::sort(column.words);
  for (std::uint32_t i = 0; i < column.words.size(); ++i) column.places[column.words[i]] = i;
}

void add_words(Column& column, const RowScope& scope) {
  std::string_view last;
  for (std::uint32_t i = 0; i < scope.graph->derived->accesses.size(); ++i) {
    ExportRow row;
    row.access.access = i;
    const Cell cell = column.definition->cell(scope, row);
    const auto* text = std::get_if<std::string_view>(&cell);
    if (text != nullptr && (i == 0 || *text != last)) add_word(column, last = *text);
  }
}

}  // namespace

std::expected<StepColumns, TraceError> StepColumns::make(SessionRows& rows, bool with_session) {
  StepColumns out;
  for (const AccessColumn& definition : access_columns()) {
    if (!with_session && std::string_view(definition.name) == "session") continue;
    out.columns_.push_back({.definition = &definition, .words = {}, .places = {}});
  }
  out.values_.resize(out.columns_.size());
  const auto texts = [&](Varies varies, auto add) {
    for (Column& column : out.columns_) {
      if (column.definition->type == CellType::Text && column.definition->varies == varies)
        add(column);
    }
  };
  texts(Varies::PerStep, [&](Column& column) {
    for (const std::string& word : words_of_steps(rows.session())) add_word(column, word);
  });
  const Written read = rows.for_each_template([&](TemplateId, const RowTemplate& graph) {
    const RowScope scope{
        .session = &rows.session(), .graph = &graph, .step = nullptr, .addresses = {}};
    texts(Varies::PerAccess, [&](Column& column) { add_words(column, scope); });
  });
  if (!read) return std::unexpected(read.error());
  for (Column& column : out.columns_) sort_words(column);
  return out;
}

void StepColumns::set(std::size_t column, StepValues& values) {
  SharedValues& now = values_[column];
  if (now == nullptr || *now != values) now = std::make_shared<const StepValues>(values);
}

void StepColumns::per_step(std::size_t column, const StepRows& step) {
  const Column& of = columns_[column];
  const std::uint64_t bits = bits_of(of, of.definition->cell(step.scope, step.rows.front()));
  const SharedValues& now = values_[column];
  if (now != nullptr && now->bits.size() == step.rows.size() && now->bits.front() == bits) return;
  made_.valid.clear();
  made_.bits.assign(step.rows.size(), bits);
  set(column, made_);
}

void StepColumns::per_access(std::size_t column, const StepRows& step) {
  const Column& of = columns_[column];
  const std::size_t n = graph_->accesses.size();
  std::vector<std::uint64_t> bits(n);
  std::vector<std::uint8_t> valid(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    ExportRow row;
    row.access.access = i;
    const Cell cell = of.definition->cell(step.scope, row);
    bits[i] = bits_of(of, cell);
    valid[i] = !is_null(cell);
  }
  made_.bits.clear();
  made_.valid.clear();
  for (const std::uint32_t access : accesses_) made_.bits.push_back(bits[access]);
  if (of.definition->nullable)
    for (const std::uint32_t access : accesses_) made_.valid.push_back(valid[access]);
  set(column, made_);
}

void StepColumns::per_row(std::size_t column, const StepRows& step) {
  const Column& of = columns_[column];
  const std::size_t n = step.rows.size();
  made_.bits.resize(n);
  made_.valid.resize(of.definition->nullable ? n : 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Cell cell = of.definition->cell(step.scope, step.rows[i]);
    made_.bits[i] = bits_of(of, cell);
    if (of.definition->nullable) made_.valid[i] = !is_null(cell);
  }
  set(column, made_);
}

std::span<const SharedValues> StepColumns::of(const StepRows& step) {
  const auto access_of = [](const ExportRow& row) { return row.access.access; };
  const bool same_rows = graph_ == step.scope.graph->derived &&
                         std::ranges::equal(accesses_, step.rows, {}, {}, access_of);
  if (!same_rows) {
    graph_ = step.scope.graph->derived;
    accesses_.resize(step.rows.size());
    std::ranges::transform(step.rows, accesses_.begin(), access_of);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    switch (columns_[i].definition->varies) {
      case Varies::PerStep:
        per_step(i, step);
        break;
      case Varies::PerAccess:
        if (!same_rows) per_access(i, step);
        break;
      case Varies::PerRow:
        per_row(i, step);
        break;
    }
  }
  return values_;
}

}  // namespace tt::exchange
