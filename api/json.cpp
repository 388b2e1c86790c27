#include "api/json.h"

#include <filesystem>

#include "api/version.h"

namespace tt {

namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

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

}  // namespace tt
