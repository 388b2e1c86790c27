#include "api/exchange/rows/step_columns.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <variant>

#include "tracer/text/utf8.h"

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
    const auto found = column.places.find(to_valid_utf8(*v));
    return found == column.places.end() ? 0 : found->second;
  }
  return 0;
}

bool is_null(const Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

void add_word(Column& column, std::string_view bytes) {
  column.places.try_emplace(to_valid_utf8(bytes), 0);
}

// Sorted, so that the minimum and maximum index are those of the texts.
void sort_words(Column& column) {
  for (const auto& [word, place] : column.places) column.words.push_back(word);
  std::ranges::sort(column.words);
  for (std::uint32_t i = 0; i < column.words.size(); ++i) column.places[column.words[i]] = i;
}

// The only texts that depend on the row are names of tensors and of experts. A session with more of
// them than any model has has none.
void add_row_words(Column& column, const RowScope& scope) {
  constexpr std::size_t kMaxWords = 1u << 18;  // 1,000 experts in each of 80 layers
  const DerivedGraph& derived = *scope.graph->derived;
  if (column.omitted) return;
  for (std::uint32_t i = 0; i < derived.accesses.size(); ++i) {
    const Access& access = derived.accesses[i];
    ExportRow whole;
    whole.access.access = i;
    whole.access.expert = -1;
    const Cell name = column.definition->cell(scope, whole);
    if (const auto* text = std::get_if<std::string_view>(&name)) add_word(column, *text);
    if (access.extent != Extent::Experts) continue;
    const std::int64_t experts = derived.graph->tensor(access.tensor).ne[2];
    if (experts > static_cast<std::int64_t>(kMaxWords) || column.places.size() > kMaxWords) {
      column.omitted = true;
      column.places.clear();
      return;
    }
    ExportRow row;
    row.access.access = i;
    for (row.access.expert = 0; row.access.expert < experts; ++row.access.expert) {
      const Cell cell = column.definition->cell(scope, row);
      if (const auto* text = std::get_if<std::string_view>(&cell)) add_word(column, *text);
    }
  }
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

// Compares two rows of the same access.
bool same_row(const ExportRow& a, const ExportRow& b) {
  const StepAccess &x = a.access, &y = b.access;
  return x.touched == y.touched && x.range == y.range && x.expert == y.expert && x.rank == y.rank &&
         std::bit_cast<std::uint32_t>(x.score) == std::bit_cast<std::uint32_t>(y.score) &&
         a.part == b.part && a.head == b.head;
}

}  // namespace

std::expected<StepColumns, TraceError> StepColumns::make(SessionRows& rows, bool with_session) {
  StepColumns out;
  for (const AccessColumn& definition : access_columns(rows.per_token())) {
    if (!with_session && definition.per_session) continue;
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
    for (const std::string& word : step_text_values(*column.definition, rows.session()))
      add_word(column, word);
  });
  const WriteResult read = rows.for_each_template([&](TemplateId, const RowTemplate& graph) {
    const RowScope scope{
        .session = &rows.session(), .graph = &graph, .step = nullptr, .addresses = {}};
    texts(Varies::PerAccess, [&](Column& column) { add_words(column, scope); });
    texts(Varies::PerRow, [&](Column& column) { add_row_words(column, scope); });
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
  for (const ExportRow& row : rows_) made_.bits.push_back(bits[row.access.access]);
  if (of.definition->nullable())
    for (const ExportRow& row : rows_) made_.valid.push_back(valid[row.access.access]);
  set(column, made_);
}

// Recomputes the values of `rows`; the others are copied from the previous step.
void StepColumns::per_row(std::size_t column, const StepRows& step,
                          std::span<const std::uint32_t> rows) {
  const Column& of = columns_[column];
  const std::size_t n = step.rows.size();
  if (rows.size() < n) {
    if (rows.empty()) return;
    made_ = *values_[column];
  } else {
    made_.bits.resize(n);
    made_.valid.resize(of.definition->nullable() ? n : 0);
  }
  for (const std::uint32_t i : rows) {
    const Cell cell = of.omitted ? Cell{} : of.definition->cell(step.scope, step.rows[i]);
    made_.bits[i] = bits_of(of, cell);
    if (of.definition->nullable()) made_.valid[i] = !is_null(cell);
  }
  set(column, made_);
}

void StepColumns::compare(const StepRows& step) {
  const auto access_of = [](const ExportRow& row) { return row.access.access; };
  same_accesses_ = graph_ == step.scope.graph->derived &&
                   std::ranges::equal(rows_, step.rows, {}, access_of, access_of);
  all_.resize(step.rows.size());
  std::iota(all_.begin(), all_.end(), 0U);
  const bool comparable = same_accesses_ && std::ranges::equal(addresses_, step.scope.addresses);
  if (comparable) {
    changed_.clear();
    for (const std::uint32_t i : all_)
      if (!same_row(rows_[i], step.rows[i])) changed_.push_back(i);
  } else {
    changed_ = all_;
  }
  graph_ = step.scope.graph->derived;
  rows_.assign(step.rows.begin(), step.rows.end());
  addresses_.assign(step.scope.addresses.begin(), step.scope.addresses.end());
}

std::span<const SharedValues> StepColumns::of(const StepRows& step) {
  compare(step);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    switch (columns_[i].definition->varies) {
      case Varies::PerStep:
        per_step(i, step);
        break;
      case Varies::PerAccess:
        if (!same_accesses_) per_access(i, step);
        break;
      case Varies::PerRow:
        per_row(i, step, changed_);
        break;
      case Varies::PerTime:
        per_row(i, step, all_);
        break;
    }
  }
  return values_;
}

}  // namespace tt::exchange
