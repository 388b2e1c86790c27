// Metadata of a session: Engine::describe() before it runs (request, model, host) and
// Engine::complete() afterwards (result).
#include <algorithm>
#include <array>
#include <chrono>
#include <format>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracer/engine/engine_state.h"
#include "tracer/engine/prefix_match.h"
#include "tracer/memory/limits/memory_limit.h"
#include "tracer/text/join.h"
#include "tracer/text/recorded_answer.h"
#include "tracer/text/utf8.h"

namespace tt {

namespace {

constexpr std::size_t kMaxModelEntries = 4096;  // a session has at most kMaxSessionFacts facts

// The longest prefix of complete characters that fits into `max_bytes` bytes.
std::string_view prefix_of(std::string_view text, std::size_t max_bytes) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t next = end + utf8_character_at(text.substr(end)).length;
    if (next > max_bytes) break;
    end = next;
  }
  return text.substr(0, end);
}

std::string title_of(const Prompt& prompt) {
  constexpr std::size_t kLength = 80;
  std::string text;
  if (const auto* plain = std::get_if<std::string>(&prompt)) {
    text = *plain;
  } else if (const auto* conversation = std::get_if<Conversation>(&prompt)) {
    for (const ChatMessage& message : conversation->messages) {
      if (message.role == "user") text = message.content;
    }
  } else {
    text = std::format("{} token ids", std::get<std::vector<std::int32_t>>(prompt).size());
  }
  std::ranges::replace(text, '\n', ' ');
  return to_valid_utf8(prefix_of(text, kLength));
}

}  // namespace

SessionInfo Engine::describe(const GenerationRequest& request) const {
  const ModelFacts& facts = impl_->facts;
  const auto now = std::chrono::system_clock::now();
  SessionInfo info;
  info.id = request.id.empty() ? new_session_id() : request.id;
  info.title = title_of(request.prompt);
  info.start_utc_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  info.level = request.level;
  info.exact_timing = request.exact_timing;
  info.model_files = impl_->index.files();
  info.n_layers = facts.n_layers;
  info.n_heads = facts.n_heads;
  info.n_heads_kv = facts.n_heads_kv;
  info.n_embd = facts.n_embd;
  info.n_vocab = facts.n_vocab;
  info.n_experts = facts.n_experts;
  info.n_experts_used = facts.n_experts_used;

  const auto add = [&](std::string name, std::string value) {
    info.facts.emplace_back(std::move(name), std::move(value));
  };
  add("model.name", facts.name);
  add("model.description", facts.description);
  add("model.architecture", facts.architecture);
  std::size_t entries = 0;
  for (const GgufEntry& entry : impl_->index.metadata()) {
    if (entry.key.starts_with("tokenizer.") || entry.key.starts_with("general.")) continue;
    if (++entries <= kMaxModelEntries) add("model." + entry.key, value_text(entry));
  }
  if (entries > kMaxModelEntries)
    add("trace.model_entries_not_recorded", std::to_string(entries - kMaxModelEntries));
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    add("request.prompt", *text);
  } else if (const auto* conversation = std::get_if<Conversation>(&request.prompt)) {
    for (std::size_t i = 0; i < conversation->messages.size(); ++i) {
      const ChatMessage& message = conversation->messages[i];
      add(std::format("request.messages.{}.{}", i, message.role), message.content);
      if (!message.json.empty()) add(std::format("request.messages.{}.json", i), message.json);
    }
    if (!conversation->tools.empty()) add("request.tools", conversation->tools);
    if (!conversation->arguments.empty())
      add("request.chat_template_kwargs", conversation->arguments);
  }
  add("request.max_tokens", std::to_string(request.max_tokens));
  for (auto& [name, value] : sampling_facts(request.sampling)) add("request." + name, value);
  for (std::size_t i = 0; i < request.stop.size(); ++i)
    add(std::format("request.stop.{}", i), request.stop[i]);
  for (std::size_t i = 0; i < request.capture.size(); ++i)
    add(std::format("request.capture.{}", i), request.capture[i]);
  if (!request.capture.empty()) add("request.capture_bytes", std::to_string(request.capture_bytes));
  if (request.debug) {
    for (std::size_t i = 0; i < request.debug->breakpoints.size(); ++i)
      add(std::format("request.breakpoints.{}", i), request.debug->breakpoints[i]);
  }
  // Tokens without text in the answer (see RecordedAnswer).
  std::vector<std::int32_t> silent = impl_->control_tokens;
  silent.insert(silent.end(), impl_->eog_tokens.begin(), impl_->eog_tokens.end());
  std::ranges::sort(silent);
  silent.erase(std::ranges::unique(silent).begin(), silent.end());
  if (!silent.empty()) add("request.silent", format_ranges(silent));
  for (const auto& fact : facts.settings) info.facts.push_back(fact);
  const MemoryOptions& memory = impl_->memory->state().options;
  add("context.memory_budget", memory.budget == MemoryOptions::kOff ? "off"
                               : memory.budget == MemoryOptions::kAuto
                                   ? "auto"
                                   : std::to_string(memory.budget));
  for (const auto& fact : impl_->load) info.facts.push_back(fact);
  for (const auto& fact : impl_->host) info.facts.push_back(fact);
  const MemoryLimit limit = MemoryLimitReader().read();
  add("host.memory_limit", limit.source);
  add("host.memory_limit_bytes", std::to_string(limit.limit));
  add("host.memory_available_bytes",
      std::to_string(limit.limit - std::min(limit.limit, limit.fixed)));
  return info;
}

