#include "analysis/disk/blkparse.h"

#include <algorithm>
#include <format>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "analysis/disk/text_line.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

struct Event {
  std::int64_t ns = 0;
  char action = ' ';  // Q, D or C
  bool readahead = false;
  std::uint64_t sector = 0, sectors = 0;
};

std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t\r", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

// "12.000034567"
std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  constexpr std::size_t kDigits = 9;
  constexpr std::int64_t kMaxSeconds = 4'000'000'000, kSecond = 1'000'000'000;
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos || text.size() - point - 1 != kDigits) return std::nullopt;
  const auto seconds = parse_number<std::uint32_t>(text.substr(0, point));
  const auto rest = parse_number<std::uint32_t>(text.substr(point + 1));
  if (!seconds || !rest || *seconds > kMaxSeconds) return std::nullopt;
  return std::int64_t{*seconds} * kSecond + *rest;
}

struct Line {
  DiskId disk;
  std::optional<Event> read;  // nullopt: another action, or no read
};

std::optional<Line> parse_line(std::string_view text) {
  const auto disk = parse_disk_id(take_word(text));
  if (!disk) return std::nullopt;
  if (!parse_number<std::uint32_t>(take_word(text))) return std::nullopt;  // processor
  take_word(text);                                                         // number of the event
  const auto at = nanoseconds_of(take_word(text));
  if (!at) return std::nullopt;
  take_word(text);  // process
  const std::string_view action = take_word(text), kind = take_word(text);
  if (action.empty()) return std::nullopt;
  Line line{.disk = *disk, .read = std::nullopt};
  const bool counts = action == "Q" || action == "D" || action == "C";
  if (!counts || !kind.contains('R') || kind.find_first_of("WDN") != std::string_view::npos)
    return line;
  const auto sector = parse_number<std::uint64_t>(take_word(text));
  const bool has_length = take_word(text) == "+";
  const auto sectors = parse_number<std::uint32_t>(take_word(text));
  constexpr std::uint64_t kMaxSector = UINT64_MAX / kSectorBytes - UINT32_MAX;
  if (!sector || !has_length || !sectors || *sectors == 0 || *sector > kMaxSector) return line;
  line.read = Event{.ns = *at,
                    .action = action.front(),
                    .readahead = kind.contains('A'),
                    .sector = *sector,
                    .sectors = *sectors};
  return line;
}

TracedDisk requests_of(DiskId id, std::vector<Event> events) {
  std::ranges::stable_sort(events, {}, &Event::ns);
  TracedDisk disk{.id = id, .action = 'D', .reads = {}};
  if (!std::ranges::contains(events, 'D', &Event::action)) disk.action = 'Q';
  std::map<std::uint64_t, std::size_t> running;  // by sector
  for (const Event& event : events) {
    const auto found = running.find(event.sector);
    if (event.action == 'C') {
      if (found == running.end()) continue;
      disk.reads[found->second].completed_ns = event.ns;
      running.erase(found);
    } else if (event.action == disk.action) {
      // A request that the disk rejected is sent again.
      if (found != running.end() && disk.reads[found->second].sectors == event.sectors) continue;
      running[event.sector] = disk.reads.size();
      disk.reads.push_back({.issued_ns = event.ns,
                            .completed_ns = std::nullopt,
                            .sector = event.sector,
                            .sectors = event.sectors,
                            .readahead = event.readahead});
    }
  }
  return disk;
}

}  // namespace

std::optional<DiskId> parse_disk_id(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto major = parse_number<std::uint32_t>(text.substr(0, comma));
  const auto minor = parse_number<std::uint32_t>(text.substr(comma + 1));
  if (!major || !minor) return std::nullopt;
  return DiskId{.major = *major, .minor = *minor};
}

std::string to_text(const DiskId& disk) { return std::format("{},{}", disk.major, disk.minor); }

std::expected<BlockTrace, TraceError> parse_blkparse(std::istream& in,
                                                     const ContinueCheck& keep_going) {
  constexpr std::uint64_t kCheckedLines = 4096;
  BlockTrace trace;
  std::map<DiskId, std::vector<Event>> events;
  std::uint64_t lines = 0;
  for (std::string text; read_line(in, text); ++lines) {
    if (lines % kCheckedLines == 0 && !keep_going()) return std::unexpected(cancelled_error());
    const auto line = parse_line(text);
    if (!line) continue;
    ++trace.events;
    if (line->read) events[line->disk].push_back(*line->read);
  }
  if (trace.events == 0 || is_too_long(in)) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotASession,
        "no events of blkparse. Give the text that blkparse prints, with lines like \"8,0 1 1 "
        "0.000000000 697 D R 223490 + 8 [cat]\"; of the files of blktrace: blkparse -i NAME."});
  }
  for (auto& [id, of_disk] : events) trace.disks.push_back(requests_of(id, std::move(of_disk)));
  std::erase_if(trace.disks, [](const TracedDisk& disk) { return disk.reads.empty(); });
  return trace;
}

}  // namespace tt
