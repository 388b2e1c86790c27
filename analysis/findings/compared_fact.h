// A fact of two sessions. Values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tt {

struct ComparedFact {
  std::string name;                        // as in SessionInfo::facts: "context.threads"
  std::optional<std::string> left, right;  // none: not recorded
  friend bool operator==(const ComparedFact&, const ComparedFact&) = default;
};

// What differs of the facts of two sessions, by name; sorted by name.
using FactsByName = std::map<std::string, std::string>;
std::vector<ComparedFact> differing_facts(const FactsByName& left, const FactsByName& right);

}  // namespace tt
