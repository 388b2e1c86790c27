// The table of llama-server's options (program/llama_server_options.h) against `llama-server
// --help` and against our own options, and docs/defaults.md, which is made from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <format>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/app.h"
#include "program/llama_server_options.h"
#include "server/app/server_options.h"
#include "tests/docs/documents.h"
#include "tests/support/app_options.h"
#include "tests/support/command_output.h"
#include "tests/support/test_paths.h"
#include "tracer/request/model_options.h"

namespace tt::test {
namespace {

using Group = LlamaServerOption::Group;

struct HelpEntry {
  std::string names, text;
  std::string value() const {
    for (const char* pattern :
         {R"re(\(default: ("[^"]*"|[^,)\[(]*))re", R"re(default: '?([^'),(]*))re"}) {
      std::smatch found;
      if (!std::regex_search(text, found, std::regex(pattern))) continue;
      std::string value = found[1];
      const auto is_edge = [](char c) { return c == ' ' || c == '"' || c == '\''; };
      while (!value.empty() && is_edge(value.back())) value.pop_back();
      while (!value.empty() && is_edge(value.front())) value.erase(0, 1);
      return value;
    }
    return "";
  }
};

// An entry begins with its names; its text begins at column 40, or on the next line.
std::vector<HelpEntry> help_entries(const std::string& help) {
  constexpr std::size_t kText = 40;
  std::vector<HelpEntry> entries;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("-----") || line.empty()) continue;
    if (line[0] == '-') {
      HelpEntry entry;
      const bool has_text = line.size() > kText && line[kText - 1] == ' ';
      std::istringstream words(has_text ? line.substr(0, kText) : line);
      for (std::string word; words >> word && word[0] == '-';) {
        if (word.ends_with(',')) word.pop_back();
        entry.names += (entry.names.empty() ? "" : ", ") + word;
      }
      if (has_text) entry.text = line.substr(kText);
      entries.push_back(std::move(entry));
    } else if (!entries.empty()) {
      entries.back().text += " " + line.substr(std::min(line.find_first_not_of(' '), line.size()));
    }
  }
  return entries;
}

TEST(Defaults, TableHasEveryOptionAndDefaultOfLlamaServer) {
  const CommandResult help = run_command("llama-server --help");
  ASSERT_EQ(help.status, 0) << help.output;
  const auto entries = help_entries(help.output);
  EXPECT_GT(entries.size(), 200U);
  for (const HelpEntry& entry : entries) {
    const auto rows = llama_server_options();
    const auto row = std::ranges::find(rows, entry.names, &LlamaServerOption::names);
    if (row == rows.end()) {
      ADD_FAILURE() << "not in program/llama_server_options.cpp: " << entry.names;
    } else {
      EXPECT_EQ(row->value, entry.value()) << entry.names;
    }
  }
  for (const LlamaServerOption& row : llama_server_options())
    EXPECT_TRUE(std::ranges::contains(entries, row.names, &HelpEntry::names)) << row.names;
}

// ---------------------------------------------------------------- ours

// The options of tt-server and tt record.
class OwnOptions {
 public:
  // Null: neither program has it.
  CLI::Option* find(const LlamaServerOption& theirs) {
    std::istringstream names{std::string(theirs.names)};
    for (std::string name; names >> name;) {
      if (name.ends_with(',')) name.pop_back();
      if (name.starts_with("-") && !name.starts_with("--") && name.size() > 2) continue;
      for (CLI::App* app : {server_.get(), record_})
        if (CLI::Option* option = app->get_option_no_throw(name);
            option != nullptr && !option->get_lnames().empty())
          return option;
    }
    return nullptr;
  }

 private:
  int exit_code_ = 0;
  ServerOptions values_;
  std::unique_ptr<CLI::App> server_ = make_server_app(values_);
  std::unique_ptr<CLI::App> tt_ = cli::make_app(exit_code_);
  CLI::App* record_ = tt_->get_subcommand("record");
};

std::string value_of(const CLI::Option& option) {
  if (!is_flag(option)) return option.get_default_str();
  const std::string name = long_name(option);
  const bool on = name == "--repack"     ? ModelOptions{}.repack
                  : name == "--swa-full" ? ContextOptions{}.swa_full
                                         : false;
  return on ? "on" : "off";
}

bool is_same(std::string theirs, const std::string& ours) {
  if (theirs == "enabled" || theirs == "true") theirs = "on";
  if (theirs == "disabled" || theirs == "false") theirs = "off";
  if (theirs.empty() && ours == "off") return true;  // a flag
  char *end_of_theirs = nullptr, *end_of_ours = nullptr;
  const double a = std::strtod(theirs.c_str(), &end_of_theirs);
  const double b = std::strtod(ours.c_str(), &end_of_ours);
  if (!theirs.empty() && !ours.empty() && *end_of_theirs == '\0' && *end_of_ours == '\0')
    return a == b;
  return theirs == ours || (theirs == "unused" && ours.empty());
}

std::string defaults_table() {
  std::string text = "| llama-server | its default | here | |\n|---|---|---|---|\n";
  OwnOptions own;
  for (const LlamaServerOption& theirs : llama_server_options()) {
    if (theirs.group == Group::Other) continue;
    const CLI::Option* ours = own.find(theirs);
    std::string names(theirs.names), value(theirs.value), here = "no such option",
                                                          note(theirs.instead);
    if (ours != nullptr) {
      const bool same = is_same(value, value_of(*ours));
      EXPECT_EQ(same, theirs.reason.empty())
          << names << ": default " << theirs.value << " there, " << value_of(*ours)
          << " here. A difference needs a reason in program/llama_server_options.cpp";
      EXPECT_TRUE(theirs.instead.empty()) << names << " exists";
      here = same ? "the same" : "`" + value_of(*ours) + "`";
      if (here == "``") here = "see right";
      note = theirs.reason;
    } else if (theirs.group == Group::Context) {
      EXPECT_FALSE(theirs.instead.empty()) << names << ": what to do without it?";
    }
    text += std::format("| `{}` | {} | {} | {} |\n", names, value.empty() ? "" : "`" + value + "`",
                        here, note);
  }
  return text;
}

TEST(Defaults, DocumentIsCurrent) {
  const auto path = source_path("docs/defaults.md");
  const std::string text = text_of_file(path);
  const std::string marker = "<!-- Generated by UPDATE_DOCS=1 ./tt test defaults_test -->\n\n";
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos);
  const std::string current = text.substr(0, at) + marker + defaults_table();
  if (std::getenv("UPDATE_DOCS") != nullptr) std::ofstream(path, std::ios::binary) << current;
  EXPECT_EQ(text_of_file(path), current) << "UPDATE_DOCS=1 ./tt test defaults_test writes it";
}

}  // namespace
}  // namespace tt::test
