#include "attach/agent/splits.h"

#include <stdlib.h>

namespace tt::attach {

namespace {

constexpr uint32_t kNothing = UINT32_MAX;
constexpr uint32_t kMaxSplits = 4096, kMaxCopies = 16384;  // of a step

uint32_t index_of(const Scheduler& s, const void* backend) {
  for (uint32_t i = 0; i < s.backend_count; ++i)
    if (s.backends[i]->handle == backend) return i;
  return kNothing;
}

bool reports_ops(const Scheduler& s, uint32_t backend) {
  return backend != kNothing && s.backends[backend]->set_abort != nullptr;
}

void copy_list(Scheduler& s, uint32_t capture, const char* tensor) {
  SplitLog& log = s.log;
  if (log.captured[capture]) return;
  log.captured[capture] = copy_values(s, tensor, capture, s.graph->capture_list[capture].cells);
}

const char* source_of(const Scheduler& s, const Capture& capture) {
  return s.ggml->src(s.nodes[capture.node], capture.source);
}

// The lists that the program has set before the step, which no op changes.
void copy_inputs(Scheduler& s) {
  const Library& ggml = *s.ggml;
  for (uint32_t i = 0; i < s.graph->captures; ++i) {
    const char* source = source_of(s, s.graph->capture_list[i]);
    const char* owner = source == nullptr ? nullptr : ggml.view_src(source);
    const char* input = owner == nullptr ? source : owner;
    if (input != nullptr && ggml.op(input) == 0 && (ggml.flags(input) & ggml.at.input_flag) != 0 &&
        is_on_host(ggml, input) && strchr(ggml.ggml_get_name(input), '#') == nullptr)
      copy_list(s, i, source);
  }
}

void end_copy(Scheduler& s, int64_t now) {
  SplitLog& log = s.log;
  if (log.input == nullptr) return;
  CopyRecord& copy = log.copies[log.copy_count++];
  if (copy.complete == 0) copy.end = now;
  if (log.part_bytes > 0) copy.bytes = log.part_bytes;
  log.input = nullptr;
}

}  // namespace

bool find_devices(Scheduler& s) {
  const Library& ggml = *s.ggml;
  // Without ticks nothing is known of any backend, and each op is timed by splitting.
  if (ggml.ticks == Ticks::Never) return false;
  bool any = false;
  for (uint32_t i = 0; i < s.node_count; ++i) {
    void* backend = s.backend_count == 1 ? s.backends[0]->handle
                                         : ggml.ggml_backend_sched_get_tensor_backend(
                                               s.handle, const_cast<char*>(s.nodes[i]));
    s.reported[i] = backend == nullptr || reports_ops(s, index_of(s, backend));
    any = any || (!s.reported[i] && does_work(ggml, s.nodes[i]));
  }
  return any;
}

bool begin_splits(Scheduler& s) {
  SplitLog& log = s.log;
  if (log.splits == nullptr)
    log.splits = static_cast<SplitRecord*>(malloc(kMaxSplits * sizeof(SplitRecord)));
  if (log.copies == nullptr)
    log.copies = static_cast<CopyRecord*>(malloc(kMaxCopies * sizeof(CopyRecord)));
  if (log.captured_room < s.graph->captures) {
    auto* grown = static_cast<bool*>(realloc(log.captured, s.graph->captures));
    if (grown == nullptr) return false;
    log.captured = grown;
    log.captured_room = s.graph->captures;
  }
  if (log.splits == nullptr || log.copies == nullptr) return false;
  log.split_count = log.copy_count = log.next_node = log.next_op = log.depth = 0;
  log.first_tick = log.first_node = log.first_copy = 0;
  log.input = nullptr;
  log.failed = false;
  if (s.graph->captures > 0) memset(log.captured, 0, s.graph->captures);
  copy_inputs(s);
  return true;
}

bool end_splits(Scheduler& s) {
  SplitLog& log = s.log;
  end_copy(s, now_ns());
  // Several copies of the inputs: the scheduler begins the next graph while this one runs.
  if (s.ggml->ggml_backend_sched_get_n_copies(s.handle) <= 1) {
    for (uint32_t i = 0; i < s.backend_count; ++i) {
      if (reports_ops(s, i)) continue;
      const int64_t begin = now_ns();
      s.ggml->ggml_backend_synchronize(s.backends[i]->handle);
      on_waited(s, s.backends[i]->handle, begin);
    }
  }
  for (uint32_t i = 0; i < s.graph->captures; ++i)
    if (!log.captured[i]) ++s.lists_lost;
  return !log.failed && log.next_node == s.node_count;
}

void on_input(Scheduler& s, const char* tensor, void* backend) {
  SplitLog& log = s.log;
  if (log.depth > 0 || tensor == nullptr) return;
  const int64_t now = now_ns();
  end_copy(s, now);
  if (log.copy_count == kMaxCopies) {
    log.failed = true;
    return;
  }
  const Library& ggml = *s.ggml;
  log.input = tensor;
  log.part_bytes = 0;
  CopyRecord& copy = log.copies[log.copy_count];
  copy = CopyRecord{};
  copy.tensor = record_index(*s.graph, tensor);
  if (copy.tensor == kNothing) copy.tensor = copy_index(ggml, *s.graph, tensor);
  copy.from = index_of(s, backend);
  copy.bytes = ggml.ggml_nbytes(tensor);
  // What the CPU has computed is complete. What a device has may not be.
  if (is_on_host(ggml, tensor) && (copy.from == kNothing || reports_ops(s, copy.from))) {
    for (uint32_t i = 0; i < s.graph->captures; ++i) {
      const char* source = source_of(s, s.graph->capture_list[i]);
      if (source != nullptr && !log.captured[i] && is_copy_of(ggml, source, tensor))
        copy_list(s, i, tensor);
    }
  }
  copy.begin = now_ns();
}

void on_copied(Scheduler& s) {
  SplitLog& log = s.log;
  if (log.input == nullptr || log.depth > 0) return;
  log.copies[log.copy_count].complete = 1;
  log.copies[log.copy_count].end = now_ns();
}

void on_part(Scheduler& s, uint64_t bytes) {
  if (s.log.input != nullptr && s.log.depth == 0) s.log.part_bytes += bytes;
}

void on_waited(Scheduler& s, const void* backend, int64_t begin) {
  SplitLog& log = s.log;
  if (log.depth > 0) return;
  const int64_t now = now_ns();
  if (log.input != nullptr) log.copies[log.copy_count].wait += now - begin;
  const uint32_t index = backend == nullptr ? kNothing : index_of(s, backend);
  if (index == kNothing) return;
  for (uint32_t i = log.split_count; i > 0; --i) {
    SplitRecord& split = log.splits[i - 1];
    if (split.backend != index) continue;
    if (split.done != 0) break;
    split.done = now;
  }
}

int compute_split(Scheduler& s, GraphCompute compute, void* backend, void* graph) {
  SplitLog& log = s.log;
  if (log.depth > 0) return compute(backend, graph);
  const Library& ggml = *s.ggml;
  end_copy(s, now_ns());
  const int count = ggml.ggml_graph_n_nodes(graph);
  const uint32_t nodes = count > 0 ? static_cast<uint32_t>(count) : 0;
  const uint32_t index = index_of(s, backend), first = log.next_node;
  const bool found = index != kNothing && log.split_count < kMaxSplits &&
                     nodes <= s.node_count - first &&
                     (nodes == 0 || s.nodes[first] == ggml.ggml_graph_node(graph, 0));
  if (!found) {
    log.failed = true;
    return compute(backend, graph);
  }
  SplitRecord split;
  split.backend = index;
  split.first_op = log.next_op;
  split.copies = log.copy_count - log.first_copy;
  while (log.next_op < s.op_count && s.ops[log.next_op].first < first + nodes) ++log.next_op;
  split.ops = log.next_op - split.first_op;
  log.first_copy = log.copy_count;
  log.next_node = first + nodes;
  log.first_node = first;
  log.first_tick = s.tick_count;
  s.current_op = split.first_op;
  ++log.depth;
  split.begin = now_ns();
  const int status = compute(backend, graph);
  split.end = now_ns();
  --log.depth;
  if (reports_ops(s, index)) {
    split.done = split.end;  // it computes in the call
    const uint32_t ticks = s.tick_count - log.first_tick;
    if (ticks != (ggml.ticks == Ticks::PerNode ? nodes : split.ops)) log.failed = true;
  }
  log.splits[log.split_count++] = split;
  return status;
}

void copy_list_of_op(Scheduler& s, uint32_t op) {
  const Graph& graph = *s.graph;
  while (s.next_capture < graph.captures && graph.capture_list[s.next_capture].op < op)
    ++s.next_capture;  // on a device
  for (; s.next_capture < graph.captures && graph.capture_list[s.next_capture].op == op;
       ++s.next_capture) {
    const char* source = source_of(s, graph.capture_list[s.next_capture]);
    if (source != nullptr) copy_list(s, s.next_capture, source);
  }
}

}  // namespace tt::attach
