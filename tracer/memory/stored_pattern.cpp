#include "tracer/memory/stored_pattern.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace tt {

namespace {

constexpr std::string_view kFirstLine = "tensor-trace access pattern 1";
constexpr std::array kOrderNames = {"generate", "prompt"};
constexpr const char* kDamaged = "is damaged";

std::string range_text(const WeightRange& range) {
  return std::format("{} {} {}", range.file.file, range.file.offset, range.file.length);
}

class PatternParser {
 public:
  explicit PatternParser(std::span<const ModelFile> files) : files_(files) {}

  // False: the line is damaged.
  bool line(const std::string& text) {
    std::istringstream words(text);
    std::string kind;
    words >> kind;
    return kind == "window"   ? read_number(words, pattern.window_seconds)
           : kind == "disk"   ? read_number(words, pattern.disk_bytes_per_second)
           : kind == "order"  ? begin_order(words)
           : kind == "weight" ? add_weight(words)
           : kind == "expert" ? add_expert(words)
           : kind == "lookup" ? add_lookup(words)
                              : false;
  }
  StoredPattern pattern;

 private:
  static bool read_number(std::istream& in, double& number) {
    return in >> number && std::isfinite(number) && number >= 0;
  }
  bool begin_order(std::istream& in) {
    std::string name;
    in >> name;
    const auto found = std::ranges::find(kOrderNames, name);
    if (found == kOrderNames.end()) return false;
    order_ = &pattern.orders[static_cast<std::size_t>(found - kOrderNames.begin())];
    return true;
  }
  bool read_range(std::istream& in, WeightRange& range) const {
    FileRange& file = range.file;
    if (order_ == nullptr || !(in >> file.file >> file.offset >> file.length)) return false;
    if (file.file >= files_.size() || file.length == 0) return false;
    const std::uint64_t size = files_[file.file].size;
    return file.offset <= size && file.length <= size - file.offset;
  }
  bool add_weight(std::istream& in) {
    WeightUse use;
    if (!read_range(in, use.range) || !(in >> use.op.v)) return false;
    const bool in_order = order_->weights.empty() || order_->weights.back().op <= use.op;
    order_->weights.push_back(use);
    return in_order;
  }
  bool add_expert(std::istream& in) {
    ExpertUse use;
    if (!read_range(in, use.range) ||
        !(in >> use.op.v >> use.slice >> use.stride >> use.experts >> use.per_token >> use.tokens))
      return false;
    order_->experts.push_back(use);
    return use.slice <= use.range.file.length && use.per_token <= use.experts;
  }
  bool add_lookup(std::istream& in) {
    WeightRange range;
    if (!read_range(in, range)) return false;
    order_->lookup.push_back(range);
    return true;
  }

  const std::span<const ModelFile> files_;
  WeightOrder* order_ = nullptr;
};

std::string file_line(const ModelFile& file) {
  return std::format("file {} {}", file.size, file.header_hash.empty() ? "-" : file.header_hash);
}

}  // namespace

std::string pattern_text(const StoredPattern& pattern, std::span<const ModelFile> files) {
  std::string text = std::format("{}\n", kFirstLine);
  for (const ModelFile& file : files) text += file_line(file) + "\n";
  text +=
      std::format("window {}\ndisk {}\n", pattern.window_seconds, pattern.disk_bytes_per_second);
  for (std::size_t kind = 0; kind < kOrderNames.size(); ++kind) {
    const WeightOrder& order = pattern.orders[kind];
    if (order == WeightOrder{}) continue;
    text += std::format("order {}\n", kOrderNames[kind]);
    for (const WeightUse& use : order.weights)
      text += std::format("weight {} {}\n", range_text(use.range), use.op.v);
    for (const ExpertUse& use : order.experts) {
      text += std::format("expert {} {} {} {} {} {} {}\n", range_text(use.range), use.op.v,
                          use.slice, use.stride, use.experts, use.per_token, use.tokens);
    }
    for (const WeightRange& range : order.lookup)
      text += std::format("lookup {}\n", range_text(range));
  }
  return text + "end\n";
}

std::expected<StoredPattern, std::string> parse_pattern(std::string_view text,
                                                        std::span<const ModelFile> files) {
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return std::unexpected(kDamaged);
  std::size_t same = 0;
  bool of_this_model = true;
  PatternParser parser(files);
  while (std::getline(in, line)) {
    if (line.starts_with("file ")) {
      of_this_model = of_this_model && same < files.size() && line == file_line(files[same]);
      ++same;
      continue;
    }
    if (!of_this_model || same != files.size()) {
      return std::unexpected(
          "is of another model: the size or the header of the model file differs");
    }
    if (line == "end") return std::move(parser.pattern);
    if (!parser.line(line)) break;
  }
  return std::unexpected(kDamaged);
}

std::optional<std::expected<StoredPattern, std::string>> read_pattern(
    const std::filesystem::path& file, std::span<const ModelFile> files) {
  constexpr std::uintmax_t kMaxBytes = 64U << 20;
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  if (failed) return std::nullopt;
  std::ifstream in(file);
  if (size > kMaxBytes || !in) return std::unexpected<std::string>(kDamaged);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_pattern(text, files);
}

bool write_pattern(const std::filesystem::path& file, const std::string& text) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  std::filesystem::path draft = file;
  draft += std::format(".{}", ::getpid());
  std::ofstream out(draft, std::ios::binary);
  out << text;
  out.close();
  if (out) std::filesystem::rename(draft, file, failed);
  if (out && !failed) return true;
  std::filesystem::remove(draft, failed);
  return false;
}

}  // namespace tt
