// Parses the options that a program lists in its --help.
#pragma once

#include <algorithm>
#include <cctype>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace tt {

struct HelpOption {
  std::string name;      // the first long one, "--ctx-size"
  std::string variable;  // environment variable; empty: none is listed
  std::string type;      // of its value; empty: a flag
  std::string text;      // the description
};

// The value type, which follows the option's other names.
inline std::string type_in(const std::string& text) {
  static const std::regex kType(R"((?:, +--[a-z0-9-]+(?:\{false\})?)* *([^ ]*).*)");
  return std::regex_replace(text, kType, "$1");
}

// All options except --help and --version.
inline std::vector<HelpOption> options_in(const std::string& help) {
  static const std::regex kHead(R"(^ +(?:-\w, +)?(--[a-z0-9-]+)(.*)$)");
  static const std::regex kVariable(R"(\(Env:([A-Z0-9_]+)\)(?: (?:Excludes|Needs):[ -z]*)?)");
  std::vector<HelpOption> options;
  std::istringstream lines(help);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch head;
    if (std::regex_match(line, head, kHead)) {
      const std::string rest = head[2];
      std::smatch variable;
      const bool named = std::regex_search(rest, variable, kVariable);
      inside = head[1] != "--help" && head[1] != "--version";
      if (inside)
        options.push_back({head[1], named ? variable[1].str() : "",
                           named ? type_in(variable.prefix()) : "",
                           named ? variable.suffix().str() : ""});
    } else if (line.find_first_not_of(' ') == std::string::npos) {
      inside = false;
    } else if (inside) {
      options.back().text += line;
    }
  }
  for (HelpOption& option : options) {
    if (std::ranges::none_of(option.text, [](unsigned char c) { return std::isalpha(c); }))
      option.text.clear();
  }
  return options;
}

// --ctx-size is TT_CTX_SIZE.
inline std::string variable_of(const std::string& option, const std::string& prefix = "TT_") {
  std::string name = prefix + option.substr(2);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

}  // namespace tt
