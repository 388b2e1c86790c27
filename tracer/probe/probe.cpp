#include "tracer/probe/probe.h"

#include <llama.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <ranges>
#include <utility>

#include "tracer/probe/value_stats.h"

namespace tt {

namespace {

constexpr std::size_t kMaxMemory = 24U << 20;  // limit of known graphs; LRU eviction
constexpr std::size_t kBytesPerNode = 1024;    // estimate: image, template and accesses of a node
constexpr std::size_t kReservedNodes = 16384;  // nodes; grows while larger graphs are learned

bool fuses_with(const ggml_tensor& norm, const ggml_tensor& next) {
  return norm.op == GGML_OP_RMS_NORM && next.op == GGML_OP_MUL &&
         (next.src[0] == &norm || next.src[1] == &norm);
}

bool share_bytes(const ggml_tensor& a, const ggml_tensor& b) {
  const auto* a_begin = static_cast<const std::byte*>(a.data);
  const auto* b_begin = static_cast<const std::byte*>(b.data);
  return a_begin < b_begin + ggml_nbytes(&b) && b_begin < a_begin + ggml_nbytes(&a);
}

}  // namespace

Probe::Probe(const ModelLayout& layout) : layout_(layout) {
  nodes_.reserve(kReservedNodes);
  spans_.reserve(kReservedNodes);
  tick_times_.reserve(kReservedNodes);
  captured_from_.reserve(1024);
}

void Probe::attach(llama_context_params& params) {
  params.cb_eval = &Probe::on_eval;
  params.cb_eval_user_data = this;
  params.abort_callback = &Probe::on_tick;
  params.abort_callback_data = this;
}

bool Probe::on_eval(ggml_tensor* tensor, bool ask, void* self) {
  auto* probe = static_cast<Probe*>(self);
  return ask ? probe->node_listed(tensor) : probe->node_computed(tensor);
}

bool Probe::on_tick(void* self) { return static_cast<Probe*>(self)->tick(); }

// ---------------------------------------------------------------- a step

void Probe::begin_step(StepBuffer* buffer, const ProbeMode& mode) {
  assert(buffer_ == nullptr);
  buffer_ = buffer;
  mode_options_ = mode;
  epoch_ns_ = std::chrono::nanoseconds(mode.epoch.time_since_epoch()).count();
  mode_ = buffer == nullptr ? Mode::Idle : Mode::Matching;
  exact_step_ = false;
  instance_ = nullptr;
  listed_ = device_ops_ = fast_match_end_ = 0;
  ticks_.store(0, std::memory_order_release);
  next_capture_ = 0;
  next_capture_op_ = 0;
  learned_exact_only_ = false;
  stopped_ = false;
  graph_ready_.reset();
  if (buffer == nullptr) return;
  if (mode.observer != nullptr) {
    take_listed(0);
    start_learning();
  }
  in_flight_.store(buffer, std::memory_order_release);
}

bool Probe::end_step(bool aborted) {
  aborted = aborted || stopped_;
  StepBuffer* buffer = buffer_;
  if (buffer == nullptr) return !aborted;
  if (mode_ == Mode::Matching && instance_ != nullptr && listed_ != instance_->node_count() &&
      !aborted) {
    take_listed(listed_);
    start_learning();  // the graph is a prefix of the matched one
  }
  std::unique_ptr<GraphInstance> once;  // for this step only
  if (mode_ == Mode::Following) {
    once = end_following(aborted);
  } else if (mode_ == Mode::Learning) {
    buffer->header.timing = Timing::Learned;
    if (aborted) {
      once = learned_prefix();
      instance_ = once.get();
    } else {
      learn_range(now());
      add_learned();
    }
  } else if (instance_ != nullptr) {
    buffer->header.timing = exact_step_ ? Timing::Exact : Timing::Fast;
  }
  buffer->header.aborted = aborted;
  if (mode_options_.capture != nullptr && instance_ != nullptr && !aborted)
    buffer->values.not_captured += wanted_of_instance_ == instance_
                                       ? hidden_outputs_
                                       : hidden_outputs(instance_->graph()->graph);

  if (instance_ != nullptr) {
    buffer->graph = instance_->graph();
    buffer->addresses = instance_->addresses();
    instance_->last_used = ++use_counter_;
    const auto expected = static_cast<std::uint32_t>(instance_->ops().size());
    if (expected > buffer->max_ops) {
      buffer->header.dropped = true;
      buffer->header.timing = Timing::None;
      buffer->ops_done.store(0, std::memory_order_release);
    }
    if (mode_ == Mode::Matching && !aborted && ticks_ + device_ops_ != expected) {
      // Op boundaries differ from the learned ones, so the times cannot be assigned to ops. From
      // now on this graph is split after every op.
      buffer->count_mismatch = true;
      if (!exact_step_) buffer->ops_done.store(0, std::memory_order_release);
      instance_->exact_only = true;
    }
  } else {
    // Cancelled before any op had run.
    buffer->graph = nullptr;
    buffer->addresses = nullptr;
    buffer->captured.clear();
    buffer->header.timing = Timing::None;
    buffer->ops_done.store(0, std::memory_order_release);
  }
  in_flight_.store(nullptr, std::memory_order_release);
  buffer_ = nullptr;
  instance_ = nullptr;
  mode_ = Mode::Idle;
  return !aborted;
}

// ---------------------------------------------------------------- callbacks

bool Probe::node_listed(const ggml_tensor* tensor) {
  const std::uint32_t index = listed_++;
  if (index < fast_match_end_ && instance_->matches(index, tensor)) return false;
  if (index == 0) graph_ready_ = std::chrono::steady_clock::now();
  if (mode_ == Mode::Idle) return false;
  if (mode_ == Mode::Matching) {
    if (instance_ != nullptr && index < instance_->node_count() &&
        instance_->matches(index, tensor)) {
      return list_known(index, tensor);
    }
    if (find_instance(index, tensor)) return list_known(index, tensor);
    leave_known(index, tensor);
  }
  return mode_ == Mode::Following ? list_following(tensor) : list_learning(tensor);
}

bool Probe::list_known(std::uint32_t index, const ggml_tensor* tensor) {
  if (index + 1 == instance_->node_count()) {
    if (!instance_->leaves_match()) {
      const ggml_tensor* last = instance_->node(index);
      leave_known(index, last);
      return mode_ == Mode::Following ? list_following(last) : list_learning(last);
    }
  }
  const bool split = exact_step_ ? instance_->op_ending_at(index) != kNone
                                 : takes_values() && wanted_[index].any();
  // The listed nodes run at the first split point, or after the last node.
  if ((split || index + 1 == instance_->node_count()) &&
      buffer_->ops_done.load(std::memory_order_relaxed) == 0) {
    buffer_->first_op_ns.store(now(), std::memory_order_release);
  }
  if (mode_options_.capture != nullptr && next_with_sources_ < ops_with_sources_.size())
    observe([&] { take_sources_known(index, *tensor); });
  return split;
}

// The ops before the listed node have run: the graph was split there (prepare_values).
void Probe::take_sources_known(std::uint32_t index, const ggml_tensor& tensor) {
  const GraphTemplate& graph = instance_->graph()->graph;
  for (; next_with_sources_ < ops_with_sources_.size(); ++next_with_sources_) {
    const OpId op{ops_with_sources_[next_with_sources_]};
    if (graph.op(op).first.v > index) return;
    if (graph.op(op).first.v < index) continue;  // taken as an op of the graph matched before
    mode_options_.capture->take_sources(
        op, graph.tensor(graph.node(graph.op(op).last()).output).name, tensor, buffer_->values);
  }
}

bool Probe::tick() {
  const std::uint32_t index = ticks_.load(std::memory_order_relaxed);
  ticks_.store(index + 1, std::memory_order_release);
  if (mode_ == Mode::Matching && !exact_step_) {
    end_op(index, now());
    capture_known(index);
  } else if (mode_ == Mode::Following) {
    end_op(index, now());
    capture_followed(index);
  } else if (mode_ == Mode::Learning) {
    tick_times_.push_back(now());
    if (index < prefix_ops_) capture_followed(index);
  }
  return cancel_.load(std::memory_order_relaxed);
}

bool Probe::node_computed(ggml_tensor* tensor) {
  // Returning false ends only this scheduler split; the scheduler continues with the next one.
  if (stopped_) return false;
  if (mode_ == Mode::Learning) {
    learn_range(now());
    if (OpObserver* const observer = mode_options_.observer; observer != nullptr)
      observe([&] { observer->after_op(last_op(), *tensor); });
  } else if (mode_ == Mode::Matching) {
    // The op that ends at the last listed node has just run.
    const std::uint32_t op = instance_->op_ending_at(listed_ - 1);
    if (exact_step_ && op != kNone) {
      end_op(op, now());
      if (ticks_ + device_ops_ == op) ++device_ops_;  // ran on a device without ticks
      capture_known(op);
    }
    if (takes_values()) observe([&] { take_values(op, *tensor, wanted_[listed_ - 1]); });
  }
  stopped_ = cancel_.load(std::memory_order_relaxed);
  return !stopped_;
}

void Probe::end_op(std::uint32_t op, std::int64_t ns) {
  if (op >= buffer_->max_ops) return;
  buffer_->op_ends[op].store(ns, std::memory_order_relaxed);
  buffer_->ops_done.store(op + 1, std::memory_order_release);
}

void Probe::capture_known(std::uint32_t op) {
  if (op < next_capture_op_) return;
  const auto captures = instance_->captures();
  while (next_capture_ < captures.size() && captures[next_capture_].op <= op) {
    const GraphInstance::Capture& capture = captures[next_capture_++];
    if (copy_slot(*capture.source, capture.plan, capture.slot, *buffer_)) {
      captured_from_.push_back(capture.source);
    } else {
      ++buffer_->slots_lost;
    }
  }
  next_capture_op_ = next_capture_ < captures.size() ? captures[next_capture_].op : kNone;
}

// The same for a graph that has only the structure of instance_: its sources are elsewhere.
void Probe::capture_followed(std::uint32_t op) {
  const auto captures = instance_->captures();
  while (next_capture_ < captures.size() && captures[next_capture_].op <= op) {
    const GraphInstance::Capture& capture = captures[next_capture_++];
    if (capture.node >= nodes_.size()) return;  // more ops have run than were listed
    const ggml_tensor* source = nodes_[capture.node]->src[capture.input];
    if (copy_slot(*source, slot_plan(*source, capture.plan.how), kNone, *buffer_)) {
      captured_from_.push_back(source);
    } else {
      ++buffer_->slots_lost;
    }
  }
}

// ---------------------------------------------------------------- recognition

// Finds another known graph whose first `index` nodes equal the listed ones and whose next node
// is `tensor`. Prefers the most recently used, because a decode usually repeats the last graph.
bool Probe::find_instance(std::uint32_t index, const ggml_tensor* tensor) {
  GraphInstance* best = nullptr;
  for (const auto& candidate : instances_) {
    if (candidate.get() == instance_ || index >= candidate->node_count() ||
        !candidate->matches(index, tensor) ||
        (index > 0 && !candidate->same_prefix(*instance_, index))) {
      continue;
    }
    if (best == nullptr || candidate->last_used > best->last_used) best = candidate.get();
  }
  if (best == nullptr) return false;
  // The split points so far must also be valid for the new graph, so switch only before the
  // first op has run.
  if (instance_ != nullptr &&
      (ticks_ > 0 || exact_step_ != (mode_options_.exact || best->exact_only))) {
    return false;
  }
  instance_ = best;
  next_capture_op_ = 0;
  exact_step_ = mode_options_.exact || best->exact_only;
  if (index == 0) captured_from_.clear();
  prepare_values();
  const bool splits = exact_step_ || takes_values();
  fast_match_end_ = splits ? 0 : instance_->node_count() - 1;
  return true;
}

// ---------------------------------------------------------------- structure

// The graph differs from the matched one at `next`, node number `matched`. Reading values and
// exact times need split points, which learning sets.
void Probe::leave_known(std::uint32_t matched, const ggml_tensor* next) {
  fast_match_end_ = 0;
  take_listed(matched);
  const bool splits = exact_step_ || mode_options_.exact || takes_values();
  GraphInstance* known = splits || !follows_ ? nullptr : find_structure(next);
  if (known == nullptr) return start_learning();
  mode_ = Mode::Following;
  if (known != instance_) next_capture_ = 0;
  instance_ = known;
}

// The first nodes of the graph are those of the matched one.
void Probe::take_listed(std::uint32_t matched) {
  nodes_.clear();
  if (instance_ == nullptr) {
    captured_from_.clear();
    return;
  }
  for (std::uint32_t i = 0; i < matched; ++i) nodes_.push_back(instance_->node(i));
}

// A known graph with the structure of the listed nodes, followed by `next`. Once ops have run,
// their slots have been copied as in instance_, so it must be this one. Mostly it is the one
// learned last: the others are then skipped by their last use.
GraphInstance* Probe::find_structure(const ggml_tensor* next) const {
  const auto count = static_cast<std::uint32_t>(nodes_.size());
  GraphInstance* best = nullptr;
  for (const auto& candidate : std::views::reverse(instances_)) {
    if (candidate->exact_only || count >= candidate->node_count() ||
        (ticks_ > 0 && candidate.get() != instance_) ||
        (best != nullptr && best->last_used > candidate->last_used)) {
      continue;
    }
    bool same = candidate->same_structure(count, next, nodes_);
    for (std::uint32_t i = 0; same && i < count; ++i)
      same = candidate->same_structure(i, nodes_[i], nodes_);
    if (same) best = candidate.get();
  }
  return best;
}

bool Probe::list_following(const ggml_tensor* tensor) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  if (index >= instance_->node_count() || !instance_->same_structure(index, tensor, nodes_)) {
    GraphInstance* other = find_structure(tensor);
    if (other == nullptr) {
      start_learning();
      return list_learning(tensor);
    }
    instance_ = other;
  }
  nodes_.push_back(tensor);
  if (ticks_ == 0) buffer_->first_op_ns.store(now(), std::memory_order_release);
  return false;
}

