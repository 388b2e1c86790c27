#include "tracer/engine/engine.h"

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

#include "tracer/debug/breakpoint.h"
#include "tracer/engine/backends.h"
#include "tracer/engine/engine_state.h"
#include "tracer/engine/generation_run.h"
#include "tracer/engine/host_facts.h"
#include "tracer/engine/load_metadata.h"
#include "tracer/engine/load_record.h"
#include "tracer/engine/memory_map.h"
#include "tracer/engine/model_kind.h"
#include "tracer/engine/read_bandwidth.h"
#include "tracer/engine/repack_samples.h"
#include "tracer/engine/tensor_overrides.h"
#include "tracer/format/names/names.h"
#include "tracer/memory/plan/stored_pattern.h"
#include "tracer/probe/name_pattern.h"
#include "tracer/probe/value_capture.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

using Kind = EngineError::Kind;

std::unexpected<EngineError> error(Kind kind, std::string message) {
  return std::unexpected(EngineError{kind, std::move(message)});
}

std::expected<ggml_type, EngineError> cache_type(const std::string& name) {
  constexpr std::array types = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL};
  for (const ggml_type type : types)
    if (name == ggml_type_name(type)) return type;
  return error(Kind::BadOption, std::format("\"{}\" is not a cache type. Choose one of {}.", name,
                                            join(types, ggml_type_name)));
}

llama_load_mode load_mode(const ModelOptions& options) {
  if (options.direct_io) return LLAMA_LOAD_MODE_DIRECT_IO;
  if (options.mmap) {
    return options.mlock ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MMAP;
  }
  return options.mlock ? LLAMA_LOAD_MODE_MLOCK : LLAMA_LOAD_MODE_NONE;
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

// "host.last_cache_bytes", and "host.read_bandwidth" (bytes per second) with the number of threads
// that generate. Only before the model is in memory, and only of a model that is larger than the
// cache: a smaller one is hardly read from memory.
std::vector<std::pair<std::string, std::string>> bandwidth_facts(const ModelOptions& options,
                                                                 const ContextOptions& context) {
  std::vector<std::pair<std::string, std::string>> facts;
  const std::uint64_t cache = last_cache_bytes();
  if (cache > 0) facts.emplace_back("host.last_cache_bytes", std::to_string(cache));
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(options.path, error);
  if (options.bandwidth_file.empty() || error || size <= cache) return facts;
  const auto threads =
      static_cast<unsigned>(context.threads > 0 ? context.threads : usable_processors());
  if (const auto bandwidth = read_bandwidth(options.bandwidth_file, threads)) {
    facts.emplace_back("host.read_bandwidth", std::to_string(*bandwidth));
    facts.emplace_back("host.read_bandwidth_threads", std::to_string(threads));
  }
  return facts;
}

// Number of learned position embeddings, beyond which ggml aborts. Unlimited for computed
// positions (RoPE).
std::uint32_t learned_positions(const GgufIndex& index) {
  const GgufTensor* learned = index.find("position_embd.weight");
  if (learned == nullptr || !std::in_range<std::uint32_t>(learned->ne[1])) return UINT32_MAX;
  return static_cast<std::uint32_t>(learned->ne[1]);
}

std::size_t text_bytes(const Prompt& prompt) {
  std::size_t bytes = 0;
  if (const auto* text = std::get_if<std::string>(&prompt)) bytes = text->size();
  if (const auto* conversation = std::get_if<Conversation>(&prompt)) {
    bytes = conversation->tools.size() + conversation->arguments.size();
    for (const ChatMessage& message : conversation->messages)
      bytes += std::max(message.content.size(), message.json.size());
  }
  return bytes;
}

// Longer texts are not tokenized: natural language and code have 3 to 8 bytes per token.
constexpr std::size_t max_bytes(std::uint32_t max_tokens) {
  return std::size_t{16} * max_tokens + 4096;
}

// An integer in the model's metadata; 0: missing, or an array with one value per layer.
std::uint32_t metadata_number(const GgufIndex& index, const std::string& key) {
  const auto value = value_of<std::uint64_t>(index.metadata(), key).value_or(0);
  return std::in_range<std::uint32_t>(value) ? static_cast<std::uint32_t>(value) : 0;
}

}  // namespace

