#include "api/json/query_json.h"

#include <algorithm>
#include <array>
#include <format>
#include <type_traits>
#include <variant>
#include <vector>

#include "api/json/bounded_json.h"
#include "api/text/csv_text.h"
#include "tracer/format/model/name_of.h"
#include "tracer/text/nearest.h"

namespace tt {

namespace {

void append_json(const sql::QueryValue& value, std::string& out) {
  std::visit(
      [&](const auto& v) {
        using Value = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          out += "null";
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
          std::format_to(std::back_inserter(out), "{}", v);
        } else if constexpr (std::is_same_v<Value, double>) {
          out += text_of(Json(v));
        } else if constexpr (std::is_same_v<Value, std::string_view>) {
          out += text_of(Json(std::string(v)));
        } else {
          out += text_of(Json(hex_of(v)));
        }
      },
      value);
}

void append_csv(const sql::QueryValue& value, std::string& out) {
  std::visit(
      [&](const auto& v) {
        using Value = std::remove_cvref_t<decltype(v)>;
        if constexpr (std::is_same_v<Value, std::int64_t> || std::is_same_v<Value, double>) {
          std::format_to(std::back_inserter(out), "{}", v);
        } else if constexpr (std::is_same_v<Value, std::string_view>) {
          append_csv_text(v, out);
        } else if constexpr (!std::is_same_v<Value, std::monostate>) {
          out += hex_of(v);
        }
      },
      value);
}

// A missing field gives the default.
std::expected<std::uint64_t, Problem> count_in(const Json& body, const char* name,
                                               std::uint64_t default_value, std::uint64_t max) {
  const auto found = body.find(name);
  if (found == body.end()) return default_value;
  if (found->is_number_unsigned()) {
    const auto number = found->get<std::uint64_t>();
    if (number >= 1 && number <= max) return number;
  }
  return bad_request(std::format("\"{}\" must be an integer from 1 to {}.", name, max));
}

Json error_json(const sql::QueryError& error) { return Json::parse(text_of(problem_of(error))); }

}  // namespace

std::string hex_of(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15u];
  }
  return text;
}

const char* to_text(QueryFormat format) {
  static constexpr std::array kWords = {"json", "ndjson", "csv", "parquet"};
  return name_of(kWords, format);
}

const char* content_type_of(QueryFormat format) {
  static constexpr std::array kTypes = {"application/json", "application/x-ndjson",
                                        "text/csv; charset=utf-8",
                                        "application/vnd.apache.parquet"};
  return name_of(kTypes, format);
}

std::expected<QueryBody, Problem> parse_query_body(std::string_view text) {
  const auto body =
      parse_json_body(text, R"(The body must be a JSON object: {"sql": "SELECT ..."}.)");
  if (!body) return std::unexpected(body.error());
  const std::vector<std::string> fields(kQueryFields.begin(), kQueryFields.end());
  for (const auto& [name, value] : body->items())
    if (!std::ranges::contains(fields, name))
      return bad_request(unknown_name("field", shortened(name), fields));
  return query_in(*body);
}

std::expected<QueryBody, Problem> query_in(const Json& body) {
  QueryBody query;
  const auto sql = body.find("sql");
  if (sql == body.end() || !sql->is_string()) return bad_request("\"sql\" must be a string.");
  query.sql = sql->get<std::string>();
  const auto limit = count_in(body, "limit", kDefaultQueryRows, kMaxQueryRows);
  if (!limit) return std::unexpected(limit.error());
  query.limit = *limit;
  const auto timeout =
      count_in(body, "timeout_ms", static_cast<std::uint64_t>(kDefaultQueryTimeout.count()),
               static_cast<std::uint64_t>(kMaxQueryTimeout.count()));
  if (!timeout) return std::unexpected(timeout.error());
  query.timeout = std::chrono::milliseconds{*timeout};
  if (const auto format = body.find("format"); format != body.end()) {
    bool known = false;
    for (const QueryFormat one : kQueryFormats) {
      if (*format != to_text(one)) continue;
      query.format = one;
      known = true;
    }
    if (!known) return bad_request("\"format\" must be json, ndjson, csv or parquet.");
  }
  return query;
}

Problem problem_of(const sql::QueryError& error) {
  using Kind = sql::QueryError::Kind;
  Problem problem{.detail = error.message, .position = error.offset};
  switch (error.kind) {
    case Kind::Invalid:
      problem.error_code = ErrorCode::BadQuery;
      break;
    case Kind::NotAllowed:
      problem.error_code = ErrorCode::QueryNotAllowed;
      break;
    case Kind::Timeout:
    case Kind::TooLarge:
      problem.error_code = ErrorCode::QueryStopped;
      break;
    case Kind::Cancelled:
      problem.error_code = ErrorCode::Stopping;
      break;
    case Kind::Session:
      return error.trace ? problem_of(*error.trace) : problem;
  }
  return problem;
}

void QueryText::begin(std::string& out) const {
  if (format_ == QueryFormat::JsonObject) {
    out += "{\"columns\":[";
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) out += ',';
      out += text_of(Json(columns_[i]));
    }
    out += "],\"rows\":[";
  } else if (format_ == QueryFormat::Csv) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i != 0) out += ',';
      append_csv_text(columns_[i], out);
    }
    out += '\n';
  }
}

std::expected<void, sql::QueryError> QueryText::row(std::span<const sql::QueryValue> values,
                                                    std::string& out) {
  const bool csv = format_ == QueryFormat::Csv, json = format_ == QueryFormat::JsonObject;
  if (json) out += rows_ == 0 ? "[" : ",[";
  if (format_ == QueryFormat::Ndjson) out += '{';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ',';
    if (csv) {
      append_csv(values[i], out);
    } else {
      if (!json) out += text_of(Json(columns_[i])) + ':';
      append_json(values[i], out);
    }
  }
  out += json ? "]" : csv ? "\n" : "}\n";
  ++rows_;
  return {};
}

bool QueryText::end(bool more, const sql::QueryError* error, std::string& out) {
  if (format_ == QueryFormat::JsonObject) {
    out += more ? "],\"more\":true,\"error\":" : "],\"more\":false,\"error\":";
    out += error != nullptr ? text_of(error_json(*error)) : "null";
    out += "}\n";
  } else if (format_ == QueryFormat::Ndjson && error != nullptr) {
    out += text_of(Json{{"error", error_json(*error)}}) + '\n';
  }
  return error == nullptr || format_ != QueryFormat::Csv;
}

}  // namespace tt
