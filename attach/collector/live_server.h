// A tt-server that shows the sessions of `tt attach` while they are recorded.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

namespace tt::attach {

// The process of the server; it is stopped (SIGTERM) and waited for by the destructor, and ends by
// itself if this process is killed. It has its own process group: Ctrl+C reaches this process and
// the traced program only. One thread.
class LiveServer {
 public:
  // Starts `server` without a model on the loopback address, for the sessions in `folder`; returns
  // when it accepts connections. `program`: the file that says what is recorded
  // (api/json/server_json.h), which may be written later. Port 0: any free port. Error: text for
  // the user.
  static std::expected<LiveServer, std::string> start(const std::filesystem::path& server,
                                                      const std::filesystem::path& folder,
                                                      const std::filesystem::path& program,
                                                      std::uint16_t port);
  LiveServer(LiveServer&& other) noexcept;
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;
  LiveServer& operator=(LiveServer&&) = delete;
  ~LiveServer();

  const std::string& url() const { return url_; }  // "http://127.0.0.1:8080"

 private:
  LiveServer(pid_t pid, int output) : pid_(pid), output_(output) {}
  pid_t pid_;
  int output_;  // its standard output, open so that it never writes to a closed pipe
  std::string url_;
};

}  // namespace tt::attach
