// The output of `tt memory`: what a token must read, and the ways of running the model, as text and
// JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/finding.h"
#include "api/json/json.h"
#include "cli/commands/memory_trial.h"
#include "tracer/memory/limits/memory_limit.h"
#include "tracer/memory/pages/disk_speed.h"

namespace tt::cli {

struct Figures {
  double bytes = 0;  // per token
  double rate = 0;   // tokens/s; 0: unknown
};

struct WayResult {
  MemoryWay way;
  Figures predicted{};
  double low = 0, high = 0;  // tokens/s predicted for the range of the disk's speed
  std::optional<Figures> measured{};
  double faults = 0;      // measured, per token
  std::string problem{};  // why it was not measured
};

// One pass over a prompt.
struct PromptOutlook {
  std::uint32_t tokens = 0;
  double compute_seconds = 0, plain_seconds = 0, least_seconds = 0;
  // How many times as fast as plain it can be.
  double gain() const { return least_seconds > 0 ? plain_seconds / least_seconds : 1; }
};

struct Outlook {
  std::string model;
  TokenDemand demand;
  MemoryLimit limit;
  // Where the budget comes from: --budget, the plan of the session, the limit when it was recorded,
  // or the limit now.
  enum class BudgetOf : std::uint8_t { Option, Plan, Recording, Limit } budget_of{};
  std::optional<std::uint64_t> given;  // by --budget
  std::uint64_t budget = 0;            // what the plans have
  std::uint64_t beside = 0;            // KV cache and buffers of the session
  std::optional<Finding> enough;       // how much RAM is enough for the session
  std::string machine;  // what disturbed the recording, but for the disk; empty: nothing
  std::optional<ReadSpeed> disk;
  ReadSpeeds speeds;
  Figures least;      // least_bytes_per_token()
  bool fits = false;  // all weights into the budget
  std::optional<PromptOutlook> prompt;
  double expert_hits = 0, uniform_hits = 0;  // of the cache of pin+prefetch; shares
  std::vector<WayResult> ways;
  std::string tried;  // under which limit the ways were measured
};

void print_outlook(const Outlook& outlook);
Json json_of(const Outlook& outlook);

}  // namespace tt::cli
