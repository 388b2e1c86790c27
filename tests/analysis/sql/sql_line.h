// Builds a row as text with values separated by "|", as SqlSession::rows() does (sql_check.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <format>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/model/graph_template.h"

namespace tt::test {

using Lines = std::vector<std::string>;

class Line {
 public:
  Line& null() { return add("NULL"); }
  Line& text(const std::string& v) { return add(valid(v)); }
  Line& number(std::int64_t v) { return add(std::to_string(v)); }
  Line& u64(std::uint64_t v) { return number(static_cast<std::int64_t>(v)); }
  Line& real(double v) { return add(std::format("{:.17g}", v)); }
  Line& number_or_null(bool there, std::int64_t v) { return there ? number(v) : null(); }
  Line& layer(LayerId v) { return number_or_null(v != kNoLayer, v.v); }
  std::string take() { return std::move(line_); }

 private:
  // Replaces invalid UTF-8 as JSON output does.
  static std::string valid(const std::string& v) {
    using nlohmann::json;
    if (std::ranges::all_of(v, [](unsigned char c) { return c < 0x80; })) return v;
    return json::parse(json(v).dump(-1, ' ', false, json::error_handler_t::replace));
  }
  Line& add(const std::string& v) {
    line_ += (first_ ? "" : "|") + v;
    first_ = false;
    return *this;
  }
  std::string line_;
  bool first_ = true;
};

}  // namespace tt::test