// The graph has run with the ops of instance_, or its first ops have. If it has run with others,
// the step keeps its graph without times and slot values. Returns an instance that is used for
// this step only; null: the new one is known from now on.
std::unique_ptr<GraphInstance> Probe::end_following(bool aborted) {
  inherit_ops();
  if (pending_norm_ != kNone) {
    spans_.push_back({.first = std::exchange(pending_norm_, kNone), .nodes = 1});
  }
  buffer_->header.timing = Timing::Fast;
  if (!aborted && ticks_ == spans_.size()) {
    add_learned();
    return nullptr;
  }
  if (aborted) {
    const std::size_t ran = std::min<std::size_t>(ticks_, spans_.size());
    spans_.resize(ran);
    nodes_.resize(ran == 0 ? 0 : spans_.back().first + spans_.back().nodes);
  } else {
    follows_ = false;
    buffer_->count_mismatch = true;
    buffer_->ops_done.store(0, std::memory_order_release);
    buffer_->captured.clear();
    captured_from_.clear();
  }
  std::unique_ptr<GraphInstance> once = spans_.empty() ? nullptr : learned_instance();
  instance_ = once.get();
  return once;
}

// Takes over the ops of instance_ up to the last one that is completely in nodes_. An RMS_NORM at
// their end may be fused with the next node.
void Probe::inherit_ops() {
  const std::size_t count = nodes_.size();
  spans_.clear();
  pending_norm_ = kNone;
  if (count == 0) return;
  for (const OpSpan& span : instance_->ops()) {
    if (span.first + span.nodes > count) break;
    if (span.first + span.nodes == count && nodes_[span.first]->op == GGML_OP_RMS_NORM &&
        span.nodes == 1) {
      break;
    }
    spans_.push_back(span);
  }
  if (nodes_.back()->op == GGML_OP_RMS_NORM && does_work(*nodes_.back()))
    pending_norm_ = static_cast<std::uint32_t>(count - 1);
}

