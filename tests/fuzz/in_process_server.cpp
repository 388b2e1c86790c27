#include "tests/fuzz/in_process_server.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "api/openapi/openapi.h"
#include "server/routes/session_routes.h"
#include "tests/fuzz/limits.h"
#include "tests/fuzz/scratch.h"
#include "tests/support/sessions/plausible_session.h"
#include "tests/support/test_paths.h"

namespace tt::fuzz {

namespace {

// A connection whose client has sent its whole request and reads the whole response.
class RequestBytes final : public httplib::Stream {
 public:
  RequestBytes(std::string request, int descriptor)
      : request_(std::move(request)), descriptor_(descriptor) {}

  bool is_readable() const override { return at_ < request_.size(); }
  bool wait_readable() const override { return true; }
  bool wait_writable() const override { return true; }
  ssize_t read(char* to, std::size_t size) override {
    const std::size_t taken = std::min(size, request_.size() - at_);
    std::memcpy(to, request_.data() + at_, taken);
    at_ += taken;
    return static_cast<ssize_t>(taken);
  }
  ssize_t write(const char* from, std::size_t size) override {
    constexpr std::size_t kMaxHead = 16 << 10;
    const std::size_t room = kMaxHead + InProcessServer::kMaxBody - answer_.size();
    answer_.append(from, std::min(size, room));
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 1;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 2;
  }
  socket_t socket() const override { return descriptor_; }
  time_t duration() const override { return 0; }

  const std::string& written() const { return answer_; }

 private:
  const std::string request_;
  const int descriptor_;
  std::size_t at_ = 0;
  std::string answer_;
};

test::RawResponse parse_response(const std::string& bytes) {
  test::RawResponse out;
  const std::size_t end = std::min(bytes.find("\r\n\r\n"), bytes.size());
  if (bytes.size() > 12 && bytes.starts_with("HTTP/1.1 ")) out.status = std::atoi(&bytes[9]);
  for (std::size_t at = bytes.find("\r\n"); at < end; at = bytes.find("\r\n", at + 2)) {
    const std::size_t colon = bytes.find(": ", at);
    const std::size_t next = std::min(bytes.find("\r\n", at + 2), end);
    if (colon > next) continue;
    std::string name = bytes.substr(at + 2, colon - at - 2);
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    });
    out.headers[name] = bytes.substr(colon + 2, next - colon - 2);
  }
  if (end + 4 <= bytes.size()) out.body = bytes.substr(end + 4);
  return out;
}

void write_session(const std::filesystem::path& folder, std::uint64_t seed, const char* id) {
  test::RandomSession session = test::plausible_session(seed, 12);
  session.info.id = id;
  if (!test::write_session(folder / (std::string(id) + ".ttrace"), session))
    report_finding("a session cannot be written");
}

}  // namespace

class Routes final : public httplib::Server {
 public:
  Routes() {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0)
      report_finding("no socket pair");
    svr_sock_ = ends_[0];
  }
  ~Routes() override {
    svr_sock_ = INVALID_SOCKET;
    for (const int end : ends_) close(end);
  }
  std::string answer(std::string request) {
    RequestBytes stream(std::move(request), ends_[0]);
    bool closed = false;
    process_request(stream, "127.0.0.1", 1, "127.0.0.1", 2, true, closed, [](httplib::Request&) {});
    return stream.written();
  }

 private:
  std::array<int, 2> ends_{};  // handlers check whether the client is still connected
};

struct InProcessServer::Impl {
  Impl() {
    write_session(scratch / "", 1, "plausible");
    write_session(scratch / "", 4, "other");
    add_session_routes(http, {.sessions = sessions,
                              .retention = retention,
                              .caches = caches,
                              .indexes = indexes,
                              .totals = totals,
                              .queue = queue,
                              .statements = statements,
                              .page = page});
    add_page_routes(http, page, contract);
  }

  Scratch scratch;
  SessionStore sessions{scratch / ""};
  Retention retention{
      sessions, {.max_age = {}, .keep_bytes = {}, .disk_reserve = 0}, [](const RemovedSession&) {}};
  CacheRoom caches;
  IndexCache indexes{caches};
  TotalsCache totals{caches};
  QueryQueue queue{caches};
  Sandbox sandbox{kTestPaths.worker};
  StatementCheck statements{&sandbox};
  StaticFiles page{"/nonexistent"};
  RouteContract contract{openapi_json()};
  Routes http;
};

InProcessServer::InProcessServer() : impl_(std::make_unique<Impl>()) {}
InProcessServer::~InProcessServer() = default;

test::RawResponse InProcessServer::answer(std::string request) {
  return parse_response(impl_->http.answer(std::move(request)));
}

}  // namespace tt::fuzz
