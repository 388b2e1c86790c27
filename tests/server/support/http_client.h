// An HTTP client for a server under test.
#pragma once

#include <httplib.h>

#include <string>

namespace tt::test {

// `url`: http://127.0.0.1:PORT. With a connection timeout of one second or more, cpp-httplib
// resolves names in a separate thread, which may write to a stack frame that no longer exists
// after an interrupted wait. Below one second it resolves names in the calling thread.
inline httplib::Client http_client(const std::string& url) {
  httplib::Client client(url);
  client.set_connection_timeout(0, 999'999);
  client.set_read_timeout(300, 0);  // long: only delays failures
  return client;
}

}  // namespace tt::test
