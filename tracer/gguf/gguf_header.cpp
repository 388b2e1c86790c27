#include "tracer/gguf/gguf_header.h"

#include <fcntl.h>
#include <ggml.h>
#include <gguf.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "tracer/gguf/foreign_file.h"

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
  std::string text(std::uint64_t max_bytes = UINT64_MAX) {
    const auto length = number<std::uint64_t>();
    if (length > left() || length > max_bytes) fail();
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

// ---------------------------------------------------------------- faults

class Faults {
 public:
  using Kind = GgufFault::Kind;
  explicit Faults(const std::filesystem::path& path) : path_(path.string()) {}

  bool is_full() const { return found_.size() == GgufContents::kMaxFaults; }
  void add(Kind kind, std::string_view what, std::string tensor = {}, std::string value = {}) {
    if (is_full()) return;
    found_.push_back({.kind = kind,
                      .message = std::format("{}: {}", path_, what),
                      .tensor = std::move(tensor),
                      .value = std::move(value)});
  }
  void damaged(std::string_view where) {
    add(Kind::Damaged,
        std::format("the GGUF header is damaged or truncated ({}). Download or convert it again.",
                    where));
  }
  std::vector<GgufFault> take() { return std::move(found_); }

 private:
  const std::string path_;
  std::vector<GgufFault> found_;
};

constexpr const char* kWrittenWrongly =
    "The file was written wrongly or is damaged: compare its checksum with that of the source. If "
    "it is the same, downloading it again does not help; convert the model again.";

// Forks number their own types above those of ggml. A larger number is damage.
constexpr std::int32_t kMaxForkType = 1024;
// Longer names and more dimensions are damage.
constexpr std::size_t kMaxForeignName = 1024;
constexpr std::uint32_t kMaxForeignDimensions = 8;

// A tensor as in the file; its offset is relative to the data section.
struct RawTensor {
  GgufTensorInfo info;
  bool has_size = false;  // type and shape determine its size
};

// Fails if the rest of the header cannot be read after it.
RawTensor read_tensor(Reader& in, Faults& faults) {
  using Kind = GgufFault::Kind;
  RawTensor tensor;
  GgufTensorInfo& info = tensor.info;
  info.record_offset = in.at();
  info.name = in.text(kMaxForeignName);
  const auto dims = in.number<std::uint32_t>();
  if (dims > kMaxForeignDimensions) in.fail();
  info.ne = {1, 1, 1, 1};
  bool is_valid = true;
  for (std::uint32_t i = 0; i < dims && in.ok(); ++i) {
    const auto n = in.number<std::int64_t>();
    if (n < 0) in.fail();
    if (i < info.ne.size()) info.ne[i] = n;
  }
  const auto type = in.number<std::int32_t>();
  info.offset = in.number<std::uint64_t>();
  info.record_bytes = in.at() - info.record_offset;
  if (type < 0 || type >= kMaxForkType) in.fail();
  if (!in.ok()) return tensor;

  if (info.name.size() >= GGML_MAX_NAME) {
    is_valid = false;
    faults.add(Kind::Unsupported,
               std::format("the name of tensor {} has {} bytes; llama.cpp allows {}. {}", info.name,
                           info.name.size(), GGML_MAX_NAME - 1, kWrittenWrongly),
               info.name, std::to_string(info.name.size()));
  }
  if (dims > info.ne.size()) {
    is_valid = false;
    faults.add(Kind::Unsupported,
               std::format("tensor {} has {} dimensions; llama.cpp supports {}. The file is for "
                           "another program.",
                           info.name, dims, info.ne.size()),
               info.name, std::to_string(dims));
  }
  const bool is_known = type < GGML_TYPE_COUNT && ggml_type_size(static_cast<ggml_type>(type)) > 0;
  if (!is_known) {
    const bool was_removed = type < GGML_TYPE_COUNT;
    info.type = std::format("?{}", type);
    faults.add(
        Kind::UnknownType,
        std::format("tensor {} has the type {}, {}. Downloading the file again does not "
                    "help: take the model with a quantization type of llama.cpp, or "
                    "quantize it again.",
                    info.name, type,
                    was_removed ? std::string("which llama.cpp has removed")
                                : std::format("which ggml {} does not know: a quantization type of "
                                              "a fork of llama.cpp, or of a newer version",
                                              ggml_version())),
        info.name, std::to_string(type));
    return tensor;
  }
  const auto known = static_cast<ggml_type>(type);
  info.type = ggml_type_name(known);
  if (!is_valid) return tensor;
  if (info.ne[0] % ggml_blck_size(known) != 0) {
    faults.add(
        Kind::Unsupported,
        std::format("tensor {} has rows of {} elements; its type {} needs a multiple of {}. {}",
                    info.name, info.ne[0], info.type, ggml_blck_size(known), kWrittenWrongly),
        info.name, std::to_string(info.ne[0]));
    return tensor;
  }
  const auto bytes = bytes_of(known, info.ne);
  if (!bytes) {
    in.fail();
    return tensor;
  }
  info.size = *bytes;
  tensor.has_size = true;
  return tensor;
}

// ---------------------------------------------------------------- positions of tensors

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// The tensor that contains this byte of the data section; null: none.
const GgufTensorInfo* tensor_at(const std::vector<RawTensor>& tensors, std::uint64_t byte) {
  const auto found = std::ranges::find_if(tensors, [&](const RawTensor& tensor) {
    return tensor.info.offset <= byte && byte - tensor.info.offset < tensor.info.size;
  });
  return found == tensors.end() ? nullptr : &found->info;
}

// llama.cpp requires that each tensor begins where the one before it ends, padded. Returns the end
// of the data section; nullopt: unknown. Sets the sizes that type and shape do not determine.
std::optional<std::uint64_t> check_positions(std::vector<RawTensor>& tensors,
                                             std::uint64_t alignment, std::uint64_t data_bytes,
                                             Faults& faults) {
  std::optional<std::uint64_t> expected = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    RawTensor& tensor = tensors[i];
    const std::uint64_t offset = tensor.info.offset;
    // tensor_at() looks at every tensor: only for faults that are kept.
    if (expected && offset != *expected && !faults.is_full()) {
      const GgufTensorInfo* other = tensor_at(tensors, offset);
      const bool overlaps = offset < *expected && other != nullptr && other != &tensor.info;
      faults.add(
          GgufFault::Kind::Misplaced,
          overlaps
              ? std::format(
                    "tensor {} begins at byte {} of the weights, inside tensor {} (bytes {} "
                    "to {}): they overlap. {}",
                    tensor.info.name, offset, other->name, other->offset,
                    other->offset + other->size, kWrittenWrongly)
              : std::format("tensor {} begins at byte {} of the weights; llama.cpp expects it at "
                            "byte {}, after the tensor before it. {}",
                            tensor.info.name, offset, *expected, kWrittenWrongly),
          tensor.info.name, std::to_string(offset));
    }
    if (!tensor.has_size) {
      const std::uint64_t next = i + 1 < tensors.size() ? tensors[i + 1].info.offset : data_bytes;
      tensor.info.size = next > offset && next <= data_bytes ? next - offset : 0;
      expected = std::nullopt;
    } else if (offset > UINT64_MAX / 4) {
      expected = std::nullopt;
    } else {
      expected = padded(offset + tensor.info.size, alignment);
    }
  }
  return expected;
}

