#include "tracer/memory/plan/stored_pattern.h"

#include <cmath>
#include <format>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "tracer/format/file/input_file.h"
#include "tracer/format/file/replace_file.h"
#include "tracer/memory/plan/pattern_names.h"

namespace tt {

namespace {

using nlohmann::json;
using namespace pattern_names;

constexpr std::array kOrderNames = {kTokenOrder, kPromptOrder};

json entry_of(ReadKind kind, const WeightRange& range, std::uint64_t part_bytes,
              std::uint32_t parts) {
  return {{kKind, to_text(kind)},           {kModelFile, range.file.file},
          {kFileOffset, range.file.offset}, {kFileBytes, range.file.length},
          {kPartBytes, part_bytes},         {kParts, parts},
          {kSizeBytes, part_bytes * parts}};
}

json entries_of(const WeightOrder& order) {
  json entries = json::array();
  for (const WeightRange& range : order.lookup)
    entries.push_back(entry_of(ReadKind::Row, range, 0, 0));
  for (const WeightUse& use : order.weights) {
    entries.push_back(entry_of(ReadKind::Fixed, use.range, use.range.file.length, 1));
    entries.back()[kOp] = use.op.v;
  }
  for (const ExpertUse& use : order.experts) {
    entries.push_back(entry_of(ReadKind::Routed, use.range, use.slice, use.per_token));
    entries.back()[kOp] = use.op.v;
  }
  return entries;
}

std::string damaged(const std::string& what) { return std::format("is damaged: {}", what); }

class PatternReader {
 public:
  explicit PatternReader(std::span<const ModelFile> files) : files_(files) {}

  // An error message, or nothing.
  std::optional<std::string> read(const json& document, StoredPattern& pattern) const {
    const json version = document.is_object() ? document.value(kVersionName, json()) : json();
    if (version == 1)
      return "is of version 1, which earlier versions of tensor-trace wrote (write it again: tt "
             "pattern FILE -o access_pattern.json)";
    if (version != kVersion)
      return damaged(std::format("it is not an access pattern of version {}", kVersion));
    if (const json files = document.value(kModelFiles, json()); !same_model(files)) {
      return "is of another model: the size or the header of the model file differs";
    }
    for (std::size_t kind = 0; kind < kOrderNames.size(); ++kind) {
      const json entries = document.value(kOrderNames[kind], json::array());
      if (!entries.is_array()) return damaged(std::format("{} is no list", kOrderNames[kind]));
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!add(entries[i], pattern.orders[kind]))
          return damaged(std::format("entry {} of {}", i, kOrderNames[kind]));
      }
    }
    if (pattern.orders[0].weights.empty() && pattern.orders[0].experts.empty())
      return damaged("it has no read of a weight");
    if (!number(document, "window_seconds", pattern.window_seconds) ||
        !number(document, "disk_bytes_per_second", pattern.disk_bytes_per_second) ||
        !number(document, "fault_bytes_per_second", pattern.fault_bytes_per_second))
      return damaged("a number is not valid");
    return std::nullopt;
  }

 private:
  bool same_model(const json& files) const {
    if (!files.is_array() || files.size() != files_.size()) return false;
    for (std::size_t i = 0; i < files.size(); ++i) {
      const json& file = files[i];
      if (!file.is_object() || file.value(kSize, json()) != files_[i].size ||
          file.value(kHeaderHash, json()) != files_[i].header_hash)
        return false;
    }
    return true;
  }
  static bool number(const json& document, const char* name, double& value) {
    const json found = document.value(name, json(0));
    if (!found.is_number()) return false;
    value = found.get<double>();
    return std::isfinite(value) && value >= 0;
  }
  template <class Number>
  static bool whole(const json& entry, const char* name, Number& value) {
    const auto found = entry.find(name);
    if (found == entry.end() || !found->is_number_unsigned()) return false;
    const auto wide = found->get<std::uint64_t>();
    value = static_cast<Number>(wide);
    return value == wide;
  }
  bool add(const json& entry, WeightOrder& order) const {
    WeightRange range;
    FileRange& file = range.file;
    if (!entry.is_object() || !whole(entry, kModelFile, file.file) ||
        !whole(entry, kFileOffset, file.offset) || !whole(entry, kFileBytes, file.length))
      return false;
    if (file.file >= files_.size() || file.length == 0) return false;
    const std::uint64_t size = files_[file.file].size;
    if (file.offset > size || file.length > size - file.offset) return false;
    const json kind = entry.value(kKind, json());
    if (kind == to_text(ReadKind::Row)) {
      order.lookup.push_back(range);
      return true;
    }
    OpId op;
    if (!whole(entry, kOp, op.v)) return false;
    if (kind == to_text(ReadKind::Fixed)) {
      const bool in_order = order.weights.empty() || order.weights.back().op <= op;
      order.weights.push_back({.range = range, .op = op});
      return in_order;
    }
    ExpertUse use;
    use.range = range;
    use.op = op;
    use.tokens = 1;
    if (kind != to_text(ReadKind::Routed) || !whole(entry, kPartBytes, use.slice) ||
        !whole(entry, kParts, use.per_token) || use.slice == 0 || use.slice > file.length)
      return false;
    use.stride = use.slice;
    use.experts = static_cast<std::uint32_t>(file.length / use.slice);
    order.experts.push_back(use);
    return true;
  }

  const std::span<const ModelFile> files_;
};

}  // namespace

std::string pattern_text(const StoredPattern& pattern, std::span<const ModelFile> files) {
  json list = json::array();
  for (const ModelFile& file : files)
    list.push_back({{kPath, file.path}, {kSize, file.size}, {kHeaderHash, file.header_hash}});
  json document = {{kVersionName, kVersion},
                   {kModelFiles, std::move(list)},
                   {"window_seconds", pattern.window_seconds},
                   {"disk_bytes_per_second", pattern.disk_bytes_per_second},
                   {"fault_bytes_per_second", pattern.fault_bytes_per_second}};
  for (std::size_t kind = 0; kind < kOrderNames.size(); ++kind)
    if (pattern.orders[kind] != WeightOrder{})
      document[kOrderNames[kind]] = entries_of(pattern.orders[kind]);
  // A path need not be UTF-8.
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::expected<StoredPattern, std::string> parse_pattern(std::string_view text,
                                                        std::span<const ModelFile> files) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return std::unexpected(damaged("it is not JSON"));
  StoredPattern pattern;
  if (auto error = PatternReader(files).read(document, pattern)) return std::unexpected(*error);
  return pattern;
}

std::optional<std::expected<StoredPattern, std::string>> read_pattern(
    const std::filesystem::path& file, std::span<const ModelFile> files) {
  constexpr std::uint64_t kMaxBytes = 16U << 20;
  const auto text = read_input(file, kMaxBytes);
  if (!text && text.error().kind == TraceError::Kind::NotFound) return std::nullopt;
  // Without the path, which the callers name.
  if (!text) return std::unexpected(text.error().message.substr(file.string().size() + 1));
  return parse_pattern(*text, files);
}

std::filesystem::path pattern_file(const std::filesystem::path& folder,
                                   const std::filesystem::path& model) {
  std::filesystem::path file = folder / model.filename();
  file += ".access_pattern.json";
  return file;
}

bool write_pattern(const std::filesystem::path& file, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  return replace_file(file, text);
}

}  // namespace tt
