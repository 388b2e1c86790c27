#include "tracer/gguf/gguf_index.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "tracer/gguf/llama_handles.h"

namespace tt {

namespace {

constexpr std::size_t kMaxTensors = 1u << 16;

std::expected<ModelFile, std::string> describe_file(const std::filesystem::path& path,
                                                    std::uint64_t header_bytes) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) {
    return std::unexpected(std::format("{}: {}", path.string(), std::strerror(errno)));
  }
  ModelFile file;
  file.path = path.string();
  file.size = static_cast<std::uint64_t>(facts.st_size);
  file.mtime_ns = std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;

  std::ifstream in(path, std::ios::binary);
  const std::unique_ptr<XXH64_state_t, FreeWith<XXH64_freeState>> hash(XXH64_createState());
  XXH64_reset(hash.get(), 0);
  std::array<char, 1 << 16> block;
  for (std::uint64_t left = std::min(header_bytes, file.size); left > 0;) {
    const auto want = std::min<std::uint64_t>(left, block.size());
    in.read(block.data(), static_cast<std::streamsize>(want));
    if (in.gcount() <= 0) break;
    XXH64_update(hash.get(), block.data(), static_cast<std::size_t>(in.gcount()));
    left -= static_cast<std::uint64_t>(in.gcount());
  }
  file.header_hash = std::format("{:016x}", XXH64_digest(hash.get()));
  return file;
}

// A number of any integer type; nullopt: missing.
std::optional<std::uint64_t> number_of(const GgufHeader& header, std::string_view key) {
  if (const auto value = value_of<std::uint64_t>(header.metadata, key)) return value;
  const auto value = value_of<std::int64_t>(header.metadata, key);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

struct SplitPart {
  std::uint64_t number = 0, count = 1;  // number: from 0
};
SplitPart part_of(const GgufHeader& header) {
  return {.number = number_of(header, "split.no").value_or(0),
          .count = number_of(header, "split.count").value_or(1)};
}

std::string path_of_part(const std::string& prefix, std::uint64_t number, std::uint64_t count) {
  std::array<char, 4096> text{};
  llama_split_path(text.data(), text.size(), prefix.c_str(), static_cast<int>(number),
                   static_cast<int>(count));
  return text.data();
}

// The path without the part number and extension; empty: its name is not that of this part.
std::string split_prefix(const std::filesystem::path& path, const SplitPart& part) {
  std::array<char, 4096> text{};
  if (part.count > UINT16_MAX || part.number >= part.count ||
      llama_split_prefix(text.data(), text.size(), path.c_str(), static_cast<int>(part.number),
                         static_cast<int>(part.count)) <= 0)
    return "";
  return text.data();
}

}  // namespace

void GgufIndex::reject(GgufFault::Kind kind, const std::filesystem::path& path,
                       const std::string& what) {
  faults_.push_back({.kind = kind, .message = std::format("{}: {}", path.string(), what)});
}

GgufIndex GgufIndex::inspect(const std::filesystem::path& path) {
  using Kind = GgufFault::Kind;
  GgufIndex index;
  GgufContents first = inspect_gguf(path);
  const SplitPart part = part_of(first.header);
  const bool is_joined = std::ranges::contains(first.faults, Kind::Joined, &GgufFault::kind);
  const auto expected_tensors = number_of(first.header, "split.tensors.count");
  if (!index.add_file(path, std::move(first)) || part.count <= 1 || is_joined) {
    index.check_tensors();
    return index;
  }
  const std::string prefix = split_prefix(path, part);
  if (prefix.empty()) {
    index.reject(Kind::WrongPart, path,
                 std::format("part {} of {} of a split model, but its name does not end in "
                             "-{:05}-of-{:05}.gguf. Restore the original file names.",
                             part.number + 1, part.count, part.number + 1, part.count));
  } else if (part.number > 0) {
    const std::string given = path_of_part(prefix, 0, part.count);
    std::error_code ignored;
    index.reject(
        Kind::WrongPart, path,
        std::format("part {} of {} of a split model. Give the path of its first part: {}{}.",
                    part.number + 1, part.count, given,
                    std::filesystem::exists(given, ignored) ? "" : ", which does not exist"));
  } else {
    for (std::size_t number = 1;
         number < part.count && index.faults_.size() < GgufContents::kMaxFaults; ++number)
      index.add_part(path_of_part(prefix, number, part.count), number, part.count);
    if (index.faults_.empty() && expected_tensors && *expected_tensors != index.tensors_.size()) {
      index.reject(Kind::WrongPart, path,
                   std::format("the parts have {} tensors, but the first part says {}. A part is "
                               "of another model: download all parts of the same model.",
                               index.tensors_.size(), *expected_tensors));
    }
  }
  index.check_tensors();
  return index;
}

