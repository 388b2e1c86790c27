#include "tracer/probe/logit_lens.h"
#include "tracer/format/model/lens_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>

namespace tt {

namespace {

constexpr const char *kResidual = "l_out-", *kLogits = "result_output";
constexpr std::size_t kAlternatives = 10;
constexpr std::size_t kMaxTextBytes = 32;
constexpr std::size_t kMaxChain = 32;  // ops after the last layer; known models have at most 7

bool is_one_row(const ggml_tensor& tensor) {
  return tensor.ne[1] == 1 && tensor.ne[2] == 1 && tensor.ne[3] == 1;
}

bool is_view(const ggml_tensor& tensor) {
  return tensor.op == GGML_OP_VIEW || tensor.op == GGML_OP_RESHAPE ||
         tensor.op == GGML_OP_PERMUTE || tensor.op == GGML_OP_TRANSPOSE;
}

std::vector<const ggml_tensor*> computed_sources(const ggml_tensor& tensor) {
  std::vector<const ggml_tensor*> sources;
  for (const ggml_tensor* source : tensor.src)
    if (source != nullptr && source->op != GGML_OP_NONE) sources.push_back(source);
  return sources;
}

// Whether the residual stream ends here: an output of a layer, the sum of two branches, or the rows
// of it that have logits.
bool is_residual(const ggml_tensor& tensor) {
  return std::string_view(tensor.name).starts_with(kResidual) || tensor.op == GGML_OP_GET_ROWS ||
         computed_sources(tensor).size() > 1;
}

// The ops from the logits back to the residual stream, which is the last entry. Empty: they are no
// chain over one token.
std::vector<const ggml_tensor*> chain_of(const ggml_tensor& logits) {
  std::vector<const ggml_tensor*> chain = {&logits};
  while (chain.size() == 1 || !is_residual(*chain.back())) {
    const auto sources = computed_sources(*chain.back());
    if (sources.size() != 1 || chain.size() == kMaxChain || is_view(*chain.back())) return {};
    chain.push_back(sources.front());
  }
  const bool rows = std::ranges::all_of(chain, [](const auto* of) { return is_one_row(*of); });
  return rows && chain.back()->type == GGML_TYPE_F32 && logits.type == GGML_TYPE_F32
             ? chain
             : std::vector<const ggml_tensor*>{};
}

void set_threads(ggml_backend_t cpu, std::uint32_t threads) {
  ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(cpu));
  const auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(
      ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"));
  if (set != nullptr) set(cpu, static_cast<int>(threads));
}

// The last row of a tensor of f32.
std::vector<float> last_row(const ggml_tensor& tensor) {
  std::vector<float> row(static_cast<std::size_t>(tensor.ne[0]));
  ggml_backend_tensor_get(&tensor, row.data(),
                          static_cast<std::size_t>(tensor.ne[1] - 1) * tensor.nb[1],
                          row.size() * sizeof(float));
  return row;
}

}  // namespace

// ---------------------------------------------------------------- the ops

std::unique_ptr<OutputOps> OutputOps::of(const ggml_tensor& logits, std::uint32_t threads) {
  const auto chain = chain_of(logits);
  if (chain.empty()) return nullptr;
  std::unique_ptr<OutputOps> ops(new OutputOps);
  ops->cpu_.reset(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr));
  if (ops->cpu_ == nullptr) return nullptr;
  ggml_backend_t const cpu = ops->cpu_.get();
  ggml_backend_dev_t const device = ggml_backend_get_device(cpu);
  set_threads(cpu, threads);
  ops->context_.reset(ggml_init({.mem_size = (chain.size() + 1) * ggml_tensor_overhead() +
                                             ggml_graph_overhead_custom(4 * kMaxChain, false),
                                 .mem_buffer = nullptr,
                                 .no_alloc = true}));
  ggml_context* const in = ops->context_.get();
  ops->input_ = ggml_new_tensor_1d(in, GGML_TYPE_F32, chain.back()->ne[0]);
  ggml_tensor* before = ops->input_;
  for (const ggml_tensor* node : chain | std::views::reverse | std::views::drop(1)) {
    ggml_tensor* copy = ggml_new_tensor(in, node->type, GGML_MAX_DIMS, node->ne);
    copy->op = node->op;
    std::memcpy(copy->op_params, node->op_params, sizeof copy->op_params);
    for (std::size_t i = 0; i < GGML_MAX_SRC; ++i) {
      ggml_tensor* source = node->src[i];
      if (source == nullptr) continue;
      if (source->op != GGML_OP_NONE) {
        copy->src[i] = before;
        continue;
      }
      if (source->buffer == nullptr ||
          !ggml_backend_dev_supports_buft(device, ggml_backend_buffer_get_type(source->buffer)))
        return nullptr;
      copy->src[i] = source;
    }
    if (!ggml_backend_supports_op(cpu, copy)) return nullptr;
    before = copy;
  }
  ops->output_ = before;
  ops->graph_ = ggml_new_graph_custom(in, 4 * kMaxChain, false);
  ggml_build_forward_expand(ops->graph_, ops->output_);
  ops->buffer_.reset(ggml_backend_alloc_ctx_tensors(in, cpu));
  if (ops->buffer_ == nullptr) return nullptr;
  ops->logits_.resize(static_cast<std::size_t>(ops->output_->ne[0]));
  return ops;
}

