#include "tracer/gguf_index.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <format>
#include <fstream>
#include <memory>

#include "tracer/llama_handles.h"

namespace tt {

namespace {

std::string value_text(const gguf_context* gguf, std::int64_t key) {
  switch (gguf_get_kv_type(gguf, key)) {
    case GGUF_TYPE_UINT8:
      return std::to_string(gguf_get_val_u8(gguf, key));
    case GGUF_TYPE_INT8:
      return std::to_string(gguf_get_val_i8(gguf, key));
    case GGUF_TYPE_UINT16:
      return std::to_string(gguf_get_val_u16(gguf, key));
    case GGUF_TYPE_INT16:
      return std::to_string(gguf_get_val_i16(gguf, key));
    case GGUF_TYPE_UINT32:
      return std::to_string(gguf_get_val_u32(gguf, key));
    case GGUF_TYPE_INT32:
      return std::to_string(gguf_get_val_i32(gguf, key));
    case GGUF_TYPE_UINT64:
      return std::to_string(gguf_get_val_u64(gguf, key));
    case GGUF_TYPE_INT64:
      return std::to_string(gguf_get_val_i64(gguf, key));
    case GGUF_TYPE_FLOAT32:
      return std::format("{}", gguf_get_val_f32(gguf, key));
    case GGUF_TYPE_FLOAT64:
      return std::format("{}", gguf_get_val_f64(gguf, key));
    case GGUF_TYPE_BOOL:
      return gguf_get_val_bool(gguf, key) ? "true" : "false";
    case GGUF_TYPE_STRING:
      return gguf_get_val_str(gguf, key);
    case GGUF_TYPE_ARRAY:
      return std::format("{}[{}]", gguf_type_name(gguf_get_arr_type(gguf, key)),
                         gguf_get_arr_n(gguf, key));
    default:
      return "";
  }
}

std::expected<ModelFile, std::string> identify(const std::filesystem::path& path,
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

// The parts of a split model, the given one included; just it when it is whole.
std::expected<std::vector<std::filesystem::path>, std::string> parts_of(
    const std::filesystem::path& path, const gguf_context* gguf) {
  const auto count_key = gguf_find_key(gguf, "split.count");
  if (count_key < 0 || gguf_get_kv_type(gguf, count_key) != GGUF_TYPE_UINT16)
    return std::vector{path};
  const int count = gguf_get_val_u16(gguf, count_key);
  if (count <= 1) return std::vector{path};
  const auto no_key = gguf_find_key(gguf, "split.no");
  const int no = no_key >= 0 && gguf_get_kv_type(gguf, no_key) == GGUF_TYPE_UINT16
                     ? gguf_get_val_u16(gguf, no_key)
                     : 0;
  std::array<char, 4096> text{};
  if (llama_split_prefix(text.data(), text.size(), path.c_str(), no, count) <= 0) {
    return std::unexpected(
        std::format("{}: part {} of {} of a split model, but its name does not end in "
                    "-{:05}-of-{:05}.gguf. Give the parts their names back.",
                    path.string(), no + 1, count, no + 1, count));
  }
  const std::string prefix = text.data();
  std::vector<std::filesystem::path> parts;
  for (int part = 0; part < count; ++part) {
    llama_split_path(text.data(), text.size(), prefix.c_str(), part, count);
    parts.emplace_back(text.data());
  }
  return parts;
}

GgufContext read_header(const std::filesystem::path& path) {
  return GgufContext(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
}

std::string not_readable(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::format("{}: {}", path.string(), std::strerror(errno));
  std::array<char, 4> magic{};
  in.read(magic.data(), magic.size());
  if (in.gcount() < 4 || std::string_view(magic.data(), 4) != GGUF_MAGIC) {
    return std::format("{}: not a GGUF file (it does not start with \"GGUF\").", path.string());
  }
  return std::format("{}: the GGUF header is damaged or truncated. Download or convert it again.",
                     path.string());
}

}  // namespace

std::expected<GgufIndex, std::string> GgufIndex::open(const std::filesystem::path& path) {
  const GgufContext first = read_header(path);
  if (!first) return std::unexpected(not_readable(path));
  auto parts = parts_of(path, first.get());
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
  const GgufContext gguf = read_header(path);
  if (!gguf) return std::unexpected(not_readable(path));
  auto file = identify(path, gguf_get_data_offset(gguf.get()));
  if (!file) return std::unexpected(file.error());

  const auto file_index = static_cast<std::uint32_t>(files_.size());
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
    GgufTensor tensor;
    tensor.name = gguf_get_tensor_name(gguf.get(), i);
    tensor.type = ggml_type_name(gguf_get_tensor_type(gguf.get(), i));
    const std::int64_t* ne = gguf_get_tensor_ne(gguf.get(), i);
    std::copy_n(ne, 4, tensor.ne.begin());
    tensor.file = {
        .file = file_index,
        .offset = gguf_get_data_offset(gguf.get()) + gguf_get_tensor_offset(gguf.get(), i),
        .length = gguf_get_tensor_size(gguf.get(), i)};
    if (tensor.file.offset + tensor.file.length > file->size) {
      return std::unexpected(std::format(
          "{}: truncated: tensor {} ends at byte {}, the file has {}. Download or copy it again.",
          path.string(), tensor.name, tensor.file.offset + tensor.file.length, file->size));
    }
    tensors_.push_back(std::move(tensor));
  }
  if (files_.empty()) {
    for (std::int64_t i = 0; i < gguf_get_n_kv(gguf.get()); ++i) {
      metadata_.emplace_back(gguf_get_key(gguf.get(), i), value_text(gguf.get(), i));
    }
  }
  files_.push_back(*std::move(file));
  return {};
}

const GgufTensor* GgufIndex::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace tt
