#include "server/http/static_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <format>
#include <iterator>
#include <system_error>

#include "tracer/format/file/input_file.h"

namespace tt {

namespace fs = std::filesystem;

namespace {

struct Type {
  std::string_view extension;
  const char* name;
};
constexpr std::array kTypes = {
    Type{".html", "text/html; charset=utf-8"},
    Type{".js", "text/javascript; charset=utf-8"},
    Type{".css", "text/css; charset=utf-8"},
    Type{".json", "application/json"},
    Type{".map", "application/json"},
    Type{".svg", "image/svg+xml"},
    Type{".png", "image/png"},
    Type{".ico", "image/x-icon"},
    Type{".woff2", "font/woff2"},
    Type{".wasm", "application/wasm"},
    Type{".txt", "text/plain; charset=utf-8"},
};

constexpr const char* kNotBuilt = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>tensor-trace</title>
<h1>tensor-trace is running, but its web UI is not built</h1>
<p>Build it with <code>./tt build</code> in the source tree, or set the folder of a built web UI
with <code>--path</code>. Then reload.</p>
<p>The API works without it: <a href="/api/v1/health">/api/v1/health</a>.</p>
</html>
)";

// Each segment must be a plain name: no hidden files, no "." or "..", no empty segments.
bool is_plain(std::string_view path) {
  if (!path.starts_with('/') || path.contains('\0') || path.contains('\\')) return false;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t end = path.find('/', at + 1);
    const std::string_view part = path.substr(at + 1, end - at - 1);
    if (part.empty() || part.starts_with('.')) return false;
    at = end;
  }
  return true;
}

const char* type_of(const fs::path& path) {
  const std::string extension = path.extension().string();
  const auto* known = std::ranges::find(kTypes, std::string_view(extension), &Type::extension);
  return known == kTypes.end() ? "application/octet-stream" : known->name;
}

}  // namespace

std::string etag_of(std::string_view body) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : body) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return std::format("\"{:016x}\"", hash);
}

std::optional<StaticFile> StaticFiles::find(std::string_view path) const {
  const bool index = path == "/" || path == "/index.html";
  if (!index && !is_plain(path)) return std::nullopt;
  const fs::path file = folder_ / (index ? "index.html" : path.substr(1));

  constexpr std::uint64_t kMaxBytes = 256U << 20;
  auto content = read_input(file, kMaxBytes);
  if (!content) {
    if (!index) return std::nullopt;
    return StaticFile{.body = kNotBuilt,
                      .type = "text/html; charset=utf-8",
                      .cache = "no-store",
                      .etag = etag_of(kNotBuilt)};
  }
  StaticFile found{
      .body = *std::move(content),
      .type = type_of(file),
      .cache = path.starts_with("/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      .etag = {}};
  found.etag = etag_of(found.body);
  return found;
}

}  // namespace tt
