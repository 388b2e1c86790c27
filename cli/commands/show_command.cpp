// tt show FILE: prints a session's metadata, findings, times, graphs and answer.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <format>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/backends/split_times.h"
#include "analysis/common/format_units.h"
#include "analysis/findings/session_findings.h"
#include "analysis/report/validation.h"
#include "analysis/tables/session_conditions.h"
#include "analysis/tables/session_overview.h"
#include "analysis/tables/template_list.h"
#include "api/json/analysis/findings_json.h"
#include "api/json/result_json.h"
#include "api/json/session_json.h"
#include "api/json/trace_json.h"
#include "api/text/escape_control_chars.h"
#include "api/text/finding_text.h"
#include "cli/commands/verbs.h"
#include "cli/options/filter_options.h"
#include "cli/options/session_file.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/text_table.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/server_slots.h"
#include "tracer/text/recorded_answer.h"

namespace tt::cli {
namespace {

struct ShowOptions {
  std::string file;
  bool facts = false, json = false;
  LeaveOut leave_out = LeaveOut::Nothing;
};

struct SessionSummary {
  SessionOverview overview;
  std::uint64_t file_bytes = 0;
  SessionConditions conditions;
  std::vector<TemplateRow> templates;
  SplitTimes splits;
  std::vector<SequenceAnswer> answers;
  std::vector<Finding> findings;
  std::vector<Advice> advice;
  Validation validation;
};

std::expected<SessionSummary, TraceError> read_summary(const SessionReader& reader,
                                                       const ShowOptions& options,
                                                       Progress& progress) {
  auto overview = session_overview(reader);
  if (!overview) return std::unexpected(overview.error());
  SessionSummary summary;
  summary.overview = *std::move(overview);
  std::error_code none;
  summary.file_bytes = std::filesystem::file_size(options.file, none);
  auto templates = template_list(reader, progress.start("counting steps"));
  if (!templates) return std::unexpected(templates.error());
  summary.templates = *std::move(templates);
  auto conditions =
      session_conditions(reader, options.leave_out, progress.start_steps("reading", reader));
  if (!conditions) return std::unexpected(conditions.error());
  summary.conditions = *std::move(conditions);
  const auto index =
      SessionIndex::build(reader, progress.start_steps("reading", reader), options.leave_out);
  if (!index) return std::unexpected(index.error());
  const auto figures = gather_session_figures(*index, reader, progress.start("computing findings"),
                                              [&](const char* what) { progress.start(what); });
  if (!figures) return std::unexpected(figures.error());
  summary.findings = session_findings(*figures);
  summary.advice = session_advice(*figures);
  auto splits = split_times(reader, progress.start("reading splits"));
  if (!splits) return std::unexpected(splits.error());
  summary.splits = *std::move(splits);
  const auto tokens = reader.tokens(0, std::numeric_limits<std::uint32_t>::max());
  if (!tokens) return std::unexpected(tokens.error());
  summary.answers = recorded_answers(summary.overview.info, *tokens);
  return summary;
}

std::string utc_text(std::int64_t unix_ns) {
  if (unix_ns == 0) return "at an unknown time";  // imported from a log without times
  using namespace std::chrono;
  const sys_time<seconds> time{seconds{unix_ns / 1'000'000'000}};
  return std::format("{:%F %T} UTC", time);
}

std::string disk_text(const std::optional<DiskUse>& disk) {
  if (!disk) return "";
  std::string text = "read " + format_bytes(disk->read);
  if (const auto factor = disk->reread_factor())
    text += std::format(": {:.1f} times the {} of mapped weights that were used", *factor,
                        format_bytes(disk->mapped));
  if (const auto each = disk->bytes_per_fault())
    text += std::format("; {} per page fault", format_bytes(*each));
  return text;
}

// "CUDA0 81.3 %, CPU 12.0 % of the time of 40 steps; 160 transfers of 1.20 MiB between them 3.21 %"
std::string backends_text(const SplitTimes& splits) {
  if (splits.total == 0) return "";
  const auto share = [&](Ns time) {
    return splits.time.v == 0 ? "0 %"
                              : std::format("{:.1f} %", 100 * static_cast<double>(time.v) /
                                                            static_cast<double>(splits.time.v));
  };
  std::vector<std::pair<std::string, Ns>> backends;  // in the order of the first phase
  for (const BackendTime& of : splits.backends) {
    const auto known = std::ranges::find(backends, of.backend, &std::pair<std::string, Ns>::first);
    if (known == backends.end()) {
      backends.emplace_back(of.backend, of.time);
    } else {
      known->second = known->second + of.time;
    }
  }
  std::string text;
  for (const auto& [name, time] : backends)
    text += std::format("{}{} {}", text.empty() ? "" : ", ", name, share(time));
  text += std::format(" of the time of {}", counted(splits.total, "step"));
  std::uint64_t copies = 0;
  Bytes bytes{};
  Ns time{};
  for (const BackendTransfer& transfer : splits.transfers) {
    copies += transfer.copies;
    bytes += transfer.bytes;
    time = time + transfer.time;
  }
  return text + std::format("; {} of {} between them {}", counted(copies, "transfer"),
                            format_bytes(static_cast<double>(bytes.v)), share(time));
}

std::string spent_text(const SpentTime& spent) {
  if (spent.total_ns == 0) return "";
  const auto share = [&](std::uint64_t ns) {
    return std::format("{:.1f} %",
                       100 * static_cast<double>(ns) / static_cast<double>(spent.total_ns));
  };
  std::string text =
      std::format("evaluation {}, graphs {} (built for {} of {}), sampling {}, text {}, other {}",
                  share(spent.evaluate_ns), share(spent.build_ns), spent.graphs_built,
                  counted(spent.steps, "step"), share(spent.sample_ns), share(spent.detokenize_ns),
                  share(spent.other_ns()));
  if (spent.queue_ns >= 1'000'000)
    text += std::format("; before, {} in the queue", format_duration(spent.queue_ns));
  return text;
}

// What the user got; the times of the phases are those of the evaluation alone.
std::string speed_text(const TokenSpeed& speed) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (const auto rate = speed.per_second()) {
    add(std::format("{:.1f} tokens/s", *rate));
    if (const auto share = speed.sample_share())
      text += std::format(", {:.1f} % of the time is sampling", 100 * *share);
  }
  if (speed.first_token_ns) add("first token after " + format_duration(*speed.first_token_ns));
  if (const auto rate = speed.prompt_per_second())
    add(std::format("prompt {:.1f} tokens/s", *rate));
  return text;
}

std::string load_text(const SessionInfo& info) {
  const auto number = [&](const char* name) { return info.fact_number(name); };
  const auto whole = number("load.duration_ns"), weights = number("load.weights_ns"),
             context = number("load.context_ns"), read = number("load.disk_read_bytes"),
             faults = number("load.major_faults");
  if (!whole || !weights || !context || !read || !faults) return "";
  return std::format("{} (weights {}, context {}), read {}, {}", format_duration(*whole),
                     format_duration(*weights), format_duration(*context), format_bytes(*read),
                     counted(*faults, "major page fault"));
}

// Layers with a sliding window can have fewer cells than the others.
std::string cells_text(const SessionInfo& info) {
  const std::string_view cells = info.fact("result.kv_cells");
  return cells.empty() ? "" : std::format(" (cells: {})", cells);
}

std::string context_text(const SessionInfo& info) {
  std::string text;
  for (const auto& [name, fact] : {std::pair{"KV cache", "result.kv_bytes"},
                                   std::pair{"compute buffers", "result.compute_bytes"},
                                   std::pair{"logits", "result.logits_bytes"}})
    if (const auto bytes = info.fact_number(fact))
      text += std::format("{}{} {}{}", text.empty() ? "" : ", ", name, format_bytes(*bytes),
                          std::string_view(name) == "KV cache" ? cells_text(info) : "");
  return text;
}

// A request whose prompt begins like the previous one's evaluates only the rest of it.
std::string reused_text(const SessionInfo& info) {
  const auto reused = info.fact_number("result.reused_tokens").value_or(0);
  if (reused == 0) return "";
  const std::string_view from = info.fact("result.reused_from");
  return std::format("{} of {} prompt tokens{}: they were not evaluated", reused,
                     info.fact_number("result.prompt_tokens").value_or(reused),
                     from.empty() ? "" : std::format(", from session {}", from));
}

// Those that a summary needs: the page and tt report have all, with their evidence.
void print_findings(const SessionSummary& summary) {
  const auto item = [](const std::string& text) { print_line("- {}", escape_control_chars(text)); };
  put("\n");
  print_line("findings");
  for (const Finding& finding : summary.findings)
    if (finding.role != FindingRole::Detail) item(finding_text(finding));
  for (const Advice& advice : summary.advice) {
    const AdviceText words = advice_text(advice);
    item(words.advice + " " + words.because);
  }
}

// Step times of the normal steps (analysis/tables/session_conditions.h), speeds of the evaluation
// from all.
void print_phases(const SessionConditions& conditions) {
  TextTable table({"phase", ">steps", ">tokens", ">time", ">per token", ">evaluated/s",
                   ">step: median", ">p5", ">p95"});
  std::uint32_t learned = 0, left_out = 0, all = 0;
  for (const auto& [phase, times] : conditions.phases) {
    const auto ns = static_cast<double>(times.time.v);
    const double tokens = times.tokens;
    const auto of_spread = [&](Ns Spread::* value) {
      return times.spread ? format_duration((*times.spread).*value) : "";
    };
    table.add(to_text(phase), times.steps, times.tokens, format_duration(ns),
              tokens > 0 ? format_duration(ns / tokens) : "",
              ns > 0 ? std::format("{:.1f}", tokens * 1e9 / ns) : "", of_spread(&Spread::median),
              of_spread(&Spread::p5), of_spread(&Spread::p95));
    learned += times.learned;
    left_out += times.left_out;
    all += times.steps;
  }
  table.print();
  if (learned > 0)
    print_line("Not in the step times: {} with a new graph, which the recording slowed down.",
               counted(learned, "step"));
  if (left_out > 0) print_line("{}", left_out_text(left_out, all, "the step times"));
}

void print_templates(const std::vector<TemplateRow>& rows) {
  put("\n");
  TextTable templates({">template", ">steps", ">ops", ">nodes", ">tensors", ">layers"});
  for (const TemplateRow& row : rows) {
    templates.add(row.id.v, row.steps, row.ops, row.nodes, row.tensors, row.layers);
  }
  templates.print();
}

void print_session(const SessionSummary& summary, bool with_facts) {
  const SessionInfo& info = summary.overview.info;
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) print_line("{:<10} {}", name, escape_control_chars(value));
  };
  line("session", info.id);
  line("title", info.title);
  for (const ModelFile& file : info.model_files)
    line("model", std::format("{} ({})", file.path, format_bytes(file.size)));
  std::string shape = std::format("{}, {}, {}, embedding {}, vocabulary {}",
                                  counted(info.n_layers, "layer"), counted(info.n_heads, "head"),
                                  counted(info.n_heads_kv, "KV head"), info.n_embd, info.n_vocab);
  if (info.n_experts > 0)
    shape += std::format(", {} of {} experts", info.n_experts_used, info.n_experts);
  line("shape", shape);
  if (const auto program = attached_program(info)) line("program", program->text);
  line("recorded",
       std::format("{}, level {}, {} times, {}", utc_text(info.start_utc_ns), to_text(info.level),
                   info.exact_timing ? "exact" : "fast", to_text(info.state)));
  line("ended", end_text(info));
  line("file", format_bytes(summary.file_bytes));
  line("verdict", summary.validation.verdict() +
                      (summary.validation.passed() ? "" : ": see tt parse --validate"));
  line("machine", summary.conditions.text);
  line("speed", speed_text(summary.overview.speed));
  line("time", spent_text(summary.conditions.spent));
  line("backends", backends_text(summary.splits));
  line("disk", disk_text(summary.conditions.disk));
  line("budget", memory_budget_text(info));
  line("reused", reused_text(info));
  line("context", context_text(info));
  line("loaded", load_text(info));
  line("warning", std::string(info.fact("load.warning")));
  print_findings(summary);
  put("\n");
  print_phases(summary.conditions);
  if (!summary.templates.empty()) print_templates(summary.templates);
  const ServerSlots slots = server_slots(info);
  for (const auto& [sequence, text, reused] : summary.answers) {
    if (text.empty()) continue;
    const bool alone = !sequence || summary.answers.size() == 1;
    const auto slot = server_slot_of(slots, sequence);
    print_line("\nanswer{}{}{}\n{}", alone ? "" : std::format(", sequence {}", *sequence),
               slot ? std::format(", slot {} of the server", *slot) : "",
               alone || reused == 0 ? "" : std::format(", {} reused", counted(reused, "token")),
               escape_control_chars(text, "\n\t"));
  }
  if (!with_facts) return;
  put("\n");
  for (const auto& [name, value] : info.facts)
    print_line("{:<32} {}", escape_control_chars(name), escape_control_chars(value, "\n\t"));
}

// The fields of GET /sessions/{id}, plus phases, the templates of /templates, the answer, the
// answer of each request, the findings of /findings, and the verdict of /validation.
Json json_of(const SessionSummary& summary) {
  Json out = to_json(SessionEntry{.id = summary.overview.info.id,
                                  .file_bytes = summary.file_bytes,
                                  .overview = summary.overview,
                                  .error = {}});
  Json conditions = to_json(summary.conditions);
  out["phases"] = std::move(conditions["phases"]);
  conditions.erase("phases");
  out["conditions"] = std::move(conditions);
  out.update(to_json(summary.templates));
  std::string text;
  Json answers = Json::array();
  const ServerSlots slots = server_slots(summary.overview.info);
  for (const SequenceAnswer& answer : summary.answers) {
    text += (text.empty() ? "" : "\n") + answer.text;
    answers.push_back({{"sequence", optional_json(answer.sequence)},
                       {"server_slot", optional_json(server_slot_of(slots, answer.sequence))},
                       {"reused_tokens", answer.reused},
                       {"text", answer.text}});
  }
  if (summary.splits.total > 0) out["splits"] = to_json(summary.splits);
  out["answer"] = std::move(text);
  out["answers"] = std::move(answers);
  out.update(findings_json(summary.findings, summary.advice, summary.overview.info.n_experts > 0));
  out["verdict"] = summary.validation.verdict();
  return out;
}

int run(const ShowOptions& options) {
  Progress progress("show", progress_visibility(options.json));
  auto reader = open_session(options.file);
  if (!reader) return progress.failed(reader.error());
  auto summary = progress.query_valid_prefix(*reader, [&](const SessionReader& session) {
    return read_summary(session, options, progress);
  });
  if (!summary) return progress.failed(summary.error());
  auto validation = validate(options.file, progress.start("validating"));
  if (!validation) return progress.failed(validation.error());
  summary->validation = *std::move(validation);
  progress.end();
  progress.note_missing_accesses(*reader);
  if (options.json) {
    put_line(text_of(json_of(*summary)));
  } else {
    print_session(*summary, options.facts);
  }
  return progress.exit_code();
}

}  // namespace

RunVerb add_show_command(CLI::App& command) {
  auto options = std::make_shared<ShowOptions>();
  add_session_file(command, options->file);
  command.add_flag("--facts", options->facts,
                   "Print all facts, too: hyper-parameters, request, host, libraries");
  add_clean_option(command, options->leave_out, "the step times");
  command.add_flag("--json", options->json, "Print everything as JSON, including the facts");
  command.footer("Example: tt show s.ttrace --facts");
  return [options] { return run(*options); };
}

}  // namespace tt::cli