// Tensors beyond the end of the file.
void check_end(const std::vector<RawTensor>& tensors, const std::filesystem::path& path,
               const GgufHeader& header, Faults& faults) {
  const auto is_outside = [&](const RawTensor& tensor) {
    const std::uint64_t data = header.file_size - std::min(header.data_offset, header.file_size);
    return tensor.info.offset > data || tensor.info.size > data - tensor.info.offset;
  };
  const auto first = std::ranges::find_if(tensors, is_outside);
  if (first == tensors.end()) return;
  faults.add(
      GgufFault::Kind::Truncated,
      std::format("truncated: tensor {} ends beyond the file's {} bytes ({} of {} tensors "
                  "are missing or incomplete). {}",
                  first->info.name, header.file_size, std::ranges::count_if(tensors, is_outside),
                  tensors.size(), truncated_advice(path)),
      first->info.name, std::to_string(header.file_size));
}

// ---------------------------------------------------------------- after the tensors

bool has_magic_at(const std::filesystem::path& path, std::uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::array<char, 4> magic{};
  return file.read(magic.data(), magic.size()) && magic == std::array{'G', 'G', 'U', 'F'};
}

// Another GGUF file behind the last tensor. `end`: of the last tensor, padded.
void check_second_file(const std::filesystem::path& path, const GgufHeader& header,
                       std::uint64_t end, std::uint64_t unpadded, Faults& faults) {
  const std::uint64_t begin = has_magic_at(path, unpadded) ? unpadded : end;
  if (header.file_size < begin + 4 || !has_magic_at(path, begin)) return;
  const std::string what =
      std::format("another GGUF file begins after the last tensor, at byte {}", begin);
  if (value_of<std::uint64_t>(header.metadata, "split.count").value_or(1) > 1) {
    faults.add(GgufFault::Kind::Joined,
               what +
                   ": the parts of a split model were joined with cat, which llama.cpp cannot "
                   "read. Use the original parts as they are (give the path of the first), or join "
                   "them with `llama-gguf-split --merge FIRST-PART OUT.gguf`.",
               {}, std::to_string(begin));
  } else {
    faults.add(GgufFault::Kind::SecondFile,
               what +
                   ": two files were joined. Only the first one is used. If they are parts of one "
                   "model, use `llama-gguf-split --merge` with the original parts.",
               {}, std::to_string(begin));
  }
}

