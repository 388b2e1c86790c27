// The type of an answer: what api/openapi.yaml, the types of the page and the documents say of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tt::fields {

struct Field;

struct Schema {
  // Count: a whole number from 0. Words: a text with a fixed set of values. Map: values by name.
  enum class Kind : std::uint8_t { Flag, Integer, Count, Real, Text, Words, List, Record, Map };
  Kind kind = Kind::Text;
  bool nullable = false;
  std::string name{};                // in api/openapi.yaml; empty: part of another schema
  std::string unit{};                // "ns", "bytes"
  std::vector<std::string> words{};  // Words: the values. Map: the names; empty: any
  std::vector<Field> fields{};       // Record
  std::vector<Schema> item{};        // List, Map: one schema
};

struct Field {
  std::string name, meaning;
  Schema schema;
  bool optional = false;  // left out of the record when it has no value
};

}  // namespace tt::fields
