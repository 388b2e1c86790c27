// tt generality FILE...: whether what one session teaches holds for the others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <format>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/format_units.h"
#include "analysis/experts/expert_cache.h"
#include "analysis/sets/generality.h"
#include "api/json/result_json.h"
#include "cli/commands/verbs.h"
#include "cli/options/session_file.h"
#include "cli/options/session_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "program/validators.h"

namespace tt::cli {
namespace {

struct GeneralityOptions {
  std::vector<std::string> files;
  GeneralityQuery query;
  std::optional<std::uint64_t> memory;
  bool json = false;
};

constexpr Align kRight = Align::Right;
// Wider tables do not fit into a terminal.
constexpr std::size_t kMaxColumns = 16;

std::string percent_text(double share) { return std::format("{:.1f}", 100 * share); }

std::string cell_text(const std::optional<Trial>& trial) {
  return trial ? std::format("{} ({})", percent_text(trial->share()), percent_text(trial->loss()))
               : "-";
}

void print_sessions(const Generality& found) {
  TextTable table({">", "session", "model", ">prompt tokens", ">tokens"});
  for (std::size_t i = 0; i < found.sessions.size(); ++i) {
    const GeneralitySession& of = found.sessions[i];
    table.add(i + 1, of.name, of.model, of.prompt_tokens, of.tokens);
  }
  table.print();
}

void print_matrix(const Generality& found, std::optional<Trial> Trials::* part,
                  const std::string& heading) {
  const bool any = std::ranges::any_of(
      found.pairs, [&](const GeneralityPair& pair) { return (pair.trials.*part).has_value(); });
  if (!any) return;
  const std::size_t count = found.sessions.size();
  print_line("\n{}", heading);
  std::vector<Column> columns = {"learned on"};
  for (std::size_t i = 0; i < count; ++i)
    columns.push_back({std::format("tried on {}", i + 1), kRight});
  TextTable table(std::move(columns));
  for (std::size_t learned = 0; learned < count; ++learned) {
    std::vector<std::string> cells = {
        std::format("{} {}", learned + 1, found.sessions[learned].name)};
    for (std::size_t tried = 0; tried < count; ++tried)
      cells.push_back(cell_text(found.pairs[learned * count + tried].trials.*part));
    table.add(std::move(cells));
  }
  std::vector<std::string> cells = {"all others"};
  for (const LeftOut& of : found.leave_one_out) cells.push_back(cell_text(of.trials.*part));
  table.add(std::move(cells));
  if (part == &Trials::experts) {
    cells = {"nothing (any experts)"};
    for (const GeneralitySession& of : found.sessions)
      cells.push_back(of.any_experts ? percent_text(*of.any_experts) : "-");
    table.add(std::move(cells));
  }
  table.print();
}

void print_refusals(const Generality& found) {
  std::vector<std::string> lines;
  for (const GeneralityPair& pair : found.pairs) {
    if (!pair.refused || pair.learned_on > pair.tried_on) continue;  // the same both ways
    lines.push_back(std::format("- {} and {}: {}", found.sessions[pair.learned_on].name,
                                found.sessions[pair.tried_on].name, *pair.refused));
  }
  if (lines.empty()) return;
  print_line("\nNot tried on each other:");
  for (const std::string& line : lines) print_line("{}", line);
}

void print_means(const Generality& found) {
  if (found.means.empty()) return;
  put("\n");
  TextTable table(
      {"learned on", ">pairs", ">experts", ">loss", ">order", ">loss", ">memory", ">loss"});
  for (const GeneralityMean& mean : found.means) {
    std::vector<std::string> cells = {
        mean.differs ? difference_text(*mean.differs) : "all other sessions",
        std::to_string(mean.pairs)};
    for (const auto& of : {mean.experts, mean.order, mean.memory}) {
      cells.push_back(of ? percent_text(of->share) + " %" : "-");
      cells.push_back(of ? percent_text(of->loss) : "");
    }
    table.add(std::move(cells));
  }
  table.print();
}

void print(const Generality& found) {
  print_sessions(found);
  if (found.sessions.size() <= kMaxColumns) {
    print_line(
        "\nIn percent, and in parentheses the percentage points less than with what the session "
        "itself teaches.");
    print_matrix(found, &Trials::experts,
                 std::format("Experts: requests served by a cache of the {} of each layer",
                             found.slots == 1 ? "most used expert"
                                              : std::format("{} most used experts", found.slots)));
    print_matrix(found, &Trials::order, "Order: reads that the order of the reads predicts");
    print_matrix(found, &Trials::memory,
                 "Memory: bytes saved by keeping the weights in memory that are read most often");
  } else {
    print_line("\nThe table of all pairs is too wide for a terminal: --json has it.");
  }
  print_refusals(found);
  print_means(found);
  put("\n");
  for (const std::string& sentence : sentences_of(found)) print_line("{}", sentence);
}

int run(const GeneralityOptions& options) {
  Progress progress("generality", progress_visibility(options.json));
  const auto files = session_files(options.files);
  if (!files) return progress.failed(files.error());
  const std::size_t count = files->paths.size();
  if (count < 2)
    return progress.failed(
        "one session has nothing to compare with. Name several: files, a "
        "folder, or a pattern in quotes.");
  if (count > kMaxGeneralitySessions)
    return progress.failed(
        std::format("these are {} sessions, and at most {} can be tried on each "
                    "other. Name fewer.",
                    count, kMaxGeneralitySessions));
  GeneralityQuery query = options.query;
  if (options.memory) query.memory = Bytes{*options.memory};
  const auto found = generality(
      files->names, [&](std::size_t i) { return open_session(files->paths[i]); }, query,
      progress.start("trying each session on the others"));
  if (!found) return progress.failed(found.error());
  for (const GeneralitySession& session : found->sessions)
    if (session.readable_steps)
      progress.warn(std::format("{} is damaged; only its first {} were read", session.name,
                                counted(*session.readable_steps, "step")));
  const bool nothing = std::ranges::none_of(found->pairs, [](const GeneralityPair& pair) {
    return pair.learned_on != pair.tried_on &&
           (pair.trials.experts || pair.trials.order || pair.trials.memory);
  });
  progress.end();
  if (options.json) {
    put_line(text_of(to_json(*found)));
  } else {
    print(*found);
  }
  if (nothing && std::ranges::none_of(found->pairs, [](const GeneralityPair& pair) {
        return pair.refused.has_value();
      }))
    progress.warn("the sessions have no accesses (level minimal), so there is nothing to learn");
  return progress.exit_code();
}

}  // namespace

RunVerb add_generality_command(CLI::App& command) {
  auto options = std::make_shared<GeneralityOptions>();
  add_session_files(command, options->files);
  command
      .add_option("--slots", options->query.slots,
                  "Experts of each layer that the cache holds (default: a quarter of them)")
      ->check(whole_number(1, kMaxExpertSlots))
      ->type_name("N");
  command
      .add_option("--memory", options->memory,
                  "Memory for weights, like 500MB (default: half of the weights that a session "
                  "reads)")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example: tt record -p 'Once upon a time' -n 16 -o a.ttrace && tt record -p 'One day' -n 16 "
      "-o "
      "b.ttrace && tt generality a.ttrace b.ttrace");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
