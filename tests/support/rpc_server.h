// llama.cpp's own RPC server on this machine: a second device that needs no GPU. Its ops do not
// tick.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <format>
#include <string>

#include "tests/support/test_paths.h"
#include "tests/support/wait.h"

namespace tt::test {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A port chosen by the system. It is released before the server binds it: good enough for a test.
inline std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(socket, generic, size), 0);
  EXPECT_EQ(::getsockname(socket, generic, &size), 0);
  ::close(socket);
  return ntohs(address.sin_port);
}

class RpcServer {
 public:
  RpcServer() : port_(free_port()), pid_(::fork()) {
    if (pid_ == 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(nowhere, fd);
      ::execl(kTestPaths.rpc_server, kTestPaths.rpc_server, "-H", "127.0.0.1", "-p",
              std::to_string(port_).c_str(), "-d", "CPU", "-t", "1", nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(wait_until([&] { return accepts_connections(); }));
  }
  ~RpcServer() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;
  std::string endpoint() const { return std::format("127.0.0.1:{}", port_); }

 private:
  bool accepts_connections() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(port_);
    const bool connected =
        ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return connected;
  }
  std::uint16_t port_;
  pid_t pid_;
};

}  // namespace tt::test
