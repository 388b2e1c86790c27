#include "program/installation.h"

#include <initializer_list>
#include <system_error>

namespace tt {

namespace fs = std::filesystem;

namespace {

// The first path that exists, otherwise the last one.
fs::path first_existing(std::initializer_list<fs::path> candidates) {
  for (const fs::path& candidate : candidates) {
    std::error_code none;
    if (fs::exists(candidate, none)) return candidate.lexically_normal();
  }
  return std::data(candidates)[candidates.size() - 1].lexically_normal();
}

}  // namespace

Installation current_installation() {
  std::error_code none;
  const fs::path bin = fs::read_symlink("/proc/self/exe", none).parent_path();
  const fs::path prefix = bin.parent_path();
  const fs::path share = prefix / "share" / "tensor-trace";
  const fs::path bundled = TT_BUNDLED_MODEL;  // in the source tree of the build
  return {.bundled_model = first_existing({share / bundled.filename(), bundled}),
          .server = bin / "tt-server",
          .worker = first_existing(
              {prefix / "libexec" / "tensor-trace" / "tt-worker", bin / "tt-worker"}),
          .webui = first_existing({share / "webui", prefix / "webui" / "dist"}),
          .agent = first_existing({prefix / TT_LIBRARY_FOLDER / "tensor-trace" / "libtt_attach.so",
                                   prefix / "lib" / "libtt_attach.so"})};
}

}  // namespace tt
