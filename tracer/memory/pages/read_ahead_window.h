// Which ranges to read and which to release, from the position of the running op. Pure logic:
// the caller reads and releases.
//
// The ranges are used cyclically: in every step in the order of a schedule. The window contains
// the uses from the running op on, wraps around to the next step, and is limited in bytes. All
// uses of the running op and the one after it are in it even if they exceed the limit. One
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace tt {

class ReadAheadWindow {
 public:
  struct Use {
    std::uint32_t op = 0;     // that reads the range
    std::uint32_t range = 0;  // index into `bytes`
  };
  struct Position {
    std::uint64_t step = 0;      // number of the running step, or of the next one
    std::uint32_t ops_done = 0;  // ops before it no longer read
  };
  struct Entry {
    Use use;
    std::uint64_t step = 0;
    bool read = false;  // set by the caller when the range is in memory
  };
  struct Changes {
    std::vector<std::uint32_t> fetch, release;  // ranges that entered, or left, the window
    // Ranges outside the window whose uses passed before the window reached them: inference read
    // them itself, so that they are in memory. Some may be listed twice.
    std::vector<std::uint32_t> skipped;
  };

  // The size of each range; 0: it stays in memory and is not fetched or released.
  explicit ReadAheadWindow(std::vector<std::uint64_t> bytes);

  // Sets the uses of the steps from now on, by op. The caller keeps them until the next call.
  void set_schedule(std::span<const Use> uses);
  // From now on a range stays in memory. `visit`: next_unread() nevertheless returns its uses, so
  // that the caller can check that it is.
  void keep(std::uint32_t range, bool visit);

  // Moves the window. The result is valid until the next call.
  const Changes& advance(Position position, std::uint64_t max_bytes);
  // The first entry that has not been read; null: none.
  Entry* next_unread();
  std::uint64_t bytes_ahead() const { return bytes_ahead_; }
  // Empties the window: all its ranges are to be released.
  const Changes& clear();

 private:
  bool passed(const Entry& entry, Position position) const;
  void start_changes();
  void leave(const Entry& entry);
  void skip_passed(Position position);

  std::vector<std::uint64_t> bytes_;
  std::vector<bool> visit_;
  std::vector<std::uint32_t> uses_in_window_;  // per range
  std::span<const Use> schedule_;
  std::deque<Entry> window_;
  std::vector<Entry> stale_;  // of the former schedule
  std::size_t next_ = 0;      // next use to enter, in step next_step_
  std::uint64_t next_step_ = 0;
  std::size_t first_unread_ = 0;  // no entry before it is unread
  std::uint64_t bytes_ahead_ = 0;
  Changes changes_;
};

}  // namespace tt
