// Reads the sessions of a set one after the other.
#pragma once

#include <cstddef>
#include <expected>
#include <format>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/common/verdict.h"
#include "analysis/index/session_index.h"
#include "cli/options/session_file.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"

namespace tt::cli {

// `read(name, index, reader, keep_going)` returns what is kept of a session. Of a damaged file it
// is called with the steps before the damage, with a warning. Errors begin with the path.
template <class Read>
auto read_sessions(const SessionFiles& files, LeaveOut leave_out, Progress& progress,
                   const Read& read) {
  using Kept = std::invoke_result_t<const Read&, const std::string&, const SessionIndex&,
                                    const SessionReader&, const ContinueCheck&>::value_type;
  using All = std::expected<std::vector<Kept>, TraceError>;
  std::vector<Kept> all;
  for (std::size_t i = 0; i < files.paths.size(); ++i) {
    const auto named = [&](TraceError error) -> All {
      error.message = std::format("{}: {}", files.paths[i], error.message);
      return std::unexpected(std::move(error));
    };
    auto reader = open_session(files.paths[i]);
    if (!reader) return named(std::move(reader.error()));
    const std::string what = std::format("reading session {} of {}", i + 1, files.paths.size());
    auto kept = progress.query_valid_prefix(*reader, [&](const SessionReader& of) {
      const ContinueCheck keep_going = progress.start(what);
      return SessionIndex::build(of, keep_going, leave_out)
          .and_then([&](const SessionIndex& index) {
            return read(files.names[i], index, of, keep_going);
          });
    });
    if (!kept) return named(std::move(kept.error()));
    all.push_back(*std::move(kept));
  }
  return All(std::move(all));
}

}  // namespace tt::cli
