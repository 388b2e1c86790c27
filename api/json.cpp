#include "api/json.h"

#include <cmath>
#include <filesystem>
#include <format>

#include "api/version.h"

namespace tt {

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json layer_json(LayerId layer) { return layer == kNoLayer ? Json() : Json(layer.v); }
Json number_or_null(std::int32_t v) { return v < 0 ? Json() : Json(v); }

const char* state_text(LoadState::Phase phase) {
  switch (phase) {
    case LoadState::Phase::Loading:
      return "loading";
    case LoadState::Phase::Ready:
      return "loaded";
    case LoadState::Phase::Failed:
      break;
  }
  return "failed";
}

Json file_json(const ModelFile& file) {
  return {{"path", file.path},
          {"size", file.size},
          {"mtime_ns", file.mtime_ns},
          {"header_hash", file.header_hash}};
}

// The first file's path, the size of all (a split model has several).
Json model_json(const SessionInfo& info) {
  std::uint64_t size = 0;
  Json files = Json::array();
  for (const ModelFile& file : info.model_files) {
    size += file.size;
    files.push_back(file_json(file));
  }
  return {{"path", info.model_files.empty() ? "" : info.model_files.front().path},
          {"size", size},
          {"files", std::move(files)}};
}

Json to_json(const LossCounters& losses) {
  return {{"steps_without_times", losses.steps_without_times},
          {"slot_values_dropped", losses.slot_values_dropped},
          {"count_mismatches", losses.count_mismatches},
          {"steps_not_written", losses.steps_not_written}};
}

Json source_json(const Tensor& tensor) {
  return {{"tensor", tensor.name},
          {"type", tensor.type},
          {"shape", tensor.ne},
          {"kind", to_text(tensor.kind)},
          {"source", to_text(tensor.source)}};
}

Json range_json(const FileRange& range) {
  if (range.empty()) return nullptr;
  return {{"index", range.file}, {"offset", range.offset}, {"length", range.length}};
}

template <class Row, class RowJson>
Json page_json(const char* name, const Page<Row>& page, RowJson row_json) {
  Json rows = Json::array();
  for (const Row& row : page.rows) rows.push_back(row_json(row));
  return {{"total", page.total}, {name, std::move(rows)}};
}

}  // namespace

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string name_of(const ModelEntry& model) {
  if (model.facts && !model.facts->name.empty()) return model.facts->name;
  return std::filesystem::path(model.path).stem().string();
}

Json to_json(const ModelEntry& model) {
  Json out{{"name", name_of(model)},
           {"path", model.path},
           {"size_bytes", model.size},
           {"state", state_text(model.load.phase)},
           {"load_progress", model.load.progress},
           {"error", text_or_null(model.load.error)},
           {"warning", text_or_null(model.load.warning)}};
  if (!model.facts) return out;
  const ModelFacts& facts = *model.facts;
  out.update(Json{{"description", facts.description},
                  {"architecture", facts.architecture},
                  {"n_layers", facts.n_layers},
                  {"n_embd", facts.n_embd},
                  {"n_heads", facts.n_heads},
                  {"n_heads_kv", facts.n_heads_kv},
                  {"n_experts", facts.n_experts},
                  {"n_experts_used", facts.n_experts_used},
                  {"n_vocab", facts.n_vocab},
                  {"context", facts.context},
                  {"context_trained", facts.context_trained},
                  {"has_vocabulary", facts.has_vocabulary},
                  {"has_chat_template", facts.has_chat_template},
                  {"has_encoder", facts.has_encoder},
                  {"embedding_only", facts.embedding_only},
                  {"recurrent", facts.recurrent},
                  {"hybrid", facts.hybrid},
                  {"threads", facts.threads}});
  return out;
}

Json health_json(const ModelEntry& model) {
  return {{"status", model.load.phase == LoadState::Phase::Loading ? "loading" : "ok"},
          {"version", kVersion},
          {"model", model.facts ? Json(name_of(model)) : Json()},
          {"model_state", state_text(model.load.phase)},
          {"load_progress", model.load.progress},
          {"error", text_or_null(model.load.error)},
          {"warning", text_or_null(model.load.warning)}};
}

Json to_json(const JobStatus& status) {
  const bool ended = status.stop_reason != StopReason::None;
  return {{"id", status.id},
          {"state", to_text(status.state)},
          {"position", status.position},
          {"prompt_tokens", status.prompt_tokens},
          {"prompt_done", status.prompt_done},
          {"reused_tokens", status.reused_tokens},
          {"generated", status.generated},
          {"max_tokens", status.max_tokens},
          {"text", status.text},
          {"stop_reason", ended ? Json(to_text(status.stop_reason)) : Json()},
          {"error", text_or_null(status.error)}};
}

