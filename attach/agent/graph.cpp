#include "attach/agent/graph.h"

#include <stdlib.h>

#include "tracer/probe/op_rules.h"

namespace tt::attach {

namespace {

constexpr uint32_t kNothing = UINT32_MAX;

// Numbers tensors in the order of their first use.
struct Numbers {
  const Library& ggml;
  const char** keys = nullptr;  // open addressing
  uint32_t* values = nullptr;
  size_t slots = 0;
  const char** order = nullptr;  // the tensors
  uint32_t count = 0, room = 0;
  bool failed = false;

  explicit Numbers(const Library& library, size_t nodes) : ggml(library) {
    room = static_cast<uint32_t>(nodes * 4 + 64);
    slots = 1;
    while (slots < room * 2U) slots *= 2;
    keys = static_cast<const char**>(calloc(slots, sizeof *keys));
    values = static_cast<uint32_t*>(malloc(slots * sizeof *values));
    order = static_cast<const char**>(malloc(room * sizeof *order));
    failed = keys == nullptr || values == nullptr || order == nullptr;
  }
  ~Numbers() {
    free(keys);
    free(values);
    free(order);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  size_t slot_of(const char* tensor) const {
    size_t at = (reinterpret_cast<uintptr_t>(tensor) >> 4U) * 0x9E3779B97F4A7C15U >> 20U;
    for (at &= slots - 1; keys[at] != nullptr && keys[at] != tensor; at = (at + 1) & (slots - 1)) {
    }
    return at;
  }
  uint32_t find(const char* tensor) const {
    const size_t at = slot_of(tensor);
    return keys[at] == nullptr ? kNothing : values[at];
  }
  uint32_t add(const char* tensor) {
    if (tensor == nullptr || failed) return kNothing;
    if (const uint32_t known = find(tensor); known != kNothing) return known;
    add(ggml.view_src(tensor));
    if (count == room) {
      failed = true;
      return kNothing;
    }
    const size_t at = slot_of(tensor);
    keys[at] = tensor;
    order[count] = tensor;
    return values[at] = count++;
  }
};

void copy_image(const Library& ggml, const char* tensor, char* to) {
  memcpy(to, tensor, ggml.at.first_bytes);
  if (ggml.at.second_bytes > 0)
    memcpy(to + ggml.at.first_bytes, tensor + ggml.at.second_begin, ggml.at.second_bytes);
}

bool same_image(const Library& ggml, const char* tensor, const char* image) {
  return memcmp(tensor, image, ggml.at.first_bytes) == 0 &&
         (ggml.at.second_bytes == 0 ||
          memcmp(tensor + ggml.at.second_begin, image + ggml.at.first_bytes,
                 ggml.at.second_bytes) == 0);
}

template <class T>
T image_field(const Library& ggml, const char* image, size_t offset) {
  const size_t at =
      offset < ggml.at.first_bytes ? offset : offset - ggml.at.second_begin + ggml.at.first_bytes;
  T value;
  memcpy(&value, image + at, sizeof value);
  return value;
}

void add_buffer(const Library& ggml, void* buffer, Bytes& record) {
  void* device = ggml.ggml_backend_buft_get_device(ggml.ggml_backend_buffer_get_type(buffer));
  const char* name = ggml.ggml_backend_buffer_name(buffer);
  BufferRecord raw;
  raw.size = ggml.ggml_backend_buffer_get_size(buffer);
  const int usage = ggml.ggml_backend_buffer_get_usage(buffer);
  raw.usage = usage < 0 || usage > 2 ? 0 : static_cast<uint32_t>(usage);
  raw.host = ggml.ggml_backend_buffer_is_host(buffer) ? 1 : 0;
  constexpr int kCpu = 0;  // GGML_BACKEND_DEVICE_TYPE_CPU
  raw.on_device = raw.host == 0 && device != nullptr && ggml.ggml_backend_dev_type(device) != kCpu;
  record.add(raw);
  record.add_text(name);
  record.add_text(raw.host != 0       ? "CPU"
                  : device == nullptr ? name
                                      : ggml.ggml_backend_dev_name(device));
}

void add_tensor(const Library& ggml, const char* tensor, const Numbers& numbers, bool is_node,
                uint32_t buffer, Bytes& record) {
  TensorRecord raw;
  ggml.shape(tensor, raw.ne, raw.nb);
  memcpy(raw.params, tensor + ggml.at.params, sizeof raw.params);
  raw.view_offset = Library::read<uint64_t>(tensor, ggml.at.view_offs);
  raw.address = reinterpret_cast<uint64_t>(ggml.data(tensor));
  raw.bytes = ggml.ggml_nbytes(tensor);
  const char* owner = ggml.view_src(tensor);
  raw.view_of = owner == nullptr ? kNothing : numbers.find(owner);
  raw.buffer = buffer;
  const int type = ggml.type(tensor);
  raw.block_elements = static_cast<uint32_t>(ggml.ggml_blck_size(type));
  raw.block_bytes = static_cast<uint32_t>(ggml.ggml_type_size(type));
  raw.input = (ggml.flags(tensor) & ggml.at.input_flag) != 0;
  raw.computed = is_node && does_work(ggml, tensor);
  size_t sources = is_node ? ggml.at.sources : 0;
  while (sources > 0 && ggml.src(tensor, sources - 1) == nullptr) --sources;
  raw.sources = static_cast<uint32_t>(sources);
  record.add(raw);
  for (size_t i = 0; i < sources; ++i) {
    const char* source = ggml.src(tensor, i);
    record.add(source == nullptr ? kNothing : numbers.find(source));
  }
  char name[512];
  const size_t bytes = ggml.at.name_bytes < sizeof name ? ggml.at.name_bytes : sizeof name;
  memcpy(name, tensor + ggml.at.name, bytes);
  name[bytes - 1] = '\0';
  record.add_text(name);
  record.add_text(ggml.ggml_op_name(ggml.op(tensor)));
  record.add_text(ggml.ggml_op_desc(tensor));
  record.add_text(ggml.ggml_type_name(type));
}

}  // namespace

bool does_work(const Library& ggml, const char* node) {
  return op_rule(ggml.ggml_op_name(ggml.op(node))).works &&
         (ggml.at.compute_flag == 0 || (ggml.flags(node) & ggml.at.compute_flag) != 0);
}

int list_source(const Library& ggml, const char* node) {
  const OpRule rule = op_rule(ggml.ggml_op_name(ggml.op(node)));
  if (rule.slot < 0 || static_cast<size_t>(rule.slot) >= ggml.at.sources) return -1;
  const char* source = ggml.src(node, static_cast<size_t>(rule.slot));
  if (source == nullptr) return -1;
  if (rule.routing) {
    int64_t factor[4], shape[4];
    uint64_t strides[4];
    ggml.shape(source, factor, strides);
    ggml.shape(node, shape, strides);
    if (ggml.type(source) != 0 || !is_routing_shape(factor, shape)) return -1;
  }
  return rule.slot;
}

bool is_on_host(const Library& ggml, const char* tensor) {
  void* buffer = ggml.buffer(tensor);
  return buffer == nullptr || ggml.ggml_backend_buffer_is_host(buffer);
}

bool same_graph(const Library& ggml, const Graph& graph, const char* const* nodes, uint32_t count) {
  if (graph.nodes != count || memcmp(graph.tensors, nodes, count * sizeof *nodes) != 0)
    return false;
  const size_t bytes = ggml.at.image_bytes();
  for (uint32_t i = 0; i < count + graph.leaves; ++i)
    if (!same_image(ggml, graph.tensors[i], graph.images + i * bytes)) return false;
  return true;
}

bool same_structure(const Library& ggml, const Graph& graph, const char* const* nodes,
                    uint32_t count) {
  if (graph.nodes != count) return false;
  const size_t bytes = ggml.at.image_bytes();
  for (uint32_t i = 0; i < count; ++i) {
    const char* image = graph.images + i * bytes;
    if (image_field<int>(ggml, image, ggml.at.op) != ggml.op(nodes[i]) ||
        image_field<int>(ggml, image, ggml.at.type) != ggml.type(nodes[i]) ||
        image_field<int32_t>(ggml, image, ggml.at.flags) != ggml.flags(nodes[i]))
      return false;
    for (size_t s = 0; s < ggml.at.sources; ++s) {
      const char* source = ggml.src(nodes[i], s);
      const int32_t from = graph.sources[i * ggml.at.sources + s];
      if (from == kAbsent ? source != nullptr
          : from == kLeaf ? source == nullptr || ggml.op(source) != 0
                          : source != nodes[from])
        return false;
    }
    if ((list_source(ggml, nodes[i]) >= 0) != graph.lists[i]) return false;
  }
  return true;
}

uint32_t expected_ops(const Library& ggml, const char* const* nodes, uint32_t count,
                      const bool* reported, Span* spans) {
  uint32_t ops = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!does_work(ggml, nodes[i])) continue;
    const bool fused =
        ggml.ticks == Ticks::PerFusedOp && ops > 0 &&
        (reported == nullptr || reported[i - 1] == reported[i]) && spans[ops - 1].first + 1 == i &&
        spans[ops - 1].nodes == 1 && strcmp(ggml.ggml_op_name(ggml.op(nodes[i])), "MUL") == 0 &&
        strcmp(ggml.ggml_op_name(ggml.op(nodes[i - 1])), "RMS_NORM") == 0 &&
        (ggml.src(nodes[i], 0) == nodes[i - 1] || ggml.src(nodes[i], 1) == nodes[i - 1]);
    if (fused) {
      spans[ops - 1].nodes = 2;
    } else {
      spans[ops++] = {i, 1};
    }
  }
  return ops;
}

