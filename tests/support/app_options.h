// The options of a command line as data.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace tt {

// The options that --help lists, except positional arguments, --help and --version.
inline std::vector<CLI::Option*> listed_options(CLI::App& app) {
  return app.get_options([&](const CLI::Option* option) {
    return !option->get_group().empty() && !option->get_lnames().empty() &&
           option != app.get_help_ptr() && option != app.get_version_ptr();
  });
}

// "--ctx-size"
inline std::string long_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

inline bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// --ctx-size is TT_CTX_SIZE.
inline std::string variable_of(const std::string& option, const std::string& prefix = "TT_") {
  std::string name = prefix + option.substr(2);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

}  // namespace tt
