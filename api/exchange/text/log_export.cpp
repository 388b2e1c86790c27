#include "api/exchange/text/log_export.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/exchange/recording/recorded_parts.h"
#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/text/step_json.h"
#include "api/exchange/text/text_rows.h"
#include "api/json/json.h"
#include "api/json/trace_json.h"

namespace tt::exchange {
namespace {

constexpr int kLogVersion = 1;

// `type` repeats `event` for parsers of other logs.
Json with_event(const char* event, const Json& fields) {
  Json json = {{"event", event}, {"type", event}};
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

double milliseconds(Ns time) { return static_cast<double>(time.v) / 1e6; }

// Fields of a tensor_log that other tracers have and that the columns do not: the tensor as a
// whole. The same in every step.
std::string tensor_fields(const Tensor& tensor) {
  std::uint64_t elements = 1;  // a damaged file may have any shape
  for (const std::int64_t n : tensor.ne) elements *= static_cast<std::uint64_t>(n);
  const Json fields = {{"dtype", tensor.type},
                       {"shape", tensor.ne},
                       {"element_count", elements},
                       {"memory_bytes", size_of(tensor).v}};
  std::string out;
  append_fields(out, fields);
  return out;
}

// tensor_fields() of the accesses of the last template.
class TensorFields {
 public:
  const std::string& of(TemplateId id, const RowTemplate& graph, std::uint32_t access) {
    if (id != id_) {
      id_ = id;
      texts_.clear();
      for (const Access& a : graph.derived->accesses)
        texts_.push_back(tensor_fields(graph.derived->graph->tensor(a.tensor)));
    }
    return texts_[access];
  }

 private:
  TemplateId id_{};
  std::vector<std::string> texts_;
};

// Sums of consecutive rows of ops of one layer.
struct LayerStep {
  LayerId layer = kNoLayer;
  Ns begin{}, end{};
  std::uint32_t ops = 0;
  OpId last_op{};
  StepTotals totals;
};

Json layer_step_json(const Step& step, const LayerStep& of) {
  Json json = {{"step", step.id.v},
               {"layer_id", of.layer.v},
               {"timestamp_ns", of.begin.v},
               {"duration_ns", (of.end - of.begin).v},
               {"duration_ms", milliseconds(of.end - of.begin)},
               {"ops", of.ops}};
  of.totals.add_to(json);
  return json;
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
  TensorFields fields;
  RecordedPartsWriter parts(rows.reader());
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
        if (level != LogLevel::Minimal) {
          text.begin_step(rows_of_step.scope);
          if (const WriteResult recorded = parts.append(out.text(), step); !recorded)
            return recorded;
        }
        StepTotals of_step;
        std::optional<LayerStep> layer;
        const auto end_layer = [&] {
          if (!layer) return;
          append_line(out.text(), with_event("layer_step", layer_step_json(step, *layer)));
          layer.reset();
        };
        for (const ExportRow& row : rows_of_step.rows) {
          of_step.add(row.access);
          all.add(row.access);
          if (level == LogLevel::Minimal) continue;
          const GraphTemplate& graph = *rows_of_step.scope.graph->derived->graph;
          const OpId op = row.access.op;
          if (layer && layer->layer != graph.op(op).layer) end_layer();
          if (graph.op(op).layer != kNoLayer) {
            if (!layer) {
              layer.emplace();
              layer->layer = graph.op(op).layer;
              layer->begin = step.op_begin(op);
            }
            if (layer->ops == 0 || layer->last_op != op) ++layer->ops;
            layer->last_op = op;
            layer->end = op.v < step.op_ends.size() ? step.op_ends[op.v] : layer->begin;
            layer->totals.add(row.access);
          }
          out.text() += "{\"event\":\"tensor_log\",\"type\":\"tensor_log\",";
          text.append(out.text(), row);
          out.text() += fields.of(step.graph, *rows_of_step.scope.graph, row.access.access);
          const ValueStats* stats = level == LogLevel::Verbose && row.access.write
                                        ? stats_of(step, row.access.op)
                                        : nullptr;
          if (stats != nullptr) append_fields(out.text(), output_json(*stats));
          out.text() += "}\n";
          if (const WriteResult written = out.flush_if_full(); !written) return written;
        }
        end_layer();
        Json end = {{"step", step.id.v},
                    {"timestamp_ns", step.end.v},
                    {"duration_ms", milliseconds(step.end - step.begin)}};
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
