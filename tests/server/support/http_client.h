// An HTTP client for a server under test.
#pragma once

#include <httplib.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace tt::test {

// `url`: http://127.0.0.1:PORT. With a connection timeout of one second or more, cpp-httplib
// resolves names in a separate thread, which may write to a stack frame that no longer exists
// after an interrupted wait. Below one second it resolves names in the calling thread.
// Writing to a server that has gone is an error of the request, not the end of the test.
inline httplib::Client http_client(const std::string& url) {
  static const auto before = std::signal(SIGPIPE, SIG_IGN);
  static_cast<void>(before);
  httplib::Client client(url);
  client.set_connection_timeout(0, 999'999);
  client.set_read_timeout(900, 0);  // long: only delays failures
  return client;
}

// Repeats the request while the server says that it still computes the query, or others.
inline httplib::Result get_when_computed(httplib::Client client, const std::string& path) {
  for (;;) {
    auto answer = client.Get(path);
    if (!answer || answer->status != 503 || !answer->body.contains("\"queries_busy\""))
      return answer;
    std::this_thread::sleep_for(
        std::chrono::seconds(answer->get_header_value_u64("Retry-After", 1)));
  }
}

}  // namespace tt::test
