// Invalid and malicious tar archives.
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
  char type = '0';     // '0': file; '1', '2': hard and symbolic link; '3', '4': devices; '6': pipe
  std::string link{};  // link target
  std::optional<std::uint64_t> declared_bytes{};  // header size, if not that of the data
};

// A ustar header and the data, padded to 512 bytes.
inline std::string tar_entry(const TarEntry& entry) {
  std::array<char, 512> head{};
  const auto put = [&](std::size_t at, std::string_view text) {
    std::memcpy(head.data() + at, text.data(), text.size());
  };
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, std::format("{:011o}", entry.declared_bytes.value_or(entry.data.size())));
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

struct InvalidArchive {
  const char* what;
  std::string bytes;
  const char* expected_error;  // substring of the error message
};

inline std::vector<InvalidArchive> invalid_archives() {
  const TarEntry metadata{.name = "run/trace_metadata.json", .data = "{}"};
  const TarEntry constants{.name = "run/accesses.csv", .data = "op\n"};
  const TarEntry records{.name = "run/tensor_access.bin", .data = std::string(64, 'r')};
  const std::string whole = tar_of({metadata, constants, records});
  // A complete archive with an additional first entry.
  const auto with = [&](TarEntry entry) {
    return tar_of({std::move(entry), metadata, constants, records});
  };
  std::vector<TarEntry> many(2000, {.name = "run/more"});
  std::string wrong_sum = whole;
  wrong_sum[3] = '!';
  return {
      {"an absolute name", with({.name = "/tmp/trace_metadata.json", .data = "x"}),
       "outside of the folder"},
      {"a name with ..", with({.name = "../trace_metadata.json", .data = "x"}),
       "outside of the folder"},
      {"a name with .. inside", with({.name = "run/../../x", .data = "x"}),
       "outside of the folder"},
      {"a symbolic link", with({.name = "run/accesses.csv", .type = '2', .link = "/etc/passwd"}),
       "neither a file nor a folder"},
      {"a link in place of a folder", with({.name = "run", .type = '2', .link = "/tmp"}),
       "neither a file nor a folder"},
      {"a hard link", with({.name = "run/accesses.csv", .type = '1', .link = "/etc/passwd"}),
       "neither a file nor a folder"},
      {"a character device", with({.name = "run/zero", .type = '3'}),
       "neither a file nor a folder"},
      {"a block device", with({.name = "run/disk", .type = '4'}), "neither a file nor a folder"},
      {"a pipe", with({.name = "run/accesses.csv", .type = '6'}), "neither a file nor a folder"},
      {"thousands of entries", tar_of(many), "more than 1000 entries"},
      {"a file larger than the rest of the archive",
       tar_of({metadata,
               constants,
               {.name = "run/tensor_access.bin", .data = "x", .declared_bytes = 7ULL << 30}}),
       "is truncated"},
      {"an ignored file larger than the rest of the archive",
       with({.name = "run/more", .declared_bytes = 1ULL << 20}), "is truncated"},
      {"truncated in a file", whole.substr(0, 2 * 1024 + 512 + 10), "truncated"},
      {"truncated in a header", whole.substr(0, 2 * 1024 + 100), "truncated"},
      {"empty", "", "Not a tar archive"},
      {"a text", "hello", "Not a tar archive"},
      {"a long text", std::string(100'000, 'a'), "Not a tar archive"},
      {"compressed", std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10) + whole,
       "Not a tar archive"},
      {"a header with a wrong checksum", wrong_sum, "Not a tar archive"},
      {"no files", std::string(10'240, '\0'), "no trace_metadata.json"},
      {"no metadata", tar_of({constants, records}), "no trace_metadata.json"},
      {"no records", tar_of({metadata, constants}), "no tensor_access.bin"},
      {"a duplicate file", tar_of({metadata, constants, records, constants}), "twice"},
      {"files of two run folders",
       tar_of({metadata, constants, {.name = "other/tensor_access.bin", .data = "x"}}),
       "two run folders"},
      {"a folder in place of a file",
       tar_of({metadata, constants, {.name = "run/tensor_access.bin/", .type = '5'}}),
       "no tensor_access.bin"},
      {"a name with invalid UTF-8", with({.name = "../\xff\x01\n", .data = "x"}),
       "outside of the folder"},
  };
}

}  // namespace tt::test
