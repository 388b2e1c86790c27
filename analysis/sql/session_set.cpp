#include "analysis/sql/session_set.h"

#include <algorithm>
#include <bit>
#include <format>
#include <iterator>
#include <optional>

namespace tt::sql {

TraceError SessionSet::named(std::size_t i, TraceError error) const {
  error.message = std::format("Session {}: {}", sessions_.names[i], error.message);
  return error;
}

std::expected<std::shared_ptr<SessionSource>, TraceError> SessionSet::source(std::size_t i) {
  const auto known = std::ranges::find(open_, i, [](const auto& open) { return open.first; });
  if (known != open_.end()) {
    open_.splice(open_.begin(), open_, known);
  } else {
    auto reader = sessions_.open(i);
    if (!reader) return std::unexpected(named(i, std::move(reader.error())));
    open_.emplace_front(i, std::make_shared<SessionSource>(*std::move(reader), keep_going_,
                                                           TotalsProvider{}, pool_));
    if (open_.size() > max_open_) open_.pop_back();
  }
  return open_.front().second;
}

namespace {

class SetCursor final : public Cursor {
 public:
  SetCursor(const Table& table, SessionSet& set) : table_(table), set_(set) {}

  Status start(const Conditions& conditions) override {
    rest_ = conditions.of_rest();
    sessions_ = conditions.of(0);
    at_ = 0;
    close();
    if (conditions.impossible()) at_ = set_.names().size();
    return find_row();
  }
  Status next() override {
    if (auto moved = cursor_->next(); !moved) return failed(std::move(moved.error()));
    return skip_ended();
  }
  bool at_end() const override { return cursor_ == nullptr; }
  void value(std::size_t column, Output& out) const override {
    if (column == 0) return out.text(set_.names()[at_]);
    cursor_->value(column - 1, out);
  }
  // The number of the session in the upper bits. A set of 1,000 sessions leaves 53 bits, which
  // are 4 million steps.
  Expected<std::int64_t> row_id() const override {
    const auto of_session = cursor_->row_id();
    if (!of_session) return std::unexpected(set_.named(at_, of_session.error()));
    const int bits = 63 - static_cast<int>(std::bit_width(set_.names().size()));
    if ((*of_session >> bits) != 0) {
      return std::unexpected(set_.named(
          at_,
          {TraceError::Kind::NotFound,
           "it has too many steps for a rowid in a set of sessions; use UNION instead of OR"}));
    }
    return static_cast<std::int64_t>(at_ << bits) | *of_session;
  }

 private:
  // The first row at or after session `at_`.
  Status find_row() {
    for (; at_ < set_.names().size(); ++at_) {
      if (!sessions_.contains(std::string_view(set_.names()[at_]))) continue;
      auto source = set_.source(at_);
      if (!source) return std::unexpected(source.error());
      source_ = *std::move(source);
      cursor_ = table_.open(*source_);
      if (auto begun = cursor_->start(*rest_); !begun) return failed(std::move(begun.error()));
      if (!cursor_->at_end()) return {};
      close();
    }
    return {};
  }
  Status skip_ended() {
    if (!cursor_->at_end()) return {};
    close();
    ++at_;
    return find_row();
  }
  Status failed(TraceError error) {
    close();
    return std::unexpected(set_.named(at_, std::move(error)));
  }
  void close() {
    cursor_.reset();
    source_.reset();
  }

  const Table& table_;
  SessionSet& set_;
  std::optional<Conditions> rest_;
  ColumnConstraint sessions_;
  std::size_t at_ = 0;
  // The cursor uses the source, which the set may have closed meanwhile.
  std::shared_ptr<SessionSource> source_;
  std::unique_ptr<Cursor> cursor_;  // null: at the end
};

}  // namespace

std::unique_ptr<Cursor> open_set_cursor(const Table& table, SessionSet& set) {
  return std::make_unique<SetCursor>(table, set);
}

}  // namespace tt::sql
