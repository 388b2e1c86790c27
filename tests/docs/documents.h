// The documents of the repository, for tests that compare them with the program.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/test_paths.h"

namespace tt::test {

inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/*.md.
inline std::vector<std::filesystem::path> documents() {
  std::vector<std::filesystem::path> found;
  for (const char* folder : {"", "docs"})
    for (const auto& entry : std::filesystem::directory_iterator(source_path(folder)))
      if (entry.path().extension() == ".md" && entry.path().filename() != "CHANGELOG.md")
        found.push_back(entry.path());
  return found;
}

// All matches of the first group of `pattern`.
inline std::vector<std::string> matches_in(const std::string& text, const std::string& pattern) {
  const std::regex compiled(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), compiled), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

// The texts in backquotes.
inline std::vector<std::string> code_spans(const std::string& text) {
  return matches_in(text, "`([^`\n]+)`");
}

}  // namespace tt::test
