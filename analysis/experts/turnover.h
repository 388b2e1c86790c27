// How many experts of a token its predecessor had, too. The same figures as the sums of
// expert_use() (experts.h), without a walk of their own. Any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <vector>

#include "analysis/experts/router_choices.h"
#include "analysis/index/step_decoder.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// Sums of RouterUse::followed and RouterUse::turned over all routers.
struct Turnover {
  std::uint64_t followed = 0, turned = 0;
  friend bool operator==(const Turnover&, const Turnover&) = default;
};

// Counts the generated tokens of the steps that a walk visits (analysis/index/walk_outlines.h), in
// order.
class TurnoverTally {
 public:
  explicit TurnoverTally(const SessionReader& reader) : reader_(reader), choices_(reader) {}

  std::expected<void, TraceError> add(const SessionReader::StepRow& row, StepDecoder& decoder);
  const Turnover& result() const { return sum_; }

 private:
  // A router of a template whose choices for one token are a set of the decoder.
  struct OutlinedRouter {
    RouterId id;
    const OutlineRule* rule = nullptr;
    std::uint64_t per_token = 0;
  };
  struct OutlinedRouters {
    std::shared_ptr<const TemplateOutline> outline;
    bool all = true;  // no other routers
    std::vector<OutlinedRouter> routers;
  };
  struct Last {
    std::uint32_t token = kNone;
    std::vector<std::uint32_t> experts;  // ascending
  };

  std::expected<const OutlinedRouters*, TraceError> routers_of(TemplateId graph,
                                                               const StepDecoder& decoder);
  // Uses `experts_`, the experts of the token.
  void count(RouterId router, std::uint32_t token);

  const SessionReader& reader_;
  ChoiceReader choices_;
  std::map<const TemplateOutline*, OutlinedRouters> templates_;
  std::map<RouterId, Last> last_;
  std::vector<std::uint32_t> experts_;
  Turnover sum_;
};

}  // namespace tt
