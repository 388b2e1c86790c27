#include "tracer/gguf/reordered_gguf.h"

#include <ggml.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <utility>

#include "tracer/gguf/llama_handles.h"

namespace tt {

namespace {

constexpr std::size_t kCopyBlockBytes = std::size_t{4} << 20;

TraceError io_error(const std::filesystem::path& path, std::string_view what) {
  return {TraceError::Kind::Io, std::format("{}: {}", path.string(), what)};
}

class Hash {
 public:
  Hash() { XXH3_128bits_reset(state_.get()); }
  void add(std::string_view bytes) {
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return std::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  std::unique_ptr<XXH3_state_t, FreeWith<XXH3_freeState>> state_{XXH3_createState()};
};

// Reads parts of a file block by block.
class TensorBytes {
 public:
  static Expected<TensorBytes> open(const std::filesystem::path& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::unexpected(io_error(path, std::strerror(errno)));
    return TensorBytes(path, std::move(file));
  }

  // Calls `each(block)` for the bytes from `offset` on; it returns a Status.
  template <class Each>
  Status read(std::uint64_t offset, std::uint64_t length, const Each& each) {
    file_.seekg(static_cast<std::streamoff>(offset));
    while (length > 0) {
      const auto want = std::min<std::uint64_t>(length, block_.size());
      if (!file_.read(block_.data(), static_cast<std::streamsize>(want)))
        return std::unexpected(io_error(
            path_, file_.bad() ? "cannot be read" : "has become shorter. Run the command again."));
      length -= want;
      if (auto done = each(std::string_view(block_).substr(0, want)); !done) return done;
    }
    return {};
  }

 private:
  TensorBytes(std::filesystem::path path, std::ifstream file)
      : path_(std::move(path)), file_(std::move(file)), block_(kCopyBlockBytes, '\0') {}

  std::filesystem::path path_;
  std::ifstream file_;
  std::string block_;
};

// The progress of reading `total` bytes.
class Copied {
 public:
  Copied(const CopyProgress& progress, std::uint64_t total) : progress_(progress), total_(total) {}
  Status add(std::uint64_t bytes) {
    done_ += bytes;
    if (progress_ && !progress_(done_, total_)) return std::unexpected(cancelled_error());
    return {};
  }

