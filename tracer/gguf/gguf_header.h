// Parses the header of one GGUF file: metadata and tensor offsets. Does not use llama.cpp's
// parser, which can abort on a malicious file. Every length is checked against the remaining
// bytes, so that any input gives a value or an error in bounded time and memory. Checks what
// llama.cpp's parser checks (types, shapes, duplicates, offsets), and says which tensor is wrong.
// Does not check whether llama.cpp can load the model (see model_kind.h and model_check.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tracer/gguf/gguf_fault.h"

namespace tt {

using GgufScalar = std::variant<std::uint64_t, std::int64_t, float, double, bool, std::string>;

struct GgufArray {
  std::string type;  // of the elements
  std::uint64_t length = 0;
  std::vector<GgufScalar> first;  // at most kShownElements
  static constexpr std::size_t kShownElements = 16;
};

struct GgufEntry {
  std::string key;
  std::string type;  // ggml's name: "u32", "str", "arr"...
  std::variant<GgufScalar, GgufArray> value;
};
// A scalar's value, or the type and length of an array: "str[32000]".
std::string value_text(const GgufEntry& entry);

struct GgufTensorInfo {
  std::string name;
  std::string type;                  // "Q4_K"; "?144": a type that ggml does not know
  std::array<std::int64_t, 4> ne{};  // elements, innermost first
  std::uint64_t offset = 0;          // bytes from the begin of the file
  std::uint64_t size = 0;            // up to the next tensor if the type is not known
  // The description of the tensor in the header; its last 8 bytes are the offset in the data.
  std::uint64_t record_offset = 0, record_bytes = 0;
};

struct GgufHeader {
  std::uint64_t file_size = 0;
  std::uint64_t data_offset = 0;        // size of the header
  std::uint64_t records_offset = 0;     // where the metadata ends and the tensors are described
  std::uint64_t alignment = 0;          // of the tensors in the data
  std::vector<GgufEntry> metadata;      // in file order
  std::vector<GgufTensorInfo> tensors;  // in file order
};

// The scalar at `key`; nullopt if the key is missing or has another type.
template <class T>
std::optional<T> value_of(const std::vector<GgufEntry>& metadata, std::string_view key) {
  const auto entry = std::ranges::find(metadata, key, &GgufEntry::key);
  if (entry == metadata.end()) return std::nullopt;
  const auto* scalar = std::get_if<GgufScalar>(&entry->value);
  if (scalar == nullptr || !std::holds_alternative<T>(*scalar)) return std::nullopt;
  return std::get<T>(*scalar);
}

// All that can be read of a file, and all that is wrong with it, the cause first.
struct GgufContents {
  GgufHeader header;  // if there are faults: tensors may be beyond the end of the file
  std::vector<GgufFault> faults;
  static constexpr std::size_t kMaxFaults = 20;  // the first ones
};
GgufContents inspect_gguf(const std::filesystem::path& path);

// The header of a file without faults except notes. The error is the message of the first fault.
std::expected<GgufHeader, std::string> read_gguf_header(const std::filesystem::path& path);

}  // namespace tt
