// Who is let in. With a key only those who show it: programs send it with each
// request, a browser exchanges the code of a login link for a cookie. Without a
// key everyone who reaches the server. All methods: any thread.
//
// What is kept is in memory only and bounded; a restart ends every login.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/door/detail/attempt_limiter.h"
#include "server/door/detail/request_head.h"
#include "server/door/refusal.h"

namespace tt::door {

inline constexpr std::string_view kCookieName = "tt_session";

enum class Caller : std::uint8_t {
  Known,     // may do everything
  Stranger,  // showed nothing
};

class Access {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kCodeLife{10};
  static constexpr std::chrono::hours kLoginLife{7 * 24};
  static constexpr std::size_t kMostLogins = 64;

  explicit Access(std::string key) : key_(std::move(key)) {}

  bool asks() const { return !key_.empty(); }

  // Who sends this. Refused: a wrong key, or too many of them from `peer`. A
  // cookie that is not known (any more) counts as none: it cannot be guessed,
  // and a page left open over a restart is no attack.
  std::expected<Caller, Refusal> identify(const RequestHead& head, const std::string& peer,
                                          Clock::time_point now);

  // A code that login() takes once, within kCodeLife; the one before is void.
  std::string new_code(Clock::time_point now);

  // The value of the cookie that this browser is known by from now on. With
  // kMostLogins others the oldest of them ends.
  std::expected<std::string, Refusal> login(std::string_view code, const std::string& peer,
                                            Clock::time_point now);

 private:
  struct Login {
    std::string token;
    Clock::time_point ends;
  };

  bool has_cookie(const RequestHead& head, Clock::time_point now);

  const std::string key_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::string code_;  // empty: none
  Clock::time_point code_ends_;
  std::vector<Login> logins_;  // oldest first
  AttemptLimiter failures_;
};

}  // namespace tt::door
