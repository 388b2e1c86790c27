#include "tracer/gguf/foreign_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <format>
#include <optional>
#include <regex>
#include <system_error>

namespace tt {

namespace fs = std::filesystem;

namespace {

using namespace std::string_view_literals;
using Fault = GgufFault::Kind;

constexpr const char* kConvert =
    "Convert the original model with convert_hf_to_gguf.py of llama.cpp, or download a GGUF file.";

struct Magic {
  std::size_t at;
  std::string_view bytes;
  const char* what;
  const char* advice;
};
constexpr const char* kUnpack = "Unpack it and give the path of the .gguf file in it.";
constexpr const char* kOld =
    "Current llama.cpp does not read it. Download the model as GGUF, or convert the original "
    "model again.";
constexpr std::array kMagics = {
    Magic{0, "SQLite format 3"sv, "a session file, not a model (GGUF)",
          "tt show shows what is in it."},
    Magic{0, "\x1F\x8B"sv, "a gzip archive", kUnpack},
    Magic{0, "\x28\xB5\x2F\xFD"sv, "a zstd archive", kUnpack},
    Magic{0, "\xFD\x37zXZ"sv, "an xz archive", kUnpack},
    Magic{0, "BZh"sv, "a bzip2 archive", kUnpack},
    Magic{0, "7z\xBC\xAF\x27\x1C"sv, "a 7z archive", kUnpack},
    Magic{0, "Rar!"sv, "a RAR archive", kUnpack},
    Magic{257, "ustar"sv, "a tar archive", kUnpack},
    Magic{0, "lmgg"sv, "a model in the old format GGML", kOld},
    Magic{0, "fmgg"sv, "a model in the old format GGMF", kOld},
    Magic{0, "tjgg"sv, "a model in the old format GGJT", kOld},
    Magic{0, "algg"sv, "an adapter (LoRA) in the old format GGLA",
          "Adapters are not supported. Give the path of a model."},
    Magic{0, "nsgg"sv, "a saved session of llama.cpp", "Give the path of a model (GGUF)."},
    Magic{0, "qsgg"sv, "a saved sequence of llama.cpp", "Give the path of a model (GGUF)."},
    Magic{0, "\x89HDF"sv, "an HDF5 file (Keras)", kConvert},
    Magic{0, "\x93NUMPY"sv, "a NumPy file", kConvert},
    Magic{4, "TFL3"sv, "a TensorFlow Lite model", kConvert},
    Magic{0, "\x80\x02"sv, "a PyTorch file (pickle)", kConvert},
    Magic{0, "%PDF"sv, "a PDF document", "Download the model again."},
};

bool is_text(std::string_view begin) {
  return std::ranges::all_of(begin, [](unsigned char c) {
    return c >= 0x20 || c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// The first line, shortened.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMaxBytes = 100;
  text = text.substr(0, text.find_first_of("\r\n"));
  return std::format("\"{}{}\"", text.substr(0, kMaxBytes), text.size() > kMaxBytes ? "..." : "");
}

// The value of a line "KEY VALUE".
std::string value_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "?";
  text.remove_prefix(at + key.size());
  return std::string(text.substr(0, std::min<std::size_t>(text.find_first_of("\r\n"), 100)));
}

// What the text is, and what to do.
std::optional<std::pair<std::string, std::string>> text_file(std::string_view begin) {
  constexpr const char* kNotTheFile =
      "Use the link of the file itself; the download may need a login, or the page may say why it "
      "was not allowed.";
  if (begin.starts_with("version https://git-lfs")) {
    return std::pair{
        std::format("a Git LFS pointer, not the model: the file itself has {} bytes (oid {})",
                    value_after(begin, "\nsize "), value_after(begin, "\noid ")),
        std::string("Run `git lfs install` and `git lfs pull` in its folder, or download the file "
                    "itself.")};
  }
  std::string_view text = begin;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string low = lower(text);
  if (low.starts_with("<!doctype") || low.starts_with("<html") || low.starts_with("<head") ||
      low.contains("<html"))
    return std::pair{std::string("a web page (HTML) that was saved instead of the model"),
                     std::string(kNotTheFile)};
  if (text.empty() || !is_text(text)) return std::nullopt;
  const char* what = text.starts_with('<')                            ? "an XML text"
                     : text.starts_with('{') || text.starts_with('[') ? "a JSON text"
                                                                      : "a text";
  return std::pair{std::format("{}, not a GGUF file. It begins with {}", what, quoted(text)),
                   std::string(kNotTheFile)};
}

// Extensions of downloads that have not finished.
constexpr std::array kUnfinished = {".part",  ".crdownload", ".incomplete", ".download",
                                    ".aria2", ".tmp",        ".partial",    ".!ut"};

// Why the download has not finished; empty: nothing indicates this.
std::string unfinished_download(const fs::path& path) {
  const std::string extension = lower(path.extension().string());
  if (std::ranges::contains(kUnfinished, std::string_view(extension)))
    return std::format("Its name ends in {}: the download has not finished.",
                       path.extension().string());
  std::error_code failed;
  fs::path control = path;
  control += ".aria2";
  if (fs::exists(control, failed))
    return std::format("{} exists: the download has not finished.", control.filename().string());
  return "";
}

}  // namespace

std::string truncated_advice(const fs::path& path) {
  if (std::string unfinished = unfinished_download(path); !unfinished.empty())
    return unfinished + " Continue it.";
  static const std::regex kPiece(
      R"((.*gguf.*(part-?[a-z0-9]+(of[0-9]+)?|split-[a-z]+))|(.*\.gguf\.([a-z]{2}|[0-9]{2,3})))",
      std::regex::icase);
  if (std::regex_match(path.filename().string(), kPiece))
    return "Its name is that of a piece of a file that was cut (with split): join all pieces with "
           "cat, in their order.";
  return "Download or copy it again.";
}

GgufFault foreign_file(const fs::path& path, std::string_view begin) {
  const auto fault = [&](Fault kind, std::string_view what, std::string_view advice) {
    return GgufFault{.kind = kind,
                     .message = std::format("{}: {}. {}", path.string(), what, advice),
                     .tensor = {},
                     .value = {}};
  };
  if (begin.empty())
    return fault(Fault::Incomplete, "not a GGUF file: it is empty", truncated_advice(path));
  if (std::ranges::all_of(begin, [](char c) { return c == 0; }))
    return fault(Fault::Incomplete, "not a GGUF file: it begins with zeros",
                 "Its begin was not written yet, or was lost. " + truncated_advice(path));
  if (begin.starts_with("PK\x03\x04")) {
    const bool torch = begin.contains("data.pkl") || begin.contains(".data/serialization_id");
    return torch ? fault(Fault::OtherFormat, "a PyTorch file, not a GGUF file", kConvert)
                 : fault(Fault::OtherFormat, "a zip archive, not a GGUF file", kUnpack);
  }
  for (const Magic& magic : kMagics) {
    if (begin.size() < magic.at || !begin.substr(magic.at).starts_with(magic.bytes)) continue;
    const std::string_view what = magic.what;
    return fault(
        Fault::OtherFormat,
        what.contains("GGUF") ? std::string(what) : std::format("{}, not a GGUF file", what),
        magic.advice);
  }
  // A length, then JSON.
  if (begin.size() > 9 && begin[8] == '{' && begin.substr(4, 4) == "\0\0\0\0"sv)
    return fault(Fault::OtherFormat, "a safetensors file, not a GGUF file", kConvert);
  if (const auto text = text_file(begin))
    return fault(Fault::OtherFormat, text->first, text->second);
  return fault(Fault::OtherFormat, "not a GGUF file (it does not start with \"GGUF\")",
               "Give the path of a GGUF file. " + unfinished_download(path));
}

GgufFault folder_instead_of_file(const fs::path& path) {
  std::string models;
  bool original = false;  // of another program
  std::error_code failed;
  constexpr int kMaxEntries = 10'000;
  int entries = 0;
  for (fs::directory_iterator entry(path, failed);
       !failed && entry != fs::end(entry) && entries < kMaxEntries; entry.increment(failed)) {
    ++entries;
    const fs::path& name = entry->path().filename();
    const std::string extension = lower(name.extension().string());
    if (extension == ".gguf" && models.empty()) models = name.string();
    original = original || extension == ".safetensors" || name == "config.json";
  }
  const std::string advice = !models.empty()
                                 ? std::format(
                                       "Give the path of a file in it, such as {}, or use "
                                       "--models-dir of tt-server.",
                                       (path / models).string())
                             : original ? std::string(kConvert)
                                        : "Give the path of a GGUF file.";
  return {.kind = Fault::Unreadable,
          .message = std::format("{}: a folder, not a regular file. {}", path.string(), advice),
          .tensor = {},
          .value = {}};
}

}  // namespace tt
