#include "analysis/accesses/access_table.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/accesses/key_bounds.h"
#include "analysis/accesses/matching_steps.h"

namespace tt {

namespace {

// A matching access, and the step that completes its row.
struct Found {
  AccessKey key;
  StepAccess access;
  Ns begin{};
  std::optional<Ns> duration{};
  std::shared_ptr<const StepFacts> step;
  AllocationId allocation;
};

Found found_at(const Step& step, std::shared_ptr<const StepFacts> facts, const StepAccess& access,
               AccessKey key) {
  return {.key = std::move(key),
          .access = access,
          .begin = step.op_begin(access.op),
          .duration = step.op_duration(access.op),
          .step = std::move(facts),
          .allocation = step.allocation};
}

// The rows of the matches, in the same order. Reads each template and allocation only once,
// even if the matches alternate between them.
std::expected<std::vector<AccessRow>, TraceError> rows_of(const SessionReader& reader,
                                                          DerivedGraphCache& graphs,
                                                          const std::vector<Found>& found) {
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tie(found[i].step->graph, found[i].allocation);
  });
  std::vector<AccessRow> rows(found.size());
  const auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  TemplateId graph_id{};
  std::shared_ptr<const DerivedGraph> derived;
  Allocation allocation;
  for (const std::size_t i : order) {
    const Found& match = found[i];
    if (match.step->graph != graph_id) {
      const auto read = graphs.of(graph_id = match.step->graph);
      if (!read) return std::unexpected(read.error());
      derived = *read;
    }
    if (match.allocation != allocation.id) {
      allocation = {.id = match.allocation, .graph = {}, .addresses = {}};
      if (match.allocation.v != 0) {
        auto read = reader.allocation(match.allocation);
        if (!read) return std::unexpected(read.error());
        allocation = *std::move(read);
      }
    }
    const StepAccess& access = match.access;
    rows[i] = {.place = match.key.place,
               .access = access,
               .step = match.step,
               .derived = derived,
               .begin = match.begin,
               .duration = match.duration,
               .address = address_of(allocation.addresses, derived->accesses[access.access],
                                     access.expert),
               .heads = head_geometry(derived->graph->tensor(access.tensor), derived->heads,
                                      {info->n_heads, info->n_heads_kv})
                            .count};
  }
  return rows;
}

// One query over many steps.
class Walk {
 public:
  Walk(const SessionReader& reader, const AccessQuery& query, const ContinueCheck& keep_going,
       const IndexSource& index)
      : reader_(reader), query_(query), keep_going_(keep_going), index_(index), graphs_(reader) {}

  std::expected<AccessPage, TraceError> page(std::optional<AccessId> after, std::size_t limit) {
    if (limit == 0) return AccessPage{};
    limit_ = limit;
    const auto steps = reader_.step_count();
    if (!steps) return std::unexpected(steps.error());
    if (after) {
      auto key = key_at(*after);
      if (!key) return std::unexpected(key.error());
      after_ = *std::move(key);
    }
    const std::uint32_t end =
        query_.last_step && query_.last_step->v < *steps ? query_.last_step->v + 1 : *steps;
    const auto walked = query_.order.by != AccessSort::ByTime ? best(end)
                        : query_.order.descending             ? backward(end)
                                                              : forward(end);
    if (!walked) return std::unexpected(walked.error());

    AccessPage page;
    if (found_.size() > limit) {
      found_.resize(limit);
      page.next = found_.back().key.place;
    }
    auto rows = rows_of(reader_, graphs_, found_);
    if (!rows) return std::unexpected(rows.error());
    page.rows = *std::move(rows);
    page.steps_read = steps_read_;
    page.steps_derived = steps_derived_;
    return page;
  }

 private:
  // Null: no access of this template can match.
  std::expected<std::shared_ptr<const MatchingAccesses>, TraceError> picked(TemplateId id) {
    constexpr std::size_t kKept = 16;  // templates are large and rarely alternate
    if (const auto known = picked_.find(id); known != picked_.end()) return known->second;
    const auto derived = graphs_.of(id);
    if (!derived) return std::unexpected(derived.error());
    std::shared_ptr<const MatchingAccesses> picked;
    if (*derived) picked = std::make_shared<const MatchingAccesses>(*derived, query_.filter);
    if (picked && picked->empty()) picked = nullptr;
    if (picked_.size() == kKept) picked_.clear();
    return picked_[id] = std::move(picked);
  }

