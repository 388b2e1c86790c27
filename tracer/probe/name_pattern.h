// Which tensors a request names: a regular expression (ECMAScript), searched for in their
// names. Matching takes time in proportion to pattern and name, whatever both are: it happens
// while a graph is listed, where nothing else can end it. So there are neither back references
// nor look-aheads, and what is repeated so many times counts as if it were written out.
#pragma once

#include <expected>
#include <regex>
#include <string>
#include <utility>

namespace tt {

class NamePattern {
 public:
  // The error goes on where "The pattern " ends. At most kMostPatternBytes (request_bounds.h).
  static std::expected<NamePattern, std::string> compile(const std::string& pattern);
  bool is_in(const std::string& name) const;

 private:
  explicit NamePattern(std::regex regex) : regex_(std::move(regex)) {}
  std::regex regex_;  // of whole names
};

}  // namespace tt
