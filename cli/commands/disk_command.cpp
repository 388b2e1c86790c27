// tt disk FILE BLKPARSE: what the disk read of the model files while the session was recorded.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <format>
#include <memory>
#include <optional>
#include <string>

#include "analysis/common/format_units.h"
#include "analysis/disk/disk_reads.h"
#include "api/json/analysis/disk_json.h"
#include "cli/commands/disk_places.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/input_file.h"
#include "tracer/format/file/session_reader.h"

namespace tt::cli {
namespace {

struct DiskOptions {
  std::string file, recording, disk;
  DiskPlaceOptions places;
  std::optional<double> clock_offset;  // seconds
  std::size_t limit = 20;
  bool json = false;
};

std::string part_percent(std::uint64_t part, std::uint64_t all) {
  return format_percent(static_cast<double>(part), static_cast<double>(all));
}

// The disk with the model files.
std::expected<const TracedDisk*, std::string> choose_disk(const BlockTrace& trace,
                                                          const DiskOptions& options,
                                                          const DiskPlaces& places) {
  std::string list;
  for (const TracedDisk& disk : trace.disks)
    list += std::format("{}{} ({})", list.empty() ? "" : "; ", to_text(disk.id),
                        counted(disk.reads.size(), "read"));
  if (list.empty())
    return std::unexpected(options.recording + ": no reads. Record with: blktrace -a read");
  const auto of_id = [&](const DiskId& id) {
    const auto found = std::ranges::find(trace.disks, id, &TracedDisk::id);
    return found == trace.disks.end() ? nullptr : &*found;
  };
  if (!options.disk.empty()) {
    const auto id = parse_disk_id(options.disk);
    const TracedDisk* disk = id ? of_id(*id) : nullptr;
    if (disk != nullptr) return disk;
    return std::unexpected(
        std::format("{}: no reads of disk {}; it has {}", options.recording, options.disk, list));
  }
  for (const DiskId& id : places.disks)
    if (const TracedDisk* disk = of_id(id)) return disk;
  if (trace.disks.size() == 1) return trace.disks.data();
  return std::unexpected(
      std::format("{}: several disks. Name that of the model files with --disk; there are {}",
                  options.recording, list));
}

std::string clock_text(const DiskReads& reads) {
  switch (reads.clock) {
    case DiskReads::Clock::Given:
      return "as given";
    case DiskReads::Clock::Faults:
      return std::format(
          "the recording of the disk begins {:.4f} s {} the session: {} of {} agree within 1 ms",
          std::abs(static_cast<double>(reads.clock_offset_ns)) * 1e-9,
          reads.clock_offset_ns < 0 ? "before" : "after", reads.faults_agreeing,
          counted(reads.faults_compared, "page fault"));
    case DiskReads::Clock::Unknown:
      break;
  }
  return "unknown, because no page faults fit: the figures are of the whole recording. Give "
         "--clock-offset";
}

void print_summary(const DiskReads& reads, const TracedDisk& disk) {
  const auto line = [](const char* name, const std::string& value) {
    print_line("{:<10} {}", name, value);
  };
  line("disk", std::format("{}, reads that were {}", to_text(disk.id),
                           disk.action == 'D' ? "sent to it (D)" : "queued (Q)"));
  line("clock", clock_text(reads));
  const DiskTally& total = reads.total;
  std::string all = std::format("{} of the model files: {}", counted(total.reads, "request"),
                                format_bytes(total.bytes));
  if (total.reads > 0) all += std::format(", {} each", format_bytes(total.bytes.v / total.reads));
  if (reads.latency_ns)
    all += std::format(", half of them done in {}", format_duration(*reads.latency_ns));
  line("read", all);
  line("order", std::format("{} of the requests and {} of the bytes are sequential",
                            part_percent(total.sequential, total.reads),
                            part_percent(total.sequential_bytes.v, total.bytes.v)));
  std::string again = std::format("{} distinct; the ops used {}", format_bytes(reads.distinct),
                                  format_bytes(reads.used));
  if (const auto factor = reads.use().reread_factor())
    again += std::format(": re-read factor {:.2f}", *factor);
  line("bytes", again);
  line("readahead",
       std::format("{} were read before a program asked for them; {} were not used by any op",
                   format_bytes(reads.readahead), format_bytes(reads.unused)));
  std::string own = counted(reads.faults, "page fault");
  if (const auto bytes = reads.use().bytes_per_fault())
    own += std::format(", {} read for each", format_bytes(*bytes));
  if (reads.clock != DiskReads::Clock::Unknown && reads.faults_with_place > 0)
    own += std::format("; for {} of {} in model files the request is in the recording",
                       reads.faults_explained, reads.faults_with_place);
  if (reads.disk_read_bytes)
    own += std::format("; the process read {}", format_bytes(*reads.disk_read_bytes));
  line("session", own);
  if (reads.other.v > 0) line("others", format_bytes(reads.other) + " of other files");
}

void print_tables(const DiskReads& reads, std::size_t limit) {
  if (!reads.tensors.empty()) {
    put("\n");
    TextTable table({"tensor", ">layer", ">requests", ">read", ">size", ">times", ">faults"});
    for (const DiskReads::OfTensor& of : reads.tensors) {
      if (limit-- == 0) break;
      const double times = of.file.length == 0 ? 0
                                               : static_cast<double>(of.bytes.v) /
                                                     static_cast<double>(of.file.length);
      table.add(of.tensor, of.layer, of.reads, format_bytes(of.bytes), format_bytes(of.file.length),
                std::format("{:.2f}", times), of.faults);
    }
    table.print();
  }
}

int run(const DiskOptions& options) {
  Progress progress("disk", progress_visibility(options.json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  const auto info = reader->info();
  if (!info) return progress.failed(info.error());
  if (info->model_files.empty()) return progress.failed("the session names no model file");
  auto recording = InputFile::open(options.recording, InputKind::RegularOrPipe);
  if (!recording) return progress.failed(recording.error());
  const auto trace =
      parse_blkparse(recording->stream(), progress.start("reading the recording of the disk"));
  if (const Status read = recording->finished(); !read) return progress.failed(read.error());
  if (!trace) {
    TraceError error = trace.error();
    if (error.kind != TraceError::Kind::Cancelled)
      error.message = options.recording + ": " + error.message;
    return progress.failed(error);
  }
  const auto places = find_disk_places(info->model_files, options.places);
  if (!places) return progress.failed(places.error());
  const auto disk = choose_disk(*trace, options, *places);
  if (!disk) return progress.failed(disk.error());
  DiskQuery query;
  if (options.clock_offset)
    query.clock_offset_ns = static_cast<std::int64_t>(std::llround(*options.clock_offset * 1e9));
  const auto reads = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return disk_reads(session, (*disk)->reads, places->extents, query,
                      progress.start("comparing requests with accesses"));
  });
  if (!reads) return progress.failed(reads.error());
  progress.end();
  if (reads->total.reads == 0) {
    progress.warn(std::format(
        "{}: no request of disk {} reads the model files{}. If they have been moved since, or are "
        "on a partition, give --extents and --partition-start.",
        options.recording, to_text((*disk)->id),
        reads->reads_outside > 0 ? " during the session" : ""));
  }
  if (options.json) {
    put_line(text_of(to_json(*reads, **disk)));
  } else {
    print_summary(*reads, **disk);
    print_tables(*reads, options.limit);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_disk_command(CLI::App& command) {
  auto options = std::make_shared<DiskOptions>();
  add_session_file(command, options->file);
  command
      .add_option("recording", options->recording,
                  "Text of blkparse: blktrace -d /dev/sda -a read -o - | blkparse -i - > FILE")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--extents", options->places.extents,
                  "Where the model files are on the disk, as printed by filefrag -v (default: ask "
                  "the kernel)")
      ->type_name("FILE");
  command
      .add_option("--partition-start", options->places.partition_start,
                  "First sector of the file system on the disk, in sectors of 512 bytes (default: "
                  "ask the kernel)")
      ->type_name("SECTOR");
  command
      .add_option("--disk", options->disk,
                  "Disk with the model files, as in the recording, like 8,0 (default: that of the "
                  "files, or the only one)")
      ->type_name("MAJOR,MINOR");
  command
      .add_option("--clock-offset", options->clock_offset,
                  "Time of the session at the first event of the recording (default: the offset on "
                  "which most page faults agree)")
      ->type_name("SECONDS");
  add_limit_option(command, options->limit, "Maximum number of tensors in the table");
  command.add_flag("--json", options->json, "Print JSON, with the figures of each step");
  command.footer("Example: tt disk s.ttrace blkparse.txt");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
