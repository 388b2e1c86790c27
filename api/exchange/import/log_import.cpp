#include <algorithm>
#include <format>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/exchange/import/import.h"
#include "api/exchange/import/imported_row.h"
#include "api/exchange/import/log_lines.h"
#include "api/exchange/import/log_names.h"
#include "api/exchange/import/routing_log.h"
#include "api/exchange/recording/recorded_parts.h"
#include "api/exchange/rows/session_metadata.h"
#include "tracer/format/file/input_file.h"
#include "tracer/text/join.h"

namespace tt::exchange {
namespace {

constexpr const char* kNotALog =
    "Not a log: the line is not a JSON object. Logs (NDJSON) and run folders can be imported, "
    "other exports cannot.";
constexpr const char* kCutOff =
    "The line is not a JSON object, unlike those before: the log is cut off or damaged. Copy it "
    "again, or delete this line and those behind it to import the steps before.";
constexpr std::size_t kCheckBytes = 1u << 20;  // between two checks whether to go on

bool has_number(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number();
}

class LogImport {
 public:
  LogImport(std::filesystem::path log, std::filesystem::path session)
      : log_(std::move(log)), session_(std::move(session)) {}

  std::expected<ImportCounts, TraceError> run(const ContinueCheck& keep_going) {
    auto in = InputFile::open(log_);
    if (!in) return std::unexpected(std::move(in.error()));
    std::string line;
    for (std::size_t unchecked = kCheckBytes; read_line(in->stream(), line);) {
      ++line_;
      unchecked += line.size() + 1;
      if (unchecked > kCheckBytes) {
        unchecked = 0;
        if (!keep_going()) return std::unexpected(cancelled_error());
      }
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const auto parsed = parse_json(line, kImportLimits);
      if (!parsed && parsed.error().limit)
        return std::unexpected(damaged(log_, line_, "The line " + parsed.error().message + "."));
      if (!parsed || !parsed->is_object())
        return std::unexpected(damaged(log_, line_, entries_ == 0 ? kNotALog : kCutOff));
      ++entries_;
      const LogEntry entry = log_entry(*parsed, line);
      auto& ignored = entry.event == "tensor_log" ? ignored_of_rows_ : imported_.ignored;
      for (const std::string& name : entry.unknown) ++ignored[name];
      if (const WriteResult taken = take(entry.event, entry.fields); !taken)
        return std::unexpected(taken.error());
    }
    if (const Status read = in->finished(); !read) return std::unexpected(read.error());
    return finish();
  }

 private:
  WriteResult take(const std::string& event, const Json& entry) {
    if (event == "session_start") return start(entry);
    if (event == "tensor_log") return row(entry);
    if (event == "step_begin") {
      if (const WriteResult ended = end_step(); !ended) return ended;
      return begin_step(entry);
    }
    if (RecordedParts::is_part(event)) {
      recorded_.take(event, entry);
      return {};
    }
    if (event == "layer_step") {
      if (step_)
        layer_steps_.push_back(number_in<std::int32_t>(entry, "layer_id", kNoLayer.v));
      else
        ++imported_.ignored["layer_step"];
      return {};
    }
    if (event == "step_end") {
      if (!step_) return {};
      end_step_from(entry, step_->step);
      if (legacy_) clamp_op_ends();
      return end_step();
    }
    if (event == "session_end") {
      info_.state = enum_from(text_in(entry, "state"), SessionState::Recovered, SessionState::Done);
      info_.error = text_in(entry, "error");
      if (const auto losses = entry.find("losses"); losses != entry.end())
        losses_ = losses_from(*losses);
      if (const WriteResult ended = end_step(); !ended) return ended;
      std::vector<Token> tokens = tokens_from(entry);
      if (builder_ && !tokens.empty()) {
        if (const WriteResult added = builder_->add_tokens(std::move(tokens)); !added) return added;
      }
      ended_ = true;
    }
    return {};
  }

