// A regular expression (ECMAScript) that is searched for in tensor names. Matching time is
// proportional to the sizes of pattern and name, because matching runs in a callback of
// llama.cpp and cannot be cancelled there. Therefore back references and lookaheads are not
// allowed, and the size limit applies with repetitions {n} expanded.
#pragma once

#include <expected>
#include <regex>
#include <string>
#include <utility>

namespace tt {

class NamePattern {
 public:
  // The error text continues "The pattern ". Maximum size: kMaxPatternBytes (request_bounds.h).
  static std::expected<NamePattern, std::string> compile(const std::string& pattern);
  bool matches_name(const std::string& name) const;

 private:
  explicit NamePattern(std::regex regex) : regex_(std::move(regex)) {}
  std::regex regex_;  // matches whole names
};

}  // namespace tt
