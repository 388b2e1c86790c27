// How an Engine is made: model, context, facts, vocabulary, memory manager.
#include <algorithm>
#include <array>
#include <exception>
#include <format>
#include <functional>
#include <future>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "tracer/engine/backends.h"
#include "tracer/engine/compute_peak.h"
#include "tracer/engine/context_params.h"
#include "tracer/engine/engine.h"
#include "tracer/engine/engine_error.h"
#include "tracer/engine/engine_state.h"
#include "tracer/engine/host_facts.h"
#include "tracer/engine/load_model.h"
#include "tracer/engine/load_record.h"
#include "tracer/engine/model_kind.h"
#include "tracer/engine/read_bandwidth.h"
#include "tracer/engine/repack_samples.h"
#include "tracer/format/names/names.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

// The template of models that have none, as in llama.cpp.
constexpr const char* kChatMl =
    "{%- for message in messages -%}\n"
    "  {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "  {{- '<|im_start|>assistant\\n' -}}\n"
    "{%- endif -%}";

// Why no conversation is possible: the template exceeds the limits of a child process, or rejects
// every conversation. Empty: one is. Such a template is not run again.
std::string template_error(Sandbox& sandbox, const std::string& source, const ChatTokens& tokens,
                           const KeepGoing& keep_going) {
  const std::vector<ChatMessage> turns = {{"system", "Be brief."},
                                          {"user", "Hello"},
                                          {"assistant", "Hello."},
                                          {"user", "What is 2 + 2?"}};
  std::string fault;
  bool passed = false;
  for (const std::ptrdiff_t first : {0, 1, 3}) {
    const Conversation conversation(std::vector(turns.begin() + first, turns.end()));
    const auto text = render_chat(sandbox, source, conversation, tokens, keep_going);
    if (!text && text.error().kind == ChatError::Kind::Template) return text.error().message;
    if (!text && text.error().kind == ChatError::Kind::Conversation) fault = text.error().reason;
    passed = passed || text || text.error().kind == ChatError::Kind::Server;
  }
  if (passed) return "";
  return std::format(
      "Chat is not possible: the model's chat template rejects every conversation: {}. Send plain "
      "text, or load the model with another template (--chat-template-file).",
      fault);
}

// The file of --access-pattern.
std::expected<StoredPattern, std::string> given_pattern(const std::filesystem::path& file,
                                                        std::span<const ModelFile> files) {
  auto read = read_pattern(file, files);
  if (read && *read) return **std::move(read);
  return std::unexpected(std::format(
      "The access pattern {} {}. Export one from a session of this model: `tt pattern SESSION -o "
      "FILE`. Or leave the option out: the order is then learned in the first step.",
      file.string(), read ? read->error() : "does not exist"));
}

// With the number of threads that generate. Only before the model is in memory, and only of a model
// that is larger than the cache: a smaller one is hardly read from memory.
MachineRate bandwidth_of(const ModelOptions& options, unsigned threads) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(options.path, error);
  if (error || size <= last_cache_bytes()) return std::unexpected(NotMeasured::SmallModel);
  return rate_of_machine(read_bandwidth_file(options.machine_folder), threads,
                         measure_read_bandwidth);
}

// llama.cpp reports a failure of mlock only in its log.
std::string mlock_error(std::uint64_t locked, std::uint64_t weights) {
  if (locked >= weights) return "";
  return std::format(
      "only {} of {} bytes of weights could be locked; raise the limit with `ulimit -l unlimited`, "
      "or for a service with LimitMEMLOCK=infinity",
      locked, weights);
}

