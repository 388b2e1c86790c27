#include "api/exchange/text/log_export.h"

#include <algorithm>
#include <utility>

#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/text/step_json.h"
#include "api/exchange/text/text_rows.h"
#include "api/json/json.h"
#include "api/json/trace_json.h"

namespace tt::exchange {
namespace {

constexpr int kLogVersion = 1;

Json with_event(const char* event, const Json& fields) {
  Json json = {{"event", event}};
  json.update(fields);
  return json;
}

void append_line(std::string& to, const Json& json) {
  to += text_of(json);
  to += '\n';
}

// The fields of a JSON object, each after a comma.
void append_fields(std::string& to, const Json& object) {
  const std::string text = text_of(object);
  to += ',';
  to.append(text, 1, text.size() - 2);
}

const ValueStats* stats_of(const Step& step, OpId op) {
  const auto found = std::ranges::find(step.stats, op, &ValueStats::op);
  return found == step.stats.end() ? nullptr : &*found;
}

}  // namespace

WriteResult export_log(SessionRows& rows, LogLevel level, const ByteSink& sink,
                       const ContinueCheck& keep_going) {
  BufferedSink out(sink);
  auto facts = session_metadata(rows);
  if (!facts) return std::unexpected(facts.error());
  Json start = {{"log_version", kLogVersion}};
  start.update(*facts);
  append_line(out.text(), with_event("session_start", start));

  TextRows text(TextStyle::Json);
  StepTotals all;
  std::uint32_t next_token = 0;
  const WriteResult walked = rows.for_each_step(
      [&](const StepRows& rows_of_step) -> WriteResult {
        const Step& step = *rows_of_step.scope.step;
        auto tokens = new_tokens(rows.reader(), step, next_token);
        if (!tokens) return std::unexpected(tokens.error());
        Json begin = step_begin_json(step, rows_of_step.scope.graph);
        begin["tokens"] = *std::move(tokens);
        append_line(out.text(), with_event("step_begin", begin));
        if (level != LogLevel::Minimal) text.begin_step(rows_of_step.scope);
        StepTotals of_step;
        for (const ExportRow& row : rows_of_step.rows) {
          of_step.add(row.access);
          all.add(row.access);
          if (level == LogLevel::Minimal) continue;
          out.text() += "{\"event\":\"tensor_log\",";
          text.append(out.text(), row);
          const ValueStats* stats = level == LogLevel::Verbose && row.access.write
                                        ? stats_of(step, row.access.op)
                                        : nullptr;
          if (stats != nullptr) append_fields(out.text(), output_json(*stats));
          out.text() += "}\n";
          if (const WriteResult written = out.flush_if_full(); !written) return written;
        }
        Json end = {{"step", step.id.v}, {"timestamp_ns", step.end.v}};
        end.update(step_end_json(step, of_step));
        append_line(out.text(), with_event("step_end", end));
        return out.flush_if_full();
      },
      keep_going);
  if (!walked) return walked;
  Json end = {{"state", to_text(rows.session().state)},
              {"error", rows.session().error},
              {"steps", rows.steps()},
              {"losses", (*facts)["losses"]}};
  all.add_to(end);
  auto tokens = unevaluated_tokens(rows, next_token);
  if (!tokens) return std::unexpected(tokens.error());
  end["tokens"] = *std::move(tokens);
  append_line(out.text(), with_event("session_end", end));
  return out.flush();
}

}  // namespace tt::exchange
