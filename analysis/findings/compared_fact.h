// A fact of two sessions. A value.
#pragma once

#include <optional>
#include <string>

namespace tt {

struct ComparedFact {
  std::string name;                        // as in SessionInfo::facts: "context.threads"
  std::optional<std::string> left, right;  // none: not recorded
  friend bool operator==(const ComparedFact&, const ComparedFact&) = default;
};

}  // namespace tt
