#include "tracer/engine/context_params.h"

#include <algorithm>
#include <array>
#include <format>

#include "tracer/engine/backends.h"
#include "tracer/engine/engine_error.h"
#include "tracer/engine/host_facts.h"
#include "tracer/request/request_bounds.h"
#include "tracer/text/join.h"

namespace tt {

namespace {

std::expected<ggml_type, EngineError> cache_type(const std::string& name) {
  constexpr std::array types = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL};
  for (const ggml_type type : types)
    if (name == ggml_type_name(type)) return type;
  return engine_error(EngineError::Kind::BadOption,
                      std::format("\"{}\" is not a cache type. Choose one of {}.", name,
                                  join(types, ggml_type_name)));
}

std::uint32_t wanted_context(const ContextOptions& options, std::uint32_t trained) {
  if (options.context == ContextOptions::kDefaultContext) {
    return trained == 0 ? ContextOptions::kDefaultContextTokens
                        : std::min(trained, ContextOptions::kDefaultContextTokens);
  }
  return options.context == 0 ? trained : options.context;
}

}  // namespace

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

std::string context_warning(const ContextOptions& options, std::uint32_t context) {
  if (options.context == 0 || options.context == ContextOptions::kDefaultContext ||
      options.context == context)
    return "";
  return std::format("The context has {} tokens, not {} (-c): {}.", context, options.context,
                     context > options.context ? "llama.cpp rounds it up to a multiple of 256"
                                               : "the model has no more positions");
}

}  // namespace tt
