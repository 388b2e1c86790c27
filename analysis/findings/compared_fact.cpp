#include "analysis/findings/compared_fact.h"

#include <utility>

namespace tt {

std::vector<ComparedFact> differing_facts(const FactsByName& left, const FactsByName& right) {
  std::map<std::string, ComparedFact> both;
  for (const auto& [name, value] : left) both[name].left = value;
  for (const auto& [name, value] : right) both[name].right = value;
  std::vector<ComparedFact> differing;
  for (auto& [name, fact] : both) {
    if (fact.left == fact.right) continue;
    fact.name = name;
    differing.push_back(std::move(fact));
  }
  return differing;
}

}  // namespace tt
