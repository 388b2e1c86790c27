// A synthetic session in a temporary file, with its reader and its index.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "analysis/index/session_index.h"
#include "tests/support/sessions/random_session.h"
#include "tests/support/temp_folder.h"
#include "tracer/format/file/session_reader.h"

namespace tt::test {

struct IndexedSession {
  TempFolder folder;
  std::unique_ptr<SessionReader> reader;
  std::unique_ptr<SessionIndex> index;
};

inline std::unique_ptr<IndexedSession> open_session(const RandomSession& session) {
  auto out = std::make_unique<IndexedSession>();
  const auto file = out->folder / "s.ttrace";
  EXPECT_TRUE(write_session(file, session).has_value());
  out->reader = std::make_unique<SessionReader>(SessionReader::open(file).value());
  auto index = SessionIndex::build(*out->reader);
  EXPECT_TRUE(index.has_value());
  out->index = std::make_unique<SessionIndex>(*std::move(index));
  return out;
}

}  // namespace tt::test
