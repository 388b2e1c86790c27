#include "tracer/engine/generation_run.h"

#include <algorithm>
#include <format>
#include <random>
#include <utility>

#include "tracer/engine/backends.h"
#include "tracer/engine/prefix_match.h"
#include "tracer/text/text_stream.h"
#include "tracer/text/utf8.h"

namespace tt {

namespace {

constexpr llama_seq_id kSequence = 0;

std::int64_t ns_between(std::chrono::steady_clock::time_point a,
                        std::chrono::steady_clock::time_point b) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(b - a).count();
}

// Adds the time of a block to `sum`.
class AddTime {
 public:
  explicit AddTime(std::int64_t& sum) : sum_(sum) {}
  ~AddTime() { sum_ += ns_between(begin_, std::chrono::steady_clock::now()); }
  AddTime(const AddTime&) = delete;
  AddTime& operator=(const AddTime&) = delete;

 private:
  std::int64_t& sum_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

GenerationRun::GenerationRun(Engine::Impl& engine, const GenerationRequest& request,
                             Recorder* recorder, GenerationListener& listener, Debugger* debugger)
    : engine_(engine),
      request_(request),
      recorder_(recorder),
      listener_(listener),
      debugger_(debugger),
      epoch_(recorder == nullptr ? std::chrono::steady_clock::now() : recorder->epoch()) {}

Ns GenerationRun::now() const { return Ns{ns_between(epoch_, std::chrono::steady_clock::now())}; }

GenerationResult GenerationRun::run(std::vector<std::int32_t> tokens) {
  if (request_.level == Level::Verbose && !request_.stats_pattern.empty()) {
    auto pattern = NamePattern::compile(request_.stats_pattern);
    if (!pattern) {
      fail("stats_pattern " + pattern.error());
      return std::move(result_);
    }
    stats_ = std::make_shared<const NamePattern>(*std::move(pattern));
  }
  auto rules = capture_rules(request_);
  if (!rules) {
    fail(rules.error());
    return std::move(result_);
  }
  if (!rules->empty())
    capture_ = std::make_shared<ValueCapture>(*std::move(rules), request_.capture_bytes);
  result_.prompt_tokens = static_cast<std::uint32_t>(tokens.size());
  if (debugger_ != nullptr) debugger_->begin_run(engine_.probe->cancel());
  if (engine_.facts.embedding_only) {
    embed(tokens);
  } else {
    generate(std::move(tokens));
  }
  finish_values({});
  result_.sample_ns += sample_ns_;
  result_.detokenize_ns += detokenize_ns_;
  if (debugger_ != nullptr) {
    debugger_->end_run();
    forget_altered_tokens();
  }
  return std::move(result_);
}

// Later requests must not reuse keys, values or states that were computed from changed outputs.
void GenerationRun::forget_altered_tokens() {
  if (debugger_->changes().empty()) return;
  if (llama_memory_t memory = llama_get_memory(engine_.context.get()); memory != nullptr)
    llama_memory_clear(memory, true);
  engine_.cached_tokens.clear();
}

void GenerationRun::fail(std::string message) {
  result_.reason = StopReason::Error;
  result_.error = std::move(message);
}

// ---------------------------------------------------------------- kinds of model

// One step: these models process the whole text at once.
void GenerationRun::embed(std::span<const std::int32_t> tokens) {
  add_tokens(tokens, 0, false, false, {});
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = evaluate(Phase::Embed, tokens, true);
  result_.prompt_ns = ns_between(begin, std::chrono::steady_clock::now());
  if (stop_on(outcome)) return;
  listener_.on_progress(result_.prompt_tokens, result_.prompt_tokens, 0);
  llama_context* context = engine_.context.get();
  const float* values = llama_pooling_type(context) == LLAMA_POOLING_TYPE_NONE
                            ? llama_get_embeddings(context)
                            : llama_get_embeddings_seq(context, kSequence);
  if (values != nullptr) {
    const auto count =
        llama_pooling_type(context) == LLAMA_POOLING_TYPE_RANK
            ? llama_model_n_cls_out(engine_.model.get())
            : static_cast<std::uint32_t>(llama_model_n_embd_out(engine_.model.get()));
    result_.embedding.assign(values, values + count);
  }
  result_.reason = StopReason::Embedded;
}

void GenerationRun::generate(std::vector<std::int32_t> tokens) {
  Sampling sampling = request_.sampling;
  if (sampling.seed == LLAMA_DEFAULT_SEED) sampling.seed = std::random_device{}();
  result_.seed = sampling.seed;
  if (!sampling.grammar.empty()) {
    auto started = engine_.start_grammar(sampling.grammar,
                                         [this] { return !engine_.probe->cancel_requested(); });
    if (!started) return stop_on_grammar(started.error());
    grammar_ = *std::move(started);
  }
  const std::span<const std::int32_t> never =
      request_.ignore_eos ? std::span(std::as_const(engine_.eog_tokens)) : std::span<const int>();
  TokenSampler sampler(sampling, never, engine_.vocab(), engine_.facts.context, grammar_.get());

  const auto begin = std::chrono::steady_clock::now();
  if (engine_.facts.has_encoder) {
    if (!encode(tokens)) return;
    llama_token start = llama_model_decoder_start_token(engine_.model.get());
    if (start == LLAMA_TOKEN_NULL) start = llama_vocab_bos(engine_.vocab());
    tokens = {start == LLAMA_TOKEN_NULL ? 0 : start};
  }
  const std::uint32_t reused = keep_prefix(tokens);
  result_.reused_tokens = reused;
  add_tokens(std::span(tokens).first(reused), 0, false, true, {});
  evaluated_ = token_count_;
  position_ = reused;
  add_tokens(std::span(tokens).subspan(reused), reused, false, false, {});
  {
    const AddTime time(sample_ns_);
    sampler.accept_prompt(tokens);
  }
  const bool fed = feed_prompt(tokens, reused);
  result_.prompt_ns = ns_between(begin, std::chrono::steady_clock::now());
  if (!fed) return;

  sample_until_stopped(sampler);
}

// Runs the encoder over the prompt. The decoder then begins with its start token.
bool GenerationRun::encode(std::span<const std::int32_t> tokens) {
  llama_memory_clear(llama_get_memory(engine_.context.get()), true);
  engine_.cached_tokens.clear();
  add_tokens(tokens, 0, false, false, {});
  if (stop_on(evaluate(Phase::Encode, tokens, true))) return false;
  listener_.on_progress(result_.prompt_tokens, result_.prompt_tokens, 0);
  evaluated_ = token_count_;
  position_ = 0;
  return true;
}

// Keeps the prefix that the context's memory shares with this prompt and removes the rest. At
// least one token is evaluated again, because generation starts from its logits.
std::uint32_t GenerationRun::keep_prefix(std::span<const std::int32_t> tokens) {
  llama_memory_t memory = llama_get_memory(engine_.context.get());
  auto& held = engine_.cached_tokens;
  std::size_t common = 0;
  const bool reuse = request_.reuse_prefix && (capture_ == nullptr || !capture_->needs_all_keys());
  if (reuse && !engine_.facts.has_encoder) {
    if (recorder_ != nullptr && !held.empty()) result_.cached = compare_with_memory(tokens);
    common = std::min(common_tokens(held, tokens), tokens.size() - 1);
  }
  // With a sliding window, cells of older tokens have been used again. The prefix can be reused
  // only if all cells in the window before its end are present: llama.cpp keeps no gaps after the
  // smallest position.
  const int window = llama_model_n_swa(engine_.model.get());
  const bool window_kept = window <= 0 || llama_memory_seq_pos_min(memory, kSequence) <=
                                              std::max(0, static_cast<int>(common) - window);
  // Recurrent state cannot be truncated to a position: seq_rm then fails.
  const bool kept = common > 0 && window_kept &&
                    llama_memory_seq_rm(memory, kSequence, static_cast<llama_pos>(common), -1);
  if (!kept) {
    if (common > 0)
      result_.cached.end = window_kept ? ReuseEnd::RecurrentState : ReuseEnd::SlidingWindow;
    llama_memory_clear(memory, true);
    common = 0;
  }
  held.resize(common);
  engine_.cached_session = recorder_ == nullptr ? "" : request_.id;
  return static_cast<std::uint32_t>(common);
}

CachedTokens GenerationRun::compare_with_memory(std::span<const std::int32_t> tokens) const {
  CachedTokens cached = compare_prompt(
      engine_.cached_tokens, tokens,
      {.text_of = [&](std::span<const std::int32_t> some) { return text_of(some); },
       .is_control =
           [&](std::int32_t token) { return llama_vocab_is_control(engine_.vocab(), token); }});
  cached.session = engine_.cached_session;
  return cached;
}

std::string GenerationRun::text_of(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) text += engine_.piece(token);
  return to_valid_utf8(text);
}

bool GenerationRun::feed_prompt(std::span<const std::int32_t> tokens, std::uint32_t done) {
  const auto total = static_cast<std::uint32_t>(tokens.size());
  while (done < total) {
    const std::uint32_t count = std::min(total - done, engine_.facts.ubatch);
    const bool last = done + count == total;
    if (stop_on(evaluate(Phase::Prompt, tokens.subspan(done, count), last))) return false;
    done += count;
    listener_.on_progress(done, total, 0);
  }
  return true;
}

void GenerationRun::sample_until_stopped(TokenSampler& sampler) {
  TextStream text(request_.stop);
  while (result_.reason == StopReason::None) {
    if (result_.generated == request_.max_tokens) {
      result_.reason = StopReason::Length;
      break;
    }
    const auto sampled = sample(sampler);
    if (!sampled) {
      stop_on_sampler(sampled.error());
      break;
    }
    const llama_token token = *sampled;
    finish_values(token);
    const bool ends = llama_vocab_is_eog(engine_.vocab(), token);
    std::string piece;
    if (!ends) {
      const AddTime time(detokenize_ns_);
      piece = text.push(engine_.piece(token, /*special=*/false));
    }
    ++result_.generated;
    result_.text += piece;
    add_tokens(std::span(&token, 1), position_, true, false, piece);
    listener_.on_progress(result_.prompt_tokens, result_.prompt_tokens, result_.generated);
    note_token_time();
    if (ends) {
      result_.reason = StopReason::Eos;
    } else if (text.stopped()) {
      result_.reason = StopReason::Stop;
    } else if (position_ >= engine_.facts.context) {
      result_.reason = StopReason::ContextFull;
    } else if (result_.generated < request_.max_tokens) {
      stop_on(evaluate(Phase::Generate, std::span(&token, 1), true));
    }
  }
  if (const std::string rest = text.flush(); !rest.empty()) {
    result_.text += rest;
    listener_.on_text(rest);
  }
}

// After the output of a token.
void GenerationRun::note_token_time() {
  const std::int64_t at = now().v;
  if (result_.generated == 1) {
    result_.first_token_ns = at;
    before_next_sample_ns_ = result_.sample_ns + sample_ns_;
  }
  result_.generate_ns = at - result_.first_token_ns;
  result_.next_sample_ns = result_.sample_ns + sample_ns_ - before_next_sample_ns_;
}

std::expected<std::int32_t, SampleError> GenerationRun::sample(TokenSampler& sampler) {
  const AddTime time(sample_ns_);
  const float* logits = llama_get_logits_ith(engine_.context.get(), -1);
  if (logits == nullptr) return std::unexpected(SampleError{SampleError::Kind::InvalidLogits});
  return sampler.sample(std::span(logits, engine_.facts.n_vocab));
}

void GenerationRun::stop_on_sampler(const SampleError& error) {
  switch (error.kind) {
    case SampleError::Kind::InvalidLogits:
      result_.invalid_logits = true;
      return fail(
          "The model computed an invalid number (NaN or infinity). Its file is probably damaged: "
          "download or convert it again. " +
          std::string(request_.level == Level::Verbose
                          ? "The findings of the session (tt report, or the summary of the page) "
                            "name the op of the first one."
                          : "Record it at level verbose to see which op computed the first one."));
    case SampleError::Kind::Grammar:
      return stop_on_grammar(error.grammar);
    case SampleError::Kind::Complete:
      result_.reason = StopReason::Eos;
      return;
    case SampleError::Kind::NoToken:
      return fail(
          "logit_bias excludes every token that could follow. Exclude fewer tokens, or change the "
          "grammar.");
  }
}

void GenerationRun::stop_on_grammar(const GrammarError& error) {
  if (error.kind == GrammarError::Kind::Cancelled) {
    result_.reason = StopReason::Cancelled;
  } else {
    fail(error.message);
  }
}

// ---------------------------------------------------------------- one step

void GenerationRun::finish_values(std::optional<std::int32_t> next) {
  if (!open_values_) return;
  capture_->add_lens(
      next, [this](std::int32_t token) { return engine_.piece(token); }, *open_values_);
  recorder_->values(*std::exchange(open_values_, {}));
}

void GenerationRun::wait_for_values() {
  const std::uint64_t taken = request_.capture_bytes - capture_->bytes_left();
  if (taken - values_written_ <= kMaxUnwrittenValues) return;
  recorder_->flush();
  values_written_ = taken;
}

GenerationRun::Outcome GenerationRun::evaluate(Phase phase, std::span<const std::int32_t> tokens,
                                               bool want_logits) {
  Step header;
  header.id = StepId{result_.steps++};
  header.phase = phase;
  header.n_tokens = static_cast<std::uint32_t>(tokens.size());
  header.first_token = evaluated_;
  header.threads =
      static_cast<std::uint32_t>(tokens.size() > 1 ? llama_n_threads_batch(engine_.context.get())
                                                   : llama_n_threads(engine_.context.get()));
  Recorder::OpenStep step;
  if (recorder_ != nullptr) {
    step = recorder_->open_step(std::move(header), request_.level >= Level::Detailed);
  } else {
    header.begin = now();
    step.untimed = std::move(header);
  }

  std::vector<std::int32_t> ids(tokens.begin(), tokens.end());
  std::vector<std::int8_t> logits(ids.size(), phase == Phase::Encode || phase == Phase::Embed);
  logits[ids.size() - 1] = want_logits;
  llama_batch batch{};
  batch.n_tokens = static_cast<std::int32_t>(ids.size());
  batch.token = ids.data();
  batch.logits = logits.data();

  const ScopedLogDowngrade quiet([this] { return engine_.probe->cancel_requested(); });
  // The memory manager learns the graph of a step that is not recorded, too.
  StepBuffer* observed = step.buffer;
  if (observed == nullptr && (debugger_ != nullptr || engine_.memory->wants_graph()))
    observed = engine_.unrecorded_buffer();
  if (debugger_ != nullptr) debugger_->begin_step(step.header());
  const bool captures = capture_ != nullptr && step.buffer != nullptr &&
                        capture_->begin_step(step.header(), want_logits && phase != Phase::Encode &&
                                                                phase != Phase::Embed);
  engine_.probe->begin_step(observed, {.exact = request_.exact_timing,
                                       .stats_filter = stats_,
                                       .capture = captures ? capture_ : nullptr,
                                       .observer = debugger_,
                                       .epoch = epoch_});
  engine_.memory->begin_step(static_cast<std::uint32_t>(tokens.size()));
  const std::int32_t graphs_reused = llama_perf_context(engine_.context.get()).n_reused;
  const std::int32_t answer = phase == Phase::Encode ? llama_encode(engine_.context.get(), batch)
                                                     : llama_decode(engine_.context.get(), batch);
  if (answer == 0) llama_synchronize(engine_.context.get());
  record_times(step.header(), now(), graphs_reused);
  const bool lost = engine_.guard->lost();
  const bool cancelled = engine_.probe->cancel_requested() && !lost;
  const bool complete = engine_.probe->end_step(answer != 0 || lost);
  finish_memory_step(step.header(), observed, complete);
  if (observed != step.buffer) engine_.unrecorded->release(observed);
  if (captures && complete && capture_->needs_next_token()) {
    open_values_ = std::exchange(step.buffer->values, {});
    open_values_->step = step.header().id;
  }
  if (recorder_ != nullptr) recorder_->close_step(std::move(step), complete);
  if (captures) wait_for_values();
  if (complete) {
    evaluated_ += static_cast<std::uint32_t>(tokens.size());
    position_ += static_cast<std::uint32_t>(tokens.size());
    if (phase != Phase::Encode && llama_get_memory(engine_.context.get()) != nullptr) {
      engine_.cached_tokens.insert(engine_.cached_tokens.end(), tokens.begin(), tokens.end());
    }
    return cancelled ? Outcome::Cancelled : Outcome::Ok;
  }
  // An aborted step may have evaluated some ubatches: the memory is in an unknown state.
  if (llama_memory_t memory = llama_get_memory(engine_.context.get()); memory != nullptr) {
    llama_memory_clear(memory, true);
  }
  engine_.cached_tokens.clear();
  if (lost) return Outcome::Lost;
  if (cancelled) return Outcome::Cancelled;
  return answer == 1 ? Outcome::Full : Outcome::Failed;
}

// What the time since the previous step was spent on. A step evaluates one graph.
void GenerationRun::record_times(Step& header, Ns evaluated, std::int32_t graphs_reused) {
  StepConditions& of = header.conditions;
  const auto take = [](std::int64_t& since, std::int64_t& sum) {
    sum += since;
    return static_cast<std::uint64_t>(std::exchange(since, 0));
  };
  of.queue_ns = result_.steps == 1 ? static_cast<std::uint64_t>(request_.queued_ns) : 0;
  of.sample_ns = take(sample_ns_, result_.sample_ns);
  of.detokenize_ns = take(detokenize_ns_, result_.detokenize_ns);
  const auto ready = engine_.probe->graph_ready();
  if (!ready) return;  // llama.cpp rejected the step
  const Ns ran{ns_between(epoch_, *ready)};
  of.build_ns = static_cast<std::uint64_t>((ran - header.begin).v);
  of.evaluate_ns = static_cast<std::uint64_t>((evaluated - ran).v);
  of.graphs_built = llama_perf_context(engine_.context.get()).n_reused == graphs_reused ? 1 : 0;
}

void GenerationRun::finish_memory_step(const Step& header, const StepBuffer* buffer,
                                       bool complete) {
  MemoryManager::FinishedStep step{
      .tokens = header.n_tokens, .complete = complete, .ns = (now() - header.begin).v};
  if (buffer != nullptr && !buffer->header.aborted) {
    step.graph = buffer->graph;
    step.addresses = buffer->addresses;
    if (buffer->header.timing == Timing::Fast) {
      std::int64_t begin = buffer->first_op_ns.load();
      op_ns_.resize(buffer->ops_done.load());
      for (std::size_t op = 0; op < op_ns_.size(); ++op) {
        const std::int64_t end = buffer->op_ends[op].load(std::memory_order_relaxed);
        op_ns_[op] = end - std::exchange(begin, end);
      }
      step.op_ns = op_ns_;
    }
  }
  engine_.memory->end_step(step);
}

bool GenerationRun::stop_on(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok:
      return false;
    case Outcome::Cancelled:
      result_.reason = StopReason::Cancelled;
      return true;
    case Outcome::Full:
      result_.reason = StopReason::ContextFull;
      return true;
    case Outcome::Lost:
      fail(
          "The model file was truncated, or could not be read, while it was used. Load the model "
          "again when the file is complete.");
      return true;
    case Outcome::Failed:
      fail(
          "llama.cpp could not evaluate this step; its messages are in the server log or shown by "
          "tt record --verbose. A smaller context (-c) or batch (-ub) needs less memory.");
      return true;
  }
  return true;
}

void GenerationRun::add_tokens(std::span<const std::int32_t> ids, std::uint32_t position,
                               bool generated, bool reused, std::string_view piece) {
  std::vector<Token> tokens;
  tokens.reserve(ids.size());
  {
    const AddTime time(detokenize_ns_);
    for (const std::int32_t id : ids) {
      tokens.push_back({.index = token_count_++,
                        .id = id,
                        .position = static_cast<std::int32_t>(position++),
                        .generated = generated,
                        .reused = reused,
                        .text = engine_.piece(id)});
    }
  }
  for (const Token& token : tokens) listener_.on_token(token, piece);
  if (recorder_ != nullptr && !tokens.empty()) recorder_->tokens(std::move(tokens));
}

}  // namespace tt