  // Calls `row` for every match of a step, in time order.
  template <class Row>
  Status matches(const Step& step, Row row) {
    if (query_.phase && step.phase != *query_.phase) return {};
    if (is_left_out(query_.leave_out, step.conditions, step.threads)) return {};
    const auto accesses = picked(step.graph);
    if (!accesses) return std::unexpected(accesses.error());
    if (!*accesses) return {};
    ++steps_derived_;
    const auto facts = std::make_shared<const StepFacts>(facts_of(step));
    (*accesses)->for_each(step, [&](const StepAccess& access, const AccessId& place) {
      row(found_at(step, facts, access, (*accesses)->key_of(access, place, query_.order.by)));
    });
    return {};
  }

  std::expected<AccessKey, TraceError> key_at(const AccessId& place) {
    const auto step = reader_.step(place.step);
    if (!step) return std::unexpected(step.error());
    std::optional<AccessKey> key;
    const auto looked = matches(*step, [&](const Found& match) {
      if (match.key.place == place) key = match.key;
    });
    if (!looked) return std::unexpected(looked.error());
    if (!key) {
      return std::unexpected(TraceError{TraceError::Kind::NotFound,
                                        "The cursor is not valid for this session. Start "
                                        "again without a cursor."});
    }
    return *std::move(key);
  }

  bool is_after_cursor(const AccessKey& key) const {
    return !after_ || comes_before(*after_, key, query_.order);
  }
  // Only for orders other than by time, where found_ is a heap with the last row on top.
  const AccessKey& last_row() const { return found_.front().key; }
  bool is_full() const { return found_.size() > limit_; }  // and there is a next page

  // After many steps without a match, requests the index to skip such steps.
  Status consult_index() {
    if (index_requested_ || reads_without_match_ < kMaxReadsWithoutMatch) return {};
    index_requested_ = true;
    const auto index = index_();
    if (!index) return std::unexpected(index.error());
    if (*index != nullptr) {
      matching_.emplace(**index, query_.filter, query_.phase);
      if (query_.order.by != AccessSort::ByTime)
        bounds_.emplace(**index, query_.filter, query_.order, after_);
      return {};
    }
    const auto templates = reader_.template_ids();
    if (!templates) return std::unexpected(templates.error());
    for (const TemplateId id : *templates) {
      const auto accesses = picked(id);
      if (!accesses || *accesses) return {};  // a match is possible, or reading reports the damage
    }
    no_match_possible_ = true;
    return {};
  }

  // Calls `visit` for one step. False: the step does not exist.
  template <class Visit>
  std::expected<bool, TraceError> visit_step(std::uint32_t id, Visit visit) {
    if (!keep_going_()) return std::unexpected(cancelled_error());
    const auto step = reader_.step(StepId{id});
    if (!step && step.error().kind == TraceError::Kind::NotFound) return false;
    if (!step) return std::unexpected(step.error());
    ++steps_read_;
    const std::size_t before = found_.size();
    if (auto visited = visit(*step); !visited) return std::unexpected(visited.error());
    reads_without_match_ += found_.size() == before;
    return true;
  }

  // Steps [first, end) in order, until the page is full.
  template <class Visit>
  Status for_each_step(std::uint32_t first, std::uint32_t end, Visit visit) {
    for (std::uint32_t i = first;; ++i) {
      if (auto looked = consult_index(); !looked) return looked;
      if (matching_ && i < end) i = matching_->at_or_after(i);
      if (bounds_ && i < end && !bounds_->can_hold(StepId{i}, is_full() ? &last_row() : nullptr))
        continue;
      if (i >= end || no_match_possible_ || (query_.order.by == AccessSort::ByTime && is_full()))
        return {};
      const auto visited = visit_step(i, visit);
      if (!visited) return std::unexpected(visited.error());
      if (!*visited) return {};
    }
  }

  Status forward(std::uint32_t end) {
    const StepId first =
        after_ ? std::max(after_->place.step, query_.first_step) : query_.first_step;
    return for_each_step(first.v, end, [&](const Step& step) {
      return matches(step, [&](Found match) {
        if (is_after_cursor(match.key) && !is_full()) found_.push_back(std::move(match));
      });
    });
  }

