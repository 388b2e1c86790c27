#include "server/page_file/route_caller.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

#include "tracer/text/parse_number.h"

namespace tt {
namespace {

// A request in memory, and what the routes write.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string request) : request_(std::move(request)) {}
  const std::string& written() const { return written_; }

  bool is_readable() const override { return at_ < request_.size(); }
  bool wait_readable() const override { return is_readable(); }
  bool wait_writable() const override { return true; }
  ssize_t read(char* out, std::size_t size) override {
    const std::size_t count = std::min(size, request_.size() - at_);
    std::memcpy(out, request_.data() + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, std::size_t size) override {
    written_.append(data, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { none(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { none(ip, port); }
  socket_t socket() const override { return INVALID_SOCKET; }
  time_t duration() const override { return 0; }

 private:
  static void none(std::string& ip, int& port) {
    ip.clear();
    port = 0;
  }

  const std::string request_;
  std::size_t at_ = 0;
  std::string written_;
};

constexpr std::string_view kLineEnd = "\r\n";

// The value of a field of a response's head; empty: it has none.
std::string_view field(std::string_view head, std::string_view name) {
  const std::size_t at = head.find(std::format("{}{}: ", kLineEnd, name));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = head.substr(at + kLineEnd.size() + name.size() + 2);
  return rest.substr(0, rest.find(kLineEnd));
}

}  // namespace

RouteAnswer RouteCaller::ask(std::string_view method, std::string_view target,
                             std::string_view json) {
  std::string request = std::format("{} {} HTTP/1.1\r\nHost: localhost\r\n", method, target);
  if (!json.empty()) {
    request += std::format("Content-Type: application/json\r\nContent-Length: {}\r\n", json.size());
  }
  MemoryStream stream(request.append(kLineEnd).append(json));
  bool closed = false;
  process_request(stream, "", 0, "", 0, false, closed, {});
  const std::string_view response = stream.written();
  const std::size_t head_end = response.find("\r\n\r\n");
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  if (head_end == std::string_view::npos || head_end < kStatusAt + 3) return {};
  const std::string_view head = response.substr(0, head_end);
  return {.status = parse_number<int>(head.substr(kStatusAt, 3)).value_or(0),
          .type = std::string(field(head, "Content-Type")),
          .body = std::string(response.substr(head_end + 4))};
}

}  // namespace tt