// ---------------------------------------------------------------- loading

namespace {

bool is_lack_of_memory(std::string_view cause) {
  return cause.contains("allocate") || cause.contains("mmap failed") ||
         cause.contains("out of memory");
}

// What to do about an error of llama.cpp at load. The file itself is sound: its header was checked.
const char* advice_of(std::string_view cause) {
  const auto says = [&](std::string_view words) { return cause.contains(words); };
  if (is_lack_of_memory(cause))
    return "Free memory or raise the limit of this process, or choose a smaller model.";
  if (says("tokenizer") || says("vocab"))
    return "Its tokenizer is missing, or newer than this llama.cpp. Update llama.cpp, or convert "
           "the model again.";
  if (says("corrupted or incomplete") || says("not within the file bounds"))
    return "Download or copy it again.";
  return "The model may need a newer version or a fork of llama.cpp, or was converted wrongly: "
         "convert it again, or take it from another source.";
}

enum class LoadPart : bool { All, Metadata };

std::expected<LlamaModel, EngineError> load_model(const ModelOptions& options,
                                                  const GgufIndex& index,
                                                  const LoadProgress& progress,
                                                  LoadPart part = LoadPart::All) {
  llama_model_params params = llama_model_default_params();
  params.no_alloc = part == LoadPart::Metadata;
  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  if (options.gpu_layers == 0) params.devices = no_devices.data();
  params.n_gpu_layers = options.gpu_layers;
  params.load_mode = load_mode(options);
  params.lazy_mode = options.lazy_mode == LazyMode::On    ? LLAMA_LAZY_MODE_ON
                     : options.lazy_mode == LazyMode::Off ? LLAMA_LAZY_MODE_OFF
                                                          : LLAMA_LAZY_MODE_AUTO;
  params.use_extra_bufts = options.repack && !options.repack_samples;
  const auto overrides = TensorOverrides::of(options);
  if (!overrides) return error(Kind::BadOption, overrides.error());
  params.tensor_buft_overrides = overrides->overrides();
  std::optional<RepackSamples> samples;
  if (options.repack && options.repack_samples) {
    samples.emplace(index);
    params.tensor_buft_overrides = samples->overrides();
  }

  struct Watch {
    const LoadProgress& progress;
    bool cancelled = false;
  } watch{progress};
  params.progress_callback_user_data = &watch;
  params.progress_callback = [](float done, void* data) {
    auto& state = *static_cast<Watch*>(data);
    state.cancelled = state.progress && !state.progress(done);
    return !state.cancelled;
  };
  const LibraryErrors errors;
  LlamaModel model(llama_model_load_from_file(options.path.c_str(), params));
  if (model) return model;
  if (watch.cancelled) return error(Kind::Cancelled, "Loading was cancelled.");
  return error(is_lack_of_memory(errors.first()) ? Kind::OutOfMemory : Kind::Unsupported,
               std::format("{}: llama.cpp {} cannot load this model: {}. {} All messages of "
                           "llama.cpp are in the server log (--log-level debug) or shown by tt "
                           "record --verbose.",
                           options.path.string(), library_versions().llama,
                           errors.first().empty() ? "no reason given" : errors.first(),
                           advice_of(errors.first())));
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

// A default context that the model cannot have is no surprise.
std::string context_warning(const ContextOptions& options, std::uint32_t context) {
  if (options.context == 0 || options.context == ContextOptions::kDefaultContext ||
      options.context == context)
    return "";
  return std::format("The context has {} tokens, not {} (-c): {}.", context, options.context,
                     context > options.context ? "llama.cpp rounds it up to a multiple of 256"
                                               : "the model has no more positions");
}

// Limits that llama.cpp does not check: it would crash, or load for minutes.
static_assert(kMaxThreads == GGML_MAX_N_THREADS);
std::optional<std::string> option_error(const ContextOptions& options) {
  if (std::max(options.threads, options.threads_batch) > kMaxThreads)
    return std::format("The number of threads (-t, -tb) must be at most {}.", kMaxThreads);
  if (options.context > kMaxContext && options.context != ContextOptions::kDefaultContext)
    return std::format("The context (-c) must be at most {} tokens.", kMaxContext);
  if (options.moe_cache_mib > 0 && offload_devices().empty()) {
    return std::format(
        "--moe-cache-mib needs a GPU backend; this llama.cpp has none (backends: {}).",
        join(backend_names()));
  }
  return std::nullopt;
}

std::uint32_t wanted_context(const ContextOptions& options, std::uint32_t trained) {
  if (options.context == ContextOptions::kDefaultContext) {
    return trained == 0 ? ContextOptions::kDefaultContextTokens
                        : std::min(trained, ContextOptions::kDefaultContextTokens);
  }
  return options.context == 0 ? trained : options.context;
}

std::expected<llama_context_params, EngineError> context_params(const ContextOptions& options,
                                                                bool whole_prompts,
                                                                std::uint32_t trained,
                                                                std::uint32_t positions) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = std::min(wanted_context(options, trained), positions);
  params.n_batch = options.batch;
  params.n_ubatch = options.ubatch;
  if (whole_prompts) {
    // Encoders process the whole prompt in one step.
    params.n_batch = params.n_ubatch =
        std::min(params.n_ctx, std::max<std::uint32_t>(trained, 512));
  }
  params.n_threads =
      options.threads > 0 ? options.threads : std::min(usable_processors(), kMaxThreads);
  params.n_threads_batch = options.threads_batch > 0 ? options.threads_batch : params.n_threads;
  params.flash_attn_type =
      options.flash_attention == FlashAttention::On    ? LLAMA_FLASH_ATTN_TYPE_ENABLED
      : options.flash_attention == FlashAttention::Off ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                                                       : LLAMA_FLASH_ATTN_TYPE_AUTO;
  auto type_k = cache_type(options.cache_type_k);
  auto type_v = cache_type(options.cache_type_v);
  if (!type_k) return std::unexpected(type_k.error());
  if (!type_v) return std::unexpected(type_v.error());
  params.type_k = *type_k;
  params.type_v = *type_v;
  params.swa_full = options.swa_full;
  params.moe_cache_size = std::size_t{options.moe_cache_mib} << 20U;
  params.no_perf = true;
  return params;
}

}  // namespace

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

}  // namespace

