#include "tracer/bench/bench_context.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tt {

namespace {

llama_context_params with_probe(llama_context_params params, Probe& probe,
                                const ContextHook& hook) {
  probe.attach(params);
  if (hook) hook(params);
  return params;
}

}  // namespace

BenchContext::BenchContext(llama_model* model, const llama_context_params& params)
    : context_(llama_init_from_model(model, params)) {}

bool BenchContext::evaluate(std::span<const llama_token> tokens) {
  const std::size_t most = llama_n_ubatch(context_.get());
  for (std::size_t done = 0; done < tokens.size();) {
    const auto part = tokens.subspan(done, std::min(most, tokens.size() - done));
    std::vector<llama_token> ids(part.begin(), part.end());
    generating_ = tokens.size() == 1;
    if (!step(ids)) return false;
    position_ += static_cast<std::uint32_t>(ids.size());
    done += ids.size();
  }
  return true;
}

void BenchContext::clear() {
  if (llama_memory_t memory = llama_get_memory(context_.get()); memory != nullptr)
    llama_memory_clear(memory, false);
  position_ = 0;
}

bool BenchContext::step(std::span<llama_token> tokens) { return decode(tokens); }

bool BenchContext::decode(std::span<llama_token> tokens) {
  const auto count = static_cast<std::int32_t>(tokens.size());
  if (llama_decode(context_.get(), llama_batch_get_one(tokens.data(), count)) != 0) return false;
  llama_synchronize(context_.get());
  return true;
}

RecordedBenchContext::RecordedBenchContext(llama_model* model, llama_context_params params,
                                           Probe& probe, BenchWatch& watch,
                                           const RecorderSize& size, SessionInfo info,
                                           const std::filesystem::path& file,
                                           const ContextHook& hook,
                                           std::shared_ptr<ValueCapture> capture)
    : BenchContext(model, with_probe(params, probe, hook)),
      probe_(probe),
      watch_(watch),
      recorder_(
          size.max_ops, size.slot_bytes,
          [](const std::string&, const Step&, const KnownGraphPtr&) {}, watch.faults.get(),
          &watch.machine),
      info_(std::move(info)),
      capture_(std::move(capture)) {
  if (capture_ != nullptr) values_left_ = capture_->bytes_left();
  info_.facts.emplace_back("trace.page_faults", watch.faults->source());
  recorder_.begin(info_, file);
}

bool RecordedBenchContext::step(std::span<llama_token> tokens) {
  Step header;
  header.phase = generating_ ? Phase::Generate : Phase::Prompt;
  header.n_tokens = static_cast<std::uint32_t>(tokens.size());
  header.first_token = token_count_;
  header.threads = static_cast<std::uint32_t>(
      tokens.size() > 1 ? llama_n_threads_batch(context_.get()) : llama_n_threads(context_.get()));
  Recorder::OpenStep open = recorder_.open_step(std::move(header), /*timed=*/true);
  const bool captures = capture_ != nullptr && open.buffer != nullptr &&
                        capture_->begin_step(open.header(), /*says=*/true);
  probe_.begin_step(open.buffer, {.exact = false,
                                  .stats_filter = nullptr,
                                  .capture = captures ? capture_ : nullptr,
                                  .epoch = recorder_.epoch()});
  const bool decoded = decode(tokens);
  const bool complete = probe_.end_step(!decoded);
  recorder_.close_step(std::move(open), complete);
  if (captures && values_left_ - capture_->bytes_left() > kMaxUnwrittenValues) {
    recorder_.flush();
    values_left_ = capture_->bytes_left();
  }
  std::vector<Token> added;
  added.reserve(tokens.size());
  std::uint32_t position = position_;
  for (const llama_token id : tokens) {
    added.push_back({.index = token_count_++,
                     .id = id,
                     .position = static_cast<std::int32_t>(position++),
                     .generated = generating_,
                     .reused = false,
                     .text = {}});
  }
  recorder_.tokens(std::move(added));
  return complete;
}

void RecordedBenchContext::finish() { recorder_.flush(); }

RecordingResult RecordedBenchContext::end() {
  info_.state = SessionState::Done;
  info_.facts.emplace_back("trace.conditions", watch_.machine.source());
  return recorder_.finish(info_);
}

}  // namespace tt
