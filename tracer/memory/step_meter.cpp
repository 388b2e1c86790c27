#include "tracer/memory/step_meter.h"

#include <algorithm>
#include <utility>

#include "tracer/format/model/quantile.h"
#include "tracer/memory/plan/compute_time.h"

namespace tt {

namespace {

constexpr std::size_t kUnreadSteps = 16;

StepClass class_of(std::uint32_t tokens) { return tokens > 1 ? kPromptStep : kGenerateStep; }

}  // namespace

void StepMeter::begin_step(std::uint32_t tokens) {
  kind_.store(class_of(tokens));
  running_.store(true);
  exchange_.step_begins();
}

void StepMeter::end_step(const MemoryManager::FinishedStep& step) {
  running_.store(false);
  steps_.fetch_add(1);
  const std::uint64_t read_now = bytes_read_from_disk();
  const std::uint64_t read = read_now - std::exchange(read_before_, read_now);
  if (!step.complete) return;
  MemoryExchange::Step measured{.kind = class_of(step.tokens),
                                .seconds = static_cast<double>(step.ns) * 1e-9,
                                .bytes_read = static_cast<double>(read),
                                .graph = {.graph = step.graph, .addresses = step.addresses}};
  // Without a plan all is read by page faults. A long prompt computes for much of its time.
  constexpr std::uint64_t kMuchRead = 32U << 20;
  constexpr std::uint32_t kFewTokens = 32;
  if (!exchange_.acting() && read >= kMuchRead && step.ns > 0 && step.tokens <= kFewTokens)
    measured.fault_bytes_per_second = measured.bytes_read / measured.seconds;
  if (measured.kind == kGenerateStep) measured.compute_seconds = compute_seconds(step, read);
  exchange_.add(std::move(measured));
}

double StepMeter::compute_seconds(const MemoryManager::FinishedStep& step, std::uint64_t read) {
  if (step.graph != nullptr && !step.op_ns.empty()) {
    if (op_ns_.size() != step.op_ns.size()) {  // another graph
      op_ns_.assign(step.op_ns.begin(), step.op_ns.end());
      least_step_ns_ = step.ns;
    }
    for (std::size_t op = 0; op < op_ns_.size(); ++op)
      op_ns_[op] = std::min(op_ns_[op], step.op_ns[op]);
  }
  const auto weight_bytes = exchange_.weight_bytes();
  const std::int64_t sum =
      compute_time(op_ns_, weight_bytes ? std::span<const std::uint64_t>(*weight_bytes)
                                        : std::span<const std::uint64_t>());
  // Only recorded steps have times of ops, and those of a step that waits for the disk at every op
  // say little: no token computes for longer than the fastest one took.
  least_step_ns_ = std::min(least_step_ns_, step.ns);
  const double least = static_cast<double>(std::min(sum, least_step_ns_)) * 1e-9;
  // A token that read nothing takes longer than its ops: threads wait for each other in between.
  if (read == 0) {
    unread_seconds_.push_back(static_cast<double>(step.ns) * 1e-9);
    if (unread_seconds_.size() > kUnreadSteps) unread_seconds_.pop_front();
  }
  std::vector<double> unread(unread_seconds_.begin(), unread_seconds_.end());
  std::ranges::sort(unread);
  return std::max(least, quantile<double>(unread, 0.25).value_or(0));
}

}  // namespace tt