  WriteResult start(const Json& entry) {
    if (builder_) {
      return std::unexpected(
          damaged(log_, line_, "The log contains a second session. Import one session at a time."));
    }
    // The id is in `id`; older logs have it in `session` or `session_id`.
    info_ = session_from(entry);
    const std::string id =
        info_.id.empty() ? text_in(entry, "session_id", text_in(entry, "session")) : info_.id;
    info_.id = safe_file_id(id, session_.stem().string());
    info_.facts.emplace_back("trace.imported_from", "log");
    losses_ = {};
    return open();
  }
  WriteResult open() {
    if (builder_) return {};
    if (info_.id.empty()) info_.id = safe_file_id("", session_.stem().string());
    auto created = SessionBuilder::create(session_, info_);
    if (!created) return std::unexpected(created.error());
    builder_.emplace(*std::move(created));
    return {};
  }

  WriteResult begin_step(const Json& entry) {
    if (const WriteResult opened = open(); !opened) return opened;
    step_.emplace();
    implicit_step_.reset();
    legacy_ = !entry.contains("first_op_ns");
    has_begin_ = has_number(entry, "timestamp_ns");
    has_token_ = has_number(entry, "token_id");
    last_op_begin_.reset();
    if (!has_number(entry, "token_count")) ++steps_without_token_count_;
    begin_step_from(entry, step_->step);
    number_ = number_in<std::uint32_t>(entry, "step", kNone);
    step_->ops = number_in<std::uint32_t>(entry, "ops");
    step_->ops_run = number_in<std::uint32_t>(entry, "ops_run");
    if (std::vector<Token> tokens = tokens_from(entry); !tokens.empty())
      return builder_->add_tokens(std::move(tokens));
    return {};
  }

  // Identifies the step of a row in a log without step_begin.
  static std::int64_t implicit_step_key(const Json& entry) {
    return number_in<std::int64_t>(entry, "step", number_in<std::int64_t>(entry, "token_id"));
  }

  WriteResult row(const Json& entry) {
    if (const auto size = entry.find("size_bytes");
        size == entry.end() || !size->is_number() || *size < 0) {
      return std::unexpected(
          damaged(log_, line_,
                  "A tensor_log must have a non-negative number \"size_bytes\" or "
                  "\"memory_bytes\"."));
    }
    if (step_ && implicit_step_ && implicit_step_key(entry) != *implicit_step_) {
      if (const WriteResult ended = end_step(); !ended) return ended;
    }
    if (!step_) {
      const Json step = {{"token_id", imported_.steps}, {"phase", text_in(entry, "phase")}};
      if (const WriteResult begun = begin_step(step); !begun) return begun;
      implicit_step_ = implicit_step_key(entry);
    }
    if (step_->rows.size() == kMaxStepRows) {
      return std::unexpected(
          damaged(log_, line_, std::format("A step has more than {} accesses.", kMaxStepRows)));
    }
    ImportedRow row = row_from(entry);
    if (!entry.contains("op")) row.op = static_cast<std::uint32_t>(step_->rows.size());
    if (!step_->rows.empty() && row.op < step_->rows.back().op)
      return std::unexpected(damaged(log_, line_, "The ops of a step must be in order."));
    if (!has_token_ && has_number(entry, "token_id")) {
      step_->step.first_token = number_in<std::uint32_t>(entry, "token_id");
      has_token_ = true;
    }
    if (legacy_ && row.begin) take_times(row);
    if (row.size_bytes > 0) ++imported_.accesses;  // 0: nothing was accessed
    imported_.bytes += row.size_bytes;
    step_->rows.push_back(std::move(row));
    return {};
  }

  // For a step without an end time: the step lasts as long as its rows.
  void take_times(const ImportedRow& row) {
    Step& step = step_->step;
    const Ns begin{*row.begin};
    if (!last_op_begin_) {
      step.first_op = begin;
      if (!has_begin_) step.begin = step.end = begin;
      step.begin = std::min(step.begin, begin);
    }
    step_->ops_run = row.op + 1;
    last_op_begin_ = std::max(last_op_begin_.value_or(begin), begin);
    step.end = std::max(step.end, Ns{row.end.value_or(begin.v)});
  }

  // The step end takes precedence over op ends computed from rows.
  void clamp_op_ends() {
    Step& step = step_->step;
    step.end = std::max({step.begin, step.end, last_op_begin_.value_or(step.begin)});
    for (ImportedRow& row : step_->rows)
      if (row.end) row.end = std::min(*row.end, step.end.v);
  }