// What differs from the options or is strange about the file.
std::vector<std::string> load_warnings(const ModelOptions& model, const ContextOptions& context,
                                       const ModelFacts& facts, const GgufIndex& index) {
  std::vector<std::string> warnings;
  for (const GgufFault& note : index.faults()) warnings.push_back(note.message);
  if (!facts.mlock_error.empty()) {
    warnings.push_back(
        std::format("The model is not fully locked in memory (--mlock): {}.", facts.mlock_error));
  }
  if (model.gpu_layers != 0 && offload_devices().empty()) {
    warnings.push_back(
        std::format("-ngl {} has no effect: this llama.cpp has no device to offload layers to "
                    "(backends: {}). All layers run on the CPU.",
                    model.gpu_layers, join(backend_names())));
  }
  // As llama.cpp; it may have rounded the trained size up.
  if (facts.context_trained > 0 && context.context > facts.context_trained &&
      context.context != ContextOptions::kDefaultContext && facts.context > facts.context_trained) {
    warnings.push_back(
        std::format("The context has {0} tokens, but the model was trained with {1}: what follows "
                    "the first {1} "
                    "tokens may make no sense. Use -c {1} or less.",
                    facts.context, facts.context_trained));
  }
  return warnings;
}

// Upper bound of the elements of one token in a layer's V cache: the rows of the widest K, V or
// QKV weight.
std::uint64_t widest_values(const GgufIndex& index) {
  std::int64_t maximum = 0;
  for (const GgufTensor& tensor : index.tensors()) {
    const Role role = role_of(tensor.name, TensorKind::Weight);
    if (role == Role::K || role == Role::V || role == Role::Qkv)
      maximum = std::max(maximum, tensor.ne[1]);
  }
  return static_cast<std::uint64_t>(maximum);
}

// An integer in the model's metadata; 0: missing, or an array with one value per layer.
std::uint32_t metadata_number(const GgufIndex& index, const std::string& key) {
  const auto value = value_of<std::uint64_t>(index.metadata(), key).value_or(0);
  return std::in_range<std::uint32_t>(value) ? static_cast<std::uint32_t>(value) : 0;
}

}  // namespace

std::uint32_t learned_positions(const GgufIndex& index) {
  const GgufTensor* learned = index.find("position_embd.weight");
  if (learned == nullptr || !std::in_range<std::uint32_t>(learned->ne[1])) return UINT32_MAX;
  return static_cast<std::uint32_t>(learned->ne[1]);
}

// The only place that catches what a load throws: any allocation, of llama.cpp or of this program,
// may fail under a memory limit, and the program goes on with other models.
std::expected<std::unique_ptr<Engine>, EngineError> Engine::load(const ModelOptions& options,
                                                                 const ContextOptions& context,
                                                                 const LoadProgress& progress,
                                                                 Sandbox* sandbox,
                                                                 const WeightsLoaded& loaded) {
  try {
    return load_or_throw(options, context, progress, sandbox, loaded);
  } catch (const std::bad_alloc&) {
    return engine_error(
        EngineError::Kind::OutOfMemory,
        std::format("{}: not enough memory to load it. Free memory or raise the limit of "
                    "this process, or use a smaller context (-c) or model.",
                    options.path.string()));
  } catch (const std::system_error& thrown) {
    return engine_error(EngineError::Kind::Busy,
                        std::format("{}: loading it failed: {}. Try again later.",
                                    options.path.string(), thrown.what()));
  } catch (const std::exception& thrown) {
    return engine_error(
        EngineError::Kind::Unsupported,
        std::format("{}: loading it failed: {}.", options.path.string(), thrown.what()));
  }
}