  Status backward(std::uint32_t end) {
    if (after_) end = std::min(end, after_->place.step.v + 1);
    while (end > query_.first_step.v && !is_full()) {
      if (auto looked = consult_index(); !looked) return looked;
      if (no_match_possible_) return {};
      const auto i = matching_ ? matching_->before(end) : std::optional(end - 1);
      if (!i || *i < query_.first_step.v) return {};
      end = *i;
      const auto visited = visit_step(end, [&](const Step& step) -> Status {
        std::vector<Found> of_step;
        auto read = matches(step, [&](Found match) { of_step.push_back(std::move(match)); });
        for (Found& match : of_step | std::views::reverse)
          if (is_after_cursor(match.key) && !is_full()) found_.push_back(std::move(match));
        return read;
      });
      if (!visited) return std::unexpected(visited.error());
    }
    return {};
  }

  // The first limit + 1 rows after the cursor, in a heap with the last of them on top.
  Status best(std::uint32_t end) {
    const auto earlier = [&](const Found& a, const Found& b) {
      return comes_before(a.key, b.key, query_.order);
    };
    reads_without_match_ =
        kMaxReadsWithoutMatch;  // request the index at once: every step is a candidate
    auto walked = for_each_step(query_.first_step.v, end, [&](const Step& step) {
      return matches(step, [&](Found match) {
        if (!is_after_cursor(match.key)) return;
        if (is_full()) {
          if (!earlier(match, found_.front())) return;
          std::ranges::pop_heap(found_, earlier);
          found_.pop_back();
        }
        found_.push_back(std::move(match));
        std::ranges::push_heap(found_, earlier);
      });
    });
    std::ranges::sort_heap(found_, earlier);
    return walked;
  }

  const SessionReader& reader_;
  const AccessQuery& query_;
  const ContinueCheck& keep_going_;
  const IndexSource& index_;
  DerivedGraphCache graphs_;
  std::unordered_map<TemplateId, std::shared_ptr<const MatchingAccesses>> picked_;
  std::optional<AccessKey> after_;
  std::size_t limit_ = 0;
  std::vector<Found> found_;
  std::optional<MatchingSteps> matching_;
  std::optional<KeyBounds> bounds_;
  bool index_requested_ = false;           // the index was requested
  bool no_match_possible_ = false;         // nothing in the session can match
  std::uint32_t reads_without_match_ = 0;  // steps read that added no row to the page
  std::uint32_t steps_read_ = 0, steps_derived_ = 0;
};

}  // namespace

std::expected<Page<AccessRow>, TraceError> access_table(const SessionReader& reader, StepId id,
                                                        const AccessFilter& filter,
                                                        Order<AccessSort> order, PageRange range) {
  const auto step = reader.step(id);
  if (!step) return std::unexpected(step.error());
  DerivedGraphCache graphs(reader);
  auto derived = graphs.of(step->graph);
  if (!derived) return std::unexpected(derived.error());
  Page<AccessRow> page;
  if (*derived == nullptr) return page;

  const MatchingAccesses picked(*std::move(derived), filter);
  const bool in_order = order == Order<AccessSort>{};
  const auto facts = std::make_shared<const StepFacts>(facts_of(*step));
  std::vector<Found> found;
  picked.for_each(*step, [&](const StepAccess& access, const AccessId& place) {
    if (const std::uint64_t at = page.total++; in_order && !range.contains(at)) return;
    found.push_back(found_at(*step, facts, access, picked.key_of(access, place, order.by)));
  });
  if (!in_order) {
    std::ranges::sort(
        found, [&](const Found& a, const Found& b) { return comes_before(a.key, b.key, order); });
    const std::uint64_t size = found.size(), from = std::min(range.from, size);
    found.resize(from + std::min(range.limit, size - from));
    found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(from));
  }
  auto rows = rows_of(reader, graphs, found);
  if (!rows) return std::unexpected(rows.error());
  page.rows = *std::move(rows);
  return page;
}

std::expected<AccessPage, TraceError> access_page(const SessionReader& reader,
                                                  const AccessQuery& query,
                                                  std::optional<AccessId> after, std::size_t limit,
                                                  const ContinueCheck& keep_going,
                                                  const IndexSource& index) {
  return Walk(reader, query, keep_going, index).page(after, limit);
}

}  // namespace tt