  // The times and sums of a layer are those of its accesses, if the log has them.
  void end_layer_steps() {
    std::set<std::int32_t> layers;
    for (const ImportedRow& row : step_->rows) layers.insert(row.op_layer.v);
    for (const std::int32_t layer : layer_steps_)
      if (!layers.contains(layer)) ++imported_.ignored["layer_step"];
    layer_steps_.clear();
  }

  WriteResult end_step() {
    if (!step_) return {};
    end_layer_steps();
    if (!has_token_) step_->step.first_token = next_token_;
    next_token_ = step_->step.first_token + step_->step.n_tokens;
    ++imported_.steps;
    const auto recorded = recorded_.step(*step_, number_);
    const WriteResult added = recorded ? builder_->add_step(*recorded) : builder_->add_step(*step_);
    // A recorded graph has the shapes of tensors, and a recorded step its value statistics.
    if (recorded)
      std::erase_if(ignored_of_rows_, [](const auto& field) { return is_recorded(field.first); });
    for (const auto& [name, lines] : std::exchange(ignored_of_rows_, {}))
      imported_.ignored[name] += lines;
    step_.reset();
    return added;
  }

  static bool is_recorded(std::string_view field) {
    return field == "tensor_log.shape" || field == "tensor_log.element_count" ||
           field.starts_with("tensor_log.output_");
  }

  std::expected<ImportCounts, TraceError> finish() {
    if (const WriteResult last = end_step(); !last) return std::unexpected(last.error());
    if (!builder_) {
      return std::unexpected(TraceError{
          TraceError::Kind::Damaged,
          log_.string() + " is not a session log: it has neither session_start nor tensor_log."});
    }
    // A truncated log means that the session was interrupted.
    if (!ended_) info_.state = SessionState::Recovered;
    if (info_.state == SessionState::Running) info_.state = SessionState::Recovered;
    if (steps_without_token_count_ > 0)
      info_.facts.emplace_back("trace.steps_without_token_count",
                               std::to_string(steps_without_token_count_));
    add_rebuilt_fact(info_, builder_->rebuilt_steps());
    if (const std::string ignored = ignored_text(imported_); !ignored.empty())
      info_.facts.emplace_back("trace.import_ignored", ignored);
    if (const WriteResult done = builder_->finish(info_, losses_); !done)
      return std::unexpected(done.error());
    return imported_;
  }

  std::filesystem::path log_, session_;
  std::uint64_t line_ = 0, entries_ = 0;
  SessionInfo info_;
  LossCounters losses_;
  std::optional<SessionBuilder> builder_;
  std::optional<ImportedStep> step_;
  RecordedParts recorded_;
  std::uint32_t number_ = kNone;                          // of the step in the log
  std::map<std::string, std::uint64_t> ignored_of_rows_;  // of the step
  std::vector<std::int32_t> layer_steps_;                 // layers of the step's layer_step objects
  std::optional<std::int64_t> implicit_step_;             // step without a step_begin
  bool legacy_ = false;                                   // the step has no first_op_ns
  bool has_begin_ = false, has_token_ = false;            // of the current step
  std::optional<Ns> last_op_begin_;                       // latest op begin of its rows
  std::uint32_t next_token_ = 0;                          // after the tokens of the last step
  std::uint64_t steps_without_token_count_ = 0;  // they may have evaluated more than one token
  bool ended_ = false;
  ImportCounts imported_;
};

// Without leading blank lines; empty if the file cannot be read.
std::string first_line(const std::filesystem::path& log) {
  auto in = InputFile::open(log);
  std::string line;
  while (in && read_line(in->stream(), line) &&
         line.find_first_not_of(" \t\r") == std::string::npos) {
  }
  return line;
}

}  // namespace

std::expected<ImportCounts, TraceError> import_log(const std::filesystem::path& log,
                                                   const std::filesystem::path& session,
                                                   const ContinueCheck& keep_going) {
  if (is_routing_log(first_line(log))) return import_routing_log(log, session, keep_going);
  return LogImport(log, session).run(keep_going);
}

std::string ignored_text(const ImportCounts& counts) {
  return join(counts.ignored, [](const auto& entry) {
    return std::format("{} ({} line{})", entry.first, entry.second, entry.second == 1 ? "" : "s");
  });
}

}  // namespace tt::exchange
