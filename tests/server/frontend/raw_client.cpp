#include "tests/server/frontend/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <format>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/wait.h"

namespace tt::test {
namespace {

constexpr std::chrono::milliseconds kTimeout{60'000};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) throw std::runtime_error(host);
  return address;
}

}  // namespace

RawClient::RawClient() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) throw std::runtime_error("socket");
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

RawClient::RawClient(std::uint16_t port, int receive_buffer_bytes) : RawClient() {
  if (receive_buffer_bytes != 0) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
  }
  connect(port);
}

RawClient RawClient::from(const std::string& address, std::uint16_t port) {
  RawClient client;
  const sockaddr_in from = address_of(address, 0);
  if (::bind(client.fd_, reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0) {
    throw std::runtime_error("bind");
  }
  client.connect(port);
  return client;
}

void RawClient::connect(std::uint16_t port, const std::string& host) {
  const sockaddr_in address = address_of(host, port);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("connect");
  }
}

RawClient::~RawClient() {
  if (fd_ >= 0) close(fd_);
}

RawClient::RawClient(RawClient&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), input_(std::move(other.input_)) {}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool RawClient::receive(std::chrono::milliseconds time) {
  pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, static_cast<int>(time.count())) <= 0) return false;
  std::array<char, 65536> buffer;
  const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  input_.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::read(std::size_t count) {
  while (input_.size() < count && receive(kTimeout)) {
  }
  std::string out = input_.substr(0, count);
  input_.erase(0, out.size());
  return out;
}

std::string RawClient::read_until(std::string_view end) {
  std::size_t at = input_.find(end);
  while (at == std::string::npos && receive(kTimeout)) at = input_.find(end);
  return read(at == std::string::npos ? input_.size() : at + end.size());
}

RawResponse RawClient::read_response(std::string_view method) {
  RawResponse response;
  do {
    response.headers.clear();
    const std::string head = read_until("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ") || !head.ends_with("\r\n\r\n")) return {};
    response.status = std::stoi(head.substr(9, 3));
    std::size_t at = head.find("\r\n") + 2;
    while (head.compare(at, 2, "\r\n") != 0) {
      const std::size_t end = head.find("\r\n", at);
      const std::size_t colon = head.find(": ", at);
      response.headers[lower(head.substr(at, colon - at))] =
          head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
  } while (response.status < 200 && response.status != 101);
  if (method == "HEAD" || response.status == 101) return response;
  if (const auto at = response.headers.find("content-length"); at != response.headers.end()) {
    response.body = read(std::stoul(at->second));
  } else if (response.headers.contains("transfer-encoding")) {
    for (;;) {
      const std::string size_line = read_until("\r\n");
      const std::size_t size = size_line.empty() ? 0 : std::stoul(size_line, nullptr, 16);
      const std::string chunk = read(size + 2);
      if (size == 0 || chunk.size() != size + 2) break;
      response.body += chunk.substr(0, size);
    }
  }
  return response;
}

std::size_t RawClient::unread_bytes() const {
  int count = 0;
  if (ioctl(fd_, FIONREAD, &count) != 0) throw std::runtime_error("FIONREAD");
  return static_cast<std::size_t>(count);
}

// Reads the entry of the peer's socket in /proc/net/tcp (proc_net_tcp(5)): its local and remote
// address are the remote and local ones of this socket.
bool RawClient::peer_has_read_all() const {
  sockaddr_in here{}, there{};
  socklen_t size = sizeof(here);
  auto* const local = reinterpret_cast<sockaddr*>(&here);
  auto* const remote = reinterpret_cast<sockaddr*>(&there);
  if (getsockname(fd_, local, &size) != 0 || getpeername(fd_, remote, &size) != 0) {
    throw std::runtime_error("not connected");
  }
  const auto text = [](const sockaddr_in& address) {
    return std::format("{:08X}:{:04X}", address.sin_addr.s_addr, ntohs(address.sin_port));
  };
  const std::string addresses = " " + text(there) + " " + text(here) + " ";
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(addresses);
    if (at == std::string::npos) continue;
    // After the addresses: state, tx_queue:rx_queue.
    const std::size_t queues = at + addresses.size() + std::string_view("01 ").size();
    return line.substr(queues + std::string_view("00000000:").size(), 8) == "00000000";
  }
  return false;
}

bool RawClient::closed_within(std::chrono::milliseconds time) {
  return wait_until(
      [&] {
        pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
        std::array<char, 65536> buffer;
        while (poll(&entry, 1, 0) > 0)
          if (recv(fd_, buffer.data(), buffer.size(), 0) <= 0) return true;
        return false;
      },
      time);
}

void RawClient::shutdown_write() { shutdown(fd_, SHUT_WR); }

void RawClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(std::exchange(fd_, -1));
}

std::string get_request(std::string_view path, std::string_view more_headers) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
         std::string(more_headers) + "\r\n";
}

std::string upgrade_request(std::string_view path, std::string_view more_headers) {
  // The key of the example in RFC 6455, whose accept value is known.
  return get_request(path,
                     "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                         std::string(more_headers));
}

bool accepts_connections(std::uint16_t port) {
  try {
    RawClient client(port);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void wait_until_input_handled(std::uint16_t port) {
  RawClient(port).exchange(get_request("/"));  // the status does not matter
}

WsClient::WsClient(std::uint16_t port, std::string_view more_headers, int receive_buffer_bytes)
    : raw_(port, receive_buffer_bytes) {
  handshake_ = raw_.exchange(upgrade_request("/api/v1/live", more_headers));
}

void WsClient::send(int opcode, std::string_view payload, bool fin, bool deflated) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value & 0xff); };
  std::string frame;
  frame += byte(static_cast<std::size_t>(opcode) | (fin ? 0x80u : 0u) | (deflated ? 0x40u : 0u));
  const std::size_t size = payload.size();
  if (size < 126) {
    frame += byte(0x80 | size);
  } else if (size < 65536) {
    frame += {byte(0x80 | 126), byte(size >> 8), byte(size)};
  } else {
    frame += byte(0x80 | 127);
    for (int shift = 56; shift >= 0; shift -= 8) frame += byte(size >> shift);
  }
  constexpr std::string_view kMask = "\x12\x34\x56\x78";
  frame += kMask;
  for (std::size_t i = 0; i < size; ++i) {
    frame += static_cast<char>(payload[i] ^ kMask[i % 4]);
  }
  raw_.send(frame);
}

WsFrame WsClient::read() {
  const std::string start = raw_.read(2);
  if (start.size() < 2) return {};
  const auto byte = [](char c) { return static_cast<std::size_t>(static_cast<unsigned char>(c)); };
  WsFrame frame{.opcode = static_cast<int>(byte(start[0]) & 0x0f),
                .fin = (byte(start[0]) & 0x80) != 0,
                .deflated = (byte(start[0]) & 0x40) != 0,
                .payload = {}};
  std::size_t size = byte(start[1]) & 0x7f;
  if (size >= 126) {
    const std::string extended = raw_.read(size == 126 ? 2 : 8);
    size = 0;
    for (const char c : extended) size = size << 8 | byte(c);
  }
  frame.payload = raw_.read(size);
  return frame.payload.size() == size ? frame : WsFrame{};
}

int WsClient::expect_close() {
  const WsFrame frame = read();
  if (frame.opcode != kClose || frame.payload.size() < 2) return 0;
  send(kClose, frame.payload);
  return static_cast<unsigned char>(frame.payload[0]) << 8 |
         static_cast<unsigned char>(frame.payload[1]);
}

}  // namespace tt::test