// ---------------------------------------------------------------- learning

// nodes_: those before the first node that differs from instance_.
void Probe::start_learning() {
  mode_ = Mode::Learning;
  inherit_ops();
  if (!nodes_.empty()) learned_exact_only_ = instance_->exact_only;
  const auto matched = static_cast<std::uint32_t>(nodes_.size());
  prefix_ops_ = static_cast<std::uint32_t>(spans_.size());
  // Ops with a time are settled; the rest of the prefix is one range.
  const std::uint32_t settled =
      std::min(prefix_ops_, buffer_->ops_done.load(std::memory_order_relaxed));
  range_first_span_ = settled;
  range_first_node_ = settled < prefix_ops_ ? spans_[settled].first : matched;
  range_first_tick_ = ticks_;
  tick_times_.assign(ticks_.load(), 0);
}

bool Probe::list_learning(const ggml_tensor* tensor) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(tensor);
  if (ticks_ == 0 && buffer_->ops_done.load(std::memory_order_relaxed) == 0) {
    buffer_->first_op_ns.store(now(), std::memory_order_release);  // nothing ran yet
  }
  const std::uint32_t norm = std::exchange(pending_norm_, kNone);
  const bool fused = norm != kNone && norm + 1 == index && does_work(*tensor) &&
                     fuses_with(*nodes_[norm], *tensor);
  if (norm != kNone && !fused) {
    spans_.push_back({.first = norm, .nodes = 1});
    take_sources_learning(*nodes_[norm]);
  }
  if (!does_work(*tensor)) return false;
  {
    const std::lock_guard lock(buffer_->new_op_mutex);
    buffer_->new_op = {.operation_type = ggml_op_name(tensor->op),
                       .tensor_name = tensor->name,
                       .nodes = index + 1};
  }
  if (OpObserver* const observer = mode_options_.observer; observer != nullptr) {
    spans_.push_back({.first = index, .nodes = 1});
    observe([&] { observer->before_op(last_op(), *tensor); });
    take_sources_learning(*tensor);
    return true;
  }
  if (fused) {
    spans_.push_back({.first = norm, .nodes = 2});
    take_sources_learning(*tensor);
    return true;
  }
  if (tensor->op == GGML_OP_RMS_NORM) {
    pending_norm_ = index;
    return false;
  }
  spans_.push_back({.first = index, .nodes = 1});
  take_sources_learning(*tensor);
  return true;
}

