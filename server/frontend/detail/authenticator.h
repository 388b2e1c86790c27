// Authentication. With a key set, programs must send it with each request, and a browser
// exchanges the one-time code of a login link for a session cookie. Without a key everyone has
// access. Any thread.
//
// State is kept in memory and bounded; a restart ends all logins.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/frontend/detail/attempt_limiter.h"
#include "server/frontend/detail/request_head.h"
#include "server/frontend/rejection.h"

namespace tt::frontend {

inline constexpr std::string_view kCookieName = "tt_session";

enum class Caller : std::uint8_t {
  Authenticated,    // authenticated
  Unauthenticated,  // sent no credentials
};

class Authenticator {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kLoginCodeLifetime{10};
  static constexpr std::chrono::hours kLoginLifetime{7 * 24};
  static constexpr std::size_t kMaxLogins = 64;

  explicit Authenticator(std::string key) : key_(std::move(key)) {}

  bool requires_key() const { return !key_.empty(); }

  // Identifies the sender of a request. Error: a wrong key, or too many wrong keys from
  // `peer`. An unknown or expired cookie counts as no credentials: it cannot be guessed, and a
  // page left open over a restart is not an attack.
  std::expected<Caller, Rejection> identify(const RequestHead& head, const std::string& peer,
                                            Clock::time_point now);

  // Creates a one-time code for login(), valid for kLoginCodeLifetime. Invalidates the previous
  // code.
  std::string create_login_code(Clock::time_point now);

  // Exchanges the code for the value of a session cookie. If kMaxLogins logins exist, the
  // oldest one ends. Wrong codes are not counted: a code has 128 random bits, and any page can make
  // the user's browser open /login?code=X, so counting them would let it lock out the right key.
  std::expected<std::string, Rejection> login(std::string_view code, Clock::time_point now);

 private:
  struct Login {
    std::string token;
    Clock::time_point ends;
  };

  bool has_valid_cookie(const RequestHead& head, Clock::time_point now);

  const std::string key_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::string code_;  // empty: no valid code
  Clock::time_point code_ends_;
  std::vector<Login> logins_;  // oldest first
  AttemptLimiter failures_;
};

}  // namespace tt::frontend
