// The server's session routes without a socket: takes a request's bytes, returns its response.
// Serves two sessions, "plausible" and "other". Single-threaded.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tests/server/frontend/raw_client.h"

namespace tt::fuzz {

class InProcessServer {
 public:
  InProcessServer();
  ~InProcessServer();

  // Returns the response to one complete request. A long body is truncated after kMaxBody bytes.
  static constexpr std::size_t kMaxBody = 64 << 10;
  test::RawResponse answer(std::string request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::fuzz
