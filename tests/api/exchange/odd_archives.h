// Archives that nobody who means well would send in.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <format>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tt::test {

struct TarEntry {
  std::string name;
  std::string data{};
  char type = '0';     // of a file; '1', '2': hard and symbolic link, '3', '4', '6': devices
  std::string link{};  // where it leads
  std::optional<std::uint64_t> told_bytes{};  // in place of the data's
};

// A header of ustar and the data, filled up to 512 bytes.
inline std::string tar_entry(const TarEntry& entry) {
  std::array<char, 512> head{};
  const auto put = [&](std::size_t at, std::string_view text) {
    std::memcpy(head.data() + at, text.data(), text.size());
  };
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, std::format("{:011o}", entry.told_bytes.value_or(entry.data.size())));
  put(136, "00000000000");
  put(148, "        ");
  head[156] = entry.type;
  put(157, entry.link.substr(0, 100));
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : head) sum += static_cast<unsigned char>(c);
  put(148, std::format("{:06o}", sum));
  head[154] = '\0';
  std::string text(head.data(), head.size());
  text += entry.data;
  return text.append((512 - entry.data.size() % 512) % 512, '\0');
}

inline std::string tar_of(const std::vector<TarEntry>& entries) {
  std::string text;
  for (const TarEntry& entry : entries) text += tar_entry(entry);
  return text.append(1024, '\0');
}

struct OddArchive {
  const char* what;
  std::string bytes;
  const char* said;  // part of what is said of it
};

inline std::vector<OddArchive> odd_archives() {
  const TarEntry metadata{.name = "run/trace_metadata.json", .data = "{}"};
  const TarEntry constants{.name = "run/accesses.csv", .data = "op\n"};
  const TarEntry records{.name = "run/tensor_access.bin", .data = std::string(64, 'r')};
  const std::string whole = tar_of({metadata, constants, records});
  // As one entry more in an archive that has all else.
  const auto with = [&](TarEntry entry) {
    return tar_of({std::move(entry), metadata, constants, records});
  };
  std::vector<TarEntry> many(2000, {.name = "run/more"});
  std::string wrong_sum = whole;
  wrong_sum[3] = '!';
  return {
      {"an absolute name", with({.name = "/tmp/trace_metadata.json", .data = "x"}), "leads out"},
      {"a name with ..", with({.name = "../trace_metadata.json", .data = "x"}), "leads out"},
      {"one with .. inside", with({.name = "run/../../x", .data = "x"}), "leads out"},
      {"a symbolic link", with({.name = "run/accesses.csv", .type = '2', .link = "/etc/passwd"}),
       "neither a file nor a folder"},
      {"a link for a folder", with({.name = "run", .type = '2', .link = "/tmp"}),
       "neither a file nor a folder"},
      {"a hard link", with({.name = "run/accesses.csv", .type = '1', .link = "/etc/passwd"}),
       "neither a file nor a folder"},
      {"a character device", with({.name = "run/zero", .type = '3'}),
       "neither a file nor a folder"},
      {"a block device", with({.name = "run/disk", .type = '4'}), "neither a file nor a folder"},
      {"a pipe", with({.name = "run/accesses.csv", .type = '6'}), "neither a file nor a folder"},
      {"thousands of entries", tar_of(many), "more than 1000 entries"},
      {"a file larger than what is left",
       tar_of({metadata,
               constants,
               {.name = "run/tensor_access.bin", .data = "x", .told_bytes = 7ULL << 30}}),
       "is not whole"},
      {"another such", with({.name = "run/more", .told_bytes = 1ULL << 20}), "is not whole"},
      {"one that is cut off in a file", whole.substr(0, 2 * 1024 + 512 + 10), "not whole"},
      {"one that is cut off in a header", whole.substr(0, 2 * 1024 + 100), "not whole"},
      {"nothing", "", "no tar archive"},
      {"a text", "hello", "no tar archive"},
      {"a long text", std::string(100'000, 'a'), "no tar archive"},
      {"what is compressed", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10) + whole,
       "no tar archive"},
      {"a header whose sum is wrong", wrong_sum, "no tar archive"},
      {"no files at all", std::string(10'240, '\0'), "no trace_metadata.json"},
      {"no metadata", tar_of({constants, records}), "no trace_metadata.json"},
      {"no records", tar_of({metadata, constants}), "no tensor_access.bin"},
      {"a file that is there twice", tar_of({metadata, constants, records, constants}), "twice"},
      {"files of two run folders",
       tar_of({metadata, constants, {.name = "other/tensor_access.bin", .data = "x"}}),
       "two run folders"},
      {"a folder in a file's place",
       tar_of({metadata, constants, {.name = "run/tensor_access.bin/", .type = '5'}}),
       "no tensor_access.bin"},
      {"a name with bytes that are no text", with({.name = "../\xff\x01\n", .data = "x"}),
       "leads out"},
  };
}

}  // namespace tt::test
