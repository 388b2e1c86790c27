// Imports a tar archive of arbitrary bytes: the result is a valid session, or no file.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "api/exchange/run_folder/tar.h"
#include "tests/fuzz/imported.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tt;
  static const fuzz::Scratch scratch;
  fuzz::write_file(scratch / "s.tar", {data, size});
  const auto run = scratch / "run";
  std::filesystem::create_directory(run);
  fuzz::expect_valid_session(
      {data, size},
      [&]() -> std::expected<exchange::ImportCounts, TraceError> {
        const auto on_progress = [](std::uint64_t) -> exchange::WriteResult { return {}; };
        const auto read =
            exchange::read_tar(scratch / "s.tar", exchange::kImportedFiles, run, on_progress);
        if (!read) return std::unexpected(read.error());
        return exchange::import_run_folder(run, scratch / "s.ttrace");
      },
      scratch / "s.ttrace");
  std::uintmax_t unpacked = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(run))
    unpacked += file.file_size();
  if (unpacked > size) fuzz::report_finding("more was unpacked than the archive has");
  scratch.clear();
  return 0;
}
