// A ggml of another version, as far as attach/agent uses it: the fields of its ggml_tensor are at
// other places (SHUFFLED), its numbers of ops are others, and it computes nothing but a checksum.
// OTHER_GGML_TICKS: how often it calls the abort callback (none, node, op, fused, twice).
// OTHER_GGML_FAULT: a field of ggml_tensor that has not the meaning that it has in ggml.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "tests/attach/other_ggml.h"

struct Buffer {
  bool weights;
  std::size_t size;
  char* memory;
};

namespace {

struct Tensor;
#ifdef SHUFFLED
constexpr std::size_t kSources = 12, kName = 128;
#else
constexpr std::size_t kSources = 10, kName = 64;
#endif
using Shape = std::array<std::int64_t, 4>;
using Sources = std::array<Tensor*, kSources>;
using Params = std::array<std::int32_t, 16>;
using Name = std::array<char, kName>;

struct Tensor {
#ifdef SHUFFLED
  void* extra = nullptr;
  Sources src{};
  Name name{};
  std::int32_t flags = 0;
  int op = 0;
  Shape nb{};
  void* data = nullptr;
  Params op_params{};
  std::size_t view_offs = 0;
  Tensor* view_src = nullptr;
  int type = 0;
  Buffer* buffer = nullptr;
  Shape ne{};
  std::size_t twin = 0;
#else
  int type = 0;
  Buffer* buffer = nullptr;
  Shape ne{}, nb{};
  int op = 0;
  Params op_params{};
  std::int32_t flags = 0;
  Sources src{};
  Tensor* view_src = nullptr;
  std::size_t view_offs = 0;
  void* data = nullptr;
  Name name{};
  void* extra = nullptr;
  std::size_t twin = 0;
#endif
};

bool fault(std::string_view field) {
  const char* set = std::getenv("OTHER_GGML_FAULT");
  return set != nullptr && field == set;
}
std::string_view ticks() {
  const char* set = std::getenv("OTHER_GGML_TICKS");
  return set == nullptr ? "fused" : set;
}

#ifdef SHUFFLED
enum Op : int { None, Add, GetRows, View, RmsNorm, MulMat, Reshape, Mul, kOps };
constexpr std::array<const char*, kOps> kOpNames = {"NONE",     "ADD",     "GET_ROWS", "VIEW",
                                                    "RMS_NORM", "MUL_MAT", "RESHAPE",  "MUL"};
#else
enum Op : int { None, Mul, Add, RmsNorm, MulMat, Reshape, View, GetRows, kOps };
constexpr std::array<const char*, kOps> kOpNames = {"NONE",    "MUL",     "ADD",  "RMS_NORM",
                                                    "MUL_MAT", "RESHAPE", "VIEW", "GET_ROWS"};
#endif

constexpr std::size_t kObject = 32;  // in front of each tensor, as ggml_object
constexpr std::size_t kMaxNodes = 32;

struct Context {
  char* memory;
  std::size_t size, used;
};
struct Graph {
  int count;
  std::array<Tensor*, kMaxNodes> nodes;
};
struct Backend {
  bool (*abort)(void*);
  void* data;
  int threads;
};
struct Scheduler {
  Backend* backend;
  bool (*eval)(void*, bool, void*);
  void* data;
};
char device, registry;

Tensor& tensor_of(void* tensor) { return *static_cast<Tensor*>(tensor); }
const Tensor& tensor_of(const void* tensor) { return *static_cast<const Tensor*>(tensor); }

void* take(void* context, std::size_t bytes) {
  auto& from = *static_cast<Context*>(context);
  char* at = from.memory + from.used;
  from.used += (bytes + 15) / 16 * 16;
  if (from.used > from.size) std::abort();
  return at;
}

// A view of a view is one of its owner.
Tensor* root_of(void* tensor) {
  Tensor* owner = tensor_of(tensor).view_src;
  return owner != nullptr ? owner : static_cast<Tensor*>(tensor);
}

int type_of(const Tensor& tensor) { return fault("type") ? tensor.type ^ 7 : tensor.type; }

Tensor* make(void* context, int type, const Shape& ne) {
  const std::size_t padding = fault("size") ? 8192 : 0;
  auto* tensor =
      new (static_cast<char*>(take(context, kObject + sizeof(Tensor) + padding)) + kObject)
          Tensor{};
  tensor->type = fault("type") ? type ^ 7 : type;
  tensor->ne = ne;
  tensor->nb = {type == 1 ? 2 : 4, 0, 0, 0};
  for (std::size_t i = 1; i < 4; ++i) tensor->nb[i] = tensor->nb[i - 1] * ne[i - 1];
  if (fault("ne")) tensor->ne[3] += 1;
  if (fault("nb")) tensor->nb[3] += 1;
  return tensor;
}

Tensor* make_node(void* context, Op op, const Shape& ne, void* a, void* b) {
  Tensor* node = make(context, 0, ne);
  node->op = fault("op") ? op + 100 : op;
  node->src[0] = static_cast<Tensor*>(a);
  node->src[1] = static_cast<Tensor*>(b);
  if (fault("src")) node->src = {};
  return node;
}

Op op_of(const Tensor& tensor) { return static_cast<Op>(tensor.op % 100); }
bool works(const Tensor& node) { return op_of(node) != View && op_of(node) != Reshape; }

bool tick(const Backend& backend) {
  return backend.abort != nullptr && backend.abort(backend.data);
}

// Nodes `first` to `last`, in one piece. False: the callback stopped it.
bool compute(const Graph& graph, std::size_t first, std::size_t last, const Backend& backend) {
  for (std::size_t i = first; i <= last; ++i) {
    const Tensor& node = *graph.nodes[i];
    if (ticks() == "node" || ticks() == "twice") {
      if (tick(backend)) return false;
    }
    if (ticks() == "twice" && tick(backend)) return false;
    if (!works(node)) continue;
    const bool fused = ticks() == "fused" && op_of(node) == RmsNorm && i < last &&
                       op_of(*graph.nodes[i + 1]) == Mul;
    if ((ticks() == "op" || ticks() == "fused") && !fused && tick(backend)) return false;
  }
  return true;
}

void add_nodes(Graph& graph, Tensor* tensor) {
  if (tensor == nullptr || op_of(*tensor) == None) return;
  for (int i = 0; i < graph.count; ++i)
    if (graph.nodes[static_cast<std::size_t>(i)] == tensor) return;
  for (Tensor* source : tensor->src) add_nodes(graph, source);
  if (static_cast<std::size_t>(graph.count) == kMaxNodes) std::abort();
  graph.nodes[static_cast<std::size_t>(graph.count++)] = tensor;
#ifdef SHUFFLED
  tensor->flags |= 16;  // as newer versions do
#endif
}

}  // namespace

