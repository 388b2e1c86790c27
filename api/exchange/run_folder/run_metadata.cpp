#include "api/exchange/run_folder/run_metadata.h"

#include <format>
#include <string>
#include <string_view>

#include "api/exchange/import/imported_row.h"
#include "tracer/format/file/input_file.h"

namespace tt::exchange {
namespace {

TraceError invalid_metadata(const std::filesystem::path& path) {
  return damaged(path, 1, "Not the metadata of a run folder.");
}

// Splits the file's text, without whitespace between tokens, into the elements of its list
// "steps" and everything else. It only counts brackets and quotes; the caller parses the JSON.
class MetadataScanner {
 public:
  using Take = std::function<WriteResult(const std::string& step)>;
  MetadataScanner(const std::filesystem::path& path, const Take& take) : path_(path), take_(take) {}

  std::expected<std::string, TraceError> rest() {
    auto file = InputFile::open(path_);
    if (!file) return std::unexpected(std::move(file.error()));
    std::streambuf& text = *file->stream().rdbuf();
    constexpr int kEnd = std::char_traits<char>::eof();
    for (int c = text.sbumpc(); c != kEnd; c = text.sbumpc())
      if (WriteResult taken = add(static_cast<char>(c)); !taken)
        return std::unexpected(taken.error());
    if (const Status read = file->finished(); !read) return std::unexpected(read.error());
    if (in_steps_) return std::unexpected(invalid_metadata(path_));
    return std::move(rest_);
  }

 private:
  // The list of steps is the value of a key at depth 1. Its elements start and end at depth 2.
  WriteResult add(char c) {
    const bool of_text = in_text_ || c == '"';
    if (!of_text && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) return {};
    if (!of_text && in_steps_ && depth_ == 2 && (c == ',' || c == ']')) {
      if (WriteResult ended = end_step(c); !ended) return ended;
      if (c == ',') return {};
    }
    if (!of_text && (c == '}' || c == ']')) --depth_;
    if (in_steps_ && depth_ < 2) in_steps_ = false;
    std::string& part = in_steps_ ? step_ : rest_;
    if (part.size() == kMaxMetadataText)
      return std::unexpected(
          damaged(path_, 1,
                  std::format("A step, or the text outside of the steps, is larger than {} MiB.",
                              kMaxMetadataText >> 20)));
    part += c;
    if (!of_text && (c == '{' || c == '[')) {
      ++depth_;
      in_steps_ = in_steps_ || (c == '[' && depth_ == 2 && rest_.ends_with(kKey));
    }
    read_text(c);
    return {};
  }

  void read_text(char c) {
    if (in_text_ && escaped_) {
      escaped_ = false;
    } else if (in_text_ && c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_text_ = !in_text_;
    }
  }

  WriteResult end_step(char c) {
    if (step_.empty() && c == ']' && steps_ == 0) return {};
    ++steps_;
    WriteResult taken = take_(step_);
    step_.clear();
    return taken;
  }

  static constexpr std::string_view kKey = "\"steps\":[";
  const std::filesystem::path& path_;
  const Take& take_;
  std::string rest_, step_;
  int depth_ = 0;
  bool in_steps_ = false, in_text_ = false, escaped_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace

std::expected<Json, TraceError> metadata_in(const std::filesystem::path& path) {
  const MetadataScanner::Take ignore = [](const std::string&) { return WriteResult{}; };
  const auto text = MetadataScanner(path, ignore).rest();
  if (!text) return std::unexpected(text.error());
  auto all = parse_json(*text, kImportLimits);
  if (!all && all.error().limit)
    return std::unexpected(damaged(path, 1, "The file " + all.error().message + "."));
  const bool whole = all && all->is_object() && all->contains("session") &&
                     all->contains("steps") && (*all)["steps"].is_array() &&
                     (*all)["steps"].empty();
  if (!whole) return std::unexpected(invalid_metadata(path));
  return *std::move(all);
}

WriteResult for_each_step_in(const std::filesystem::path& path,
                             const std::function<WriteResult(const Json&)>& step) {
  const MetadataScanner::Take take = [&](const std::string& text) -> WriteResult {
    const auto json = parse_json(text, kImportLimits);
    if (!json && json.error().limit)
      return std::unexpected(damaged(path, 1, "A step " + json.error().message + "."));
    if (!json || !json->is_object())
      return std::unexpected(damaged(path, 1, "A step is not an object."));
    return step(*json);
  };
  return MetadataScanner(path, take).rest().transform([](const std::string&) {});
}

}  // namespace tt::exchange
