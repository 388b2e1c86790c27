// What the door tells about each request that it has answered, for logs and
// metrics.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tt {

struct Answered {
  std::string request_id;            // in the answer's X-Request-Id, too
  std::string peer;                  // numeric address
  std::string method;                // empty, as the path, when the request was no HTTP
  std::string path;                  // as sent, without the query, which may hold a secret
  std::string route;                 // pattern that matched; empty: the door answered, or none did
  int status = 0;                    // 0: it could not be answered
  std::chrono::milliseconds time{};  // from its head to the end of the answer
  std::uint64_t bytes = 0;           // of the answer, head included
  std::string note;                  // why, of a refusal; else what the handler left (kNoteForLog)
};

}  // namespace tt
