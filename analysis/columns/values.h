// Values of columns that can be null.
#pragma once

#include <cstdint>
#include <format>
#include <optional>
#include <string>
#include <string_view>

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

// The name of one expert of a tensor that holds the weights of all experts: blk.5.expert_3.ffn_up
// for expert 3 of blk.5.ffn_up_exps.
inline std::string expert_name(std::string_view tensor, std::int32_t expert) {
  constexpr std::string_view kLayer = "blk.", kExperts = "_exps";
  std::size_t begin = 0;
  if (tensor.starts_with(kLayer)) begin = tensor.find('.', kLayer.size()) + 1;  // 0: no second dot
  std::string rest(tensor.substr(begin));
  if (const auto at = rest.find(kExperts); at != std::string::npos) rest.erase(at, kExperts.size());
  return std::format("{}expert_{}.{}", tensor.substr(0, begin), expert, rest);
}

}  // namespace tt::columns
