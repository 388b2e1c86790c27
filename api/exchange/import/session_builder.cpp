#include "api/exchange/import/session_builder.h"

#include <format>
#include <system_error>
#include <utility>

#include "api/exchange/import/rebuilt_graph.h"

namespace tt::exchange {
namespace {

namespace fs = std::filesystem;

// Ops are consecutive: an op without a row ends where the next one begins.
std::vector<Ns> op_ends(const ImportedStep& step, std::size_t ops) {
  std::vector<Ns> ends(std::min<std::size_t>(step.ops_run, ops));
  std::size_t row = step.rows.size();
  std::int64_t next = step.last_op_end.value_or(step.step.end.v);
  for (std::size_t op = ends.size(); op-- > 0;) {
    while (row > 0 && step.rows[row - 1].op > op) --row;
    const bool has_row = row > 0 && step.rows[row - 1].op == op;
    const bool has_end = has_row && step.rows[row - 1].end;
    ends[op] = Ns{has_end ? *step.rows[row - 1].end : next};
    if (has_row && step.rows[row - 1].begin) {
      next = *step.rows[row - 1].begin;
    } else {
      next = ends[op].v;
    }
  }
  return ends;
}

TraceError damaged_step(const Step& step, const std::string& what) {
  return {TraceError::Kind::Damaged, std::format("Step {} {}", step.id.v, what)};
}

// Limits the cost of a step to a multiple of its rows, whatever counts it declares.
std::expected<void, TraceError> check_size(const Step& step, const ImportedStep& imported) {
  std::uint64_t ops = imported.ops;
  std::int64_t ranks = 1;
  for (const ImportedRow& row : imported.rows) {
    ops = std::max(ops, std::uint64_t{row.op} + 1);
    ranks = std::max(ranks, std::int64_t{row.rank} + 1);
  }
  if (ops > kOpsWithoutRows + kOpsPerRow * imported.rows.size()) {
    return std::unexpected(damaged_step(
        step, std::format("declares {} ops but has only {} accesses.", ops, imported.rows.size())));
  }
  if (ranks > kMaxRanks) {
    return std::unexpected(
        damaged_step(step, std::format("declares {} experts per token.", ranks)));
  }
  return {};
}

std::uint64_t hash_of(TemplateId graph, const std::vector<std::uint64_t>& addresses) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ graph.v;
  for (const std::uint64_t address : addresses) {
    hash = (hash ^ (address & 0xFFFFFFFF)) * 0x100000001b3u;
    hash = (hash ^ (address >> 32)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

std::expected<SessionBuilder, TraceError> SessionBuilder::create(const fs::path& path,
                                                                 const SessionInfo& info) {
  std::error_code none;
  if (fs::exists(path, none)) {
    return std::unexpected(TraceError{
        TraceError::Kind::Exists, path.string() + " exists. Choose another name or remove it."});
  }
  const fs::path temp_path = path.string() + "-making";
  fs::remove(temp_path, none);  // left by a killed import
  auto writer = SessionWriter::create(temp_path, info);
  if (!writer) return std::unexpected(writer.error());
  return SessionBuilder(path, info, *std::move(writer));
}

SessionBuilder::SessionBuilder(fs::path path, const SessionInfo& info,
                               std::unique_ptr<SessionWriter> writer)
    : path_(std::move(path)),
      temp_path_(path_.string() + "-making"),
      info_(info),
      writer_(std::move(writer)) {}

SessionBuilder::SessionBuilder(SessionBuilder&&) noexcept = default;
SessionBuilder::~SessionBuilder() { drop(); }

void SessionBuilder::drop() {
  if (!writer_) return;
  writer_.reset();
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-reserve", "-new"})
    fs::remove(temp_path_.string() + suffix, ignored);
}

std::expected<void, TraceError> SessionBuilder::add_tokens(std::vector<Token> tokens) {
  for (Token& token : tokens) token.index = tokens_++;
  return writer_->add_tokens(tokens);
}

std::expected<void, TraceError> SessionBuilder::add_missing_tokens(const Step& step) {
  const std::uint64_t last_token = std::uint64_t{step.first_token} + step.n_tokens;
  if (last_token > tokens_) {
    // The log lacks these tokens, but the step shows that they existed.
    missing_tokens_ += last_token - tokens_;
    if (missing_tokens_ > kMaxMissingTokens) {
      return std::unexpected(
          damaged_step(step, std::format("evaluates token {}; {} tokens before it are missing.",
                                         last_token - 1, missing_tokens_)));
    }
    std::vector<Token> unknown(last_token - tokens_);
    for (std::size_t i = 0; i < unknown.size(); ++i) {
      unknown[i].position = static_cast<std::int32_t>(tokens_ + i);
      unknown[i].generated = step.phase == Phase::Generate;
    }
    if (const auto added = add_tokens(std::move(unknown)); !added) return added;
  }
  return {};
}

std::expected<void, TraceError> SessionBuilder::commit_at_times() {
  constexpr std::uint32_t kStepsPerCommit = 64;
  return steps_ % kStepsPerCommit == 0 ? writer_->commit() : std::expected<void, TraceError>{};
}

std::expected<void, TraceError> SessionBuilder::add_step(const RecordedStep& recorded) {
  Step step = recorded.step;
  step.id = StepId{steps_++};
  if (auto added = add_missing_tokens(step); !added) return added;
  if (recorded.graph) {
    const auto [known, is_new] =
        recorded_templates_.try_emplace(step.graph, TemplateId{template_count_ + 1});
    step.graph = known->second;
    if (is_new) {
      ++template_count_;
      if (auto added = writer_->add_template(step.graph, *recorded.graph); !added) return added;
    }
  }
  if (step.allocation.v != 0) {
    const auto [known, is_new] =
        recorded_allocations_.try_emplace(step.allocation, AllocationId{allocation_count_ + 1});
    step.allocation = known->second;
    if (is_new) {
      ++allocation_count_;
      const Allocation allocation{
          .id = step.allocation, .graph = step.graph, .addresses = recorded.addresses};
      if (auto added = writer_->add_allocation(allocation); !added) return added;
    }
  }
  if (auto added = writer_->add_step(step); !added) return added;
  for (const auto& [kind, of_step] : recorded.faults) {
    StepFaults faults = of_step;
    faults.step = step.id;
    if (auto added = writer_->add_faults(faults, step.begin, kind); !added) return added;
  }
  if (recorded.residency) {
    StepResidency residency = *recorded.residency;
    residency.step = step.id;
    if (auto added = writer_->add_residency(residency); !added) return added;
  }
  if (recorded.values) {
    StepValues values = *recorded.values;
    values.step = step.id;
    if (auto added = writer_->add_values(values); !added) return added;
  }
  if (recorded.splits) {
    StepSplits splits = *recorded.splits;
    splits.step = step.id;
    if (auto added = writer_->add_splits(splits, step.begin); !added) return added;
  }
  return commit_at_times();
}

std::expected<void, TraceError> SessionBuilder::add_step(const ImportedStep& imported) {
  Step step = imported.step;
  step.id = StepId{steps_++};
  if (auto added = add_missing_tokens(step); !added) return added;
  step.graph = {};
  step.allocation = {};
  if (!imported.rows.empty()) {
    if (const auto sized = check_size(step, imported); !sized) return sized;
    RebuiltGraph rebuilt = rebuilt_graph(imported, info_);
    ++rebuilt_steps_;
    const TemplateId next{template_count_ + 1};
    const auto [known, is_new] = templates_.try_emplace(rebuilt.graph.fingerprint, next);
    step.graph = known->second;
    if (is_new) {
      ++template_count_;
      if (auto added = writer_->add_template(next, rebuilt.graph); !added) return added;
    }
    const AllocationId id{allocation_count_ + 1};
    const auto [place, moved] =
        allocations_.try_emplace(hash_of(step.graph, rebuilt.addresses), id);
    step.allocation = place->second;
    if (moved) {
      ++allocation_count_;
      const Allocation allocation{
          .id = id, .graph = step.graph, .addresses = std::move(rebuilt.addresses)};
      if (auto added = writer_->add_allocation(allocation); !added) return added;
    }
    step.op_ends = op_ends(imported, rebuilt.graph.ops.size());
    step.slots = std::move(rebuilt.slots);
  }
  if (auto added = writer_->add_step(step); !added) return added;
  return commit_at_times();
}

std::expected<void, TraceError> SessionBuilder::finish(const SessionInfo& info,
                                                       const LossCounters& losses) {
  auto done = writer_->commit();
  if (done) done = writer_->finish(info, losses);
  if (!done) {
    drop();
    return done;
  }
  writer_.reset();
  std::error_code failed;
  fs::rename(temp_path_, path_, failed);
  if (failed) return std::unexpected(TraceError{TraceError::Kind::Io, failed.message()});
  return {};
}

}  // namespace tt::exchange
