#include "server/sessions/retention.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <format>

namespace tt {

namespace {

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
    while (!stop.stop_requested()) {
      sweep();
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, stop, interval, [] { return false; });
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
  enforce_quota();
  (void)free_disk_space(0);  // ignored here: reported when a recording starts
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
  enforce_quota();
  if (options_.keep_bytes) {
    const std::uint64_t held = room().data_bytes;
    if (held > *options_.keep_bytes) {
      return Problem{
          ErrorCode::QuotaReached,
          std::format("The sessions use {} of the allowed {}, and none of them can be removed "
                      "automatically. Delete sessions, wait until the running one has ended, or "
                      "start the server with a larger --keep-bytes.",
                      size_text(held), size_text(*options_.keep_bytes))};
    }
  }
  return free_disk_space(0);
}

std::optional<Problem> Retention::check_file_space(std::uint64_t bytes, std::uint64_t written) {
  if (options_.keep_bytes && bytes > *options_.keep_bytes) {
    return Problem{ErrorCode::QuotaReached,
                   std::format("The size of the file is {}; all sessions together must not exceed "
                               "{}. Start the server with a larger --keep-bytes.",
                               size_text(bytes), size_text(*options_.keep_bytes))};
  }
  return check_scratch_space(bytes - std::min(bytes, written));
}

std::optional<Problem> Retention::check_scratch_space(std::uint64_t bytes) {
  const std::scoped_lock lock(sweep_mutex_);
  return free_disk_space(bytes);
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

void Retention::enforce_quota() {
  if (!options_.keep_bytes) return;
  constexpr std::string_view kReason = "--keep-bytes exceeded";
  std::uint64_t held = room().data_bytes;
  for (const DeletedSession& deleted : sessions_.trash().all()) {
    if (held <= *options_.keep_bytes) return;
    if (purge(deleted, kReason)) held -= std::min(held, deleted.bytes);
  }
  if (held <= *options_.keep_bytes) return;
  for (const SessionStore::Own& own : removable()) {
    if (held <= *options_.keep_bytes) return;
    if (erase(own, kReason)) held -= std::min(held, own.session->file_bytes);
  }
}

std::optional<Problem> Retention::free_disk_space(std::uint64_t bytes) {
  const auto enough = [&] {
    const std::uint64_t free = free_bytes(sessions_.folder());
    return free >= options_.disk_reserve && free - options_.disk_reserve >= bytes;
  };
  if (enough()) return std::nullopt;
  for (const DeletedSession& deleted : sessions_.trash().all()) {
    purge(deleted, "the disk is nearly full");
    if (enough()) return std::nullopt;
  }
  return Problem{
      ErrorCode::QuotaReached,
      std::format("The disk of {} has {} free, of which {} are reserved so that no recording fills "
                  "the disk. Delete sessions or other files, or start the server with another "
                  "--data-dir or a smaller --disk-reserve.",
                  sessions_.folder().string(), size_text(free_bytes(sessions_.folder())),
                  size_text(options_.disk_reserve))};
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
