#include "tests/support/models/plain_llama.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "tests/support/models/traced_model.h"
#include "tracer/engine/backends.h"
#include "tracer/gguf/gguf_index.h"

namespace tt::test {

PlainLlama::PlainLlama(const std::filesystem::path& model, const ContextOptions& options,
                       Watch watch, bool embeddings)
    : watch_(std::move(watch)) {
  ensure_backends_loaded();
  llama_model_params model_params = llama_model_default_params();
  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  model_params.devices = no_devices.data();
  model_params.n_gpu_layers = 0;
  const auto index = GgufIndex::open(model);
  if (!index) throw std::runtime_error(index.error());
  model_params.use_extra_bufts = repacking_error(*index).empty();
  model_.reset(llama_model_load_from_file(model.c_str(), model_params));
  if (!model_) throw std::runtime_error("llama.cpp cannot load " + model.string());

  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.context;
  params.n_batch = options.batch;
  params.n_ubatch = options.ubatch;
  params.n_threads = params.n_threads_batch = options.threads;
  params.embeddings = embeddings;
  if (watch_) {
    params.cb_eval = &PlainLlama::on_eval;
    params.cb_eval_user_data = this;
  }
  context_.reset(llama_init_from_model(model_.get(), params));
  if (!context_) throw std::runtime_error("llama.cpp makes no context for " + model.string());
}

bool PlainLlama::on_eval(ggml_tensor* tensor, bool ask, void* self) {
  return static_cast<PlainLlama*>(self)->watch_(*tensor, ask);
}

std::int32_t PlainLlama::decode(std::span<const std::int32_t> tokens) {
  while (!tokens.empty()) {
    const std::size_t count = std::min<std::size_t>(tokens.size(), llama_n_ubatch(context_.get()));
    std::vector<std::int32_t> chunk(tokens.begin(),
                                    tokens.begin() + static_cast<std::ptrdiff_t>(count));
    if (llama_decode(context_.get(),
                     llama_batch_get_one(chunk.data(), static_cast<std::int32_t>(count))) != 0) {
      throw std::runtime_error("llama_decode failed");
    }
    tokens = tokens.subspan(count);
  }
  const std::vector<float> likely = logits();
  return static_cast<std::int32_t>(std::ranges::max_element(likely) - likely.begin());
}

std::vector<float> PlainLlama::logits() const {
  const float* values = llama_get_logits_ith(context_.get(), -1);
  return {values, values + llama_vocab_n_tokens(llama_model_get_vocab(model_.get()))};
}

std::vector<std::int32_t> PlainLlama::greedy(std::span<const std::int32_t> prompt,
                                             std::size_t count) {
  std::vector<std::int32_t> generated = {decode(prompt)};
  while (generated.size() < count) generated.push_back(decode(std::span(&generated.back(), 1)));
  return generated;
}

std::vector<float> PlainLlama::embedding(std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> ids(tokens.begin(), tokens.end());
  std::vector<std::int8_t> outputs(ids.size(), 1);
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(ids.size());
  batch.token = ids.data();
  batch.logits = outputs.data();
  if (llama_decode(context_.get(), batch) != 0) throw std::runtime_error("llama_decode failed");
  const float* values = llama_get_embeddings_seq(context_.get(), 0);
  if (values == nullptr) throw std::runtime_error("no pooled embedding");
  return {values, values + llama_model_n_embd_out(model_.get())};
}

namespace {

template <class Value>
std::vector<Value> values_of(const ggml_tensor& tensor) {
  std::vector<Value> values;
  for (std::int64_t i3 = 0; i3 < tensor.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < tensor.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < tensor.ne[1]; ++i1) {
        for (std::int64_t i0 = 0; i0 < tensor.ne[0]; ++i0) {
          const std::size_t at = static_cast<std::size_t>(i0) * tensor.nb[0] +
                                 static_cast<std::size_t>(i1) * tensor.nb[1] +
                                 static_cast<std::size_t>(i2) * tensor.nb[2] +
                                 static_cast<std::size_t>(i3) * tensor.nb[3];
          Value value{};
          ggml_backend_tensor_get(&tensor, &value, at, sizeof value);
          values.push_back(value);
        }
      }
    }
  }
  return values;
}

}  // namespace

std::vector<float> floats_of(const ggml_tensor& tensor) {
  if (tensor.type != GGML_TYPE_F32) throw std::runtime_error("not F32");
  return values_of<float>(tensor);
}

std::vector<std::int64_t> ints_of(const ggml_tensor& tensor) {
  if (tensor.type != GGML_TYPE_I32) throw std::runtime_error("not I32");
  const auto values = values_of<std::int32_t>(tensor);
  return {values.begin(), values.end()};
}

}  // namespace tt::test
