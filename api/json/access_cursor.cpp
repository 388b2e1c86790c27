#include "api/json/access_cursor.h"

#include <charconv>
#include <format>

namespace tt {

namespace {

// FNV-1a of everything that determines the order and selection of rows.
std::uint64_t number_of(const std::string& session, const AccessQuery& query) {
  const auto number = [](const auto& value) {
    return value ? std::to_string(static_cast<std::int64_t>(*value)) : std::string("-");
  };
  const AccessFilter& filter = query.filter;
  const std::string text = std::format(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", session, query.first_step.v,
      query.last_step ? std::to_string(query.last_step->v) : "-", number(query.phase),
      number(filter.tensor.kind), number(filter.tensor.source), to_text(filter.tensor.layers),
      number(filter.tensor.component), filter.op ? std::to_string(filter.op->v) : "-",
      number(filter.write), number(filter.expert), static_cast<int>(query.order.by),
      query.order.descending, filter.op_name.size(), filter.op_name, filter.tensor.name);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string encode_cursor(const AccessId& place, const std::string& session,
                          const AccessQuery& query) {
  return std::format("{:x}.{:x}.{:x}.{:x}", place.step.v, place.access, place.part,
                     number_of(session, query));
}

std::expected<AccessId, Problem> parse_cursor(std::string_view text, const std::string& session,
                                              const AccessQuery& query) {
  AccessId place;
  std::uint64_t number = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto take = [&](auto& value, bool last = false) {
    const auto parsed = std::from_chars(at, end, value, 16);
    const bool good = parsed.ec == std::errc{} &&
                      (last ? parsed.ptr == end : parsed.ptr != end && *parsed.ptr == '.');
    at = good && !last ? parsed.ptr + 1 : parsed.ptr;
    return good;
  };
  if (!take(place.step.v) || !take(place.access) || !take(place.part) || !take(number, true)) {
    return std::unexpected(Problem{
        ErrorCode::BadRequest,
        "Invalid cursor. Pass \"next\" of the previous page unchanged, or start without one."});
  }
  if (number != number_of(session, query)) {
    return std::unexpected(
        Problem{ErrorCode::BadRequest,
                "The cursor belongs to another session, filter or order. Keep these unchanged "
                "between pages, or start without a cursor."});
  }
  return place;
}

}  // namespace tt
