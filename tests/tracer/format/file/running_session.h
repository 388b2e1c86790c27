// A session that is being written.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "tests/support/sessions/random_session.h"
#include "tracer/format/file/session_writer.h"

namespace tt::test {

// The metadata of `session` while it is being recorded.
inline SessionInfo running_info(const RandomSession& session) {
  SessionInfo info = session.info;
  info.state = SessionState::Running;
  return info;
}

// Creates the file; the caller adds the rows.
inline std::unique_ptr<SessionWriter> begin_session(const std::filesystem::path& file,
                                                    const RandomSession& session) {
  auto writer = SessionWriter::create(file, running_info(session));
  EXPECT_TRUE(writer.has_value()) << writer.error().message;
  return std::move(*writer);
}

}  // namespace tt::test
