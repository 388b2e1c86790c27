// A helper of Sandbox with jobs that violate each limit.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tracer/sandbox/confinement.h"
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

// What a child can do beyond computing: "yes", or the system error.
std::string outcome(bool done) { return done ? "yes" : std::strerror(errno); }

std::string try_to(std::string_view what, const std::string& argument) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (what == "read") return outcome(::open(argument.c_str(), O_RDONLY) >= 0);
  if (what == "write") return outcome(::open(argument.c_str(), O_WRONLY) >= 0);
  if (what == "truncate") return outcome(::truncate(argument.c_str(), 0) == 0);
  if (what == "create") return outcome(::open(argument.c_str(), O_WRONLY | O_CREAT, 0600) >= 0);
  if (what == "delete") return outcome(::unlink(argument.c_str()) == 0);
  if (what == "rename") return outcome(::rename(argument.c_str(), (argument + "2").c_str()) == 0);
  if (what == "chmod") return outcome(::chmod(argument.c_str(), 0777) == 0);
  if (what == "mkdir") return outcome(::mkdir(argument.c_str(), 0777) == 0);
  if (what == "list") return outcome(::opendir(argument.c_str()) != nullptr);
  if (what == "tcp") return outcome(::socket(AF_INET, SOCK_STREAM, 0) >= 0);
  if (what == "udp") return outcome(::socket(AF_INET, SOCK_DGRAM, 0) >= 0);
  if (what == "unix") return outcome(::socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  if (what == "connect")  // on a socket that it inherited
    return outcome(::connect(4, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  if (what == "exec") return outcome(::execl("/bin/true", "true", nullptr) == 0);
  if (what == "signal") return outcome(::kill(std::stoi(argument), 0) == 0);
  if (what == "trace")
    return outcome(::ptrace(PTRACE_SEIZE, std::stoi(argument), nullptr, nullptr) == 0);
  if (what == "thread") {
    std::thread([] {}).join();
    return "yes";
  }
  return "unknown";
}

// "WHAT ARGUMENT"
std::string try_input(std::string_view input) {
  const auto space = input.find(' ');
  return try_to(input.substr(0, space), std::string(input.substr(space + 1)));
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
      tt::job_kind("try", try_input),
      {.name = "try with files",  // first the folder that it may read, then what it tries
       .run =
           [](tt::JobChannel& channel) {
             tt::confine_to_files({.read = {channel.receive()}, .read_and_write = {}});
             for (;;) channel.send(try_input(channel.receive()));
           },
       .opens_files = true},
      {.name = "counter",  // replies to each number with the sum so far
       .run =
           [](tt::JobChannel& channel) {
             for (long sum = 0;;) {
               sum += std::stol(channel.receive());
               channel.send(std::to_string(sum));
             }
           }},
      {.name = "spinner",  // replies to a number when it has used so many ms of CPU time
       .run =
           [](tt::JobChannel& channel) {
             for (;;) {
               const std::string ms = channel.receive();
               const auto end = std::clock() + std::stol(ms) * CLOCKS_PER_SEC / 1000;
               while (std::clock() < end) {
               }
               channel.send(ms);
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