Graph* make_graph(const Library& ggml, const SchedulerFacts& scheduler, uint32_t number,
                  const char* const* nodes, uint32_t count, const Span* ops, uint32_t op_count) {
  Numbers numbers(ggml, count);
  if (numbers.failed) return nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    size_t sources = ggml.at.sources;
    while (sources > 0 && ggml.src(nodes[i], sources - 1) == nullptr) --sources;
    for (size_t s = 0; s < sources; ++s) numbers.add(ggml.src(nodes[i], s));
    numbers.add(nodes[i]);
  }
  if (numbers.failed) return nullptr;
  auto* graph = static_cast<Graph*>(calloc(1, sizeof(Graph)));
  auto* node_of = static_cast<int32_t*>(malloc(numbers.count * sizeof(int32_t)));
  auto** buffers = static_cast<void**>(malloc((numbers.count + 1) * sizeof(void*)));
  auto* buffer_of = static_cast<uint32_t*>(malloc(numbers.count * sizeof(uint32_t)));
  const auto give_up = [&]() -> Graph* {
    free(node_of);
    free(buffers);
    free(buffer_of);
    if (graph != nullptr) free_graph(graph);
    return nullptr;
  };
  if (graph == nullptr || node_of == nullptr || buffers == nullptr || buffer_of == nullptr)
    return give_up();
  graph->number = number;
  graph->nodes = count;
  graph->leaves = numbers.count - count;
  graph->ops = op_count;
  graph->tensors = static_cast<const char**>(malloc(numbers.count * sizeof(char*)));
  graph->images = static_cast<char*>(malloc(numbers.count * ggml.at.image_bytes()));
  graph->sources = static_cast<int32_t*>(malloc(count * ggml.at.sources * sizeof(int32_t)));
  graph->lists = static_cast<bool*>(malloc(count));
  graph->op_spans = static_cast<Span*>(malloc((op_count + 1) * sizeof(Span)));
  graph->op_ending = static_cast<uint32_t*>(malloc(count * sizeof(uint32_t)));
  graph->capture_list = static_cast<Capture*>(malloc(count * sizeof(Capture)));
  graph->indices = static_cast<uint32_t*>(malloc(numbers.count * sizeof(uint32_t)));
  if (graph->tensors == nullptr || graph->images == nullptr || graph->sources == nullptr ||
      graph->lists == nullptr || graph->op_spans == nullptr || graph->op_ending == nullptr ||
      graph->capture_list == nullptr || graph->indices == nullptr)
    return give_up();

  // Nodes first, then leaves. (A source that is a later node does not exist.)
  for (uint32_t i = 0; i < numbers.count; ++i) node_of[i] = kLeaf;
  uint32_t tensors = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = numbers.find(nodes[i]);
    node_of[index] = static_cast<int32_t>(i);
    graph->indices[tensors] = index;
    graph->tensors[tensors++] = nodes[i];
  }
  for (uint32_t i = 0; i < numbers.count && tensors < numbers.count; ++i) {
    if (node_of[i] != kLeaf) continue;
    graph->indices[tensors] = i;
    graph->tensors[tensors++] = numbers.order[i];
  }
  graph->leaves = tensors - count;
  for (uint32_t i = 0; i < tensors; ++i)
    copy_image(ggml, graph->tensors[i], graph->images + i * ggml.at.image_bytes());
  for (uint32_t i = 0; i < count; ++i) {
    for (size_t s = 0; s < ggml.at.sources; ++s) {
      const char* source = ggml.src(nodes[i], s);
      graph->sources[i * ggml.at.sources + s] =
          source == nullptr ? kAbsent : node_of[numbers.find(source)];
    }
    graph->lists[i] = list_source(ggml, nodes[i]) >= 0;
    graph->op_ending[i] = kNothing;
  }
  for (uint32_t o = 0; o < op_count; ++o) {
    graph->op_spans[o] = ops[o];
    graph->op_ending[ops[o].first + ops[o].nodes - 1] = o;
    for (uint32_t n = ops[o].first; n < ops[o].first + ops[o].nodes; ++n) {
      if (!graph->lists[n]) continue;
      const auto source = static_cast<uint32_t>(list_source(ggml, nodes[n]));
      const char* tensor = ggml.src(nodes[n], source);
      bool known = false;
      for (uint32_t c = 0; c < graph->captures && !known; ++c) {
        const Capture& other = graph->capture_list[c];
        known = ggml.src(nodes[other.node], other.source) == tensor;
      }
      if (known) continue;
      const bool cells = strcmp(ggml.ggml_op_name(ggml.op(nodes[n])), "FLASH_ATTN_EXT") == 0;
      graph->capture_list[graph->captures++] = {o,        n,    source, numbers.find(tensor),
                                                kNothing, cells};
    }
  }

  // The record.
  uint32_t buffer_count = 0;
  for (uint32_t i = 0; i < numbers.count; ++i) {
    void* buffer = ggml.buffer(numbers.order[i]);
    buffer_of[i] = kNothing;
    if (buffer == nullptr) continue;
    uint32_t b = 0;
    while (b < buffer_count && buffers[b] != buffer) ++b;
    if (b == buffer_count) buffers[buffer_count++] = buffer;
    buffer_of[i] = b;
  }
  Bytes& record = graph->record;
  GraphRecord head;
  head.scheduler = scheduler.number;
  head.graph = number;
  head.library = ggml.number;
  head.buffers = buffer_count;
  head.tensors = numbers.count;
  head.nodes = count;
  head.ops = op_count;
  head.backends = scheduler.backend_count;
  record.add(head);
  for (uint32_t b = 0; b < buffer_count; ++b) add_buffer(ggml, buffers[b], record);
  for (uint32_t i = 0; i < numbers.count; ++i)
    add_tensor(ggml, numbers.order[i], numbers, node_of[i] != kLeaf, buffer_of[i], record);
  record.add(graph->indices, count * sizeof(uint32_t));
  record.add(graph->op_spans, op_count * sizeof(Span));
  for (uint32_t b = 0; b < scheduler.backend_count; ++b) record.add_text(scheduler.backends[b]);
  if (record.failed) return give_up();
  free(node_of);
  free(buffers);
  free(buffer_of);
  return graph;
}

