#include "tracer/gguf/gguf_header.h"

#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <optional>
#include <unordered_set>

namespace tt {

namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

// Far above any real model. A sparse file can claim any size.
constexpr std::uint64_t kMaxHeaderBytes = 256u << 20;
constexpr std::uint64_t kMaxEntries = 1u << 16;
constexpr std::uint64_t kMaxTensors = 1u << 16;

// Reads sequentially and never beyond `limit`. After the first failure all reads return 0.
class Reader {
 public:
  Reader(std::ifstream in, std::uint64_t limit) : in_(std::move(in)), left_(limit), limit_(limit) {}

  bool ok() const { return ok_; }
  std::uint64_t at() const { return limit_ - left_; }
  std::uint64_t left() const { return ok_ ? left_ : 0; }
  void fail() { ok_ = false; }

  template <class T>
  T number() {
    T value{};
    take(reinterpret_cast<char*>(&value), sizeof value);
    return ok_ ? value : T{};
  }
  std::string text() {
    const auto length = number<std::uint64_t>();
    if (length > left()) fail();
    std::string text(ok_ ? length : 0, '\0');
    take(text.data(), text.size());
    return text;
  }
  void skip(std::uint64_t bytes) {
    if (!ok_ || bytes == 0) return;
    if (bytes > left_) return fail();
    in_.ignore(static_cast<std::streamsize>(bytes));
    ok_ = in_.good();
    left_ -= bytes;
  }

 private:
  void take(char* out, std::uint64_t bytes) {
    if (bytes > left()) return fail();
    in_.read(out, static_cast<std::streamsize>(bytes));
    ok_ = static_cast<std::uint64_t>(in_.gcount()) == bytes;
    left_ -= bytes;
  }

  std::ifstream in_;
  std::uint64_t left_, limit_;
  bool ok_ = true;
};

// ---------------------------------------------------------------- metadata

GgufScalar read_scalar(Reader& in, gguf_type type) {
  const auto natural = [](std::uint64_t value) { return GgufScalar(value); };
  const auto integer = [](std::int64_t value) { return GgufScalar(value); };
  switch (type) {
    case GGUF_TYPE_UINT8:
      return natural(in.number<std::uint8_t>());
    case GGUF_TYPE_INT8:
      return integer(in.number<std::int8_t>());
    case GGUF_TYPE_UINT16:
      return natural(in.number<std::uint16_t>());
    case GGUF_TYPE_INT16:
      return integer(in.number<std::int16_t>());
    case GGUF_TYPE_UINT32:
      return natural(in.number<std::uint32_t>());
    case GGUF_TYPE_INT32:
      return integer(in.number<std::int32_t>());
    case GGUF_TYPE_UINT64:
      return natural(in.number<std::uint64_t>());
    case GGUF_TYPE_INT64:
      return integer(in.number<std::int64_t>());
    case GGUF_TYPE_FLOAT32:
      return in.number<float>();
    case GGUF_TYPE_FLOAT64:
      return in.number<double>();
    case GGUF_TYPE_BOOL:
      return in.number<std::uint8_t>() != 0;
    case GGUF_TYPE_STRING:
      return in.text();
    default:
      in.fail();
      return {};
  }
}

// Bytes per element; 0: variable size.
std::uint64_t size_of(gguf_type type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
      return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
      return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
      return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

std::optional<gguf_type> read_type(Reader& in) {
  const auto type = in.number<std::int32_t>();
  if (!in.ok() || type < 0 || type >= GGUF_TYPE_COUNT) return std::nullopt;
  return static_cast<gguf_type>(type);
}

GgufArray read_array(Reader& in) {
  const auto type = read_type(in);
  GgufArray array;
  if (!type || *type == GGUF_TYPE_ARRAY) {  // nested arrays are not supported
    in.fail();
    return array;
  }
  array.type = gguf_type_name(*type);
  array.length = in.number<std::uint64_t>();
  const std::uint64_t shown = std::min<std::uint64_t>(array.length, GgufArray::kShownElements);
  for (std::uint64_t i = 0; i < shown && in.ok(); ++i)
    array.first.push_back(read_scalar(in, *type));
  const std::uint64_t rest = array.length - shown;
  if (const std::uint64_t size = size_of(*type); size > 0) {
    if (rest > in.left() / size) in.fail();
    if (in.ok()) in.skip(rest * size);
  } else {
    for (std::uint64_t i = 0; i < rest && in.ok(); ++i) in.skip(in.number<std::uint64_t>());
  }
  return array;
}

GgufEntry read_entry(Reader& in) {
  GgufEntry entry;
  entry.key = in.text();
  const auto type = read_type(in);
  if (!type) {
    in.fail();
    return entry;
  }
  entry.type = gguf_type_name(*type);
  if (*type == GGUF_TYPE_ARRAY) {
    entry.value = read_array(in);
  } else {
    entry.value = read_scalar(in, *type);
  }
  return entry;
}

// ---------------------------------------------------------------- tensors

// a * b; nullopt if it exceeds the limit of file sizes.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;
  if (a != 0 && b > kMaxBytes / a) return std::nullopt;
  return a * b;
}

// Size of a contiguous tensor as in ggml; nullopt if the shape is invalid for the type.
std::optional<std::uint64_t> bytes_of(ggml_type type, const std::array<std::int64_t, 4>& ne) {
  const std::int64_t block = ggml_blck_size(type);
  if (block <= 0 || ggml_type_size(type) == 0 || ne[0] % block != 0) return std::nullopt;
  std::optional<std::uint64_t> bytes = ggml_type_size(type);
  for (std::size_t i = 0; i < ne.size() && bytes; ++i)
    bytes = product(*bytes, static_cast<std::uint64_t>(i == 0 ? ne[0] / block : ne[i]));
  return bytes;
}

// The offset is relative to the data section.
GgufTensorInfo read_tensor(Reader& in) {
  GgufTensorInfo tensor;
  tensor.name = in.text();
  const auto dims = in.number<std::uint32_t>();
  tensor.ne = {1, 1, 1, 1};
  if (tensor.name.size() >= GGML_MAX_NAME || dims > tensor.ne.size()) in.fail();
  for (std::uint32_t i = 0; i < dims && in.ok(); ++i) tensor.ne[i] = in.number<std::int64_t>();
  if (std::ranges::any_of(tensor.ne, [](std::int64_t n) { return n < 0; })) in.fail();
  const auto type = in.number<std::int32_t>();
  tensor.offset = in.number<std::uint64_t>();
  if (!in.ok() || type < 0 || type >= GGML_TYPE_COUNT) {
    in.fail();
    return tensor;
  }
  const auto bytes = bytes_of(static_cast<ggml_type>(type), tensor.ne);
  if (!bytes) {  // also types that ggml has removed
    in.fail();
    return tensor;
  }
  tensor.type = ggml_type_name(static_cast<ggml_type>(type));
  tensor.size = *bytes;
  return tensor;
}

// ---------------------------------------------------------------- header

std::unexpected<std::string> damaged(const std::filesystem::path& path, const std::string& where) {
  return std::unexpected(
      std::format("{}: the GGUF header is damaged or truncated ({}). Download or convert it again.",
                  path.string(), where));
}

std::optional<std::uint64_t> alignment_of(const GgufHeader& header) {
  if (std::ranges::find(header.metadata, GGUF_KEY_GENERAL_ALIGNMENT, &GgufEntry::key) ==
      header.metadata.end())
    return GGUF_DEFAULT_ALIGNMENT;
  const auto value = value_of<std::uint64_t>(header.metadata, GGUF_KEY_GENERAL_ALIGNMENT);
  if (!value || !std::has_single_bit(*value) || *value > UINT32_MAX) return std::nullopt;
  return value;
}

template <class T>
bool all_unique(const std::vector<T>& items, const std::string T::* name) {
  std::unordered_set<std::string_view> seen;
  return std::ranges::all_of(items, [&](const T& item) { return seen.insert(item.*name).second; });
}

}  // namespace