// The part `number` (from 0) of `count`, which the first part names.
void GgufIndex::add_part(const std::filesystem::path& path, std::size_t number,
                         std::uint64_t count) {
  using Kind = GgufFault::Kind;
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) {
    reject(Kind::WrongPart, path,
           std::format("No such file or directory. It is part {} of {} of a split model: put all "
                       "parts into the same folder.",
                       number + 1, count));
    return;
  }
  GgufContents contents = inspect_gguf(path);
  const SplitPart part = part_of(contents.header);
  const bool is_readable = contents.faults.empty();
  if (is_readable && (part.number != number || part.count != count)) {
    reject(Kind::WrongPart, path,
           part.count == count
               ? std::format("part {} of {}, but its name says part {}: parts have swapped names. "
                             "Restore the original file names.",
                             part.number + 1, part.count, number + 1)
               : std::format("not part {} of {} of this model, but part {} of {} of another. "
                             "Download all parts of the same model.",
                             number + 1, count, part.number + 1, part.count));
  }
  add_file(path, std::move(contents));
}

// Within all files.
void GgufIndex::check_tensors() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto [other, is_new] = by_name_.emplace(tensors_[i].name, i);
    const GgufTensor& first = tensors_[other->second];
    if (is_new || first.file.file == tensors_[i].file.file) continue;
    faults_.push_back(
        {.kind = GgufFault::Kind::Duplicate,
         .message = std::format("{}: tensor {} is also in {}: the same part has two names, or a "
                                "part is of another model. Download all parts of the same model.",
                                files_[tensors_[i].file.file].path, tensors_[i].name,
                                files_[first.file.file].path),
         .tensor = tensors_[i].name});
    return;
  }
}

std::expected<GgufIndex, std::string> GgufIndex::open(const std::filesystem::path& path) {
  GgufIndex index = inspect(path);
  const auto fault = std::ranges::find_if_not(index.faults_, &GgufFault::is_note);
  if (fault != index.faults_.end()) return std::unexpected(fault->message);
  return index;
}

// False if the file cannot be read.
bool GgufIndex::add_file(const std::filesystem::path& path, GgufContents contents) {
  std::ranges::move(contents.faults, std::back_inserter(faults_));
  GgufHeader& header = contents.header;
  const bool is_read = !header.metadata.empty() || !header.tensors.empty();
  if (!is_read && !contents.faults.empty()) return false;
  auto file = describe_file(path, header.data_offset);
  if (!file) {
    faults_.push_back({.kind = GgufFault::Kind::Unreadable, .message = file.error()});
    return false;
  }
  if (tensors_.size() + header.tensors.size() > kMaxTensors) {
    reject(GgufFault::Kind::Damaged, path,
           std::format("the model has more than {} tensors.", kMaxTensors));
    return false;
  }
  const auto file_index = static_cast<std::uint32_t>(files_.size());
  for (GgufTensorInfo& info : header.tensors) {
    tensors_.push_back({.name = std::move(info.name),
                        .type = std::move(info.type),
                        .ne = info.ne,
                        .file = {.file = file_index, .offset = info.offset, .length = info.size}});
  }
  if (files_.empty()) metadata_ = std::move(header.metadata);
  files_.push_back(*std::move(file));
  return true;
}

const GgufTensor* GgufIndex::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace tt