std::span<const float> OutputOps::logits(std::span<const float> residual) {
  ggml_backend_tensor_set(input_, residual.data(), 0, residual.size_bytes());
  if (ggml_backend_graph_compute(cpu_.get(), graph_) != GGML_STATUS_SUCCESS)
    std::ranges::fill(logits_, std::numeric_limits<float>::quiet_NaN());
  else
    ggml_backend_tensor_get(output_, logits_.data(), 0, logits_.size() * sizeof(float));
  return logits_;
}

// ---------------------------------------------------------------- what logits say

OutputValues lens_values(OpId op, std::span<const float> logits, std::optional<std::int32_t> chosen,
                         const TokenText& text) {
  const auto order = [&](std::int32_t token) {
    const float logit = logits[static_cast<std::size_t>(token)];
    return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
  };
  std::vector<std::int32_t> best(logits.size());
  std::iota(best.begin(), best.end(), 0);
  const auto end = best.begin() + static_cast<std::ptrdiff_t>(std::min(kAlternatives, best.size()));
  std::ranges::partial_sort(best, end, [&](std::int32_t a, std::int32_t b) {
    return order(a) != order(b) ? order(a) > order(b) : a < b;
  });
  best.erase(end, best.end());

  // NaN if one of them is.
  const double most = best.empty() ? 0.0 : double{order(best.front())};
  double sum = 0, weighted = 0;
  for (const float logit : logits) {
    const double above = double{logit} - most, p = std::exp(above);
    sum += p;
    if (p != 0) weighted += p * above;
  }
  const double log_sum = std::log(sum), entropy = (log_sum - weighted / sum) / std::log(2.0);
  const auto log_probability = [&](std::int32_t token) {
    return static_cast<float>(double{logits[static_cast<std::size_t>(token)]} - most - log_sum);
  };
  const bool is_known = chosen && *chosen >= 0 && static_cast<std::size_t>(*chosen) < logits.size();
  float rank = -1;
  if (is_known) {
    const float of = order(*chosen);
    rank =
        static_cast<float>(std::ranges::count_if(logits, [&](float logit) { return logit > of; }));
  }

  std::vector<std::pair<std::int32_t, std::string>> tokens = {{-1, ""}};
  if (is_known) tokens.front() = {*chosen, text(*chosen)};
  for (const std::int32_t token : best) tokens.emplace_back(token, text(token));
  std::size_t bytes = 0;
  for (auto& [token, name] : tokens) {
    name.resize(std::min(name.size(), kMaxTextBytes));
    bytes = std::max(bytes, name.size());
  }
  OutputValues values{
      .op = op, .of = kLensValues, .ne = {2 + bytes, 1 + tokens.size(), 1, 1}, .values = {}};
  values.values.reserve(values.ne[0] * values.ne[1]);
  const auto add_row = [&](float first, float second, std::string_view name) {
    values.values.push_back(first);
    values.values.push_back(second);
    for (std::size_t i = 0; i < bytes; ++i)
      values.values.push_back(
          i < name.size() ? static_cast<float>(static_cast<std::uint8_t>(name[i])) : 0.0F);
  };
  add_row(rank, static_cast<float>(entropy), {});
  for (const auto& [token, name] : tokens)
    add_row(static_cast<float>(token), token < 0 ? 0.0F : log_probability(token), name);
  return values;
}

// ---------------------------------------------------------------- a step

bool LogitLens::uses(const std::string& name) {
  return name.starts_with(kResidual) || name == kLogits;
}

void LogitLens::begin_step(std::uint32_t threads) {
  threads_ = threads;
  residuals_.clear();
  logits_.reset();
  ops_.reset();
}

void LogitLens::take(OpId op, const ggml_tensor& output) {
  if (output.type != GGML_TYPE_F32 || output.ne[1] == 0 || output.ne[2] != 1 || output.ne[3] != 1)
    return;
  Row row{.op = op, .values = last_row(output)};
  if (std::string_view(output.name) == kLogits) {
    ops_ = OutputOps::of(output, threads_);
    logits_ = std::move(row);
  } else {
    residuals_.push_back(std::move(row));
  }
}

std::vector<OutputValues> LogitLens::finish(std::optional<std::int32_t> chosen,
                                            const TokenText& text, std::uint64_t& not_captured) {
  std::vector<OutputValues> said;
  for (const Row& row : residuals_) {
    if (ops_ == nullptr || row.values.size() != ops_->residual_size()) {
      ++not_captured;
      continue;
    }
    said.push_back(lens_values(row.op, ops_->logits(row.values), chosen, text));
  }
  if (logits_) said.push_back(lens_values(logits_->op, logits_->values, chosen, text));
  begin_step(threads_);
  return said;
}

}  // namespace tt
