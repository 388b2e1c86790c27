#include "server/observability/access_log.h"

namespace tt {

namespace {

// 503 is not a server error: a model is loading or a queue is full.
LogLevel level_of(const Answered& answered) {
  if (answered.status >= 500 && answered.status != 503) return LogLevel::Warning;
  const bool reads = answered.method == "GET" || answered.method == "HEAD" ||
                     answered.method == "OPTIONS" || answered.method.empty();
  return reads || answered.status >= 400 ? LogLevel::Debug : LogLevel::Info;
}

}  // namespace

void log_answer(const Log& log, const Answered& answered) {
  log.write(level_of(answered), "answered",
            {{"request_id", answered.request_id},
             {"method", answered.method},
             {"path", answered.path},
             {"route", route_label(answered)},
             {"status", answered.status},
             {"ms", answered.time.count()},
             {"bytes", answered.bytes},
             {"peer", answered.peer},
             {"note", answered.note}});
}

// cpp-httplib writes ":id" where openapi.yaml writes "{id}".
std::string route_label(const Answered& answered) {
  if (answered.route.empty()) return "none";
  if (answered.route == "/.*") return "page";
  std::string label;
  bool in_parameter = false;
  for (const char c : answered.route + "/") {
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
