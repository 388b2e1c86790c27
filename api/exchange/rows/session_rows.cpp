#include "api/exchange/rows/session_rows.h"

#include <algorithm>
#include <format>
#include <span>
#include <utility>

#include "analysis/common/op_info.h"
#include "analysis/common/walk_steps.h"
#include "api/exchange/rows/token_owners.h"

namespace tt::exchange {
namespace {

constexpr std::size_t kTemplatesKept = 16;

RowTemplate row_template_of(std::shared_ptr<const DerivedGraph> derived,
                            const SessionInfo& session) {
  RowTemplate out{.derived = std::move(derived), .op_names = {}, .heads = {}};
  const GraphTemplate& graph = *out.derived->graph;
  for (const Op& op : graph.ops) out.op_names.push_back(op_name(graph, op));
  for (const Access& access : out.derived->accesses) {
    out.heads.push_back(head_geometry(graph.tensor(access.tensor), out.derived->heads,
                                      {session.n_heads, session.n_heads_kv}));
  }
  return out;
}

}  // namespace

std::optional<std::string> range_error(const ExportRange& range, std::uint32_t steps) {
  if (range.last && *range.last < range.first) {
    return std::format("The first step {} is after the last step {}.", range.first.v,
                       range.last->v);
  }
  if (range.first.v == 0 || range.first.v < steps) return std::nullopt;
  if (steps == 0)
    return std::format("Step {} does not exist: the session has no steps.", range.first.v);
  return std::format("Step {} does not exist: the session has steps 0 to {}.", range.first.v,
                     steps - 1);
}

std::expected<SessionRows, TraceError> SessionRows::open(const SessionReader& reader,
                                                         ExportRange range) {
  auto info = reader.info();
  if (!info) return std::unexpected(info.error());
  const auto count = reader.step_count();
  if (!count) return std::unexpected(count.error());
  SessionRows rows(reader, *std::move(info));
  const std::uint32_t end = range.last && range.last->v < *count ? range.last->v + 1 : *count;
  rows.first_ = StepId{std::min(range.first.v, end)};
  rows.steps_ = end - rows.first_.v;
  rows.per_head_ = range.per_head;
  rows.per_token_ = range.per_token;
  return rows;
}

std::expected<std::shared_ptr<const RowTemplate>, TraceError> SessionRows::row_template(
    TemplateId id) {
  if (id.v == 0) return nullptr;
  if (const auto known = templates_.find(id); known != templates_.end()) return known->second;
  const auto graph = reader_->graph(id);
  if (!graph) return std::unexpected(graph.error());
  if (templates_.size() == kTemplatesKept) templates_.clear();
  return templates_[id] =
             std::make_shared<const RowTemplate>(row_template_of(derive_graph(*graph), session_));
}

WriteResult SessionRows::for_each_template(
    const std::function<void(TemplateId, const RowTemplate&)>& row) {
  const auto ids = reader_->template_ids();
  if (!ids) return std::unexpected(ids.error());
  for (const TemplateId id : *ids) {
    const auto found = row_template(id);
    if (!found) return std::unexpected(found.error());
    row(id, **found);
  }
  return {};
}

// Splits the read of a whole weight into one row per head.
void SessionRows::add_heads(const RowTemplate& graph, const StepAccess& access) {
  const HeadGeometry& heads = graph.heads[access.access];
  const std::uint32_t sharing = session_.n_heads % heads.count == 0 && session_.n_heads > 0
                                    ? session_.n_heads / heads.count
                                    : 1;
  for (std::uint32_t head = 0; head < heads.count * sharing; ++head) {
    const std::uint32_t slice = head / sharing;
    ExportRow row{.access = access,
                  .part = head,
                  .head = static_cast<std::int32_t>(head),
                  .slice = static_cast<std::int32_t>(slice)};
    row.access.touched = Bytes{share_of(access.touched.v / heads.count, sharing, head % sharing)};
    if (!access.range.empty()) {
      const std::uint64_t before = slice * heads.bytes.v;
      const std::uint64_t rest = (heads.count - 1 - slice) * heads.bytes.v;
      row.access.range.offset += before;
      row.access.range.length =
          heads.by_columns ? access.range.length - before - rest : heads.bytes.v;
    }
    rows_.push_back(row);
  }
}

WriteResult SessionRows::derive(const Step& step) {
  rows_.clear();
  auto found = row_template(step.graph);
  if (!found) return std::unexpected(found.error());
  current_ = *std::move(found);
  if (allocation_.id != step.allocation) {
    allocation_ = {};
    if (step.allocation.v != 0) {
      auto read = reader_->allocation(step.allocation);
      if (!read) return std::unexpected(read.error());
      allocation_ = *std::move(read);
    }
  }
  if (!current_) return {};
  const DerivedGraph& derived = *current_->derived;
  std::uint32_t last = kNone, part = 0;
  for_each_access(*derived.graph, derived.accesses, step, [&](const StepAccess& access) {
    part = access.access == last ? part + 1 : 0;
    last = access.access;
    const HeadGeometry& heads = current_->heads[access.access];
    const bool divided =
        per_head_ && heads.count > 0 && !access.write &&
        derived.accesses[access.access].extent == Extent::All &&
        access.touched.v % heads.count == 0 &&
        (access.range.empty() || access.range.length >= heads.count * heads.bytes.v);
    if (divided) {
      add_heads(*current_, access);
    } else {
      rows_.push_back({.access = access, .part = part});
    }
  });
  add_self_times(step);
  return {};
}

// Divides the time of each op among the rows of its main access.
void SessionRows::add_self_times(const Step& step) {
  const std::vector<std::uint32_t>& main = current_->derived->main_accesses;
  for (std::size_t from = 0, to = 0; from < rows_.size(); from = to) {
    const StepAccess& access = rows_[from].access;
    while (to < rows_.size() && rows_[to].access.access == access.access) ++to;
    const auto whole = step.op_duration(access.op);
    const bool is_main = main[access.op.v] == access.access;
    for (std::size_t i = from; whole && i < to; ++i)
      rows_[i].self = is_main ? Ns{share_of(whole->v, to - from, i - from)} : Ns{};
  }
}

// Consecutive rows that are shared by equally many tokens are one part.
WriteResult SessionRows::write_per_token(
    const StepRows& rows, const std::function<WriteResult(const StepRows&)>& step) const {
  const DerivedGraph& derived = *current_->derived;
  TokenOwners token_owners(*derived.graph, derived.accesses, *rows.step);
  struct Owners {
    std::span<const TokenOwner> all;
    std::size_t next = 0;  // of the first token that is not written
  };
  std::vector<Owners> owners;
  for (const ExportRow& row : rows.rows) owners.push_back({.all = token_owners.of(row.access)});
  Step shown = *rows.step;
  std::vector<ExportRow> part;
  StepRows out = rows;
  out.scope.step = &shown;
  const auto write_part = [&](bool last) -> WriteResult {
    out.rows = part;
    out.last_part = last;
    const WriteResult written = step(out);
    part.clear();
    return written;
  };
  for (std::uint32_t token = 0; token < rows.step->n_tokens; ++token) {
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      ExportRow row = rows.rows[i];
      std::uint32_t sharing = rows.step->n_tokens, place = token;
      if (auto& [all, next] = owners[i]; !all.empty()) {
        if (next == all.size() || all[next].token != token) continue;
        sharing = static_cast<std::uint32_t>(all.size());
        place = static_cast<std::uint32_t>(next);
        if (row.access.expert >= 0) {
          row.access.rank = all[next].rank;
          row.access.score = all[next].score;
        }
        ++next;
      }
      const bool repeated = place > 0;
      row.access.touched = Bytes{share_of(row.access.touched.v, sharing, place)};
      if (row.self) row.self = Ns{share_of(row.self->v, sharing, place)};
      const bool same_part = shown.first_token == rows.step->first_token + token &&
                             shown.n_tokens == sharing && out.repeated == repeated;
      if (!part.empty() && !same_part) {
        if (const WriteResult written = write_part(false); !written) return written;
      }
      shown.first_token = rows.step->first_token + token;
      shown.n_tokens = sharing;
      out.repeated = repeated;
      part.push_back(row);
    }
  }
  return write_part(true);
}

WriteResult SessionRows::for_each_step(const std::function<WriteResult(const StepRows&)>& step,
                                       const ContinueCheck& keep_going) {
  std::uint32_t done = 0;
  return walk_steps(
      *reader_, {.from = first_.v, .limit = steps_}, keep_going,
      [&](const Step& now) -> WriteResult {
        if (const WriteResult derived = derive(now); !derived) return derived;
        const RowScope scope{.session = &session_,
                             .graph = current_.get(),
                             .step = &now,
                             .addresses = allocation_.addresses};
        const StepRows whole{
            .scope = scope, .rows = rows_, .done = ++done, .steps = steps_, .step = &now};
        const bool split = per_token_ && now.n_tokens > 1 && !rows_.empty();
        return split ? write_per_token(whole, step) : step(whole);
      });
}

}  // namespace tt::exchange