void free_graph(Graph* graph) {
  free(graph->tensors);
  free(graph->images);
  free(graph->sources);
  free(graph->lists);
  free(graph->op_spans);
  free(graph->op_ending);
  free(graph->capture_list);
  free(graph->indices);
  graph->record.release();
  free(graph);
}

void set_stand_in(Graph& graph, const Graph& base) {
  if (graph.captures != base.captures) return;
  const bool in_ring = base.record.size == 0;
  graph.stand_in = in_ring ? base.number : base.stand_in;
  for (uint32_t i = 0; i < graph.captures; ++i) {
    const Capture& of_base = base.capture_list[i];
    graph.capture_list[i].stand_in_tensor = in_ring ? of_base.tensor : of_base.stand_in_tensor;
  }
}

uint32_t record_index(const Graph& graph, const char* tensor) {
  for (uint32_t i = 0; i < graph.nodes + graph.leaves; ++i)
    if (graph.tensors[i] == tensor) return graph.indices[i];
  return kNothing;
}

bool is_copy_of(const Library& ggml, const char* copy, const char* tensor) {
  const char* name = strchr(ggml.ggml_get_name(copy), '#');
  const char* original = ggml.ggml_get_name(tensor);
  const size_t length = strlen(original);
  return name != nullptr && length > 0 && strncmp(name + 1, original, length) == 0 &&
         name[1 + length] == '#';
}

uint32_t copy_index(const Library& ggml, const Graph& graph, const char* tensor) {
  for (uint32_t i = graph.nodes; i < graph.nodes + graph.leaves; ++i)
    if (is_copy_of(ggml, graph.tensors[i], tensor)) return graph.indices[i];
  return kNothing;
}

}  // namespace tt::attach