std::string value_text(const GgufEntry& entry) {
  if (const auto* array = std::get_if<GgufArray>(&entry.value))
    return std::format("{}[{}]", array->type, array->length);
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
          return value;
        } else {
          return std::format("{}", value);
        }
      },
      std::get<GgufScalar>(entry.value));
}

std::expected<GgufHeader, std::string> read_gguf_header(const std::filesystem::path& path) {
  std::error_code failed;
  GgufHeader header;
  // Opening a pipe would block.
  if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
    return std::unexpected(
        std::format("{}: not a regular file. Give the path of a GGUF file.", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::unexpected(std::format("{}: {}", path.string(), std::strerror(errno)));
  header.file_size = std::filesystem::file_size(path, failed);
  if (failed) return std::unexpected(std::format("{}: {}", path.string(), failed.message()));

  Reader in(std::move(file), std::min(header.file_size, kMaxHeaderBytes));
  const auto magic = in.number<std::array<char, 4>>();
  if (magic == std::array{'S', 'Q', 'L', 'i'}) {
    return std::unexpected(std::format(
        "{}: a session file, not a model (GGUF). tt show shows what is in it.", path.string()));
  }
  if (magic != std::array{'G', 'G', 'U', 'F'}) {
    return std::unexpected(std::format(
        "{}: not a GGUF file (it does not start with \"GGUF\"). Download or convert it again.",
        path.string()));
  }
  const auto version = in.number<std::uint32_t>();
  const auto n_tensors = in.number<std::uint64_t>();
  const auto n_entries = in.number<std::uint64_t>();
  if (!in.ok()) return damaged(path, "the file is too short");
  if (version < 2 || version > GGUF_VERSION) {
    return std::unexpected(
        std::format("{}: GGUF version {}; versions 2 to {} are supported. Convert it again.",
                    path.string(), version, GGUF_VERSION));
  }
  if (n_tensors > kMaxTensors || n_entries > kMaxEntries) return damaged(path, "invalid counts");

  for (std::uint64_t i = 0; i < n_entries; ++i) {
    header.metadata.push_back(read_entry(in));
    if (!in.ok()) return damaged(path, std::format("metadata {} of {}", i + 1, n_entries));
  }
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    header.tensors.push_back(read_tensor(in));
    if (!in.ok()) return damaged(path, std::format("tensor {} of {}", i + 1, n_tensors));
  }
  if (!all_unique(header.metadata, &GgufEntry::key) ||
      !all_unique(header.tensors, &GgufTensorInfo::name)) {
    return damaged(path, "duplicate name");
  }
  const auto alignment = alignment_of(header);
  if (!alignment) return damaged(path, "invalid alignment");
  header.data_offset =
      n_tensors == 0 ? in.at() : (in.at() + *alignment - 1) / *alignment * *alignment;

  // Make offsets relative to the begin of the file.
  for (GgufTensorInfo& tensor : header.tensors) {
    if (tensor.offset > header.file_size || header.data_offset > header.file_size ||
        header.data_offset + tensor.offset + tensor.size > header.file_size) {
      return std::unexpected(std::format(
          "{}: truncated: tensor {} ends beyond the file's {} bytes. Download or copy it again.",
          path.string(), tensor.name, header.file_size));
    }
    tensor.offset += header.data_offset;
  }
  return header;
}

}  // namespace tt