std::vector<std::pair<std::string, std::string>> Engine::Impl::settings() const {
  std::vector<std::pair<std::string, std::string>> settings;
  const auto add = [&](std::string name, std::string value) {
    settings.emplace_back(std::move(name), std::move(value));
  };
  add("context.size", std::to_string(facts.context));
  add("context.batch", std::to_string(context_options.batch));
  add("context.ubatch", std::to_string(facts.ubatch));
  add("context.threads", std::to_string(facts.threads));
  constexpr std::array kFlashWords = {"auto", "on", "off"};
  add("context.flash_attention", kFlashWords[std::to_underlying(context_options.flash_attention)]);
  add("context.cache_type_k", context_options.cache_type_k);
  add("context.cache_type_v", context_options.cache_type_v);
  if (llama_model_n_swa(model.get()) > 0)
    add("context.swa_full", context_options.swa_full ? "on" : "off");
  add("context.repack", model_options.repack      ? "on"
                        : repacking_error.empty() ? "off"
                                                  : "off: " + repacking_error);
  add("context.mmap", model_options.mmap ? "on" : "off");
  add("context.mlock", !facts.mlock_error.empty() ? "off: " + facts.mlock_error
                       : model_options.mlock      ? "on"
                                                  : "off");
  add("context.gpu_layers", std::to_string(model_options.gpu_layers));
  return settings;
}

void Engine::complete(SessionInfo& info, const GenerationResult& result) const {
  switch (result.reason) {
    case StopReason::Cancelled:
      info.state = SessionState::Cancelled;
      break;
    case StopReason::Error:
      info.state = SessionState::Failed;
      break;
    default:
      info.state = SessionState::Done;
      break;
  }
  info.error = result.error;
  const auto add = [&](const char* name, auto value) {
    info.facts.emplace_back(name, std::format("{}", value));
  };
  add("request.seed", result.seed);
  add("result.stop_reason", to_text(result.reason));
  if (result.invalid_logits) add("result.invalid_logits", "yes");
  add("result.prompt_tokens", result.prompt_tokens);
  add_reuse_facts(info, result.reused_tokens, result.cached);
  add("result.generated_tokens", result.generated);
  add("result.prompt_ns", result.prompt_ns);
  add("result.generate_ns", result.generate_ns);
  if (result.generated > 0) {
    add("result.first_token_ns", result.first_token_ns);
    add("result.next_sample_ns", result.next_sample_ns);
  }
  add("result.sample_ns", result.sample_ns);
  add("result.detokenize_ns", result.detokenize_ns);
  if (const MemoryState memory = memory_state(); memory.phase != MemoryState::Phase::Off) {
    add("memory.state", to_text(memory.phase));
    add("memory.message", memory.message);
    add("memory.budget", memory.budget);
    add("memory.pinned", memory.pinned);
    add("memory.streamed", memory.streamed);
    add("memory.expert_cache", memory.expert_cache);
    add("memory.window", memory.window);
  }
  if (const BufferSizes& sizes = impl_->probe->buffer_sizes(); sizes.compute > 0) {
    add("result.kv_bytes", sizes.kv);
    std::vector<std::string> kinds;
    for (const auto& [cells, layers] : sizes.layers_by_cells | std::views::reverse)
      kinds.push_back(std::format("{} in {} layer{}", cells, layers, layers == 1 ? "" : "s"));
    if (!kinds.empty()) add("result.kv_cells", join(kinds));
    add("result.compute_bytes", sizes.compute);
  }
  if (!impl_->facts.embedding_only)
    add("result.logits_bytes", std::uint64_t{impl_->facts.n_vocab} * sizeof(float));
  const OffsetCoverage& coverage = impl_->probe->coverage();
  add("trace.weights", coverage.weights);
  add("trace.offsets_by_name", coverage.by_name);
  add("trace.offsets_by_address", coverage.by_address);
  add("trace.offsets_agree", coverage.agree);
}

}  // namespace tt
