#include "tracer/gguf/gguf_index.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <memory>

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

// Paths of all parts of a split model, given its first part; only `path` if not split.
std::expected<std::vector<std::filesystem::path>, std::string> parts_of(
    const std::filesystem::path& path, const GgufHeader& header) {
  const std::uint64_t count = value_of<std::uint64_t>(header.metadata, "split.count").value_or(1);
  const std::uint64_t no = value_of<std::uint64_t>(header.metadata, "split.no").value_or(0);
  if (count <= 1) return std::vector{path};
  std::array<char, 4096> text{};
  if (count > UINT16_MAX || no >= count ||
      llama_split_prefix(text.data(), text.size(), path.c_str(), static_cast<int>(no),
                         static_cast<int>(count)) <= 0) {
    return std::unexpected(
        std::format("{}: part {} of {} of a split model, but its name does not end in "
                    "-{:05}-of-{:05}.gguf. Restore the original file names.",
                    path.string(), no + 1, count, no + 1, count));
  }
  const std::string prefix = text.data();
  if (no > 0) {
    llama_split_path(text.data(), text.size(), prefix.c_str(), 0, static_cast<int>(count));
    std::error_code ignored;
    return std::unexpected(
        std::format("{}: part {} of {} of a split model. Give the path of its first part: {}{}.",
                    path.string(), no + 1, count, text.data(),
                    std::filesystem::exists(text.data(), ignored) ? "" : ", which does not exist"));
  }
  std::vector<std::filesystem::path> parts;
  for (int part = 0; part < static_cast<int>(count); ++part) {
    llama_split_path(text.data(), text.size(), prefix.c_str(), part, static_cast<int>(count));
    parts.emplace_back(text.data());
  }
  return parts;
}

}  // namespace

std::expected<GgufIndex, std::string> GgufIndex::open(const std::filesystem::path& path) {
  auto first = read_gguf_header(path);
  if (!first) return std::unexpected(first.error());
  auto parts = parts_of(path, *first);
  if (!parts) return std::unexpected(parts.error());

  GgufIndex index;
  for (const auto& part : *parts) {
    if (auto added = index.add_file(part); !added) return std::unexpected(added.error());
  }
  for (std::size_t i = 0; i < index.tensors_.size(); ++i) {
    index.by_name_.emplace(index.tensors_[i].name, i);
  }
  return index;
}

std::expected<void, std::string> GgufIndex::add_file(const std::filesystem::path& path) {
  auto header = read_gguf_header(path);
  if (!header) return std::unexpected(header.error());
  auto file = describe_file(path, header->data_offset);
  if (!file) return std::unexpected(file.error());
  if (tensors_.size() + header->tensors.size() > kMaxTensors) {
    return std::unexpected(
        std::format("{}: the model has more than {} tensors.", path.string(), kMaxTensors));
  }
  const auto file_index = static_cast<std::uint32_t>(files_.size());
  for (GgufTensorInfo& info : header->tensors) {
    tensors_.push_back({.name = std::move(info.name),
                        .type = std::move(info.type),
                        .ne = info.ne,
                        .file = {.file = file_index, .offset = info.offset, .length = info.size}});
  }
  if (files_.empty()) metadata_ = std::move(header->metadata);
  files_.push_back(*std::move(file));
  return {};
}

const GgufTensor* GgufIndex::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace tt