Json to_json(const SessionEntry& session) {
  if (!session.overview) {
    return {{"id", session.id},       {"title", ""},       {"state", "unreadable"},
            {"error", session.error}, {"start_utc_ns", 0}, {"file_bytes", session.file_bytes}};
  }
  const SessionInfo& info = session.overview->info;
  Json facts = Json::object();
  for (const auto& [name, value] : info.facts) facts[name] = value;
  return {{"id", session.id},
          {"title", info.title},
          {"state", to_text(info.state)},
          {"error", text_or_null(info.error)},
          {"start_utc_ns", info.start_utc_ns},
          {"level", to_text(info.level)},
          {"exact_timing", info.exact_timing},
          {"model", model_json(info)},
          {"n_layers", info.n_layers},
          {"n_heads", info.n_heads},
          {"n_heads_kv", info.n_heads_kv},
          {"n_embd", info.n_embd},
          {"n_vocab", info.n_vocab},
          {"n_experts", info.n_experts},
          {"n_experts_used", info.n_experts_used},
          {"steps", session.overview->steps},
          {"tokens", session.overview->tokens},
          {"file_bytes", session.file_bytes},
          {"losses", to_json(session.overview->losses)},
          {"facts", std::move(facts)}};
}

Json to_json(const Token& token) {
  return {{"index", token.index},         {"id", token.id},         {"position", token.position},
          {"generated", token.generated}, {"reused", token.reused}, {"text", token.text}};
}

Json to_json(const StepSummary& step) {
  Json ns = Json::array(), bytes = Json::array();
  for (const Ns n : step.layer_ns) ns.push_back(n.v);
  for (const Bytes b : step.layer_bytes) bytes.push_back(b.v);
  return {{"step", step.step.v},
          {"phase", to_text(step.phase)},
          {"timing", to_text(step.timing)},
          {"template", step.graph.v},
          {"begin_ns", step.begin.v},
          {"end_ns", step.end.v},
          {"first_token", step.first_token},
          {"n_tokens", step.n_tokens},
          {"ops", step.ops},
          {"accesses", step.accesses},
          {"bytes_read", step.read.v},
          {"bytes_written", step.written.v},
          {"dropped", step.dropped},
          {"aborted", step.aborted},
          {"layers", {{"ns", std::move(ns)}, {"bytes", std::move(bytes)}}}};
}

Json to_json(const GraphTemplate& graph, const OpRow& row) {
  const Op& op = graph.op(row.op);
  const Tensor& output = graph.tensor(row.output);
  Json sources = Json::array();
  for (const TensorId source : row.sources) sources.push_back(source_json(graph.tensor(source)));
  return {{"op", row.op.v},
          {"name", row.name},
          {"tensor", output.name},
          {"type", output.type},
          {"shape", output.ne},
          {"layer", layer_json(op.layer)},
          {"component", to_text(row.component)},
          {"role", to_text(row.role)},
          {"device", op.device},
          {"begin_ns", row.begin.v},
          {"end_ns", row.end.v},
          {"nodes", op.nodes},
          {"bytes_read", row.read.v},
          {"bytes_written", row.written.v},
          {"sources", std::move(sources)}};
}

Json to_json(const GraphTemplate& graph, const AccessRow& row) {
  const StepAccess& access = row.access;
  const Tensor& tensor = graph.tensor(access.tensor);
  const bool scored = access.expert >= 0 && !std::isnan(access.score);
  return {{"op", access.op.v},
          {"tensor", tensor.name},
          {"kind", to_text(tensor.kind)},
          {"write", access.write},
          {"bytes", access.touched.v},
          {"source", to_text(tensor.source)},
          {"file", range_json(access.range)},
          {"address", row.address == 0 ? Json() : Json(std::format("0x{:x}", row.address))},
          {"layer", layer_json(tensor.layer)},
          {"component", to_text(tensor.component)},
          {"role", to_text(tensor.role)},
          {"category", to_text(row.category)},
          {"expert", number_or_null(access.expert)},
          {"rank", number_or_null(access.rank)},
          {"score", scored ? Json(access.score) : Json()}};
}

Json to_json(const Page<SessionEntry>& sessions) {
  return page_json("sessions", sessions, [](const SessionEntry& row) { return to_json(row); });
}
Json to_json(const Page<Token>& tokens) {
  return page_json("tokens", tokens, [](const Token& row) { return to_json(row); });
}
Json to_json(const Page<StepSummary>& steps) {
  return page_json("steps", steps, [](const StepSummary& row) { return to_json(row); });
}
Json to_json(const OpTable& ops) {
  return page_json("ops", ops.page, [&](const OpRow& row) { return to_json(*ops.graph, row); });
}
Json to_json(const AccessTable& accesses) {
  return page_json("accesses", accesses.page,
                   [&](const AccessRow& row) { return to_json(*accesses.graph, row); });
}

}  // namespace tt