 private:
  const CopyProgress& progress_;
  std::uint64_t done_ = 0;
  const std::uint64_t total_;
};

// The header of a file whose tensors may be moved.
Expected<GgufHeader> read_movable(const std::filesystem::path& path) {
  GgufContents contents = inspect_gguf(path);
  // Also what llama.cpp accepts: bytes after the last tensor would be lost, and holes be filled.
  if (!contents.faults.empty())
    return std::unexpected(TraceError{TraceError::Kind::Damaged, contents.faults.front().message});
  const auto has_parts = [&](const GgufEntry& entry) {
    return entry.key == "split.count" && value_text(entry) != "1";
  };
  if (std::ranges::any_of(contents.header.metadata, has_parts))
    return std::unexpected(
        TraceError{TraceError::Kind::Io,
                   std::format("{} is one of the parts of a split model. Join them first: "
                               "llama-gguf-split --merge FIRST-PART OUT.gguf",
                               path.string())});
  return std::move(contents.header);
}

}  // namespace

Expected<TensorHashes> tensor_hashes(const std::filesystem::path& path,
                                     const CopyProgress& progress) {
  auto header = read_gguf_header(path);
  if (!header)
    return std::unexpected(TraceError{TraceError::Kind::Damaged, std::move(header.error())});
  auto reader = TensorBytes::open(path);
  if (!reader) return std::unexpected(reader.error());
  Copied copied(progress, header->file_size);
  TensorHashes hashes;
  for (const GgufTensorInfo& tensor : header->tensors) {
    Hash hash;
    const auto read = reader->read(tensor.offset, tensor.size, [&](std::string_view block) {
      hash.add(block);
      return copied.add(block.size());
    });
    if (!read) return std::unexpected(read.error());
    hashes.emplace(tensor.name, hash.hex());
  }
  return hashes;
}

std::string hash_of(const TensorHashes& hashes) {
  Hash all;
  for (const auto& [name, hash] : hashes) all.add(std::format("{}\n{}\n", name, hash));
  return all.hex();
}

Expected<ReorderedGguf> ReorderedGguf::plan(const std::filesystem::path& path,
                                            std::span<const std::string> first) {
  auto header = read_movable(path);
  if (!header) return std::unexpected(header.error());
  std::vector<Placed> placed;
  std::unordered_map<std::string_view, std::size_t> by_name;  // of those that are not placed yet
  for (std::size_t i = 0; i < header->tensors.size(); ++i)
    by_name.emplace(header->tensors[i].name, i);
  for (const std::string& name : first) {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      return std::unexpected(TraceError{TraceError::Kind::NotFound,
                                        std::format("{} has no tensor {}", path.string(), name)});
    placed.push_back({.info = header->tensors[found->second]});
    by_name.erase(found);
  }
  for (const GgufTensorInfo& tensor : header->tensors)
    if (by_name.contains(tensor.name)) placed.push_back({.info = tensor});
  std::uint64_t end = header->data_offset;
  for (Placed& tensor : placed) {
    tensor.offset = end;
    end = header->data_offset +
          GGML_PAD(end - header->data_offset + tensor.info.size, header->alignment);
  }
  return ReorderedGguf(path, *std::move(header), std::move(placed), end);
}

std::size_t ReorderedGguf::moved() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      placed_, [](const Placed& tensor) { return tensor.offset != tensor.info.offset; }));
}

Expected<TensorHashes> ReorderedGguf::write(const Sink& sink, const CopyProgress& progress) const {
  auto reader = TensorBytes::open(path_);
  if (!reader) return std::unexpected(reader.error());
  Copied copied(progress, bytes_);
  const auto put = [&](std::string_view bytes) {
    auto written = sink(bytes);
    return written ? copied.add(bytes.size()) : written;
  };
  const auto pad = [&](std::uint64_t from, std::uint64_t to) {
    Status written;
    const std::string zeros(std::min<std::uint64_t>(to - from, kCopyBlockBytes), '\0');
    while (from < to && written) {
      const auto block = std::string_view(zeros).substr(0, to - from);
      written = put(block);
      from += block.size();
    }
    return written;
  };

  // The metadata, byte by byte.
  if (auto done = reader->read(0, header_.records_offset, put); !done)
    return std::unexpected(done.error());
  // The records of the tensors. llama.cpp requires them in the order of the offsets, which are the
  // last field of each, relative to the data.
  std::string records;
  for (const Placed& tensor : placed_) {
    const auto read = reader->read(tensor.info.record_offset, tensor.info.record_bytes,
                                   [&](std::string_view block) {
                                     records += block;
                                     return Status{};
                                   });
    if (!read) return std::unexpected(read.error());
    const std::uint64_t offset = tensor.offset - header_.data_offset;
    std::memcpy(records.data() + records.size() - sizeof offset, &offset, sizeof offset);
  }
  if (auto done = put(records); !done) return std::unexpected(done.error());
  std::uint64_t end = header_.records_offset + records.size();
  TensorHashes hashes;
  for (const Placed& tensor : placed_) {
    if (auto done = pad(end, tensor.offset); !done) return std::unexpected(done.error());
    Hash hash;
    const auto copy =
        reader->read(tensor.info.offset, tensor.info.size, [&](std::string_view block) {
          hash.add(block);
          return put(block);
        });
    if (!copy) return std::unexpected(copy.error());
    hashes.emplace(tensor.info.name, hash.hex());
    end = tensor.offset + tensor.info.size;
  }
  if (auto done = pad(end, bytes_); !done) return std::unexpected(done.error());
  return hashes;
}

}  // namespace tt
