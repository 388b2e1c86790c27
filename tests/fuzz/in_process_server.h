// The routes about sessions as the server has them, without a socket: a request's
// bytes go in, its answer comes out. Two sessions are there, "plausible" and
// "other". One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tests/server/door/raw_client.h"

namespace tt::fuzz {

class InProcessServer {
 public:
  InProcessServer();
  ~InProcessServer();

  // The answer to one whole request. Of a long one only the status and the head are
  // kept: `body` ends after kMostBody bytes.
  static constexpr std::size_t kMostBody = 64 << 10;
  test::RawResponse answer(std::string request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tt::fuzz
