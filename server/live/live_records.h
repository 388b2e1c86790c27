// Session records from which live messages are made. The form is the same for records from
// memory and from the session file.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/experts/routing.h"
#include "tracer/format/model/step.h"
#include "tracer/probe/known_graph.h"

namespace tt {

// Message of a token. At the index after the last token: the remaining text of the answer.
struct TokenRecord {
  std::uint32_t index = 0;
  std::string message;
};

// Approximate memory use of a step.
std::size_t bytes_of(const Step& step);

// A recorded step. Its message and routing are computed on first use: not thread-safe.
class StepRecord {
 public:
  // `graph` is null for a step without a template.
  StepRecord(std::string session, Step step, KnownGraphPtr graph, std::uint32_t n_layers);

  std::uint32_t index() const { return step_.id.v; }
  Timing timing() const { return step_.timing; }
  std::uint32_t first_token() const { return step_.first_token; }
  std::uint32_t ops() const;  // number of ops with times
  Ns begin(std::uint32_t op) const;
  Ns end(std::uint32_t op) const { return step_.op_ends[op]; }
  const std::string& message();
  std::span<const RoutingRow> routing();

  std::size_t bytes() const;
  // Computes the requested parts now and frees the data that only they need.
  void materialize(bool with_message, bool with_routing);

 private:
  std::string session_;
  Step step_;
  KnownGraphPtr graph_;
  std::uint32_t n_layers_;
  bool routed_ = false;
  std::string message_;
  std::vector<RoutingRow> routing_;
};
using StepRecordPtr = std::shared_ptr<StepRecord>;

// Placeholder for a damaged row of the file.
struct DamagedRecord {
  bool is_step = false;  // false: a token
  std::uint32_t index = 0;
};

using LiveRecord = std::variant<TokenRecord, StepRecordPtr, DamagedRecord>;

// The newest records of a running session, without gaps: tokens and steps, each a contiguous
// index range up to the latest. Older records are in the file.
class LiveLog {
 public:
  // If there is a gap before it, the log restarts with this record.
  void add(TokenRecord token);
  void add(StepRecordPtr step);
  // Sets the total number of tokens and steps. If earlier records did not arrive, the log
  // restarts there.
  void advance_to(std::uint32_t tokens, std::uint32_t steps);

  std::uint32_t first_token() const { return first_token_; }
  std::uint32_t first_step() const { return first_step_; }
  std::uint32_t end_token() const {
    return first_token_ + static_cast<std::uint32_t>(tokens_.size());
  }
  std::uint32_t end_step() const { return first_step_ + static_cast<std::uint32_t>(steps_.size()); }

  // Null if not in the log. Orders are increasing in order of arrival across tokens and steps.
  const TokenRecord* token(std::uint32_t index) const;
  StepRecord* step(std::uint32_t index) const;
  std::uint64_t order_of_token(std::uint32_t index) const {
    return tokens_[index - first_token_].order;
  }
  std::uint64_t order_of_step(std::uint32_t index) const {
    return steps_[index - first_step_].order;
  }

  std::size_t bytes() const { return bytes_; }
  void drop_oldest();
  void clear();  // the next record becomes the first

 private:
  struct Token {
    std::uint64_t order;
    TokenRecord record;
  };
  struct StoredStep {
    std::uint64_t order;
    std::size_t bytes;
    StepRecordPtr record;
  };
  std::deque<Token> tokens_;
  std::deque<StoredStep> steps_;
  std::uint32_t first_token_ = 0, first_step_ = 0;
  std::uint64_t next_order_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tt
