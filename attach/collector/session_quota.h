// Keeps the newest sessions of requests in a folder, below a size and a number. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <optional>

namespace tt::attach {

struct QuotaLimits {
  std::optional<std::uint64_t> bytes;     // of all files together
  std::optional<std::uint64_t> sessions;  // number of files
};

class SessionQuota {
 public:
  // With a limit, counts the sessions in the folder that `tt attach` recorded per request (fact
  // attach.request) and that have ended, also those of earlier runs, and removes what is over.
  // Other files are never removed, and none that a process records.
  SessionQuota(const std::filesystem::path& folder, QuotaLimits limits);

  // A session of this folder that has ended. Removes the oldest ones over a limit; the newest one
  // stays in any case.
  void add(const std::filesystem::path& file, std::int64_t start_utc_ns);

  std::size_t removed() const { return removed_; }

 private:
  struct Ended {
    std::filesystem::path file;
    std::int64_t start_utc_ns = 0;
    std::uint64_t bytes = 0;
  };
  void insert(const std::filesystem::path& file, std::int64_t start_utc_ns);
  void remove_oldest();

  const QuotaLimits limits_;
  std::list<Ended> sessions_;  // oldest first
  std::uint64_t bytes_ = 0;
  std::size_t removed_ = 0;
};

// Removes a session that has ended, with what a reader may have left beside it. Returns whether
// it is gone.
bool remove_session(const std::filesystem::path& file);

}  // namespace tt::attach
