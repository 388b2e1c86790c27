// A client of a server under test.
#pragma once

#include <httplib.h>

#include <string>

namespace tt::test {

// `url`: http://127.0.0.1:PORT. The library resolves names in a thread of its own for as
// many seconds as connecting may take, which may write to a stack that is gone once the
// wait was interrupted; within less than a second it does so here.
inline httplib::Client http_client(const std::string& url) {
  httplib::Client client(url);
  client.set_connection_timeout(0, 999'999);
  client.set_read_timeout(60, 0);
  return client;
}

}  // namespace tt::test
