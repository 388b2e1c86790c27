#include "attach/agent/step.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach/agent/splits.h"
#include "tracer/probe/attended_cells.h"

namespace tt::attach {

namespace {

constexpr uint32_t kNothing = UINT32_MAX;
constexpr uint64_t kValuesRoom = 16U << 20U;  // untouched pages cost nothing

// Room for graphs of `count` nodes.
bool make_room(Scheduler& s, uint32_t count) {
  if (s.values == nullptr) {
    void* memory = mmap(nullptr, kValuesRoom, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    s.values = static_cast<char*>(memory);
    s.values_room = kValuesRoom;
  }
  if (count <= s.node_room) return true;
  const uint32_t room = count + count / 2 + 1024;
  const auto grow = [&](auto*& array) {
    auto* grown = static_cast<decltype(+array)>(realloc(array, room * sizeof *array));
    if (grown == nullptr) return false;
    array = grown;
    return true;
  };
  if (!grow(s.nodes) || !grow(s.ops) || !grow(s.reported) || !grow(s.splits) ||
      !grow(s.op_ending) || !grow(s.ticks) || !grow(s.ranges) || !grow(s.times))
    return false;
  s.node_room = s.tick_room = room;
  return true;
}

uint64_t value_bytes(SlotValuesKind kind) { return kind == SlotValuesKind::Int64 ? 8 : 4; }

// Copies the lists of the ops up to `op`, which has run.
void copy_known(Scheduler& s, uint32_t op) {
  const Graph& graph = *s.graph;
  while (s.next_capture < graph.captures && graph.capture_list[s.next_capture].op <= op) {
    const Capture& capture = graph.capture_list[s.next_capture];
    const char* source = s.ggml->src(s.nodes[capture.node], capture.source);
    if (source == nullptr || !copy_values(s, source, s.next_capture, capture.cells)) ++s.lists_lost;
    ++s.next_capture;
  }
}

// The same while a graph is new: of the nodes from `first` on, up to `last`.
void copy_new(Scheduler& s, uint32_t first, uint32_t last) {
  const Library& ggml = *s.ggml;
  for (uint32_t n = first; n <= last && n < s.node_count; ++n) {
    if (!does_work(ggml, s.nodes[n])) continue;
    const int source = list_source(ggml, s.nodes[n]);
    if (source < 0) continue;
    const char* tensor = ggml.src(s.nodes[n], static_cast<size_t>(source));
    bool known = false;
    for (uint32_t c = 0; c < s.captured_count && !known; ++c)
      known = s.captured[c].tensor == tensor;
    if (known) continue;
    const bool cells = strcmp(ggml.ggml_op_name(ggml.op(s.nodes[n])), "FLASH_ATTN_EXT") == 0;
    if (!copy_values(s, tensor, kNothing, cells)) ++s.lists_lost;
  }
}

// The op that ends with the current tick has run: the next one is due.
void advance(Scheduler& s) {
  if (s.current_op >= s.op_count) return;
  const Span& op = s.ops[s.current_op];
  if (s.chained && op.nodes == 2 && s.splits[op.first] && !s.half) {
    s.half = true;
    return;
  }
  s.half = false;
  if (s.mode == Scheduler::Mode::BySplits)
    copy_list_of_op(s, s.current_op);
  else if (s.mode != Scheduler::Mode::Splitting)
    copy_known(s, s.current_op);
  ++s.current_op;
}

// Derives which nodes ran as one op from the ticks of each range, and the time of each op. Writes
// s.ops, s.op_count, s.times. Returns whether each op has the tick that was expected.
bool finish_ops(Scheduler& s, bool& needs_splits) {
  Span* expected = static_cast<Span*>(malloc((s.op_count + 1) * sizeof(Span)));
  if (expected == nullptr) return false;
  memcpy(expected, s.ops, s.op_count * sizeof(Span));
  const uint32_t expected_count = s.op_count;
  const bool per_node = s.ggml->ticks == Ticks::PerNode;
  bool as_expected = true;
  uint32_t op = 0, done = 0, first_tick = 0, first_node = 0;
  for (uint32_t r = 0; r < s.range_count; ++r) {
    const Range& range = s.ranges[r];
    const uint32_t first_done = done;
    const auto add = [&](uint32_t first, uint32_t nodes) {
      if (done < s.node_room) s.ops[done++] = {first, nodes};
    };
    for (; op < expected_count && expected[op].first <= range.end_node; ++op) {
      Span& span = expected[op];
      if (span.first + span.nodes - 1 <= range.end_node) {
        add(span.first, span.nodes);
      } else {  // a pair with a split between
        add(span.first, 1);
        span.first += 1;
        span.nodes -= 1;
        break;
      }
    }
    uint32_t ops = done - first_done;
    const uint32_t ticks = range.end_tick - first_tick;
    const uint32_t nodes = range.end_node + 1 - first_node;
    if (!per_node && s.learning && ticks == ops + 1) {
      for (uint32_t i = first_done; i < done; ++i) {
        if (s.ops[i].nodes != 2 || done == s.node_room) continue;
        memmove(&s.ops[i + 2], &s.ops[i + 1], (done - i - 1) * sizeof(Span));
        s.ops[i + 1] = {s.ops[i].first + 1, 1};
        s.ops[i].nodes = 1;
        ++done;
        ++ops;
        break;
      }
    } else if (!per_node && s.learning && ticks > 0 && ticks + 1 == ops && ops >= 2 &&
               s.ops[done - 1].nodes == 1 && s.ops[done - 2].nodes == 1 &&
               s.ops[done - 2].first + 1 == s.ops[done - 1].first) {
      --done;
      --ops;
      s.ops[done - 1].nodes = 2;
    }
    const bool by_tick = per_node ? ticks == nodes : ticks == ops;
    if (!by_tick && ops > 0) {
      needs_splits = true;
      // The end of a range with one op is its time in any case.
      if (ticks > 0 || ops > 1) as_expected = false;
    }
    for (uint32_t i = first_done; i < done; ++i) {
      const uint32_t tick =
          per_node ? s.ops[i].first + s.ops[i].nodes - 1 - first_node : i - first_done;
      s.times[i] = by_tick ? s.ticks[first_tick + tick] : range.end;
    }
    first_tick = range.end_tick;
    first_node = range.end_node + 1;
  }
  free(expected);
  s.op_count = done;
  return as_expected;
}

bool same_ops(const Graph& graph, const Span* ops, uint32_t count) {
  return graph.ops == count && memcmp(graph.op_spans, ops, count * sizeof *ops) == 0;
}

void forget_oldest(Scheduler& s) {
  uint32_t count = 0;
  Graph** oldest = nullptr;
  for (Graph** at = &s.graphs; *at != nullptr; at = &(*at)->next) {
    ++count;
    if (*at != s.graph && (oldest == nullptr || (*at)->last_used < (*oldest)->last_used))
      oldest = at;
  }
  if (count < kMaxGraphs || oldest == nullptr) return;
  Graph* graph = *oldest;
  *oldest = graph->next;
  free_graph(graph);
}

// The graph that was used last, of those whose tensors are the listed ones.
Graph* find_graph(const Scheduler& s, bool by_splits) {
  Graph* found = nullptr;
  for (Graph* known = s.graphs; known != nullptr; known = known->next)
    if (known->by_splits == by_splits &&
        (found == nullptr || known->last_used > found->last_used) &&
        same_graph(*s.ggml, *known, s.nodes, s.node_count))
      found = known;
  return found;
}

Graph* find_structure(const Scheduler& s) {
  Graph* found = nullptr;
  for (Graph* known = s.graphs; known != nullptr && s.follows; known = known->next)
    if (!known->exact && !known->by_splits &&
        (found == nullptr || known->last_used > found->last_used) &&
        same_structure(*s.ggml, *known, s.nodes, s.node_count))
      found = known;
  return found;
}

// A new graph of the scheduler. Null: no memory.
Graph* add_graph(Scheduler& s, uint32_t& graph_numbers) {
  Graph* graph = make_graph(*s.ggml, {s.number, s.backend_names, s.backend_count},
                            __atomic_add_fetch(&graph_numbers, 1, __ATOMIC_RELAXED), s.nodes,
                            s.node_count, s.ops, s.op_count);
  if (graph == nullptr) {
    s.failed = true;
    return nullptr;
  }
  graph->on_devices = s.on_devices;
  forget_oldest(s);
  graph->next = s.graphs;
  s.graphs = graph;
  return graph;
}

// `captures`: whether the lists were copied by the captures of `graph`, or of one with its
// structure.
void write_step(const Scheduler& s, const Graph& graph, StepRecord step, bool has_times,
                bool captures, Ring& ring) {
  const bool has_record = graph.record.size == 0;
  constexpr uint32_t kMaxParts = 2 * kMaxCaptured + 4;
  static Part parts[kMaxParts];  // under the caller's lock
  static SlotRecord slots[kMaxCaptured];
  static const char kZeros[8] = {};
  const auto fill = [&](bool complete) {
    uint32_t count = 0;
    step.slots = step.splits = step.copies = 0;
    parts[count++] = {&step, sizeof step};
    if (complete && has_times) parts[count++] = {s.times, step.times * sizeof *s.times};
    if (complete && graph.by_splits) {
      step.splits = s.log.split_count;
      step.copies = s.log.first_copy;  // those of the splits
      parts[count++] = {s.log.splits, step.splits * sizeof *s.log.splits};
      parts[count++] = {s.log.copies, step.copies * sizeof *s.log.copies};
    }
    for (uint32_t i = 0; i < s.captured_count && count + 3 < kMaxParts; ++i) {
      const Captured& captured = s.captured[i];
      // Without times, only what may be tokens, positions, outputs and their cells is kept.
      const bool is_short = captured.count <= 8192 && captured.kind != SlotValuesKind::Float &&
                            captured.kind != SlotValuesKind::Cells;
      if (!complete && !is_short) continue;
      const bool by_capture = captures && captured.capture < graph.captures;
      const uint32_t tensor =
          !has_record ? by_capture ? graph.capture_list[captured.capture].stand_in_tensor : kNothing
          : by_capture ? graph.capture_list[captured.capture].tensor
                       : record_index(graph, captured.tensor);
      if (tensor == kNothing) continue;
      SlotRecord& slot = slots[step.slots++];
      slot = {tensor, captured.kind, captured.count,
              static_cast<uint32_t>(padded(captured.bytes, 8))};
      parts[count++] = {&slot, sizeof slot};
      parts[count++] = {s.values + captured.offset, captured.bytes};
      if (slot.bytes > captured.bytes) parts[count++] = {kZeros, slot.bytes - captured.bytes};
    }
    return count;
  };
  const auto bytes_of = [&](uint32_t count) {
    size_t bytes = sizeof(RecordHead) + 8;
    for (uint32_t i = 0; i < count; ++i) bytes += parts[i].bytes;
    return bytes;
  };
  uint32_t count = has_record ? fill(true) : 0;
  if (!has_record) step.graph = graph.stand_in;
  if (!has_record || !ring.fits(bytes_of(count), true)) {
    step.times = 0;
    step.dropped = 1;
    step.timing = StepTiming::None;
    count = fill(false);
  }
  if (step.graph == 0 || !ring.write(RecordKind::Step, parts, count)) ring.count_lost_step();
}

}  // namespace

bool copy_values(Scheduler& s, const char* tensor, uint32_t capture, bool cells) {
  const Library& ggml = *s.ggml;
  if (s.captured_count == kMaxCaptured) return false;
  int64_t ne[4];
  uint64_t nb[4];
  ggml.shape(tensor, ne, nb);
  const char* type = ggml.ggml_type_name(ggml.type(tensor));
  const bool host = is_on_host(ggml, tensor);
  const char* data = ggml.data(tensor);
  if (host && data == nullptr) return false;
  char* out = s.values + s.values_used;
  const uint64_t room = s.values_room - s.values_used;
  Captured captured = {tensor, capture, SlotValuesKind::Int32, 0, s.values_used, 0};
  const auto read_row = [&](int64_t i1, int64_t i2, int64_t i3, uint64_t bytes, char* scratch) {
    const uint64_t at = static_cast<uint64_t>(i1) * nb[1] + static_cast<uint64_t>(i2) * nb[2] +
                        static_cast<uint64_t>(i3) * nb[3];
    if (host) return data + at;
    ggml.ggml_backend_tensor_get(tensor, scratch, at, bytes);
    return static_cast<const char*>(scratch);
  };
  const bool half = strcmp(type, "f16") == 0, single = strcmp(type, "f32") == 0;
  if (cells && (half || single)) {
    const auto count = static_cast<uint64_t>(ne[0]);
    const uint64_t row_bytes = count * (half ? 2 : 4);
    const auto rows = static_cast<uint64_t>(ne[1] * ne[2] * ne[3]);
    const uint64_t cells_at = rows * 8, flags_at = cells_at + count * 4,
                   row_at = padded(flags_at + count, 8);
    if (row_at + row_bytes > room || s.captured_count + 1 == kMaxCaptured) return false;
    auto* first = reinterpret_cast<int32_t*>(out);
    auto* flags = reinterpret_cast<uint8_t*>(out) + flags_at;
    memset(flags, 0, count);
    for (int64_t i3 = 0; i3 < ne[3]; ++i3)
      for (int64_t i2 = 0; i2 < ne[2]; ++i2)
        for (int64_t i1 = 0; i1 < ne[1]; ++i1) {
          const char* row = read_row(i1, i2, i3, row_bytes, out + row_at);
          const int32_t one = first_attended(row, half, count);
          *first++ = one;
          *first++ =
              one < 0 ? -1 : first_attended(row, half, count, static_cast<uint64_t>(one) + 1);
          mark_attended(row, half, count, flags);
        }
    Captured firsts = captured;
    firsts.kind = SlotValuesKind::FirstCells;
    firsts.count = static_cast<uint32_t>(rows * 2);
    firsts.bytes = rows * 8;
    s.captured[s.captured_count++] = firsts;
    s.values_used += cells_at;
    captured.offset = s.values_used;
    captured.kind = SlotValuesKind::Cells;
    captured.count = number_attended(flags, count, reinterpret_cast<int32_t*>(out + cells_at));
  } else {
    if (strcmp(type, "i32") == 0) {
      captured.kind = SlotValuesKind::Int32;
    } else if (strcmp(type, "i64") == 0) {
      captured.kind = SlotValuesKind::Int64;
    } else if (single) {
      captured.kind = SlotValuesKind::Float;
    } else {
      return false;
    }
    const uint64_t width = value_bytes(captured.kind);
    const uint64_t row = static_cast<uint64_t>(ne[0]) * width;
    const uint64_t rows = static_cast<uint64_t>(ne[1] * ne[2] * ne[3]);
    if (row * rows > room || (!host && nb[0] != width)) return false;
    for (int64_t i3 = 0; i3 < ne[3]; ++i3)
      for (int64_t i2 = 0; i2 < ne[2]; ++i2)
        for (int64_t i1 = 0; i1 < ne[1]; ++i1) {
          const char* from = read_row(i1, i2, i3, row, out);
          if (!host) {
          } else if (nb[0] == width) {
            memcpy(out, from, row);
          } else {
            for (uint64_t i0 = 0; i0 < static_cast<uint64_t>(ne[0]); ++i0)
              memcpy(out + i0 * width, from + i0 * nb[0], width);
          }
          out += row;
        }
    captured.count = static_cast<uint32_t>(static_cast<uint64_t>(ne[0]) * rows);
  }
  captured.bytes = captured.count * value_bytes(captured.kind);
  s.values_used += padded(captured.bytes, 8);
  s.captured[s.captured_count++] = captured;
  return true;
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void release(Scheduler& s) {
  free(s.nodes);
  free(s.ops);
  free(s.splits);
  free(s.reported);
  free(s.log.splits);
  free(s.log.copies);
  free(s.log.captured);
  free(s.op_ending);
  free(s.ticks);
  free(s.ranges);
  free(s.times);
  if (s.values != nullptr) munmap(s.values, s.values_room);
}

bool on_tick(void* data) {
  auto* backend = static_cast<Backend*>(data);
  if (Scheduler* s = backend->active; s != nullptr && s->busy) {
    const uint32_t tick = s->tick_count++;
    if (tick < s->tick_room) s->ticks[tick] = now_ns();
    if (s->ggml->ticks == Ticks::PerNode) {
      // Views tick, too: an op is due when its last node has run.
      const uint32_t node = tick - s->log.first_tick + s->log.first_node;
      const bool is_end = s->current_op < s->op_count &&
                          node == s->ops[s->current_op].first + s->ops[s->current_op].nodes - 1;
      if (is_end) advance(*s);
    } else {
      advance(*s);
    }
  }
  return backend->user != nullptr && backend->user(backend->user_data);
}

bool on_eval(void* tensor, bool ask, void* data) {
  auto& s = *static_cast<Scheduler*>(data);
  if (ask) {
    const uint32_t node = s.asked++;
    const bool users = s.user != nullptr && s.user(tensor, true, s.user_data);
    if (node >= s.node_count || s.nodes[node] != tensor) {
      s.out_of_order = true;
      return users;
    }
    s.splits[node] = users;
    const bool ours =
        s.mode == Scheduler::Mode::Splitting && s.op_ending[node] != kNothing && !s.stopped;
    return users || ours;
  }
  const uint32_t node = s.asked - 1;
  if (node < s.node_count && !s.out_of_order && s.range_count < s.node_room) {
    const uint32_t first = s.range_count == 0 ? 0 : s.ranges[s.range_count - 1].end_node + 1;
    s.ranges[s.range_count++] = {node, s.tick_count, now_ns()};
    if (s.mode == Scheduler::Mode::Splitting) {
      if (s.graph != nullptr && !s.learning) {
        if (s.op_ending[node] != kNothing) copy_known(s, s.op_ending[node]);
      } else {
        copy_new(s, first, node);
      }
    }
  }
  const bool users = node < s.node_count && s.splits[node];
  if (users && s.user != nullptr && !s.user(tensor, false, s.user_data)) {
    s.stopped = true;
    return false;
  }
  return true;
}

bool begin_step(Scheduler& s, void* graph, uint32_t& graph_numbers) {
  const Library& ggml = *s.ggml;
  const int count = ggml.ggml_graph_n_nodes(graph);
  if (s.failed || count <= 0 || !make_room(s, static_cast<uint32_t>(count))) return false;
  s.node_count = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < s.node_count; ++i)
    s.nodes[i] = static_cast<const char*>(ggml.ggml_graph_node(graph, static_cast<int>(i)));
  s.tick_count = s.asked = s.range_count = s.current_op = s.next_capture = 0;
  s.log.first_tick = s.log.first_node = 0;
  s.captured_count = s.lists_lost = 0;
  s.values_used = 0;
  s.half = s.out_of_order = s.stopped = s.learning = false;
  s.chained = s.user != nullptr;

  const bool may_split = s.chained || s.exact;  // for cb_eval
  Graph* by_splits = may_split ? nullptr : find_graph(s, true);
  s.graph = by_splits != nullptr ? by_splits : find_graph(s, false);
  s.on_devices = s.graph != nullptr ? s.graph->on_devices : find_devices(s);
  s.mode = Scheduler::Mode::Known;
  if (s.on_devices && !may_split) {
    s.mode = Scheduler::Mode::BySplits;
    if (by_splits == nullptr) {
      find_devices(s);
      s.op_count = expected_ops(ggml, s.nodes, s.node_count, s.reported, s.ops);
      if (s.op_count == 0) return false;
      s.graph = nullptr;  // the oldest one may go
      s.graph = add_graph(s, graph_numbers);
      if (s.graph == nullptr) return false;
      s.graph->by_splits = true;
    }
  } else if (s.graph == nullptr) {
    s.mode = Scheduler::Mode::Following;
    s.graph = find_structure(s);
  }
  if (s.graph == nullptr || s.graph->exact) {
    s.mode = Scheduler::Mode::Splitting;
    s.learning = s.graph == nullptr;
  }
  if (s.learning) {
    s.op_count = expected_ops(ggml, s.nodes, s.node_count, nullptr, s.ops);
  } else {
    s.op_count = s.graph->ops;
    memcpy(s.ops, s.graph->op_spans, s.op_count * sizeof(Span));
  }
  if (s.op_count == 0) return false;
  if (s.mode == Scheduler::Mode::BySplits && !begin_splits(s)) return false;
  if (s.chained || s.mode == Scheduler::Mode::Splitting) {
    memset(s.splits, 0, s.node_count);
    for (uint32_t i = 0; i < s.node_count; ++i) s.op_ending[i] = kNothing;
    for (uint32_t o = 0; o < s.op_count; ++o) s.op_ending[s.ops[o].first + s.ops[o].nodes - 1] = o;
  }
  for (uint32_t i = 0; i < s.backend_count; ++i) {
    Backend& backend = *s.backends[i];
    backend.active = &s;
    if (!backend.ours && backend.set_abort != nullptr) {
      backend.set_abort(backend.handle, on_tick, &backend);
      backend.ours = true;
    }
  }
  if (s.chained || s.mode == Scheduler::Mode::Splitting)
    ggml.ggml_backend_sched_set_eval_callback(s.handle, on_eval, &s);
  s.first_op = now_ns();
  return true;
}

void end_step(Scheduler& s, int64_t begin, bool failed, Ring& ring, uint32_t& graph_numbers,
              void (*lock)(), void (*unlock)()) {
  const Library& ggml = *s.ggml;
  const bool by_splits = s.mode == Scheduler::Mode::BySplits;
  const bool splits_fit = by_splits && !failed && end_splits(s);
  const int64_t end = now_ns();
  s.busy = false;
  for (uint32_t i = 0; i < s.backend_count; ++i) s.backends[i]->active = nullptr;
  const bool called = s.chained || s.mode == Scheduler::Mode::Splitting;
  if (called) ggml.ggml_backend_sched_set_eval_callback(s.handle, s.user, s.user_data);

  StepRecord step;
  step.scheduler = s.number;
  step.begin = begin;
  step.first_op = s.first_op;
  step.end = end;
  step.aborted = failed || s.stopped;
  step.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  for (uint32_t i = 0; i < s.backend_count; ++i)
    if (s.backends[i]->threads > step.threads) step.threads = s.backends[i]->threads;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  step.voluntary = static_cast<uint64_t>(usage.ru_nvcsw);
  step.involuntary = static_cast<uint64_t>(usage.ru_nivcsw);
  step.minor = static_cast<uint64_t>(usage.ru_minflt);
  step.major = static_cast<uint64_t>(usage.ru_majflt);

  bool captures = !s.learning;
  const uint32_t last_end = s.range_count == 0 ? kNothing : s.ranges[s.range_count - 1].end_node;
  if (last_end != s.node_count - 1 && s.range_count < s.node_room)
    s.ranges[s.range_count++] = {s.node_count - 1, s.tick_count, end};
  step.timing = s.mode != Scheduler::Mode::Splitting ? StepTiming::Fast
                : s.learning                         ? StepTiming::Learned
                                                     : StepTiming::Exact;
  bool needs_splits = false;
  bool valid = true;
  bool has_graph = true;
  if (by_splits) {
    valid = splits_fit && s.tick_count <= s.tick_room;
  } else if (step.aborted != 0) {
    // Without the rest of its graph: what ran is not what a graph has.
    has_graph = s.mode == Scheduler::Mode::Known && s.op_count == s.graph->ops;
    valid = has_graph && !called && s.ggml->ticks != Ticks::PerNode && s.tick_count <= s.op_count;
    if (valid) {
      s.op_count = s.tick_count;
      memcpy(s.times, s.ticks, s.op_count * sizeof *s.times);
    }
  } else if (s.out_of_order || s.tick_count > s.tick_room) {
    valid = false;
  } else if (!called && s.ggml->ticks != Ticks::PerNode) {
    valid = s.tick_count == s.op_count;
    if (valid) memcpy(s.times, s.ticks, s.op_count * sizeof *s.times);
    needs_splits = !valid;
  } else {
    valid = finish_ops(s, needs_splits);
  }

  // The graph of this step: known, with the same ops, or new.
  Graph* graph = s.graph;
  if (step.aborted == 0 && valid && !by_splits) {
    const bool is_known = s.mode != Scheduler::Mode::Following && graph != nullptr;
    if (is_known && !same_ops(*graph, s.ops, s.op_count)) {
      // The program's own splits separate pairs.
      graph = nullptr;
      for (Graph* other = s.graphs; other != nullptr && graph == nullptr; other = other->next)
        if (same_ops(*other, s.ops, s.op_count) && same_graph(ggml, *other, s.nodes, s.node_count))
          graph = other;
      captures = false;
    } else if (!is_known) {
      graph = nullptr;
    }
  }
  if (graph == nullptr || (s.mode == Scheduler::Mode::Following && step.aborted == 0)) {
    if (step.aborted != 0) return;  // nothing is known of it
    graph = add_graph(s, graph_numbers);
    if (graph == nullptr) return;
    graph->exact = needs_splits;
    if (s.mode == Scheduler::Mode::Following) set_stand_in(*graph, *s.graph);
  } else if (!has_graph) {
    return;
  }
  if (needs_splits) {
    graph->exact = true;
    if (s.mode == Scheduler::Mode::Following) s.follows = false;
  }
  // A structure that ran in another way is learned when it is used again.
  if (!valid && s.mode == Scheduler::Mode::Following) graph->exact = true;
  graph->last_used = ++s.use_count;

  step.graph = graph->number;
  step.mismatch = !valid && step.aborted == 0;
  step.times = valid && !by_splits ? s.op_count : 0;
  if (!valid || by_splits) step.timing = StepTiming::None;
  step.slots_lost = s.lists_lost;
  lock();
  if (ring.is_open()) {
    if (graph->record.size > 0) {
      const Part part = {graph->record.data, graph->record.size};
      if (ring.write(RecordKind::Graph, &part, 1)) graph->record.release();
    }
    write_step(s, *graph, step, step.times > 0, captures && graph->captures == s.graph->captures,
               ring);
  }
  unlock();
}

}  // namespace tt::attach
