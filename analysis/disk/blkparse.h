// Reads the text that blkparse prints: which requests the kernel sent to a disk, and when.
//
//   8,0    3       11     0.009507758   697  D   R 223490 + 8 [cat]
//   disk  cpu  number  seconds since   pid  action  sector + sectors of 512 bytes [program]
//                      the first event
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

inline constexpr std::uint64_t kSectorBytes = 512;  // unit of blkparse on every disk

struct DiskId {
  std::uint32_t major = 0, minor = 0;
  friend auto operator<=>(const DiskId&, const DiskId&) = default;
};
std::optional<DiskId> parse_disk_id(std::string_view text);  // "8,0"
std::string to_text(const DiskId& disk);

// A read request.
struct DiskRead {
  std::int64_t issued_ns = 0;                  // since the first event of the recording
  std::optional<std::int64_t> completed_ns{};  // nullopt: not in the recording
  std::uint64_t sector = 0, sectors = 0;
  bool readahead = false;  // bytes that no program had asked for yet
  friend bool operator==(const DiskRead&, const DiskRead&) = default;
};

struct TracedDisk {
  DiskId id;
  // The events that count as reads: D (sent to the disk), or Q (queued) where a disk has no D, such
  // as LVM and software RAID.
  char action = 'D';
  std::vector<DiskRead> reads;  // by time
};

struct BlockTrace {
  std::vector<TracedDisk> disks;  // with reads, by id
  std::uint64_t events = 0;       // lines that are events, of any action
};

// Lines that are no events are ignored: blkparse prints a summary at the end. The error is
// NotASession if there is no event.
std::expected<BlockTrace, TraceError> parse_blkparse(
    std::istream& in, const ContinueCheck& keep_going = never_cancel);

}  // namespace tt
