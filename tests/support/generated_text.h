// Text of documents that is generated from tables of the source.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/test_paths.h"

namespace tt::test {

inline std::string yaml_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

// Compares the lines between "generated from SOURCE" and "end of generated
// text" with `text`. UPDATE_DOCS=1 rewrites them.
inline void expect_generated(const std::string& file, const std::string& from,
                             const std::string& text) {
  SCOPED_TRACE(file + ", " + from);
  const std::string path = source_path(file);
  std::ifstream in(path, std::ios::binary);
  std::string document{std::istreambuf_iterator<char>(in), {}};
  const auto marker = document.find("generated from " + from);
  ASSERT_NE(marker, std::string::npos) << "no marker";
  const auto begin = document.find('\n', marker) + 1;
  const auto end = document.rfind('\n', document.find("end of generated text", begin)) + 1;
  ASSERT_LE(begin, end) << "no end marker";
  if (std::getenv("UPDATE_DOCS") != nullptr) {
    document.replace(begin, end - begin, text);
    std::ofstream(path, std::ios::binary) << document;
    return;
  }
  EXPECT_EQ(document.substr(begin, end - begin), text) << "UPDATE_DOCS=1 rewrites the file";
}

}  // namespace tt::test
