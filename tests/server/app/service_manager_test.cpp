// sd_notify messages, sent to the socket in NOTIFY_SOCKET.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <format>

#include "tests/server/support/http_client.h"
#include "tests/server/support/program.h"

namespace tt {
namespace {

using namespace test;

// The socket of a service manager; a name that begins with '@' is abstract.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& name)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  std::string receive() {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 30'000) <= 0) return "no message";
    std::array<char, 256> text{};
    const ssize_t got = recv(fd_, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  int fd_;
};

TEST(ServiceManager, ReceivesReadyAndStopping) {
  const test::TempFolder folder;
  for (const std::string& name :
       {(folder / "notify").string(), std::format("@tt-test-{}", getpid())}) {
    SCOPED_TRACE(name);
    NotifySocket manager(name);
    Program program({"--port", "0", "--data-dir", (folder / "data").string()},
                    {"NOTIFY_SOCKET=" + name});
    EXPECT_EQ(manager.receive(), "READY=1");
    const auto health = http_client(program.read_line()).Get("/api/v1/health");
    EXPECT_TRUE(health && health->status == 200);
    program.signal(SIGTERM);
    EXPECT_EQ(manager.receive(), "STOPPING=1");
    EXPECT_EQ(program.wait(), 0);
  }
}

TEST(ServiceManager, InvalidNotifySocketIsIgnored) {
  const test::TempFolder folder;
  for (const std::string& name : {std::string(), std::string(200, 'x'), (folder / "no").string()}) {
    SCOPED_TRACE(name);
    Program program({"--port", "0", "--data-dir", (folder / "data").string()},
                    {"NOTIFY_SOCKET=" + name});
    EXPECT_TRUE(program.read_line().starts_with("http://"));
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(), 0);
  }
}

}  // namespace
}  // namespace tt