std::expected<void, EngineError> load_metadata(const std::filesystem::path& model) {
  const auto index = GgufIndex::open(model);
  if (!index) return error(Kind::NotAModel, index.error());
  if (std::string why = not_a_model(*index); !why.empty())
    return error(Kind::NotAModel, std::move(why));
  ModelOptions options;
  options.path = model;
  options.mmap = options.repack = false;
  const auto loaded = load_model(options, *index, {}, LoadPart::Metadata);
  if (!loaded) return std::unexpected(loaded.error());
  return {};
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

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
    return error(Kind::OutOfMemory,
                 std::format("{}: not enough memory to load it. Free memory or raise the limit of "
                             "this process, or use a smaller context (-c) or model.",
                             options.path.string()));
  } catch (const std::system_error& thrown) {
    return error(Kind::Busy, std::format("{}: loading it failed: {}. Try again later.",
                                         options.path.string(), thrown.what()));
  } catch (const std::exception& thrown) {
    return error(Kind::Unsupported,
                 std::format("{}: loading it failed: {}.", options.path.string(), thrown.what()));
  }
}

std::expected<std::unique_ptr<Engine>, EngineError> Engine::load_or_throw(
    const ModelOptions& options, const ContextOptions& context, const LoadProgress& progress,
    Sandbox* sandbox, const WeightsLoaded& loaded) {
  if (const auto invalid = option_error(context)) return error(Kind::BadOption, *invalid);
  std::error_code ignored;
  if (!std::filesystem::exists(options.path, ignored)) {
    return error(Kind::NotFound,
                 std::format("{}: no such file. Give the path of a GGUF model with -m.",
                             options.path.string()));
  }
  auto bandwidth = bandwidth_facts(options, context);
  LoadRecord record;
  auto index = GgufIndex::open(options.path);
  if (!index) return error(Kind::NotAModel, index.error());
  if (std::string why = not_a_model(*index); !why.empty())
    return error(Kind::NotAModel, std::move(why));
  record.end_part("index");
  std::optional<StoredPattern> pattern;
  if (!options.access_pattern.empty()) {
    auto read = given_pattern(options.access_pattern, index->files());
    if (!read) return error(Kind::BadOption, read.error());
    pattern = *std::move(read);
  }
  if (auto added = add_rpc_servers(options.rpc_servers); !added) {
    return error(Kind::BadOption, added.error());
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
      return error(Kind::Unsupported, usable_model.error());
    record.end_part("check");
  }
  auto host = host_facts(options.path);  // with the devices, which the load has found
  for (auto& fact : bandwidth) host.push_back(std::move(fact));
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
    const LibraryErrors errors;
    context.reset(llama_init_from_model(loaded, *chosen));
    if (context) return {};
    return error(Kind::OutOfMemory,
                 std::format("{}: llama.cpp cannot create a context of {} tokens with these "
                             "settings: {}. A smaller context (-c) needs less memory; a quantized "
                             "V cache (-ctv) needs flash attention.",
                             model_options.path.string(), chosen->n_ctx,
                             errors.first().empty() ? "no reason given" : errors.first()));
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

// ---------------------------------------------------------------- text

std::string Engine::Impl::piece(std::int32_t token, bool special) const {
  if (!facts.has_vocabulary) return {};
  std::string bytes(32, '\0');
  for (;;) {
    const std::int32_t length = llama_token_to_piece(
        vocab(), token, bytes.data(), static_cast<std::int32_t>(bytes.size()), 0, special);
    if (length >= 0) {
      bytes.resize(static_cast<std::size_t>(length));
      return bytes;
    }
    bytes.resize(static_cast<std::size_t>(-length));
  }
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

std::string Engine::piece(std::int32_t token) const { return impl_->piece(token); }

std::expected<std::vector<std::int32_t>, EngineError> Engine::tokens_of(
    const Prompt& prompt) const {
  const ModelFacts& facts = impl_->facts;
  const bool whole = facts.embedding_only || facts.has_encoder;
  const std::uint32_t maximum = whole ? facts.ubatch : facts.context;
  std::vector<std::int32_t> tokens;
  if (const auto* ids = std::get_if<std::vector<std::int32_t>>(&prompt)) {
    tokens = *ids;
    for (const std::int32_t id : tokens) {
      if (id < 0 || static_cast<std::uint32_t>(id) >= facts.n_vocab) {
        return error(Kind::BadToken,
                     std::format("Token {} is not in the vocabulary: ids must be from 0 to {}.", id,
                                 facts.n_vocab - 1));
      }
    }
  } else {
    if (!facts.has_vocabulary) {
      return error(Kind::NoVocabulary,
                   std::format("This model has no vocabulary and cannot tokenize text. Send token "
                               "ids from 0 to {} instead.",
                               facts.n_vocab - 1));
    }
    if (text_bytes(prompt) > max_bytes(maximum)) return too_long(maximum);
    auto text = text_of(prompt);
    if (!text) return std::unexpected(text.error());
    if (text->empty()) {
      return error(Kind::EmptyPrompt, "The prompt is empty. Send at least one character.");
    }
    try {
      if (text->size() > max_bytes(maximum) || has_more_tokens(*text, maximum))
        return too_long(maximum);
      tokens = tokenize(*text);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& failed) {  // the vocabulary lacks a token that it needs
      return error(Kind::NoVocabulary,
                   std::format("The model's tokenizer cannot convert this text: {}. Send token ids "
                               "instead.",
                               failed.what()));
    }
  }
  if (tokens.empty()) {
    return error(Kind::EmptyPrompt, "The prompt is empty. Send at least one token.");
  }
  if (tokens.size() > maximum) return too_long(maximum, tokens.size());
  return tokens;
}

// `count`: 0 if the tokens were not counted.
std::unexpected<EngineError> Engine::too_long(std::uint32_t maximum, std::size_t count) const {
  const ModelFacts& facts = impl_->facts;
  // A larger context does not help an encoder beyond its training context, or a model beyond its
  // learned positions.
  const bool whole = facts.embedding_only || facts.has_encoder;
  const bool grows = maximum < learned_positions(impl_->index) &&
                     (!whole || maximum < std::max<std::uint32_t>(facts.context_trained, 512));
  return error(Kind::TooLong,
               std::format("The prompt has {} tokens; the maximum is {}. {}",
                           count > 0 ? std::to_string(count) : "too many", maximum,
                           grows ? "Shorten it, or load the model with a larger context (-c)."
                                 : "Shorten it: this is the limit of the model."));
}

// Whether a text certainly has more than `maximum` tokens. llama_tokenize() cannot be interrupted,
// and its time can grow with the square of the number of tokens (it copies the whole list for each
// byte that is not in the vocabulary). So a long text is tokenized in parts, which is enough to
// reject it after a few of them. A part can have a few tokens more than in the whole text: the
// begin of the text, a space, and a token that was cut.
bool Engine::has_more_tokens(std::string_view text, std::uint32_t maximum) const {
  constexpr std::size_t kPartBytes = 4096, kMoreTokens = 4;
  std::size_t tokens = 0;
  while (text.size() > kPartBytes) {
    std::size_t end = kPartBytes;
    while (end > kPartBytes - 4 && (text[end] & 0xC0) == 0x80) --end;  // between two characters
    const std::size_t count = tokenize(std::string(text.substr(0, end))).size();
    tokens += count - std::min(count, kMoreTokens);
    if (tokens > maximum) return true;
    text.remove_prefix(end);
  }
  return false;
}

std::expected<std::vector<std::int32_t>, EngineError> Engine::check(
    const GenerationRequest& request) const {
  auto tokens = tokens_of(request.prompt);
  if (!tokens) return tokens;
  const std::string& grammar = request.sampling.grammar;
  if (!grammar.empty()) {
    if (impl_->facts.embedding_only) {
      return error(Kind::BadOption,
                   "This model generates no text, so a grammar cannot be used. Remove the "
                   "grammar.");
    }
    const auto parsed = impl_->start_grammar(grammar);
    std::optional<GrammarError> wrong;
    if (!parsed)
      wrong = parsed.error();
    else if (!(*parsed)->allows_any())
      wrong = (*parsed)->error();
    if (wrong) {
      const bool is_wrong = wrong->kind == GrammarError::Kind::Grammar;
      return error(is_wrong ? Kind::BadGrammar : Kind::Busy, wrong->message);
    }
  }
  if (auto reason = impl_->sampling_error(request.sampling); !reason.empty())
    return error(Kind::BadOption, std::move(reason));
  if (auto pattern = NamePattern::compile(request.stats_pattern); !pattern) {
    return error(Kind::BadOption, "stats_pattern " + pattern.error());
  }
  if (const auto rules = capture_rules(request); !rules)
    return error(Kind::BadOption, rules.error());
  if (request.debug) {
    if (const auto parsed = parse_breakpoints(request.debug->breakpoints); !parsed)
      return error(Kind::BadOption, parsed.error());
  }
  return tokens;
}

std::string Engine::Impl::sampling_error(const Sampling& sampling) const {
  for (const LogitBias& each : sampling.logit_bias) {
    const auto* id = std::get_if<std::int32_t>(&each.token);
    if (id == nullptr && !facts.has_vocabulary)
      return "logit_bias: this model has no vocabulary. Give token ids instead of texts.";
    if (id != nullptr && std::cmp_greater_equal(*id, facts.n_vocab)) {
      return std::format("logit_bias: token {} does not exist. The model has {} tokens, from 0.",
                         *id, facts.n_vocab);
    }
  }
  if (sampling.dry_multiplier != 0 && !facts.has_vocabulary)
    return "dry_multiplier: DRY needs a vocabulary, and this model has none. Use 0.";
  return {};
}

std::expected<std::unique_ptr<GrammarRun>, GrammarError> Engine::Impl::start_grammar(
    const std::string& grammar, const KeepGoing& keep_going) const {
  const auto reject = [](std::string message) {
    return std::unexpected(
        GrammarError{.kind = GrammarError::Kind::Grammar, .message = std::move(message)});
  };
  if (!facts.has_vocabulary)
    return reject("A grammar needs a vocabulary, and this model has none. Remove the grammar.");
  if (vocabulary == nullptr) return reject("This program does not evaluate grammars.");
  if (grammar.size() > kMaxGrammarBytes) {
    return reject(
        std::format("The grammar is too large. The maximum is {} bytes.", kMaxGrammarBytes));
  }
  return GrammarRun::start(*vocabulary, grammar, facts.n_vocab, keep_going);
}

std::expected<std::string, EngineError> Engine::text_of(const Prompt& prompt) const {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  if (impl_->chat_template.empty()) {
    return error(Kind::NoChatTemplate,
                 "This model has no vocabulary, so that a conversation is not possible. Send token "
                 "ids.");
  }
  const auto& conversation = std::get<Conversation>(prompt);
  if (conversation.messages.empty()) {
    return error(Kind::EmptyPrompt, "The conversation is empty. Send at least one message.");
  }
  if (!impl_->template_error.empty()) return error(Kind::BadTemplate, impl_->template_error);
  if (impl_->sandbox == nullptr)
    return error(Kind::BadTemplate, "This program does not render chat templates.");
  auto text = render_chat(*impl_->sandbox, impl_->chat_template, conversation, impl_->chat_tokens);
  if (text) return *std::move(text);
  const Kind kind = text.error().kind == ChatError::Kind::Conversation ? Kind::BadConversation
                    : text.error().kind == ChatError::Kind::Template   ? Kind::BadTemplate
                                                                       : Kind::Busy;
  return error(kind, text.error().message);
}

std::vector<std::int32_t> Engine::tokenize(const std::string& text) const {
  std::vector<std::int32_t> tokens(text.size() + 16);
  const auto length = static_cast<std::int32_t>(text.size());
  const auto run = [&] {
    return llama_tokenize(impl_->vocab(), text.data(), length, tokens.data(),
                          static_cast<std::int32_t>(tokens.size()), /*add_special=*/true,
                          /*parse_special=*/true);
  };
  std::int32_t count = run();
  if (count < 0) {
    tokens.resize(static_cast<std::size_t>(-count));
    count = run();
  }
  tokens.resize(static_cast<std::size_t>(std::max(0, count)));
  return tokens;
}

// ---------------------------------------------------------------- running

GenerationResult Engine::generate(const GenerationRequest& request, Recorder* recorder,
                                  GenerationListener& listener, Debugger* debugger) {
  auto tokens = tokens_of(request.prompt);
  if (!tokens) {
    GenerationResult result;
    result.reason = StopReason::Error;
    result.error = tokens.error().message;
    return result;
  }
  return GenerationRun(*impl_, request, recorder, listener, debugger).run(*std::move(tokens));
}

void Engine::cancel() { impl_->probe->request_cancel(); }
void Engine::reset_cancel() { impl_->probe->reset_cancel(); }

const ModelFacts& Engine::facts() const { return impl_->facts; }
const GgufIndex& Engine::gguf() const { return impl_->index; }
const Probe& Engine::probe() const { return *impl_->probe; }
void Engine::set_memory(const MemoryOptions& options) { impl_->memory->set(options); }
void Engine::use_pattern(StoredPattern pattern) { impl_->memory->use_pattern(std::move(pattern)); }
MemoryState Engine::memory_state() const { return impl_->memory->state(); }
RecordingOptions Engine::recording_options(const GenerationRequest& request) const {
  RecordingOptions options;
  options.minor_faults = request.minor_faults;
  if (request.residency_interval_ms) {
    options.residency.emplace(impl_->index);
    options.residency_interval = std::chrono::milliseconds(*request.residency_interval_ms);
  }
  return options;
}

MemoryMap Engine::memory_map() const { return memory_map_of(impl_->index, *impl_->memory); }

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

StepBuffer* Engine::Impl::unrecorded_buffer() {
  if (unrecorded == nullptr) {
    const RecorderSize size = recorder_size();
    unrecorded = std::make_unique<StepPool>(1, size.max_ops, size.slot_bytes);
  }
  return unrecorded->try_acquire();
}

RecorderSize Engine::recorder_size() const { return impl_->recorder_size(); }

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