// Of the last predicted op, which has not run. `output`: of its last node. Nothing that writes may
// have been listed before it since the last range ran, or its sources are not complete yet.
void Probe::take_sources_learning(const ggml_tensor& output) {
  ValueCapture* const capture = mode_options_.capture.get();
  if (capture == nullptr || !capture->wants_sources(output.name)) return;
  const std::uint32_t first = spans_.back().first;
  bool complete = true;
  for (std::uint32_t i = range_first_node_; complete && i < first; ++i)
    complete = !does_work(*nodes_[i]);
  if (complete)
    observe(
        [&] { capture->take_sources(last_op(), output.name, *nodes_[first], buffer_->values); });
  else
    capture->miss_sources(output.name, *nodes_[first], buffer_->values);
}

// The time that the observer, or the capture of values, takes is that of no op.
template <class Call>
void Probe::observe(Call call) {
  const std::int64_t begin = clock_.ns();
  call();
  epoch_ns_ += clock_.ns() - begin;
}

// A range of nodes has run: determine its op boundaries by the number of ticks.
void Probe::learn_range(std::int64_t now_ns) {
  if (pending_norm_ != kNone) {
    spans_.push_back({.first = std::exchange(pending_norm_, kNone), .nodes = 1});
  }
  const auto first = range_first_span_;
  auto predicted = static_cast<std::uint32_t>(spans_.size()) - first;
  const std::uint32_t ticked = ticks_ - range_first_tick_;

  if (ticked == predicted + 1) {
    // A pair predicted as fused ran as two ops. Inherited boundaries are known to be right.
    const auto pair = std::find_if(spans_.begin() + std::max(first, prefix_ops_), spans_.end(),
                                   [](const OpSpan& span) { return span.nodes == 2; });
    if (pair != spans_.end()) {
      const OpSpan second{.first = pair->first + 1, .nodes = 1};
      pair->nodes = 1;
      spans_.insert(pair + 1, second);
      ++predicted;
    }
  } else if (ticked > 0 && ticked + 1 == predicted && predicted >= 2 && spans_.back().nodes == 1 &&
             spans_[spans_.size() - 2].nodes == 1 &&
             spans_[spans_.size() - 2].first + 1 == spans_.back().first) {
    // Two nodes predicted as separate ran as one op.
    spans_.pop_back();
    spans_.back().nodes = 2;
    --predicted;
  }
  const bool device = ticked == 0 && predicted > 0;
  if (ticked != predicted && !device) learned_exact_only_ = true;

  for (std::uint32_t i = 0; i < predicted; ++i) {
    const bool by_tick = ticked == predicted;
    end_op(first + i, by_tick ? tick_times_[range_first_tick_ + i] : now_ns);
  }
  if (device) device_ops_ += predicted;
  capture_learning();
  if (takes_values() && predicted > 0) {
    const auto output = [&](const OpSpan& span) -> const ggml_tensor& {
      return *nodes_[span.first + span.nodes - 1];
    };
    // A later op of the range may have overwritten the output of an earlier one: an RMS_NORM that
    // was not fused runs together with the next op.
    const auto end = static_cast<std::uint32_t>(spans_.size());
    for (std::uint32_t op = first; op < end; ++op) {
      const ggml_tensor& of = output(spans_[op]);
      const Wanted wanted =
          wanted_of(ggml_op_name(of.op), of.name, of.src[1] == nullptr ? "" : of.src[1]->name);
      bool intact = true;
      for (std::uint32_t later = op + 1; intact && later < end; ++later)
        intact = !share_bytes(of, output(spans_[later]));
      if (intact)
        observe([&] { take_values(op, of, wanted); });
      else
        buffer_->values.not_captured += wanted.captured();
    }
  }
  range_first_span_ = static_cast<std::uint32_t>(spans_.size());
  range_first_node_ = static_cast<std::uint32_t>(nodes_.size());
  range_first_tick_ = ticks_;
}

