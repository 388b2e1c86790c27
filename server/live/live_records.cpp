#include "server/live/live_records.h"

#include "analysis/tables/step_summary.h"
#include "api/live/live_events.h"

namespace tt {

namespace {

std::size_t cost_of(const TokenRecord& token) { return 64 + token.message.size(); }

}  // namespace

// ---------------------------------------------------------------- a step

std::size_t bytes_of(const Step& step) {
  std::size_t bytes = 512 + step.op_ends.size() * sizeof(Ns);
  for (const SlotValues& slot : step.slots)
    bytes +=
        sizeof slot + slot.ints.size() * sizeof(std::int64_t) + slot.floats.size() * sizeof(float);
  return bytes + step.stats.size() * sizeof(ValueStats);
}

StepRecord::StepRecord(std::string session, Step step, KnownGraphPtr graph, std::uint32_t n_layers)
    : session_(std::move(session)),
      step_(std::move(step)),
      graph_(std::move(graph)),
      n_layers_(n_layers) {}

std::uint32_t StepRecord::ops() const {
  return graph_ == nullptr ? 0 : static_cast<std::uint32_t>(step_.op_ends.size());
}

Ns StepRecord::begin(std::uint32_t op) const { return step_.op_begin(OpId{op}); }

const std::string& StepRecord::message() {
  if (message_.empty()) {
    message_ = step_event(session_,
                          graph_ == nullptr
                              ? step_summary(nullptr, {}, step_, n_layers_)
                              : step_summary(&graph_->graph, graph_->accesses, step_, n_layers_));
  }
  return message_;
}

std::span<const RoutingRow> StepRecord::routing() {
  if (!routed_ && graph_ != nullptr) routing_ = routing_rows(graph_->graph, step_);
  routed_ = true;
  return routing_;
}

std::size_t StepRecord::bytes() const {
  return bytes_of(step_) + message_.size() + routing_.size() * sizeof(RoutingRow);
}

void StepRecord::materialize(bool with_message, bool with_routing) {
  if (with_message) message();
  if (with_routing) routing();
  routed_ = true;
  step_.slots = {};
  step_.stats = {};
}

// ---------------------------------------------------------------- log of the newest records

void LiveLog::add(TokenRecord token) {
  advance_to(token.index, first_step_);
  if (token.index < end_token()) return;
  bytes_ += cost_of(token);
  tokens_.push_back({next_order_++, std::move(token)});
}

void LiveLog::add(StepRecordPtr step) {
  advance_to(first_token_, step->index());
  if (step->index() < end_step()) return;
  const std::size_t bytes = step->bytes();
  bytes_ += bytes;
  steps_.push_back({next_order_++, bytes, std::move(step)});
}

void LiveLog::advance_to(std::uint32_t tokens, std::uint32_t steps) {
  if (tokens > end_token()) {
    for (const Token& token : tokens_) bytes_ -= cost_of(token.record);
    tokens_.clear();
    first_token_ = tokens;
  }
  if (steps > end_step()) {
    for (const StoredStep& step : steps_) bytes_ -= step.bytes;
    steps_.clear();
    first_step_ = steps;
  }
}

const TokenRecord* LiveLog::token(std::uint32_t index) const {
  return index < first_token_ || index >= end_token() ? nullptr
                                                      : &tokens_[index - first_token_].record;
}

StepRecord* LiveLog::step(std::uint32_t index) const {
  return index < first_step_ || index >= end_step() ? nullptr
                                                    : steps_[index - first_step_].record.get();
}

void LiveLog::drop_oldest() {
  const bool token_first =
      steps_.empty() || (!tokens_.empty() && tokens_.front().order < steps_.front().order);
  if (token_first && tokens_.empty()) return;
  if (token_first) {
    bytes_ -= cost_of(tokens_.front().record);
    tokens_.pop_front();
    ++first_token_;
  } else {
    bytes_ -= steps_.front().bytes;
    steps_.pop_front();
    ++first_step_;
  }
}

void LiveLog::clear() {
  first_token_ = end_token();
  first_step_ = end_step();
  tokens_.clear();
  steps_.clear();
  bytes_ = 0;
}

}  // namespace tt