// Weights that were never written. A download that reserves the whole file first leaves such holes.
void check_holes(const std::filesystem::path& path, const GgufHeader& header, std::uint64_t end,
                 Faults& faults) {
  constexpr std::uint64_t kMinBytes = 1U << 20;
  constexpr int kMaxHoles = 10'000;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::uint64_t bytes = 0, at = header.data_offset;
  for (int hole = 0; hole < kMaxHoles && at < end; ++hole) {
    const off_t begin = ::lseek(file, static_cast<off_t>(at), SEEK_HOLE);
    if (begin < 0 || std::cmp_greater_equal(begin, end)) break;
    const off_t data = ::lseek(file, begin, SEEK_DATA);
    at = data < 0 ? end : std::min(static_cast<std::uint64_t>(data), end);
    bytes += at - static_cast<std::uint64_t>(begin);
  }
  ::close(file);
  const std::uint64_t weights = end - header.data_offset;
  if (bytes < kMinBytes || bytes < weights / 10) return;
  faults.add(
      GgufFault::Kind::Holes,
      std::format("{} of {} bytes of weights were never written (they are read as zeros). {}",
                  bytes, weights, truncated_advice(path)),
      {}, std::to_string(bytes));
}

// ---------------------------------------------------------------- header

std::optional<std::uint64_t> alignment_of(const GgufHeader& header) {
  const auto entry =
      std::ranges::find(header.metadata, GGUF_KEY_GENERAL_ALIGNMENT, &GgufEntry::key);
  if (entry == header.metadata.end()) return GGUF_DEFAULT_ALIGNMENT;
  const auto value = value_of<std::uint64_t>(header.metadata, GGUF_KEY_GENERAL_ALIGNMENT);
  if (!value || entry->type != gguf_type_name(GGUF_TYPE_UINT32) || !std::has_single_bit(*value) ||
      *value > UINT32_MAX)
    return std::nullopt;
  return value;
}

// The first name that occurs twice; empty: none.
template <class Items, class Name>
std::string_view repeated_name(const Items& items, Name name) {
  std::unordered_set<std::string_view> seen;
  for (const auto& item : items)
    if (!seen.insert(name(item)).second) return name(item);
  return {};
}

// A key for a message.
std::string shortened(std::string_view key) {
  constexpr std::size_t kMaxBytes = 100;
  return std::format("{}{}", key.substr(0, kMaxBytes), key.size() > kMaxBytes ? "..." : "");
}

// What the four bytes after "GGUF" say; nullopt: a version that is supported.
std::optional<std::pair<GgufFault::Kind, std::string>> version_fault(std::uint32_t version) {
  using Kind = GgufFault::Kind;
  if (version >= 2 && version <= GGUF_VERSION) return std::nullopt;
  constexpr std::uint32_t kMaxSwapped = 100;
  if (const std::uint32_t swapped = std::byteswap(version);
      version > kMaxSwapped && swapped <= kMaxSwapped) {
    return std::pair{Kind::ByteOrder,
                     std::format("a big-endian GGUF file (version {}), made for machines such as "
                                 "s390x. Convert it for little-endian with gguf_convert_endian.py "
                                 "of llama.cpp, or download the little-endian file.",
                                 swapped)};
  }
  return std::pair{
      Kind::Version,
      std::format(
          "GGUF version {}; versions 2 to {} are supported. {}", version, GGUF_VERSION,
          version > GGUF_VERSION && version <= kMaxSwapped
              ? "It needs a newer llama.cpp: download the model in an older version of GGUF."
              : "Convert it again.")};
}

// Opens the file; a fault if it is not a regular file that can be read.
std::optional<std::ifstream> open_file(const std::filesystem::path& path, GgufHeader& header,
                                       std::vector<GgufFault>& faults) {
  std::error_code failed;
  const auto reject = [&](std::string what) {
    faults.push_back({.kind = GgufFault::Kind::Unreadable,
                      .message = std::format("{}: {}", path.string(), what)});
    return std::nullopt;
  };
  if (std::filesystem::is_directory(path, failed)) {
    faults.push_back(folder_instead_of_file(path));
    return std::nullopt;
  }
  // Opening a pipe would block.
  if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
    return reject("not a regular file. Give the path of a GGUF file.");
  std::ifstream file(path, std::ios::binary);
  if (!file) return reject(std::strerror(errno));
  header.file_size = std::filesystem::file_size(path, failed);
  if (failed) return reject(failed.message());
  // A file of /proc may wait for ever when it is read.
  if (header.file_size == 0) file.setstate(std::ios::eofbit);
  return file;
}

