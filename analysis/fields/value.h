// The answer of an analysis as a tree of values. api/ writes it as JSON, cli/ as tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tt::fields {

struct Value;
struct Member;
using List = std::vector<Value>;
using Record = std::vector<Member>;  // in the order of the fields

struct Value {
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, List, Record>
      of = nullptr;
};
struct Member {
  std::string name;
  Value value;
};

}  // namespace tt::fields
