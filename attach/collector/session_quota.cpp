#include "attach/collector/session_quota.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>

#include "tracer/format/file/session_edit.h"
#include "tracer/format/file/session_reader.h"

namespace tt::attach {

namespace fs = std::filesystem;

namespace {

// A killed collector leaves them.
constexpr const char* kBeside[] = {"-wal", "-shm", "-reserve"};

std::uint64_t bytes_of(const fs::path& file) {
  std::uint64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code failed;
    const std::uintmax_t size = fs::file_size(file.string() + suffix, failed);
    bytes += failed ? 0 : size;
  }
  return bytes;
}

}  // namespace

bool remove_session(const fs::path& file) {
  std::error_code failed, none;
  fs::remove(file, failed);
  for (const char* suffix : kBeside) fs::remove(file.string() + suffix, none);
  return !failed;
}

SessionQuota::SessionQuota(const fs::path& folder, QuotaLimits limits) : limits_(limits) {
  if (!limits_.bytes && !limits_.sessions) return;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), last; !none && entry != last;
       entry.increment(none)) {
    const fs::path& file = entry->path();
    if (file.extension() != ".ttrace" || !entry->is_regular_file(none) || entry->is_symlink(none))
      continue;
    if (is_being_recorded(file).value_or(true)) continue;
    const auto reader = SessionReader::open(file);
    if (!reader) continue;
    const auto info = reader->info();
    if (info && !info->fact("attach.request").empty()) insert(file, info->start_utc_ns);
  }
  remove_oldest();
}

void SessionQuota::add(const fs::path& file, std::int64_t start_utc_ns) {
  if (!limits_.bytes && !limits_.sessions) return;
  insert(file, start_utc_ns);
  remove_oldest();
}

void SessionQuota::insert(const fs::path& file, std::int64_t start_utc_ns) {
  const std::uint64_t bytes = bytes_of(file);
  const auto newer = std::ranges::find_if(
      sessions_, [&](const Ended& ended) { return ended.start_utc_ns > start_utc_ns; });
  sessions_.insert(newer, {.file = file, .start_utc_ns = start_utc_ns, .bytes = bytes});
  bytes_ += bytes;
}

void SessionQuota::remove_oldest() {
  while (sessions_.size() > 1 && ((limits_.bytes && bytes_ > *limits_.bytes) ||
                                  (limits_.sessions && sessions_.size() > *limits_.sessions))) {
    const Ended oldest = std::move(sessions_.front());
    sessions_.pop_front();
    bytes_ -= oldest.bytes;
    std::error_code none;
    // One that a user has removed meanwhile does not count.
    if (fs::exists(oldest.file, none) && remove_session(oldest.file)) ++removed_;
  }
}

}  // namespace tt::attach