std::expected<std::unique_ptr<Engine>, EngineError> Engine::load_or_throw(
    const ModelOptions& options, const ContextOptions& context, const LoadProgress& progress,
    Sandbox* sandbox, const WeightsLoaded& loaded) {
  if (const auto invalid = option_error(context))
    return engine_error(EngineError::Kind::BadOption, *invalid);
  std::error_code ignored;
  if (!std::filesystem::exists(options.path, ignored)) {
    return engine_error(EngineError::Kind::NotFound,
                        std::format("{}: no such file. Give the path of a GGUF model with -m.",
                                    options.path.string()));
  }
  const auto threads =
      static_cast<unsigned>(context.threads > 0 ? context.threads : usable_processors());
  auto rates = machine_rate_facts(
      bandwidth_of(options, threads),
      rate_of_machine(compute_peak_file(options.machine_folder), threads, measure_compute_peak),
      threads);
  LoadRecord record;
  auto index = GgufIndex::open(options.path);
  if (!index) return engine_error(EngineError::Kind::NotAModel, index.error());
  if (std::string why = not_a_model(*index); !why.empty())
    return engine_error(EngineError::Kind::NotAModel, std::move(why));
  record.end_part("index");
  std::optional<StoredPattern> pattern;
  if (!options.access_pattern.empty()) {
    auto read = given_pattern(options.access_pattern, index->files());
    if (!read) return engine_error(EngineError::Kind::BadOption, read.error());
    pattern = *std::move(read);
  }
  if (auto added = add_rpc_servers(options.rpc_servers); !added) {
    return engine_error(EngineError::Kind::BadOption, added.error());
  }
  ModelOptions usable = options;
  usable.repack = options.repacks();
  const std::string fault = usable.repack ? repacking_error(*index) : "";
  if (!fault.empty()) usable.repack = false;
  const std::uint64_t locked = locked_bytes();
  auto model = load_model(usable, *index, progress);
  if (!model) return std::unexpected(model.error());
  record.end_part("weights");
  if (loaded) {
    if (const auto usable_model = loaded(); !usable_model)
      return engine_error(EngineError::Kind::Unsupported, usable_model.error());
    record.end_part("check");
  }
  auto host = host_facts(options.path);  // with the devices, which the load has found
  for (auto& fact : rates) host.push_back(std::move(fact));
  const std::string not_locked =
      usable.mlock && usable.gpu_layers == 0
          ? mlock_error(locked_bytes() - locked, llama_model_size(model->get()))
          : "";

  auto impl = std::make_unique<Impl>(Impl{.model_options = std::move(usable),
                                          .repacking_error = fault,
                                          .context_options = context,
                                          .facts = {},
                                          .index = *std::move(index),
                                          .model = *std::move(model),
                                          .layout = {},
                                          .params = {},
                                          .probe = {},
                                          .guard = {},
                                          .context = {},
                                          .memory = {},
                                          .unrecorded = {},
                                          .host = std::move(host),
                                          .load = {},
                                          .control_tokens = {},
                                          .eog_tokens = {},
                                          .cached_tokens = {},
                                          .cached_session = {},
                                          .sandbox = sandbox,
                                          .vocabulary = {},
                                          .chat_template = {},
                                          .own_chat_template = false,
                                          .chat_tokens = {},
                                          .template_error = {}});
  if (sandbox != nullptr) {
    impl->vocabulary = std::make_unique<Sandbox>(
        sandbox->program(), std::vector<std::string>{impl->model_options.path.string()});
  }
  impl->layout.emplace(ModelLayout{impl->index, MappedFiles::of_this_process(impl->index.files())});
  impl->probe = std::make_unique<Probe>(*impl->layout);
  impl->guard =
      std::make_unique<MappingGuard>(impl->layout->mapped.ranges(), impl->probe->cancel());
  impl->read_chat_template();
  std::future<std::string> template_check;
  if (sandbox != nullptr && !impl->chat_template.empty()) {
    template_check =
        std::async(std::launch::async, template_error, std::ref(*sandbox), impl->chat_template,
                   impl->chat_tokens, [&progress] { return !progress || progress(1); });
  }
  record.end_part("prepare");
  if (auto made = impl->make_context(); !made) return std::unexpected(made.error());
  record.end_part("context");
  impl->read_facts();
  impl->facts.mlock_error = not_locked;
  impl->facts.warnings = load_warnings(options, context, impl->facts, impl->index);
  impl->facts.context_warning = context_warning(context, impl->facts.context);
  impl->facts.settings = impl->settings();
  impl->read_vocabulary();
  impl->make_memory_manager(std::move(pattern));
  if (template_check.valid()) impl->template_error = template_check.get();
  if (impl->facts.has_vocabulary && !impl->own_chat_template && !impl->facts.embedding_only) {
    impl->facts.warnings.emplace_back(
        "The model has no chat template. Conversations are rendered as ChatML, as llama-server "
        "does, which the model may not know.");
  }
  impl->facts.can_chat =
      !impl->chat_template.empty() && impl->template_error.empty() && !impl->facts.embedding_only;
  if (!impl->template_error.empty()) {
    impl->facts.has_chat_template = false;
    impl->facts.warnings.push_back(impl->template_error);
  }
  record.end_part("vocabulary");
  impl->load = record.facts();
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

std::expected<void, EngineError> Engine::Impl::make_context() {
  llama_model* loaded = model.get();
  const auto trained = static_cast<std::uint32_t>(std::max(0, llama_model_n_ctx_train(loaded)));
  const auto attempt = [&](bool whole, bool embeddings) -> std::expected<void, EngineError> {
    auto chosen = context_params(context_options, whole, trained, learned_positions(index));
    if (!chosen) return std::unexpected(chosen.error());
    chosen->embeddings = embeddings;
    params = *chosen;
    probe->attach(*chosen);
    const LibraryMessages said;
    context.reset(llama_init_from_model(loaded, *chosen));
    facts.graph_nodes = said.graph_nodes();
    if (context) return {};
    return engine_error(
        EngineError::Kind::OutOfMemory,
        std::format("{}: llama.cpp cannot create a context of {} tokens with these "
                    "settings: {}. A smaller context (-c) needs less memory; a quantized "
                    "V cache (-ctv) needs flash attention.",
                    model_options.path.string(), chosen->n_ctx,
                    said.first_error().empty() ? "no reason given" : said.first_error()));
  };
  auto made = attempt(llama_model_has_encoder(loaded), false);
  if (made && llama_get_memory(context.get()) == nullptr) {
    // No KV cache or state: the model cannot generate. A diffusion model still outputs logits.
    facts.embedding_only = true;
    made = attempt(true, !llama_model_is_diffusion(loaded));
  }
  return made;
}

void Engine::Impl::read_facts() {
  const llama_model* loaded = model.get();
  const auto number = [](std::int32_t value) {
    return static_cast<std::uint32_t>(std::max(0, value));
  };
  std::array<char, 256> text{};
  llama_model_desc(loaded, text.data(), text.size());
  facts.description = text.data();
  for (const GgufEntry& entry : index.metadata()) {
    if (entry.key == "general.architecture") facts.architecture = value_text(entry);
    if (entry.key == "general.name") facts.name = value_text(entry);
  }
  if (facts.name.empty()) facts.name = model_options.path.stem().string();
  facts.size = llama_model_size(loaded);
  facts.n_layers = number(llama_model_n_layer(loaded));
  facts.n_embd = number(llama_model_n_embd(loaded));
  facts.n_heads = number(llama_model_n_head(loaded));
  facts.n_heads_kv = number(llama_model_n_head_kv(loaded));
  facts.n_vocab = number(llama_vocab_n_tokens(vocab()));
  facts.n_experts = metadata_number(index, facts.architecture + ".expert_count");
  facts.n_experts_used = metadata_number(index, facts.architecture + ".expert_used_count");
  // llama.cpp rounds the context size up.
  facts.context = std::min(llama_n_ctx(context.get()), learned_positions(index));
  facts.context_trained = number(llama_model_n_ctx_train(loaded));
  facts.ubatch = llama_n_ubatch(context.get());
  facts.threads = llama_n_threads(context.get());
  facts.has_chat_template = own_chat_template;
  facts.has_encoder = llama_model_has_encoder(loaded) && !facts.embedding_only;
  facts.recurrent = llama_model_is_recurrent(loaded);
  facts.hybrid = llama_model_is_hybrid(loaded);
}

void Engine::Impl::read_chat_template() {
  facts.has_vocabulary = llama_vocab_type(vocab()) != LLAMA_VOCAB_TYPE_NONE;
  if (!facts.has_vocabulary) return;
  // llama-server's choice: the option, the model's own template, or ChatML.
  const char* own = llama_model_chat_template(model.get(), nullptr);
  own_chat_template = !model_options.chat_template.empty() || own != nullptr;
  const std::string& given = model_options.chat_template;
  chat_template = given == kChatMlName ? kChatMl
                  : !given.empty()     ? given
                  : own != nullptr     ? own
                                       : kChatMl;
  const auto text = [this](llama_token token) {
    return token == LLAMA_TOKEN_NULL ? std::string() : piece(token);
  };
  chat_tokens = {.begin = text(llama_vocab_bos(vocab())),
                 .end = text(llama_vocab_eos(vocab())),
                 .adds_bos = llama_vocab_get_add_bos(vocab()),
                 .adds_eos = llama_vocab_get_add_eos(vocab())};
}

void Engine::Impl::read_vocabulary() {
  if (!facts.has_vocabulary) return;
  std::array<char, 1> room{};  // only the length matters
  const auto is_empty = [&](std::int32_t token, bool special) {
    return llama_token_to_piece(vocab(), token, room.data(), room.size(), 0, special) == 0;
  };
  for (std::int32_t token = 0; std::cmp_less(token, facts.n_vocab); ++token) {
    if (is_empty(token, false) && !is_empty(token, true)) control_tokens.push_back(token);
    if (llama_vocab_is_eog(vocab(), token)) eog_tokens.push_back(token);
  }
}

void Engine::Impl::make_memory_manager(std::optional<StoredPattern> given) {
  std::string unavailable;
  if (!model_options.mmap) {
    unavailable = "The weights are not mapped from the file. Load the model without --no-mmap.";
  } else if (model_options.repack) {
    unavailable =
        "The weights were converted at load, into memory that the kernel cannot drop. Load the "
        "model with --no-repack or with a budget.";
  }
  std::filesystem::path pattern;
  if (!model_options.pattern_folder.empty())
    pattern = pattern_file(model_options.pattern_folder, model_options.path);
  memory = std::make_unique<MemoryManager>(
      MemoryManager::Setup{.files = index.files(),
                           .ops_run = probe->ops_run(),
                           .unavailable = unavailable,
                           .system_root = {},
                           .pattern = pattern,
                           .given_pattern = std::move(given),
                           .address_of = [&mapped = layout->mapped](const FileRange& range) {
                             return mapped.address_of(range);
                           }});
  memory->set(model_options.memory);
}

RecorderSize Engine::Impl::recorder_size() const {
  // Experts and scores of every layer, cache positions (one per element without flash attention;
  // twice if some layers have a sliding-window cache), attended cells, and small lists.
  const std::uint64_t caches =
      metadata_number(index, facts.architecture + ".attention.sliding_window") > 0 ? 2 : 1;
  const std::uint64_t positions =
      context_options.flash_attention == FlashAttention::On ? 1 : widest_values(index);
  const std::uint64_t per_token =
      std::uint64_t{facts.n_layers} * facts.n_experts_used * 2 * sizeof(float) +
      caches * positions * sizeof(std::int64_t) + 256;
  const std::uint64_t bytes = per_token * facts.ubatch + std::uint64_t{facts.context} * 16;
  // Known architectures have up to about 100 ops per layer. A larger graph loses its times,
  // which is counted.
  const std::size_t ops = std::size_t{facts.n_layers} * 256 + 1024;
  return {.max_ops = ops,
          .slot_bytes =
              static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes, 1U << 20, 64U << 20))};
}

}  // namespace tt