// Copies potential slots at the first op that reads them.
void Probe::capture_learning() {
  std::uint32_t node = range_first_node_;
  if (prefix_ops_ > 0) {
    // The slots of the prefix were copied according to its instance.
    const OpSpan& last = spans_[prefix_ops_ - 1];
    node = std::max(node, last.first + last.nodes);
  }
  for (; node < nodes_.size(); ++node) {
    if (!does_work(*nodes_[node])) continue;
    const ggml_tensor* source = slot_source(*nodes_[node]);
    if (source == nullptr || std::ranges::find(captured_from_, source) != captured_from_.end())
      continue;
    if (copy_slot(*source, slot_plan(*source, slot_copy_for(*nodes_[node])), kNone, *buffer_))
      captured_from_.push_back(source);
  }
}

// A step that was cancelled while its graph was learned keeps the ops that ran. The rest of the
// graph is unknown, so this partial graph is used for this step only; the next step learns again.
std::unique_ptr<GraphInstance> Probe::learned_prefix() {
  // The range in flight, up to the last tick. Empty if a callback stopped the step.
  const std::uint32_t ticked = stopped_ ? 0 : ticks_ - range_first_tick_;
  for (std::uint32_t i = 0; i < ticked && range_first_span_ + i < spans_.size(); ++i)
    end_op(range_first_span_ + i, tick_times_[range_first_tick_ + i]);
  const std::size_t ran = std::min<std::size_t>(buffer_->ops_done.load(), spans_.size());
  if (ran == 0) return nullptr;
  spans_.resize(ran);
  nodes_.resize(spans_.back().first + spans_.back().nodes);
  pending_norm_ = kNone;
  capture_learning();
  return learned_instance();
}

