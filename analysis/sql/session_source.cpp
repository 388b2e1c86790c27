#include "analysis/sql/session_source.h"

#include <utility>

#include "tracer/text/utf8.h"

namespace tt::sql {

std::expected<std::string_view, TraceError> NamePool::intern(std::string name) {
  if (const auto known = names_.find(name); known != names_.end()) return *known;
  bytes_ += name.size();
  if (bytes_ > kMaxBytes)
    return std::unexpected(TraceError{TraceError::Kind::Damaged,
                                      "The session is damaged: it contains too many names"});
  return *names_.insert(std::move(name)).first;
}

std::shared_ptr<SessionSource> SessionSource::for_planning() {
  return std::make_shared<SessionSource>("");
}

Status SessionSource::open() {
  if (!reader_ && path_.empty()) return {};
  return reader().transform([](const SessionReader*) {});
}

std::expected<const SessionReader*, TraceError> SessionSource::reader() {
  if (!reader_) {
    auto opened = SessionReader::open(path_);
    if (!opened) return std::unexpected(opened.error());
    reader_.emplace(*std::move(opened));
    derived_.emplace(*reader_);
  }
  return &*reader_;
}

std::expected<const SessionInfo*, TraceError> SessionSource::info() {
  if (!info_) {
    const auto opened = reader();
    if (!opened) return std::unexpected(opened.error());
    auto read = (*opened)->info();
    if (!read) return std::unexpected(read.error());
    info_ = *std::move(read);
  }
  return &*info_;
}

std::expected<std::shared_ptr<const Step>, TraceError> SessionSource::step(StepId id) {
  if (auto on = check_cancelled(); !on) return std::unexpected(on.error());
  if (step_ && step_->id == id) return step_;
  const auto opened = reader();
  if (!opened) return std::unexpected(opened.error());
  auto read = (*opened)->step(id);
  if (!read) return std::unexpected(read.error());
  return step_ = std::make_shared<const Step>(*std::move(read));
}

std::expected<std::shared_ptr<const NamedGraph>, TraceError> SessionSource::graph(TemplateId id) {
  if (const auto known = graphs_.find(id); known != graphs_.end()) return known->second;
  if (const auto opened = reader(); !opened) return std::unexpected(opened.error());
  const auto derived = derived_->of(id);
  if (!derived) return std::unexpected(derived.error());
  if (*derived == nullptr) return nullptr;
  const auto of_session = info();
  if (!of_session) return std::unexpected(of_session.error());
  const KernelRules rules = kernel_rules_of(**of_session);
  auto named = std::make_shared<NamedGraph>();
  named->derived = *derived;
  const auto add = [&](std::vector<std::string_view>& list, std::string_view name) -> Status {
    const auto kept = names_->intern(to_valid_utf8(name));
    if (!kept) return std::unexpected(kept.error());
    list.push_back(*kept);
    return {};
  };
  for (const Tensor& tensor : named->graph().tensors) {
    if (auto added = add(named->tensors, tensor.name); !added)
      return std::unexpected(added.error());
    if (auto added = add(named->types, tensor.type); !added) return std::unexpected(added.error());
  }
  for (const Op& op : named->graph().ops) {
    named->roles.push_back(op_role_of(named->graph(), op));
    named->kernels.push_back(kernel_of(named->graph(), op, rules));
    if (auto added = add(named->ops, op_name(named->graph(), op)); !added)
      return std::unexpected(added.error());
    if (auto added = add(named->devices, op.device); !added) return std::unexpected(added.error());
  }
  if (graphs_.size() == kMaxGraphs) graphs_.clear();
  return graphs_[id] = std::move(named);
}

std::expected<std::shared_ptr<const Allocation>, TraceError> SessionSource::allocation(
    AllocationId id) {
  if (allocation_ && allocation_->id == id) return allocation_;
  if (id.v == 0) return allocation_ = std::make_shared<const Allocation>();
  const auto opened = reader();
  if (!opened) return std::unexpected(opened.error());
  auto read = (*opened)->allocation(id);
  if (!read) return std::unexpected(read.error());
  return allocation_ = std::make_shared<const Allocation>(*std::move(read));
}

std::expected<std::shared_ptr<const SessionTotals>, TraceError> SessionSource::totals(
    SessionTotals::Times times) {
  const auto opened = reader();
  if (!opened) return std::unexpected(opened.error());
  if (totals_provider_) return totals_provider_(times, **opened, keep_going_);
  auto& totals = totals_[times];
  if (totals == nullptr) totals = std::make_shared<SessionTotals>(times);
  if (auto extended = totals->extend(**opened, keep_going_); !extended)
    return std::unexpected(extended.error());
  return totals;
}

Status SessionSource::check_cancelled() const {
  if (!keep_going_()) return std::unexpected(cancelled_error());
  return {};
}

std::expected<std::optional<std::uint32_t>, TraceError> SessionSource::truncate_at_damage() {
  if (const auto opened = reader(); !opened) return std::unexpected(opened.error());
  const auto end = reader_->truncate_at_damage(keep_going_);
  info_.reset();
  totals_.clear();
  totals_provider_ = {};  // its totals cover the complete session
  graphs_.clear();
  step_.reset();
  allocation_.reset();
  derived_.emplace(*reader_);
  return end;
}

std::expected<std::shared_ptr<SessionSource>, TraceError> OpenedSessions::of(
    sqlite3* db, const std::string& schema) {
  const char* path = sqlite3_db_filename(db, schema.c_str());
  if (path == nullptr || *path == '\0') {
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound,
                   "\"" + schema + "\" is not a session file. Open one: sqlite3 session.ttrace"});
  }
  std::weak_ptr<SessionSource>& known = sources_[path];
  if (auto source = known.lock()) return source;
  auto source = std::make_shared<SessionSource>(path, [db] {
  // A host of the extension may be older than the function; SQLite then interrupts between rows.
#if SQLITE_VERSION_NUMBER >= 3041000
    constexpr int kHasFunction = 3041000;
    return sqlite3_libversion_number() < kHasFunction || sqlite3_is_interrupted(db) == 0;
#else
    (void)db;
    return true;
#endif
  });
  known = source;
  return source;
}

}  // namespace tt::sql
