// Mutates requests, JSON and bytes; deterministic for a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tt::test {

std::string repeat(std::size_t count, std::string_view text);

// The parts of a request that mutations change.
struct RequestParts {
  std::string method, target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string text() const;
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }
  bool once_in(std::size_t count) { return below(count) == 0; }
  template <class T>
  const T& one_of(std::span<const T> values) {
    return values[below(values.size())];
  }

  // One to three of: bits flipped, bytes removed, duplicated, replaced or inserted, the end
  // truncated, a part of `other` inserted.
  std::string bytes(std::string text, std::string_view other);
  // The text with one part repeated, or wrapped in brackets or SQL again and again, or (SQL) named
  // twice by each of a chain of WITH clauses. At most `max_bytes`.
  std::string expanded(const std::string& text, std::size_t max_bytes);
  // The document with a value changed, removed, nested or duplicated.
  nlohmann::json document(nlohmann::json from);
  // The request with another method, path, query, header or body, and sometimes
  // with damaged bytes.
  std::string request(RequestParts parts, std::string_view other);

 private:
  std::string edge_case_text();
  nlohmann::json edge_case_value();
  void change_target(std::string& target);
  void change_headers(RequestParts& parts);
  void change_body(RequestParts& parts, std::string_view other);

  std::mt19937_64 random_;
};

}  // namespace tt::test