// Builds an instance from the learned nodes and assigns the copied values to its slots.
std::unique_ptr<GraphInstance> Probe::learned_instance() {
  ProbedGraph built = build_template(nodes_, spans_, layout_);
  if (built.coverage.weights >= coverage_.weights) coverage_ = built.coverage;
  // The graph of a cancelled step lacks layers.
  const auto layers = [](const BufferSizes& of) {
    return std::ranges::fold_left(of.layers_by_cells | std::views::values, 0U, std::plus());
  };
  if (std::pair(built.buffers.kv, layers(built.buffers)) >=
      std::pair(buffer_sizes_.kv, layers(buffer_sizes_))) {
    buffer_sizes_.kv = built.buffers.kv;
    buffer_sizes_.layers_by_cells = std::move(built.buffers.layers_by_cells);
  }
  buffer_sizes_.compute = std::max(buffer_sizes_.compute, built.buffers.compute);

  std::vector<CapturedSlot> kept;
  std::vector<bool> found(built.graph.slots.size(), false);
  for (std::size_t i = 0; i < buffer_->captured.size(); ++i) {
    for (std::uint32_t s = 0; s < built.graph.slots.size(); ++s) {
      if (built.tensors[built.graph.slots[s].tensor.v] != captured_from_[i]) continue;
      kept.push_back(buffer_->captured[i]);
      kept.back().slot = s;
      found[s] = true;
      break;
    }
  }
  buffer_->captured.assign(kept.begin(), kept.end());
  buffer_->slots_lost += static_cast<std::uint32_t>(std::ranges::count(found, false));
  const auto& known = mode_options_.observer == nullptr ? instances_ : observed_;
  return std::make_unique<GraphInstance>(nodes_, std::move(built), learned_exact_only_, known);
}

