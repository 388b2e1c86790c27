// Writes one HTML file that holds the page and a session: it opens from disk in a browser, without
// a server and without a network (docs/exports.md, "A file that shows itself").
//
// The build of the page writes `viewer.html`: the whole page in one file, with the list of what it
// asks a server (webui/src/file/questions.ts). The export asks the routes of recorded sessions
// these questions, in this process, and stores what they answer. So a figure of the file is the one
// that the server shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "analysis/common/page.h"
#include "api/exchange/rows/byte_sink.h"
#include "tracer/format/model/ids.h"
#include "tracer/format/model/trace_error.h"

namespace tt {

inline constexpr std::string_view kPageFile = "html";  // as in parameters and options
inline constexpr std::string_view kPageFileExtension = ".html";
inline constexpr std::string_view kPageFileType = "text/html; charset=utf-8";
inline constexpr std::uint64_t kMaxPageFileBytes = 50'000'000;

struct PageFileOptions {
  std::filesystem::path session;
  std::filesystem::path viewer;  // viewer.html
  // The steps whose ops and accesses are held; the sums and the pictures are of all steps.
  StepId first{0};
  std::optional<StepId> last{};  // nullopt: the last one
  std::uint64_t max_bytes = kMaxPageFileBytes;
};

// The path of viewer.html in the folder of the built page.
std::filesystem::path viewer_in(const std::filesystem::path& webui);

// Whether the export is possible: the page is built, and the session is not being recorded.
Status check_page_file(const PageFileOptions& options);

// Streams the file. What is not needed to open it is left out where the file would exceed
// `max_bytes`, the details of the last steps first, and the page says so in its place. `keep_going`
// is called before each question; false ends the export with Cancelled. The error of a file that
// would be too large even so says what to do.
Status write_page_file(const PageFileOptions& options, const exchange::ByteSink& sink,
                       const ContinueCheck& keep_going);

}  // namespace tt
