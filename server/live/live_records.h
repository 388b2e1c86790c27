// What a session tells, in the form that messages are made of: the same whether
// it comes from memory as it happens or from the session's file.
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

// A token's message; or, at the index behind the last token, that of the rest of the answer.
struct TokenRecord {
  std::uint32_t index = 0;
  std::string message;
};

// What a step that waits for somebody takes of the memory, about.
std::size_t bytes_of(const Step& step);

// A written step. Its message and its routing are made when they are first asked
// for: not thread-safe.
class StepRecord {
 public:
  // `graph` is null for a step without a template.
  StepRecord(std::string session, Step step, KnownGraphPtr graph, std::uint32_t n_layers);

  std::uint32_t index() const { return step_.id.v; }
  Timing timing() const { return step_.timing; }
  std::uint32_t first_token() const { return step_.first_token; }
  std::uint32_t ops() const;  // that have a time
  Ns begin(std::uint32_t op) const;
  Ns end(std::uint32_t op) const { return step_.op_ends[op]; }
  const std::string& message();
  std::span<const RoutingRow> routing();

  std::size_t bytes() const;
  // Makes what is asked for now, and lets go of what only that needs.
  void settle(bool with_message, bool with_routing);

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

// What stands in the file in a damaged row's place.
struct DamagedRecord {
  bool is_step = false;  // else a token
  std::uint32_t index = 0;
};

using LiveRecord = std::variant<TokenRecord, StepRecordPtr, DamagedRecord>;

// The newest that a running session told, without holes: tokens and steps, each
// from some index to the last. What is older is in the file.
class LiveLog {
 public:
  // A hole before it makes it the first.
  void add(TokenRecord token);
  void add(StepRecordPtr step);
  // So much is there in all, told or not: what should have come before is a hole.
  void reach(std::uint32_t tokens, std::uint32_t steps);

  std::uint32_t first_token() const { return first_token_; }
  std::uint32_t first_step() const { return first_step_; }
  std::uint32_t end_token() const {
    return first_token_ + static_cast<std::uint32_t>(tokens_.size());
  }
  std::uint32_t end_step() const { return first_step_ + static_cast<std::uint32_t>(steps_.size()); }

  // Null: not here. Of a token and a step, the one that came first has the lower order.
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
  void clear();  // what comes next is the first again

 private:
  struct Token {
    std::uint64_t order;
    TokenRecord record;
  };
  struct Written {
    std::uint64_t order;
    std::size_t bytes;
    StepRecordPtr record;
  };
  std::deque<Token> tokens_;
  std::deque<Written> steps_;
  std::uint32_t first_token_ = 0, first_step_ = 0;
  std::uint64_t orders_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tt
