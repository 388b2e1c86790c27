// Record of a completed request, for logs and metrics.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tt {

struct RequestRecord {
  std::chrono::steady_clock::time_point arrival{};  // of the complete head
  std::string request_id;                           // also in the X-Request-Id response header
  std::string peer;                                 // numeric address
  std::string method;                // empty, as is the path, when the request was not HTTP
  std::string path;                  // as sent, without the query, which may contain a secret
  std::string route;                 // matched pattern; empty: none, or answered by the front end
  int status = 0;                    // 0: no response could be sent
  std::chrono::milliseconds time{};  // from the request head to the end of the response
  std::uint64_t bytes = 0;           // of the response, including the head
  std::string note;                  // reason of a rejection, or set by the handler (kLogNote)
};

}  // namespace tt
