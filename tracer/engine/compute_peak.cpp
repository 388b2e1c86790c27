#include "tracer/engine/compute_peak.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tracer/engine/repack_samples.h"
#include "tracer/gguf/llama_handles.h"

namespace tt {

namespace {

using Backend = std::unique_ptr<ggml_backend, FreeWith<ggml_backend_free>>;
using BackendBuffer = std::unique_ptr<ggml_backend_buffer, FreeWith<ggml_backend_buffer_free>>;

// Each thread multiplies for at most about two milliseconds: long enough that starting it hardly
// counts, short enough that a busy machine lets some products run undisturbed. The part of a thread
// fits into the cache of its core.
constexpr std::int64_t kColumns = 1024, kRowsPerThread = 256, kTokens = 128, kMostParts = 8;
constexpr int kProducts = 8;  // of a kernel; the first one only warms up
// Of the time of the threads, on a processor: less is a measurement of other programs.
constexpr double kUndisturbed = 0.9;

GgmlContext new_context() {
  return GgmlContext(ggml_init({.mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(),
                                .mem_buffer = nullptr,
                                .no_alloc = true}));
}

BackendBuffer allocate(const GgmlContext& tensors, ggml_backend_buffer_type_t type) {
  return BackendBuffer(ggml_backend_alloc_ctx_tensors_from_buft(tensors.get(), type));
}

// One multiplication. Its values are all zero: the time does not depend on them.
class Product {
 public:
  Product(ggml_backend_dev_t cpu, ggml_type type, ggml_backend_buffer_type_t weights,
          unsigned threads)
      : threads_(threads),
        weight_(ggml_new_tensor_2d(of_weights_.get(), type, kColumns,
                                   kRowsPerThread * std::min<std::int64_t>(threads, kMostParts))),
        input_(ggml_new_tensor_2d(others_.get(), GGML_TYPE_F32, kColumns,
                                  kTokens * (1 + (threads - 1) / kMostParts))),
        output_(ggml_mul_mat(others_.get(), weight_, input_)),
        graph_(ggml_new_graph(others_.get())) {
    ggml_build_forward_expand(graph_, output_);
    weight_buffer_ = allocate(of_weights_, weights);
    if (weight_buffer_ == nullptr || !ggml_backend_dev_supports_op(cpu, output_)) return;
    buffer_ = allocate(others_, ggml_backend_dev_buffer_type(cpu));
    if (buffer_ == nullptr) return;
    ggml_backend_buffer_clear(buffer_.get(), 0);
    const std::vector<std::byte> zeros(ggml_nbytes(weight_));
    ggml_backend_tensor_set(weight_, zeros.data(), 0, zeros.size());
  }

  bool is_supported() const { return buffer_ != nullptr; }
  // Operations per second of the fastest undisturbed pass; nullopt: there was none.
  std::optional<double> rate(ggml_backend_t backend) const {
    const double operations = 2.0 * kColumns * static_cast<double>(ggml_nelements(output_));
    std::optional<double> best;
    for (int pass = 0; pass < kProducts; ++pass) {
      const double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID),
                   begin = clock_seconds(CLOCK_MONOTONIC);
      if (ggml_backend_graph_compute(backend, graph_) != GGML_STATUS_SUCCESS) return std::nullopt;
      const double took = clock_seconds(CLOCK_MONOTONIC) - begin;
      const double used = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
      if (pass == 0 || took <= 0 || used < kUndisturbed * threads_ * took) continue;
      best = std::max(best.value_or(0), operations / took);
    }
    return best;
  }

 private:
  const unsigned threads_;
  GgmlContext of_weights_ = new_context(), others_ = new_context();
  ggml_tensor *weight_, *input_, *output_;
  ggml_cgraph* graph_;
  BackendBuffer weight_buffer_, buffer_;
};

}  // namespace

MachineRate measure_compute_peak(unsigned threads) {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  const Backend backend(cpu == nullptr ? nullptr : ggml_backend_dev_init(cpu, nullptr));
  if (backend == nullptr || threads == 0) return std::unexpected(NotMeasured::LittleMemory);
  const auto set_threads =
      reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(cpu), "ggml_backend_set_n_threads"));
  if (set_threads == nullptr) return std::unexpected(NotMeasured::LittleMemory);
  set_threads(backend.get(), static_cast<int>(threads));
  std::vector<ggml_backend_buffer_type_t> places = repacked_buffer_types();
  places.push_back(ggml_backend_dev_buffer_type(cpu));
  double peak = 0;
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
    for (ggml_backend_buffer_type_t place : places) {
      const Product product(cpu, type, place, threads);
      if (!product.is_supported()) continue;
      const auto rate = product.rate(backend.get());
      // Without one kernel, the peak might be that of a slower one, and would be stored for ever.
      if (!rate) return std::unexpected(NotMeasured::Busy);
      peak = std::max(peak, *rate);
    }
  }
  if (peak <= 0) return std::unexpected(NotMeasured::LittleMemory);
  return static_cast<std::uint64_t>(peak);
}

}  // namespace tt