// ---------------------------------------------------------------- tensors

void* ggml_init(InitParams params) {
  return new Context{static_cast<char*>(std::calloc(1, params.mem_size)), params.mem_size, 0};
}
void ggml_free(void* context) {
  std::free(static_cast<Context*>(context)->memory);
  delete static_cast<Context*>(context);
}
void* ggml_new_tensor_1d(void* context, int type, std::int64_t n) {
  return make(context, type, {n, 1, 1, 1});
}
void* ggml_new_tensor_4d(void* context, int type, std::int64_t a, std::int64_t b, std::int64_t c,
                         std::int64_t d) {
  return make(context, type, {a, b, c, d});
}
void* ggml_view_1d(void* context, void* of, std::int64_t n, std::size_t offset) {
  Tensor* view = make_node(context, View, {n, 1, 1, 1}, of, nullptr);
  view->view_src = fault("view_src") ? nullptr : root_of(of);
  view->view_offs = offset;
  if (fault("view_offs")) view->twin = offset;
  return view;
}
void* ggml_reshape_2d(void* context, void* of, std::int64_t a, std::int64_t b) {
  Tensor* shaped = make_node(context, Reshape, {a, b, 1, 1}, of, nullptr);
  shaped->view_src = root_of(of);
  return shaped;
}
void* ggml_mul_mat(void* context, void* a, void* b) {
  return make_node(context, MulMat, {tensor_of(a).ne[1], tensor_of(b).ne[1], 1, 1}, a, b);
}
void* ggml_rms_norm(void* context, void* of, float eps) {
  Tensor* norm = make_node(context, RmsNorm, tensor_of(of).ne, of, nullptr);
  std::memcpy(norm->op_params.data(), &eps, sizeof eps);
  if (fault("op_params")) std::memcpy(&norm->twin, &eps, sizeof eps);
  return norm;
}
void* ggml_mul(void* context, void* a, void* b) {
  return make_node(context, Mul, tensor_of(a).ne, a, b);
}
void* ggml_add(void* context, void* a, void* b) {
  return make_node(context, Add, tensor_of(a).ne, a, b);
}
void* ggml_get_rows(void* context, void* a, void* b) {
  return make_node(context, GetRows, {tensor_of(a).ne[0], tensor_of(b).ne[0], 1, 1}, a, b);
}
const char* ggml_get_name(const void* tensor) {
  return tensor_of(tensor).name.data() + (fault("name") ? sizeof(Tensor) : 0);
}
void* ggml_set_name(void* tensor, const char* name) {
  Name& to = tensor_of(tensor).name;
  std::strncpy(to.data(), name, kName - 1);
  return tensor;
}
void ggml_set_input(void* tensor) { tensor_of(tensor).flags |= fault("flags") ? 4 : 1; }
void ggml_set_output(void* tensor) { tensor_of(tensor).flags |= 2; }
void* ggml_get_data(const void* tensor) {
  void* data = tensor_of(tensor).data;
  return fault("data") && data != nullptr ? static_cast<char*>(data) + 8 : data;
}
const char* ggml_op_name(int op) {
  return op < 0 || op >= kOps ? "?" : kOpNames[static_cast<std::size_t>(op)];
}
const char* ggml_op_desc(const void* tensor) { return ggml_op_name(op_of(tensor_of(tensor))); }
const char* ggml_type_name(int type) {
  return type == 0 ? "f32" : type == 1 ? "f16" : type == 26 ? "i32" : "?";
}
std::int64_t ggml_blck_size(int) { return 1; }
std::size_t ggml_type_size(int type) { return type == 1 ? 2 : 4; }
std::size_t ggml_nbytes(const void* tensor) {
  std::size_t bytes = ggml_type_size(type_of(tensor_of(tensor)));
  for (const std::int64_t n : tensor_of(tensor).ne) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

// ---------------------------------------------------------------- graphs

void* ggml_new_graph(void* context) { return new (take(context, sizeof(Graph))) Graph{}; }
void ggml_build_forward_expand(void* graph, void* tensor) {
  add_nodes(*static_cast<Graph*>(graph), static_cast<Tensor*>(tensor));
}
int ggml_graph_n_nodes(void* graph) { return static_cast<Graph*>(graph)->count; }
void* ggml_graph_node(void* graph, int i) {
  return static_cast<Graph*>(graph)->nodes[static_cast<std::size_t>(i)];
}

// ---------------------------------------------------------------- memory

void* ggml_backend_alloc_ctx_tensors(void* context, void*) {
  auto& of = *static_cast<Context*>(context);
  // A graph may be behind the tensors.
  static_assert(sizeof(Graph) < sizeof(Tensor));
  constexpr std::size_t kEach = 4096;  // bytes of data per tensor
  const std::size_t each = (kObject + sizeof(Tensor) + (fault("size") ? 8192 : 0) + 15) / 16 * 16;
  const std::size_t count = of.used / each;
  auto* buffer = new Buffer{false, (count + 1) * kEach, nullptr};
  buffer->memory = static_cast<char*>(std::calloc(1, buffer->size));
  for (std::size_t i = 0; i < count; ++i) {
    Tensor& tensor = tensor_of(static_cast<void*>(of.memory + i * each + kObject));
    if (ggml_nbytes(&tensor) > kEach) std::abort();
    tensor.buffer = fault("buffer") ? nullptr : buffer;
    tensor.data = tensor.view_src != nullptr
                      ? static_cast<char*>(tensor.view_src->data) + tensor.view_offs
                      : buffer->memory + i * kEach;
  }
  return buffer;
}
void ggml_backend_buffer_free(void* buffer) {
  std::free(static_cast<Buffer*>(buffer)->memory);
  delete static_cast<Buffer*>(buffer);
}
void ggml_backend_buffer_set_usage(void* buffer, int usage) {
  static_cast<Buffer*>(buffer)->weights = usage == 1;
}
const char* ggml_backend_buffer_name(void*) { return "CPU"; }
bool ggml_backend_buffer_is_host(void*) { return true; }
int ggml_backend_buffer_get_usage(void* buffer) {
  return static_cast<Buffer*>(buffer)->weights ? 1 : 2;
}
std::size_t ggml_backend_buffer_get_size(void* buffer) {
  return static_cast<Buffer*>(buffer)->size;
}
void* ggml_backend_buffer_get_type(void*) { return &device; }
void* ggml_backend_buft_get_device(void*) { return &device; }
const char* ggml_backend_dev_name(void*) { return "CPU"; }
int ggml_backend_dev_type(void*) { return 0; }
void* ggml_backend_dev_backend_reg(void*) { return &registry; }
void ggml_backend_tensor_get(const void* tensor, void* to, std::size_t offset, std::size_t bytes) {
  std::memcpy(to, static_cast<const char*>(tensor_of(tensor).data) + offset, bytes);
}

// ---------------------------------------------------------------- backends

void* other_ggml_backend() { return new Backend{nullptr, nullptr, 1}; }
void* other_ggml_scheduler(void* backend) {
  return new Scheduler{static_cast<Backend*>(backend), nullptr, nullptr};
}
void* ggml_backend_get_device(void*) { return &device; }
const char* ggml_backend_name(void*) { return "CPU"; }
void ggml_backend_synchronize(void*) {}
int ggml_backend_sched_get_n_copies(void*) { return 1; }
void* ggml_backend_sched_get_tensor_backend(void* scheduler, void*) {
  return static_cast<Scheduler*>(scheduler)->backend;
}
int ggml_backend_sched_get_n_backends(void*) { return 1; }
void* ggml_backend_sched_get_backend(void* scheduler, int) {
  return static_cast<Scheduler*>(scheduler)->backend;
}
static void set_abort(void* backend, bool (*callback)(void*), void* data) {
  auto& of = *static_cast<Backend*>(backend);
  of.abort = callback;
  of.data = data;
}
static void set_threads(void* backend, int threads) {
  static_cast<Backend*>(backend)->threads = threads;
}
void* ggml_backend_reg_get_proc_address(void*, const char* name) {
  const std::string_view wanted = name;
  if (wanted == "ggml_backend_set_abort_callback" && ticks() != "none")
    return reinterpret_cast<void*>(set_abort);
  if (wanted == "ggml_backend_set_n_threads") return reinterpret_cast<void*>(set_threads);
  return nullptr;
}
int ggml_backend_graph_compute(void* backend, void* graph) {
  const auto& all = *static_cast<Graph*>(graph);
  const auto last = static_cast<std::size_t>(all.count) - 1;
  return compute(all, 0, last, *static_cast<Backend*>(backend)) ? 0 : 1;
}
void ggml_backend_sched_set_eval_callback(void* scheduler, bool (*callback)(void*, bool, void*),
                                          void* data) {
  static_cast<Scheduler*>(scheduler)->eval = callback;
  static_cast<Scheduler*>(scheduler)->data = data;
}
// As ggml's: with a callback, in pieces that end with a node that it asks for.
int ggml_backend_sched_graph_compute_async(void* scheduler, void* graph) {
  auto& s = *static_cast<Scheduler*>(scheduler);
  const auto& all = *static_cast<Graph*>(graph);
  const auto last = static_cast<std::size_t>(all.count) - 1;
  if (s.eval == nullptr) return compute(all, 0, last, *s.backend) ? 0 : 1;
  for (std::size_t first = 0; first <= last;) {
    std::size_t end = first;
    bool wanted = s.eval(all.nodes[end], true, s.data);
    while (!wanted && end < last) wanted = s.eval(all.nodes[++end], true, s.data);
    if (!compute(all, first, end, *s.backend)) return 1;
    if (wanted && !s.eval(all.nodes[end], false, s.data)) break;
    first = end + 1;
  }
  return 0;
}
