#include "tracer/engine/load_model.h"

#include <array>
#include <format>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tracer/engine/backends.h"
#include "tracer/engine/engine_error.h"
#include "tracer/engine/host_facts.h"
#include "tracer/engine/load_metadata.h"
#include "tracer/engine/model_kind.h"
#include "tracer/engine/repack_samples.h"
#include "tracer/engine/tensor_overrides.h"

namespace tt {

namespace {

llama_load_mode load_mode(const ModelOptions& options) {
  if (options.direct_io) return LLAMA_LOAD_MODE_DIRECT_IO;
  if (options.mmap) {
    return options.mlock ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MMAP;
  }
  return options.mlock ? LLAMA_LOAD_MODE_MLOCK : LLAMA_LOAD_MODE_NONE;
}

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

}  // namespace

std::expected<LlamaModel, EngineError> load_model(const ModelOptions& options,
                                                  const GgufIndex& index,
                                                  const LoadProgress& progress, LoadPart part) {
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
  if (!overrides) return engine_error(EngineError::Kind::BadOption, overrides.error());
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
  const LibraryMessages said;
  LlamaModel model(llama_model_load_from_file(options.path.c_str(), params));
  if (model) return model;
  if (watch.cancelled) return engine_error(EngineError::Kind::Cancelled, "Loading was cancelled.");
  return engine_error(
      is_lack_of_memory(said.first_error()) ? EngineError::Kind::OutOfMemory
                                        : EngineError::Kind::Unsupported,
      std::format("{}: llama.cpp {} cannot load this model: {}. {} All messages of "
                  "llama.cpp are in the server log (--log-level debug) or shown by tt "
                  "record --verbose.",
                  options.path.string(), library_versions().llama,
                  said.first_error().empty() ? "no reason given" : said.first_error(),
                  advice_of(said.first_error())));
}

std::expected<void, EngineError> load_metadata(const std::filesystem::path& model) {
  const auto index = GgufIndex::open(model);
  if (!index) return engine_error(EngineError::Kind::NotAModel, index.error());
  if (std::string why = not_a_model(*index); !why.empty())
    return engine_error(EngineError::Kind::NotAModel, std::move(why));
  ModelOptions options;
  options.path = model;
  options.mmap = options.repack = false;
  const auto loaded = load_model(options, *index, {}, LoadPart::Metadata);
  if (!loaded) return std::unexpected(loaded.error());
  return {};
}

}  // namespace tt
