#include "server/observability/access_log.h"

namespace tt {

namespace {

// 503 is not a server error: a model is loading or a queue is full.
LogLevel level_of(const RequestRecord& record) {
  if (record.status >= 500 && record.status != 503) return LogLevel::Warning;
  const bool reads = record.method == "GET" || record.method == "HEAD" ||
                     record.method == "OPTIONS" || record.method.empty();
  return reads || record.status >= 400 ? LogLevel::Debug : LogLevel::Info;
}

}  // namespace

void log_access(const Log& log, const RequestRecord& record) {
  log.write(level_of(record), "answered",
            {{"request_id", record.request_id},
             {"method", record.method},
             {"path", record.path},
             {"route", route_label(record)},
             {"status", record.status},
             {"ms", record.time.count()},
             {"bytes", record.bytes},
             {"peer", record.peer},
             {"note", record.note}});
}

// cpp-httplib writes ":id" where openapi.yaml writes "{id}".
std::string route_label(const RequestRecord& record) {
  if (record.route.empty()) return "none";
  if (record.route == "/.*") return "page";
  std::string label;
  bool in_parameter = false;
  for (const char c : record.route + "/") {
    if (c == '/' && in_parameter) {
      label += '}';
      in_parameter = false;
    }
    if (c == ':') in_parameter = true;
    label += c == ':' ? '{' : c;
  }
  label.pop_back();  // remove the '/' appended above
  return label;
}

}  // namespace tt
