// When a request arrived: its head was complete, and it may have waited for a worker thread since.
#pragma once

#include <httplib.h>

#include <charconv>
#include <chrono>
#include <string>

namespace tt {

// Request header set for handlers; the value sent by a client is removed.
inline constexpr const char* kArrivalField = "TT-Arrival";

inline void set_arrival(httplib::Request& request, std::chrono::steady_clock::time_point arrival) {
  request.headers.erase(kArrivalField);
  request.set_header(kArrivalField, std::to_string(arrival.time_since_epoch().count()));
}

// Now, for a request that did not come through the front end.
inline std::chrono::steady_clock::time_point arrival_of(const httplib::Request& request) {
  using Clock = std::chrono::steady_clock;
  const std::string text = request.get_header_value(kArrivalField);
  Clock::rep count = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc())
    return Clock::now();
  return Clock::time_point(Clock::duration(count));
}

}  // namespace tt
