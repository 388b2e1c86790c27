#include "server/sessions/retention.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <format>
#include <functional>
#include <utility>

namespace tt {

namespace {

constexpr std::uint64_t kBlockBytes = 1u << 20;

std::string size_text(std::uint64_t bytes) {
  constexpr double kUnit = 1024;
  auto amount = static_cast<double>(bytes);
  for (const char* unit : {"bytes", "KiB", "MiB"}) {
    if (amount < kUnit) return std::format("{:.4g} {}", amount, unit);
    amount /= kUnit;
  }
  return std::format("{:.4g} GiB", amount);
}

std::uint64_t free_bytes(const std::filesystem::path& folder) {
  struct statvfs disk{};
  if (statvfs(folder.c_str(), &disk) != 0) return 0;
  return disk.f_bavail * disk.f_frsize;
}

}  // namespace

Retention::Retention(SessionStore& sessions, RetentionOptions options, OnRemoved removed,
                     UtcClock now)
    : sessions_(sessions),
      options_(options),
      on_removed_(std::move(removed)),
      now_(std::move(now)) {}

Retention::~Retention() { stop(); }

void Retention::start(std::chrono::milliseconds interval) {
  thread_ = std::jthread([this, interval](const std::stop_token& stop) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kFinishInterval = std::chrono::seconds(1);
    Clock::time_point next_sweep = Clock::now();
    while (!stop.stop_requested()) {
      sessions_.finish_files();
      if (Clock::now() >= next_sweep) {
        sweep();
        next_sweep = Clock::now() + interval;
      }
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, stop, std::min(interval, kFinishInterval), [] { return false; });
    }
  });
}

void Retention::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Retention::sweep() {
  const std::scoped_lock lock(sweep_mutex_);
  purge_due();
  remove_old();
  enforce_quota(0);
  (void)claim_space(0);  // ignored here: reported when a recording starts
}

DataUsage Retention::room() const {
  DataUsage room{.data_bytes = 0, .disk_free = free_bytes(sessions_.folder())};
  for (const auto& own : sessions_.own().value_or(std::vector<SessionStore::Own>{}))
    room.data_bytes += own.session->file_bytes;
  for (const DeletedSession& deleted : sessions_.trash().all()) room.data_bytes += deleted.bytes;
  return room;
}

std::optional<Problem> Retention::check_session_space() {
  const std::scoped_lock lock(sweep_mutex_);
  const std::uint64_t growth = expected_growth();
  if (const auto held = enforce_quota(growth)) {
    return Problem{
        ErrorCode::QuotaReached,
        std::format("The sessions use {} of the allowed {}, and none of them can be removed "
                    "automatically: {}. Delete sessions, wait until the running ones have ended, "
                    "or start the server with a larger --keep-bytes.",
                    size_text(*held), size_text(*options_.keep_bytes), what_remains())};
  }
  if (auto full = claim_space(options_.disk_reserve == 0 ? 0 : growth)) return full;
  if (options_.disk_reserve != 0)
    release(growth);  // the recording writes into the reserve if need be
  return std::nullopt;
}

void Retention::make_room(std::uint64_t bytes) {
  const std::scoped_lock lock(sweep_mutex_);
  enforce_quota(bytes);
}

std::optional<Problem> Retention::check_file_size(std::uint64_t bytes) const {
  if (!options_.keep_bytes || bytes <= *options_.keep_bytes) return std::nullopt;
  return Problem{ErrorCode::QuotaReached,
                 std::format("The size of the file is {}; all sessions together must not exceed "
                             "{}. Start the server with a larger --keep-bytes.",
                             size_text(bytes), size_text(*options_.keep_bytes))};
}

std::expected<Retention::Claim, Problem> Retention::claim(std::uint64_t bytes) {
  Claim claim(*this);
  if (!try_claim(bytes)) {
    const std::scoped_lock lock(sweep_mutex_);
    if (auto full = claim_space(bytes)) return std::unexpected(*std::move(full));
  }
  claim.left_ = bytes;
  return claim;
}

Retention::Claim::Claim(Claim&& other) noexcept
    : retention_(std::exchange(other.retention_, nullptr)),
      left_(other.left_),
      writing_(other.writing_) {}

Retention::Claim::~Claim() {
  if (retention_ != nullptr) retention_->release(left_ + writing_);
}

std::optional<Problem> Retention::Claim::before_write(std::uint64_t bytes) {
  retention_->release(std::exchange(writing_, 0));  // it is on the disk now
  if (bytes > left_) {
    const std::uint64_t more = std::max(bytes - left_, kBlockBytes);
    if (retention_->try_claim(more)) {
      left_ += more;
    } else {
      const std::scoped_lock lock(retention_->sweep_mutex_);
      if (auto full = retention_->claim_space(bytes - left_)) return full;
      left_ = bytes;
    }
  }
  left_ -= bytes;
  writing_ = bytes;
  return std::nullopt;
}

std::optional<Problem> Retention::Claim::check() {
  if (retention_->try_claim(0)) return std::nullopt;
  const std::scoped_lock lock(retention_->sweep_mutex_);
  return retention_->claim_space(0);
}

bool Retention::try_claim(std::uint64_t bytes) {
  const std::scoped_lock lock(claim_mutex_);
  const std::uint64_t free = free_bytes(sessions_.folder());
  const std::uint64_t taken = options_.disk_reserve + claimed_;
  if (free < taken || free - taken < bytes) return false;
  claimed_ += bytes;
  return true;
}

