// Archives written here and read by tar, and archives written by other programs.
#include "api/exchange/run_folder/tar.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "api/exchange/import/import.h"
#include "tests/api/exchange/invalid_archives.h"
#include "tests/support/command_output.h"
#include "tests/support/temp_folder.h"

namespace tt::test {
namespace {

namespace fs = std::filesystem;
using namespace tt::exchange;
constexpr std::int64_t kTime = 1'700'000'000;

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string tar_of_folder(const fs::path& folder, const std::string& top) {
  std::string bytes;
  const WriteResult written =
      write_tar(folder, top, kTime, [&](std::string_view more) -> WriteResult {
        bytes += more;
        return {};
      });
  EXPECT_TRUE(written.has_value()) << written.error().message;
  return bytes;
}

WriteResult no_limit(std::uint64_t) { return {}; }

// A run folder with file sizes at tar block boundaries and additional files.
struct RunFiles {
  RunFiles() {
    for (const auto& [name, bytes] : files) write(folder / "run" / name, bytes);
    fs::create_directory(folder / "run/empty");
  }
  std::map<std::string, std::string> files = {{"trace_metadata.json", "{}"},
                                              {"accesses.csv", std::string(512, 'c')},
                                              {"tensor_access.bin", std::string(3 << 20, '\1')},
                                              {"tensor_names.txt", ""},
                                              {"analysis/statistics.json", std::string(513, 's')}};
  TempFolder folder_;
  fs::path folder = folder_.path();
};

TEST(Tar, CanBeExtractedWithTar) {
  const RunFiles run;
  const std::string bytes = tar_of_folder(run.folder / "run", "the-session");
  write(run.folder / "s.tar", bytes);
  const std::string in_folder = "cd " + run.folder.string() + " && ";
  EXPECT_EQ(command_output(in_folder + "tar -tf s.tar"),
            "the-session/\nthe-session/accesses.csv\nthe-session/analysis/\n"
            "the-session/analysis/statistics.json\nthe-session/empty/\n"
            "the-session/tensor_access.bin\nthe-session/tensor_names.txt\n"
            "the-session/trace_metadata.json\n");
  EXPECT_TRUE(command_output(in_folder + "TZ=UTC tar --numeric-owner -tvf s.tar")
                  .contains("-rw-r--r-- 0/0             512 2023-11-14 22:13 the-session/acc"));
  command_output(in_folder + "tar -xf s.tar && diff -r run the-session");
  EXPECT_EQ(tar_of_folder(run.folder / "run", "the-session"), bytes);
  // A long name needs extra headers.
  const std::string long_name(200, 'n');
  write(run.folder / "long.tar", tar_of_folder(run.folder / "run", long_name));
  command_output(in_folder + "tar -xf long.tar && diff -r run " + long_name);
}

TEST(Tar, StopsOnSinkErrorAndCancellation) {
  const RunFiles run;
  const std::string whole = tar_of_folder(run.folder / "run", "s");
  std::string got;
  const WriteResult ended =
      write_tar(run.folder / "run", "s", kTime, [&](std::string_view more) -> WriteResult {
        if (got.size() > 1 << 20) return std::unexpected(cancelled_error());
        got += more;
        return {};
      });
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().kind, TraceError::Kind::Cancelled);
  EXPECT_TRUE(whole.starts_with(got));  // no padding after the error
  got.clear();
  int checks = 0;
  const WriteResult withdrawn = write_tar(
      run.folder / "run", "s", kTime,
      [&](std::string_view more) -> WriteResult {
        got += more;
        return {};
      },
      [&] { return ++checks < 5; });
  ASSERT_FALSE(withdrawn.has_value());
  EXPECT_EQ(withdrawn.error().kind, TraceError::Kind::Cancelled);
  EXPECT_TRUE(whole.starts_with(got));
  EXPECT_LT(got.size(), whole.size());
}

TEST(Tar, ReadsArchivesOfCommonTools) {
  const RunFiles run;
  const std::string in_folder = "cd " + run.folder.string() + " && ";
  write(run.folder / "ours.tar", tar_of_folder(run.folder / "run", "run"));
  command_output(
      in_folder +
      "for f in gnu pax ustar v7; do tar --format=$f -cf $f.tar run; done && "
      "tar -C run -cf plain.tar . && tar -cf deep.tar \"$PWD/run\" --transform 's,^,a/,' && "
      "cd run && tar -cf ../files.tar * && "
      "python3 -c 'import tarfile\nwith tarfile.open(\"../python.tar\", \"w\") as archive: "
      "archive.add(\".\", \"ü\")'");
  for (const char* name :
       {"ours", "gnu", "pax", "ustar", "v7", "plain", "deep", "files", "python"}) {
    SCOPED_TRACE(name);
    const fs::path out = run.folder / (std::string("out-") + name);
    fs::create_directory(out);
    const WriteResult read =
        read_tar(run.folder / (std::string(name) + ".tar"), kImportedFiles, out, no_limit);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    std::size_t files = 0;
    for (const auto& file : fs::directory_iterator(out)) {
      ++files;
      EXPECT_EQ(bytes_of(file.path()), run.files.at(file.path().filename()));
    }
    EXPECT_EQ(files, kImportedFiles.size() - 1);
  }
}

TEST(Tar, RejectsInvalidArchivesWithoutSideEffects) {
  for (const InvalidArchive& invalid : invalid_archives()) {
    SCOPED_TRACE(invalid.what);
    const TempFolder folder;
    fs::create_directories(folder / "deep/out");
    write(folder / "odd.tar", invalid.bytes);
    const WriteResult read =
        read_tar(folder / "odd.tar", kImportedFiles, folder / "deep/out", no_limit);
    ASSERT_FALSE(read.has_value());
    EXPECT_TRUE(read.error().message.contains(invalid.expected_error)) << read.error().message;
    for (const char c : read.error().message) EXPECT_TRUE(c >= ' ' && c <= '~');
    for (const auto& left : fs::recursive_directory_iterator(folder.path())) {
      const std::string name = left.path().lexically_relative(folder.path()).string();
      EXPECT_TRUE(name == "deep" || name == "odd.tar" || name.starts_with("deep/out")) << name;
    }
  }
}

TEST(Tar, RejectsSparseFiles) {
  const TempFolder folder;
  for (const char* format : {"gnu", "pax"}) {
    SCOPED_TRACE(format);
    command_output(
        "cd " + folder.path().string() +
        " && mkdir -p run && cd run && echo '{}' > trace_metadata.json && echo op > "
        "accesses.csv && truncate -s 1T tensor_access.bin && echo x >> tensor_access.bin && "
        "tar -S --format=" +
        format + " -cf ../sparse.tar .");
    EXPECT_LT(fs::file_size(folder / "sparse.tar"), 100'000U);
    fs::create_directories(folder / "out");
    const WriteResult read =
        read_tar(folder / "sparse.tar", kImportedFiles, folder / "out", no_limit);
    ASSERT_FALSE(read.has_value());
    EXPECT_TRUE(read.error().message.contains("sparse")) << read.error().message;
    fs::remove_all(folder / "out");
  }
}

// Truncated at any position: either all files are complete or the archive is rejected.
TEST(Tar, RejectsTruncatedArchives) {
  const RunFiles run;
  write(run.folder / "run/tensor_access.bin", std::string(2000, 'r'));
  const std::string whole = tar_of_folder(run.folder / "run", "run");
  std::size_t complete = 0;
  for (std::size_t bytes = 0; bytes <= whole.size(); bytes += 128) {
    SCOPED_TRACE(bytes);
    const fs::path out = run.folder / "out";
    fs::create_directory(out);
    write(run.folder / "cut.tar", whole.substr(0, bytes));
    if (read_tar(run.folder / "cut.tar", kImportedFiles, out, no_limit)) {
      ++complete;
      EXPECT_EQ(bytes_of(out / "tensor_access.bin"), std::string(2000, 'r'));
      EXPECT_EQ(bytes_of(out / "accesses.csv"), run.files.at("accesses.csv"));
      EXPECT_EQ(bytes_of(out / "trace_metadata.json"), "{}");
    }
    fs::remove_all(out);
  }
  EXPECT_GE(complete, 1U);
  EXPECT_LE(complete, 12U);  // cut in the padding of the last file or in the end marker
}

TEST(Tar, StopsWhenSpaceRunsOut) {
  const TempFolder folder;
  write(folder / "run/trace_metadata.json", "{}");
  write(folder / "run/accesses.csv", "op\n");
  write(folder / "run/tensor_access.bin", std::string(40 << 20, 'r'));
  write(folder / "s.tar", tar_of_folder(folder / "run", "run"));
  fs::create_directory(folder / "out");
  std::vector<std::uint64_t> reported_bytes;
  const WriteResult read = read_tar(
      folder / "s.tar", kImportedFiles, folder / "out", [&](std::uint64_t bytes) -> WriteResult {
        reported_bytes.push_back(bytes);
        if (reported_bytes.size() < 2) return {};
        return std::unexpected(TraceError{TraceError::Kind::DiskFull, "no room"});
      });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().message, "no room");
  ASSERT_EQ(reported_bytes.size(), 2U);
  EXPECT_GT(reported_bytes[1], reported_bytes[0]);
  EXPECT_FALSE(fs::exists(folder / "out/tensor_access.bin"));
}

}  // namespace
}  // namespace tt::test
