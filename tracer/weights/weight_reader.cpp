#include "tracer/weights/weight_reader.h"

#include <fcntl.h>
#include <ggml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>
#include <system_error>
#include <utility>

#include "tracer/weights/ggml_type_name.h"

namespace tt {

namespace {

std::string reason(int error) { return std::system_category().message(error); }

}  // namespace

struct WeightReader::File {
  std::string path;
  int fd = -1;
  File(std::string from, int opened) : path(std::move(from)), fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(fd); }

  std::expected<void, std::string> read_all(std::span<std::byte> to, std::uint64_t offset) const {
    while (!to.empty()) {
      const ssize_t got = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return std::unexpected(std::format("{}: {}", path, reason(errno)));
      if (got == 0)
        return std::unexpected(std::format("{} has become shorter. Run the command again.", path));
      to = to.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }
};

WeightReader::WeightReader(std::vector<std::unique_ptr<File>> files) : files_(std::move(files)) {}
WeightReader::WeightReader(WeightReader&&) noexcept = default;
WeightReader::~WeightReader() = default;

std::string undecodable_reason(const GgufTensor& tensor) {
  if (tensor.ne[0] > kMaxRowValues)
    return std::format("a row has {} values, more than {}", tensor.ne[0], kMaxRowValues);
  const auto type = ggml_type_named(tensor.type);
  if (!type) return std::format("the type {} is not known", tensor.type);
  if (*type == GGML_TYPE_F32) return "";
  const ggml_type_traits* const traits = ggml_get_type_traits(*type);
  if (traits == nullptr || traits->to_float == nullptr)
    return std::format("values of type {} cannot be decoded", tensor.type);
  return "";
}

std::expected<WeightReader, std::string> WeightReader::open(const GgufIndex& index) {
  std::vector<std::unique_ptr<File>> files;
  for (const ModelFile& file : index.files()) {
    const int fd = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return std::unexpected(std::format("{}: {}", file.path, reason(errno)));
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    files.push_back(std::make_unique<File>(file.path, fd));
  }
  return WeightReader(std::move(files));
}

std::expected<void, std::string> WeightReader::read(
    const GgufTensor& tensor, RowRange rows, const std::function<bool(const WeightRows&)>& take) {
  if (std::string why = undecodable_reason(tensor); !why.empty())
    return std::unexpected(std::move(why));
  const ggml_type type = *ggml_type_named(tensor.type);
  const std::uint64_t all = row_count(tensor);
  rows.first = std::min(rows.first, all);
  rows.count = std::min(rows.count, all - rows.first);
  const auto row_values = static_cast<std::size_t>(tensor.ne[0]);
  const std::size_t row_bytes = ggml_row_size(type, tensor.ne[0]);
  const std::uint64_t piece =
      std::clamp<std::uint64_t>(kPieceValues / std::max<std::size_t>(row_values, 1), 1,
                                std::max<std::uint64_t>(rows.count, 1));
  bytes_.resize(piece * row_bytes);
  values_.resize(piece * row_values);
  const File& file = *files_.at(tensor.file.file);
  while (rows.count > 0) {
    const std::uint64_t count = std::min(piece, rows.count);
    const std::span<std::byte> bytes(bytes_.data(), count * row_bytes);
    if (auto got = file.read_all(bytes, tensor.file.offset + rows.first * row_bytes); !got)
      return got;
    bytes_read_ += bytes.size();
    if (type == GGML_TYPE_F32) {
      std::memcpy(values_.data(), bytes.data(), bytes.size());
    } else {
      ggml_get_type_traits(type)->to_float(bytes.data(), values_.data(),
                                           static_cast<std::int64_t>(count * row_values));
    }
    if (!take({.first = rows.first,
               .count = count,
               .row_values = row_values,
               .row_bytes = row_bytes,
               .bytes = bytes,
               .values = std::span(values_.data(), count * row_values)}))
      return {};
    rows.first += count;
    rows.count -= count;
  }
  return {};
}

}  // namespace tt