void Probe::add_learned() {
  auto learned = learned_instance();
  if (mode_options_.observer != nullptr) return keep_observed(std::move(learned));
  while (instances_.size() > 2 && memory_bytes() > kMaxMemory) {
    instances_.erase(
        std::ranges::min_element(instances_, {}, [](const auto& i) { return i->last_used; }));
  }
  instances_.push_back(std::move(learned));
  instance_ = instances_.back().get();
  wanted_of_instance_ = nullptr;
}

void Probe::keep_observed(std::unique_ptr<GraphInstance> learned) {
  constexpr std::size_t kMaxObserved = 4;  // templates of a prompt and of its decodes
  if (observed_.size() == kMaxObserved) observed_.erase(observed_.begin());
  observed_.push_back(std::move(learned));
  instance_ = observed_.back().get();
  wanted_of_instance_ = nullptr;
}

// ---------------------------------------------------------------- values

Probe::Wanted Probe::wanted_of(std::string_view operation, const std::string& name,
                               const std::string& second) const {
  const auto& [exact, stats_filter, capture, observer, epoch] = mode_options_;
  return {.values = capture == nullptr ? nullptr : capture->wants(name),
          .stats = stats_filter != nullptr && stats_filter->matches_name(name),
          .attention = capture != nullptr && capture->wants_attention(operation, name, second),
          .lens = capture != nullptr && capture->wants_lens(name)};
}

// Matches names once per graph, pattern and set of rules, not in every step.
void Probe::prepare_values() {
  next_with_sources_ = 0;
  if (!takes_values()) return;
  const ValueCapture* capture = mode_options_.capture.get();
  const bool same_rules = wanted_capture_.get() == capture &&
                          (capture == nullptr || wanted_rules_ == capture->active());
  if (wanted_of_instance_ == instance_ && wanted_pattern_ == mode_options_.stats_filter &&
      same_rules)
    return;
  wanted_of_instance_ = instance_;
  wanted_pattern_ = mode_options_.stats_filter;
  wanted_capture_ = mode_options_.capture;
  if (capture != nullptr) wanted_rules_ = capture->active();
  wanted_.assign(instance_->node_count(), {});
  ops_with_sources_.clear();
  // Uses the template's names, because nodes not yet listed may belong to another graph.
  const GraphTemplate& graph = instance_->graph()->graph;
  for (const Op& op : graph.ops) {
    if (cancel_requested()) return;
    const Node& node = graph.node(op.last());
    const bool has_second = node.src.size() > 1 && node.src[1] != kNoTensor;
    wanted_[op.last().v] = wanted_of(node.op, graph.tensor(node.output).name,
                                     has_second ? graph.tensor(node.src[1]).name : "");
  }
  for (std::uint32_t op = 0; capture != nullptr && op < graph.ops.size(); ++op) {
    if (!capture->wants_sources(graph.tensor(graph.node(graph.ops[op].last()).output).name))
      continue;
    ops_with_sources_.push_back(op);
    if (op > 0) wanted_[graph.ops[op - 1].last().v].next_sources = true;
  }
  hidden_outputs_ = hidden_outputs(graph);
}

// The outputs that are to be captured, but that no op leaves in memory: those of the first nodes of
// fused pairs.
std::uint64_t Probe::hidden_outputs(const GraphTemplate& graph) const {
  std::uint64_t count = 0;
  if (mode_options_.capture == nullptr) return count;
  for (const Op& op : graph.ops)
    for (NodeId node = op.first; node.v < op.last().v && !cancel_requested(); ++node.v)
      if (mode_options_.capture->wants(graph.tensor(graph.node(node).output).name)) ++count;
  return count;
}

void Probe::take_values(std::uint32_t op, const ggml_tensor& output, Wanted wanted) {
  ValueCapture* const capture = mode_options_.capture.get();
  if (wanted.values != nullptr) capture->take(OpId{op}, *wanted.values, output, buffer_->values);
  if (wanted.attention) capture->take_attention(OpId{op}, output, buffer_->values);
  if (wanted.lens) capture->take_lens(OpId{op}, output);
  if (!wanted.stats || buffer_->stats.size() == buffer_->stats.capacity()) return;
  if (auto stats = value_stats(output, stats_scratch_)) {
    stats->op = OpId{op};
    buffer_->stats.push_back(*stats);
  }
}

std::size_t Probe::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& instance : instances_) {
    bytes += instance->node_count() * kBytesPerNode;
  }
  return bytes;
}

}  // namespace tt
