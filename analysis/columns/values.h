// Values of columns that can be null.
#pragma once

#include <cstdint>
#include <optional>

#include "tracer/format/model/ids.h"

namespace tt::columns {

constexpr std::optional<std::int32_t> layer_or_null(LayerId layer) {
  return layer == kNoLayer ? std::nullopt : std::optional(layer.v);
}
constexpr std::optional<std::int32_t> unless_negative(std::int32_t number) {
  return number < 0 ? std::nullopt : std::optional(number);
}
constexpr std::optional<std::uint64_t> unless_zero(std::uint64_t number) {
  return number == 0 ? std::nullopt : std::optional(number);
}
constexpr std::optional<std::int64_t> ns_or_null(std::optional<Ns> ns) {
  return ns ? std::optional(ns->v) : std::nullopt;
}
constexpr std::optional<std::uint32_t> file_of(const FileRange& range) {
  return range.empty() ? std::nullopt : std::optional(range.file);
}
constexpr std::optional<std::uint64_t> offset_of(const FileRange& range) {
  return range.empty() ? std::nullopt : std::optional(range.offset);
}
constexpr std::optional<std::uint64_t> length_of(const FileRange& range) {
  return range.empty() ? std::nullopt : std::optional(range.length);
}

}  // namespace tt::columns