// The first bytes of a file that does not start with "GGUF".
std::string first_bytes(const std::filesystem::path& path) {
  if (std::error_code failed; std::filesystem::file_size(path, failed) == 0) return {};
  std::ifstream file(path, std::ios::binary);
  std::string begin(kForeignBytes, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return begin;
}

// The tensors of the header, and their positions in the file.
void read_tensors(Reader& in, std::uint64_t count, const std::filesystem::path& path,
                  GgufHeader& header, Faults& faults) {
  std::vector<RawTensor> tensors;
  header.records_offset = in.at();
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors.push_back(read_tensor(in, faults));
    if (in.ok()) continue;
    const std::string name = shortened(tensors.back().info.name);
    faults.damaged(
        std::format("tensor {} of {}{}{}", i + 1, count, name.empty() ? "" : ": ", name));
    tensors.pop_back();
    break;
  }
  if (const auto name = repeated_name(
          tensors, [](const RawTensor& tensor) -> const std::string& { return tensor.info.name; });
      !name.empty()) {
    faults.add(GgufFault::Kind::Duplicate,
               std::format("tensor {} is listed twice. {}", name, kWrittenWrongly),
               std::string(name));
  }
  const auto alignment = alignment_of(header);
  if (!alignment) faults.damaged("invalid alignment");
  if (in.ok() && alignment) {
    header.alignment = *alignment;
    header.data_offset = count == 0 ? in.at() : padded(in.at(), *alignment);
    const std::uint64_t data_bytes =
        header.file_size - std::min(header.data_offset, header.file_size);
    const auto end = check_positions(tensors, *alignment, data_bytes, faults);
    check_end(tensors, path, header, faults);
    if (end && !tensors.empty()) {
      const GgufTensorInfo& last = tensors.back().info;
      check_second_file(path, header, header.data_offset + *end,
                        header.data_offset + last.offset + last.size, faults);
      check_holes(path, header, header.data_offset + std::min(*end, data_bytes), faults);
    }
  }
  // Offsets relative to the begin of the file.
  for (RawTensor& tensor : tensors) {
    tensor.info.offset += header.data_offset;
    header.tensors.push_back(std::move(tensor.info));
  }
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

GgufContents inspect_gguf(const std::filesystem::path& path) {
  GgufContents contents;
  GgufHeader& header = contents.header;
  auto file = open_file(path, header, contents.faults);
  if (!file) return contents;

  Reader in(*std::move(file), std::min(header.file_size, kMaxHeaderBytes));
  if (in.number<std::array<char, 4>>() != std::array{'G', 'G', 'U', 'F'}) {
    contents.faults.push_back(foreign_file(path, first_bytes(path)));
    return contents;
  }
  Faults faults(path);
  const auto finish = [&] {
    contents.faults = faults.take();
    return std::move(contents);
  };
  const auto version = in.number<std::uint32_t>();
  const auto n_tensors = in.number<std::uint64_t>();
  const auto n_entries = in.number<std::uint64_t>();
  if (!in.ok()) {
    faults.damaged("the file is too short");
    return finish();
  }
  if (const auto fault = version_fault(version)) {
    faults.add(fault->first, fault->second, {}, std::to_string(version));
    return finish();
  }
  if (n_tensors > kMaxTensors || n_entries > kMaxEntries) {
    faults.damaged("invalid counts");
    return finish();
  }
  for (std::uint64_t i = 0; i < n_entries; ++i) {
    header.metadata.push_back(read_entry(in));
    if (in.ok()) continue;
    const std::string key = shortened(header.metadata.back().key);
    faults.damaged(
        std::format("metadata {} of {}{}{}", i + 1, n_entries, key.empty() ? "" : ": ", key));
    header.metadata.pop_back();
    return finish();
  }
  if (const auto key = repeated_name(
          header.metadata, [](const GgufEntry& entry) -> const std::string& { return entry.key; });
      !key.empty()) {
    faults.add(GgufFault::Kind::Duplicate,
               std::format("the metadata has the key {} twice (duplicate name). {}", shortened(key),
                           kWrittenWrongly),
               {}, shortened(key));
  }
  read_tensors(in, n_tensors, path, header, faults);
  return finish();
}

std::expected<GgufHeader, std::string> read_gguf_header(const std::filesystem::path& path) {
  GgufContents contents = inspect_gguf(path);
  for (const GgufFault& fault : contents.faults)
    if (!fault.is_note()) return std::unexpected(fault.message);
  return std::move(contents.header);
}

}  // namespace tt
