// A helper of Sandbox with jobs that violate each limit.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tracer/sandbox/worker.h"

namespace {

// Not inlined and not a tail call: each level has a frame.
[[gnu::noinline]] std::size_t depth(std::size_t levels) {
  volatile char frame[1000] = {};
  return levels == 0 ? 0 : depth(levels - 1) + 1 + static_cast<std::size_t>(frame[0]);
}

std::string allocate(std::string_view bytes) {
  const std::string memory(std::stoull(std::string(bytes)), 'x');
  return std::to_string(memory.size());
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  return tt::serve_jobs({
      tt::job_kind("echo", [](std::string_view input) { return std::string(input); }),
      tt::job_kind("pid", [](std::string_view) { return std::to_string(::getpid()); }),
      tt::job_kind("allocate", allocate),
      tt::job_kind("recurse",
                   [](std::string_view levels) {
                     return std::to_string(depth(std::stoull(std::string(levels))));
                   }),
      tt::job_kind("abort", [](std::string_view) -> std::string { std::abort(); }),
      tt::job_kind("throw",
                   [](std::string_view) -> std::string { throw std::runtime_error("unexpected"); }),
      tt::job_kind("loop",
                   [](std::string_view) -> std::string {
                     for (volatile std::size_t spin = 0;;) spin = spin + 1;
                   }),
      {.name = "counter",  // replies to each number with the sum so far
       .run =
           [](tt::JobChannel& channel) {
             for (long sum = 0;;) {
               sum += std::stol(channel.receive());
               channel.send(std::to_string(sum));
             }
           }},
      {.name = "sleeper",  // sends its pid, then sleeps
       .run =
           [](tt::JobChannel& channel) {
             channel.send(std::to_string(::getpid()));
             std::this_thread::sleep_for(1h);
           }},
  });
}