void Retention::release(std::uint64_t bytes) {
  const std::scoped_lock lock(claim_mutex_);
  claimed_ -= bytes;
}

void Retention::purge_due() {
  for (const DeletedSession& deleted : sessions_.trash().all())
    if (sessions_.trash().is_expired(deleted)) purge(deleted, "deleted more than an hour ago");
}

void Retention::remove_old() {
  if (!options_.max_age) return;
  const std::int64_t oldest = now_() - options_.max_age->count();
  for (const SessionStore::Own& own : removable()) {
    if (own.changed_utc_ns >= oldest) return;
    erase(own, "older than --keep-days");
  }
}

std::uint64_t Retention::expected_growth() const {
  constexpr std::uint64_t kUnknown = 64u << 10;  // no session has ended yet
  constexpr std::size_t kSessions = 8;           // that ended last
  auto own = sessions_.own().value_or(std::vector<SessionStore::Own>{});
  std::ranges::sort(own, std::greater(), &SessionStore::Own::changed_utc_ns);
  std::uint64_t typical = 0;
  std::size_t ended = 0;
  for (const SessionStore::Own& one : own) {
    if (one.session->running() || !one.session->readable()) continue;
    typical = std::max(typical, one.session->file_bytes);
    if (++ended == kSessions) break;
  }
  if (ended == 0) typical = kUnknown;
  std::uint64_t growth = typical;
  for (const SessionStore::Own& one : own)
    if (one.session->running()) growth += typical - std::min(typical, one.session->file_bytes);
  return growth;
}

std::optional<std::uint64_t> Retention::enforce_quota(std::uint64_t growth) {
  if (!options_.keep_bytes) return std::nullopt;
  constexpr std::string_view kReason = "--keep-bytes exceeded";
  const std::uint64_t quota = *options_.keep_bytes;
  // A tenth below the quota: otherwise each new session would be over it again. However large the
  // next sessions may be, at most half of the quota is emptied for them.
  const std::uint64_t wanted = std::min(growth, quota / 2);
  const std::uint64_t goal = quota - std::max(quota / 10, wanted);
  // Running sessions grow meanwhile: sums again after each pass.
  for (;;) {
    const std::uint64_t before = room().data_bytes;
    if (before <= quota && quota - before >= wanted) return std::nullopt;
    std::uint64_t held = before;
    bool removed = false;
    for (const DeletedSession& deleted : sessions_.trash().all()) {
      if (held <= goal) break;
      if (!purge(deleted, kReason)) continue;
      held -= std::min(held, deleted.bytes);
      removed = true;
    }
    for (const SessionStore::Own& own : removable()) {
      if (held <= goal) break;
      if (!erase(own, kReason)) continue;
      held -= std::min(held, own.session->file_bytes);
      removed = true;
    }
    if (!removed) return before > quota ? std::optional(before) : std::nullopt;
  }
}

// What holds the quota after everything that can be removed was removed.
std::string Retention::what_remains() const {
  struct Sum {
    std::size_t sessions = 0;
    std::uint64_t bytes = 0;
  } running, unreadable, other;
  for (const auto& own : sessions_.own().value_or(std::vector<SessionStore::Own>{})) {
    Sum& sum = own.session->running() ? running : !own.session->readable() ? unreadable : other;
    ++sum.sessions;
    sum.bytes += own.session->file_bytes;
  }
  std::string text;
  const auto add = [&](const Sum& sum, const char* what) {
    if (sum.sessions == 0) return;
    text += std::format("{}{} {} hold {}", text.empty() ? "" : ", ", sum.sessions, what,
                        size_text(sum.bytes));
  };
  add(running, "that are being recorded");
  add(unreadable, "that cannot be read");
  add(other, "whose files cannot be removed");
  return text;
}

std::optional<Problem> Retention::claim_space(std::uint64_t bytes) {
  if (try_claim(bytes)) return std::nullopt;
  for (const DeletedSession& deleted : sessions_.trash().all()) {
    purge(deleted, "the disk is nearly full");
    if (try_claim(bytes)) return std::nullopt;
  }
  const std::uint64_t claimed = [&] {
    const std::scoped_lock lock(claim_mutex_);
    return claimed_;
  }();
  return Problem{
      ErrorCode::QuotaReached,
      std::format("The disk of {} has {} free, of which {} are reserved so that no recording fills "
                  "the disk{}. Delete sessions or other files, or start the server with another "
                  "--data-dir or a smaller --disk-reserve.",
                  sessions_.folder().string(), size_text(free_bytes(sessions_.folder())),
                  size_text(options_.disk_reserve),
                  claimed == 0 ? ""
                               : std::format(", and {} promised to other uploads and exports",
                                             size_text(claimed)))};
}

std::vector<SessionStore::Own> Retention::removable() const {
  auto own = sessions_.own().value_or(std::vector<SessionStore::Own>{});
  std::erase_if(own, [](const SessionStore::Own& one) {
    return !one.session->readable() || one.session->running();
  });
  std::ranges::sort(own, {}, &SessionStore::Own::changed_utc_ns);
  return own;
}

bool Retention::purge(const DeletedSession& session, std::string_view reason) {
  if (!sessions_.trash().purge(session)) return false;
  on_removed_({.id = session.id, .bytes = session.bytes, .reason = reason});
  return true;
}

bool Retention::erase(const SessionStore::Own& own, std::string_view reason) {
  if (!sessions_.erase(own.session->id)) return false;
  on_removed_({.id = own.session->id, .bytes = own.session->file_bytes, .reason = reason});
  return true;
}

}  // namespace tt
