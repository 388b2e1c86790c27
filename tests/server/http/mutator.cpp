#include "tests/server/http/mutator.h"

#include <algorithm>
#include <array>
#include <format>

namespace tt::test {

namespace {

using nlohmann::json;

// Values for parameters, path segments and headers.
constexpr std::array<std::string_view, 26> kTexts = {
    "",       "0",          "-1",        "4294967295", "4294967296", "18446744073709551616",
    "1e3",    "0x10",       "%00",       "%ff%fe",     "%",          "%2",
    "%2e%2e", "..%2f..%2f", "\xc3\x28",  "true",       "null",       "none",
    "*",      "a b",        "%0d%0aX:y", "[]",         "'\"<>",      "\xf0\x9f\x90\xb8",
    "NaN",    "-time"};

constexpr std::array<std::string_view, 12> kMethods = {"GET",   "HEAD",    "POST",  "PUT",
                                                       "PATCH", "DELETE",  "TRACE", "OPTIONS",
                                                       "get",   "CONNECT", "PRI",   "G@T"};

using Header = std::pair<std::string_view, std::string_view>;
constexpr std::array<Header, 40> kHeaders = {{
    {"Host", "127.0.0.1"},
    {"Host", "evil.example"},
    {"Host", ""},
    {"Origin", "http://evil.example"},
    {"Origin", "null"},
    {"Content-Length", "0"},
    {"Content-Length", "-1"},
    {"Content-Length", "3"},
    {"Content-Length", "+5"},
    {"Content-Length", "99999999"},
    {"Content-Length", "18446744073709551616"},
    {"Content-Length", "1, 1"},
    {"Transfer-Encoding", "chunked"},
    {"Transfer-Encoding", "gzip, chunked"},
    {"Transfer-Encoding", "identity"},
    {"Content-Type", "text/plain"},
    {"Content-Type", "application/json; charset=utf-16"},
    {"Content-Type", "multipart/form-data; boundary=x"},
    {"Content-Type", "application/x-www-form-urlencoded"},
    {"Content-Encoding", "gzip"},
    {"Content-Encoding", "br"},
    {"Accept-Encoding", "gzip;q=0, zstd, *"},
    {"Accept-Encoding", "\xff"},
    {"Range", "bytes=0-0"},
    {"Range", "bytes=5-1"},
    {"Range", "bytes=-1,0-,99999999999999999999-"},
    {"Range", "lines=1"},
    {"If-None-Match", "*"},
    {"If-None-Match", "\"x\", W/\"y\", \""},
    {"If-Range", "\"x\""},
    {"Expect", "100-continue"},
    {"Expect", "tea"},
    {"Connection", "close"},
    {"Connection", "keep-alive, Upgrade"},
    {"Upgrade", "websocket"},
    {"Upgrade", "h2c"},
    {"Authorization", "Bearer \xff\xfe"},
    {"Cookie", "tt_session=;;=; tt_session=x"},
    {"X-Request-Id", "a b\tc"},
    {"X-Forwarded-For", "::1, 10.0.0.1"},
}};

// What a part of a text can be wrapped in.
using Wrapping = std::pair<std::string_view, std::string_view>;
constexpr std::array<Wrapping, 14> kWrappings = {{
    {"(", ")"},
    {"[", "]"},
    {"{\"a\":", "}"},
    {"[[],", "]"},
    {"SELECT * FROM (", ")"},
    {"SELECT (", ")"},
    {"EXISTS (SELECT ", ")"},
    {"WITH x AS (SELECT 1) SELECT * FROM (", ")"},
    {"abs(", ")"},
    {"json(", ")"},
    {"hex(", ")"},
    {"CASE WHEN 1 THEN ", " END"},
    {"NOT ", ""},
    {"", " UNION ALL SELECT 1"},
}};

// How a WITH clause, {0}, can be named twice.
constexpr std::array<std::string_view, 5> kDoublings = {
    "SELECT * FROM {0} UNION ALL SELECT * FROM {0}", "SELECT * FROM {0} UNION SELECT * FROM {0}",
    "SELECT l.* FROM {0} AS l JOIN {0} AS r", "SELECT * FROM {0} EXCEPT SELECT * FROM {0}",
    "SELECT (SELECT count(*) FROM {0}) + (SELECT count(*) FROM {0}) AS a"};

// A random node of the document, possibly its root.
json& random_node(json& document, Mutator& mutator) {
  json* at = &document;
  while ((at->is_object() || at->is_array()) && !at->empty() && !mutator.once_in(4)) {
    auto next = at->begin();
    std::advance(next, static_cast<std::ptrdiff_t>(mutator.below(at->size())));
    at = &*next;
  }
  return *at;
}

std::string chunked(std::string_view body, std::string_view end) {
  constexpr std::size_t kChunk = 11;
  std::string out;
  for (; !body.empty(); body.remove_prefix(std::min(kChunk, body.size()))) {
    const std::string_view piece = body.substr(0, kChunk);
    out += std::string(1, "0123456789ab"[piece.size()]) + "\r\n" + std::string(piece) + "\r\n";
  }
  return out + std::string(end);
}

}  // namespace

std::string repeat(std::size_t count, std::string_view text) {
  std::string all;
  all.reserve(count * text.size());
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string Mutator::expanded(const std::string& text, std::size_t max_bytes) {
  const std::size_t begin = below(text.size()), length = below(1 + below(64));
  const std::string part = text.substr(begin, length);
  const std::string before = text.substr(0, begin), after = text.substr(begin + part.size());
  std::string open, close, clauses;
  switch (below(3)) {
    case 0: {
      const std::size_t count = std::size_t{1} << below(18);
      open = repeat(std::min(count, max_bytes / std::max<std::size_t>(1, part.size())), part);
      break;
    }
    case 1: {
      const auto& [left, right] = one_of(std::span<const Wrapping>(kWrappings));
      const std::size_t count = std::size_t{1} << below(15);
      for (std::size_t i = 0; i < count && open.size() + close.size() < max_bytes; ++i) {
        open += left;
        close += right;
      }
      break;
    }
    default: {
      const std::string_view doubling = one_of(std::span<const std::string_view>(kDoublings));
      clauses = "WITH t0 AS (" + text + ")";
      const std::size_t levels = 1 + below(40);
      for (std::size_t i = 1; i <= levels; ++i) {
        const std::string name = "t" + std::to_string(i - 1);
        clauses += ", t" + std::to_string(i) + " AS (" +
                   std::vformat(doubling, std::make_format_args(name)) + ")";
      }
      return (clauses + " SELECT count(*) FROM t" + std::to_string(levels)).substr(0, max_bytes);
    }
  }
  return (before + open + part + close + after).substr(0, max_bytes);
}

std::string RequestParts::text() const {
  std::string out = method + " " + target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers) out += name + ": " + value + "\r\n";
  return out + "\r\n" + body;
}

std::string Mutator::edge_case_text() {
  if (once_in(20)) return std::string(1 + below(9000), 'a');
  return std::string(one_of(std::span<const std::string_view>(kTexts)));
}

json Mutator::edge_case_value() {
  switch (below(14)) {
    case 0:
      return nullptr;
    case 1:
      return once_in(2);
    case 2:
      return -1;
    case 3:
      return std::uint64_t{18446744073709551615u};
    case 4:
      return 1e308;
    case 5:
      return -0.0;
    case 6:
      return json::array();
    case 7:
      return json::object();
    case 8: {
      json nested = 1;
      for (std::size_t depth = below(300); depth > 0; --depth) nested = json::array({nested});
      return nested;
    }
    case 9:
      return std::string(below(20'000), 'x');
    case 10:
      return std::string("\0\x01\x7f", 3);
    case 11:
      return 2147483648;
    case 12:
      return json::array({1, "a", nullptr});
    default:
      return std::string(one_of(std::span<const std::string_view>(kTexts).first(8)));
  }
}

std::string Mutator::bytes(std::string text, std::string_view other) {
  for (std::size_t left = 1 + below(3); left > 0; --left) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = 1 + below(once_in(4) ? 400 : 8);
    switch (below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, length, static_cast<char>(below(256)));
        break;
      case 5:
        text.resize(at);
        break;
      default:
        text.insert(at, other.substr(below(other.size() + 1), length));
        break;
    }
  }
  return text;
}

json Mutator::document(json from) {
  json& node = random_node(from, *this);
  switch (below(5)) {
    case 0:
      if (node.is_object() && !node.empty()) node.erase(node.begin());
      break;
    case 1:
      if (node.is_object()) node[edge_case_text().substr(0, 300)] = edge_case_value();
      break;
    case 2:
      node = json::array({node, node});
      break;
    default:
      node = edge_case_value();
      break;
  }
  return from;
}

void Mutator::change_target(std::string& target) {
  const std::size_t question = target.find('?');
  if (question != std::string::npos && !once_in(3)) {
    // A value of the query, or an additional parameter.
    const std::size_t equals = target.find('=', question);
    if (once_in(4) || equals == std::string::npos) {
      target += "&" + edge_case_text() + "=" + edge_case_text();
    } else {
      target.resize(equals + 1);
      target += edge_case_text();
    }
    return;
  }
  // A segment of the path.
  const std::size_t end = std::min(question, target.size());
  const std::size_t slash = target.rfind('/', below(end));
  if (slash == std::string::npos) {
    target = "/" + edge_case_text();
    return;
  }
  const std::size_t next = std::min(target.find('/', slash + 1), end);
  target.replace(slash + 1, next - slash - 1, edge_case_text());
}

void Mutator::change_headers(RequestParts& parts) {
  const auto& [name, value] = one_of(std::span<const Header>(kHeaders));
  if (once_in(30)) {
    for (int i = 0; i < 120; ++i) parts.headers.emplace_back("X-" + std::to_string(i), "y");
  } else if (once_in(30)) {
    parts.headers.emplace_back("X-Long", std::string(below(20'000), 'z'));
  } else if (once_in(8) && !parts.headers.empty()) {
    parts.headers.erase(parts.headers.begin() +
                        static_cast<std::ptrdiff_t>(below(parts.headers.size())));
  } else {
    const auto same =
        std::ranges::find(parts.headers, name, &std::pair<std::string, std::string>::first);
    if (same != parts.headers.end() && !once_in(3)) {
      same->second = value;
    } else {
      parts.headers.emplace_back(name, value);
    }
  }
}

void Mutator::change_body(RequestParts& parts, std::string_view other) {
  const json whole = json::parse(parts.body, nullptr, false);
  const auto update_content_length = [&] {
    for (auto& [name, value] : parts.headers) {
      if (name == "Content-Length") value = std::to_string(parts.body.size());
    }
  };
  if (!whole.is_discarded() && !once_in(4)) {
    parts.body = document(whole).dump(-1, ' ', false, json::error_handler_t::replace);
    update_content_length();
    return;
  }
  constexpr std::size_t kMaxExpanded = 200'000;
  switch (below(6)) {
    case 0:
      parts.body = std::string(below(100'000), '[');
      break;
    case 3:
      parts.body = expanded(parts.body, kMaxExpanded);
      break;
    case 1: {
      const auto lengths = std::ranges::remove_if(
          parts.headers, [](const auto& header) { return header.first == "Content-Length"; });
      parts.headers.erase(lengths.begin(), lengths.end());
      parts.headers.emplace_back("Transfer-Encoding", "chunked");
      constexpr std::array<std::string_view, 4> kEnds = {"0\r\n\r\n", "0\r\nX: y\r\n\r\n",
                                                         "ffffffffffffffffff\r\n", "-1\r\n"};
      parts.body = chunked(parts.body, one_of(std::span<const std::string_view>(kEnds)));
      return;
    }
    case 2:
      parts.body += parts.body;
      break;
    default:
      parts.body = bytes(parts.body, other);
      break;
  }
  if (!once_in(4)) update_content_length();
}

std::string Mutator::request(RequestParts parts, std::string_view other) {
  for (std::size_t left = 1 + below(2); left > 0; --left) {
    switch (below(8)) {
      case 0:
        parts.method = one_of(std::span<const std::string_view>(kMethods));
        break;
      case 1:
      case 2:
        change_target(parts.target);
        break;
      case 3:
      case 4:
        change_headers(parts);
        break;
      default:
        if (parts.body.empty()) {
          change_target(parts.target);
        } else {
          change_body(parts, other);
        }
        break;
    }
  }
  const std::string text = parts.text();
  return once_in(4) ? bytes(text, other) : text;
}

}  // namespace tt::test
