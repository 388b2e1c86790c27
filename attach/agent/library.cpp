#include "attach/agent/library.h"

#include <dlfcn.h>
#include <stdio.h>

namespace tt::attach {

namespace {

constexpr int kF32 = 0, kF16 = 1, kQ8 = 8, kI32 = 26;  // enum ggml_type: in files, so constant
constexpr int kMaxOp = 64;                             // below the number of ops of every version
constexpr size_t kNone = SIZE_MAX;

// The only offset at which `holds(offset)`; kNone: there is none, or more than one.
template <class Holds>
size_t only_offset(size_t size, size_t width, size_t step, Holds holds) {
  size_t found = kNone;
  for (size_t at = 0; at + width <= size; at += step) {
    if (!holds(at)) continue;
    if (found != kNone) return kNone;
    found = at;
  }
  return found;
}

bool bytes_at(const void* tensor, size_t at, const void* bytes, size_t count) {
  return memcmp(static_cast<const char*>(tensor) + at, bytes, count) == 0;
}

size_t pointer_in(const void* tensor, size_t size, const void* pointer, size_t except = kNone) {
  return only_offset(size, sizeof pointer, sizeof pointer, [&](size_t at) {
    return at != except && bytes_at(tensor, at, &pointer, sizeof pointer);
  });
}

bool count_tick(void* count) {
  ++*static_cast<int*>(count);
  return false;
}

}  // namespace

const char* Library::open(void* real_compute) {
  compute = real_compute;
  Dl_info info;
  if (dladdr(real_compute, &info) == 0 || info.dli_fname == nullptr) return "its file";
  snprintf(path, sizeof path, "%s", info.dli_fname);
  void* handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return "its file";
  const char* missing = nullptr;
#define TT_FIND(result, function, arguments)                                  \
  function = reinterpret_cast<result(*) arguments>(dlsym(handle, #function)); \
  if (function == nullptr) missing = #function;
  TT_GGML_FUNCTIONS(TT_FIND)
#undef TT_FIND
  const auto ask = reinterpret_cast<const char* (*)()>(dlsym(handle, "ggml_version"));
  version = ask == nullptr ? "of unknown version" : ask();
  dlclose(handle);
  return missing;
}

SetAbort Library::abort_setter(void* backend) const {
  void* device = ggml_backend_get_device(backend);
  void* registry = device == nullptr ? nullptr : ggml_backend_dev_backend_reg(device);
  return registry == nullptr ? nullptr
                             : reinterpret_cast<SetAbort>(ggml_backend_reg_get_proc_address(
                                   registry, "ggml_backend_set_abort_callback"));
}

const char* Library::find_fields(void* backend) {
  void* context = ggml_init({1U << 20U, nullptr, true});
  if (context == nullptr) return "memory";
  void* allocated = nullptr;
  const char* missing = nullptr;
  const auto find = [&]() -> const char* {
    const int types[] = {kF32, kF16, kQ8, kI32};
    void* typed[4];
    for (int i = 0; i < 4; ++i) typed[i] = ggml_new_tensor_1d(context, types[i], 32);
    constexpr size_t kObject = 32;  // sizeof(ggml_object) is in front of each tensor
    const size_t distance =
        static_cast<size_t>(static_cast<char*>(typed[1]) - static_cast<char*>(typed[0]));
    if (distance < 200 + kObject || distance > 4096) return "size";
    const size_t size = at.size = distance - kObject;

    at.type = only_offset(size, 4, 4, [&](size_t offset) {
      for (int i = 0; i < 4; ++i)
        if (!bytes_at(typed[i], offset, &types[i], 4)) return false;
      return true;
    });
    if (at.type == kNone) return "type";

    const int64_t ne[] = {3, 5, 7, 11};
    const uint64_t nb[] = {4, 12, 60, 420};
    void* shaped = ggml_new_tensor_4d(context, kF32, ne[0], ne[1], ne[2], ne[3]);
    at.ne = only_offset(size, sizeof ne, 8,
                        [&](size_t o) { return bytes_at(shaped, o, ne, sizeof ne); });
    if (at.ne == kNone) return "ne";
    at.nb = only_offset(size, sizeof nb, 8,
                        [&](size_t o) { return bytes_at(shaped, o, nb, sizeof nb); });
    if (at.nb == kNone) return "nb";

    at.name = static_cast<size_t>(ggml_get_name(shaped) - static_cast<char*>(shaped));
    char long_name[300];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    ggml_set_name(shaped, long_name);
    at.name_bytes = strlen(ggml_get_name(shaped)) + 1;
    if (at.name + at.name_bytes > size) return "name";

    void* a = ggml_new_tensor_4d(context, kF32, 64, 96, 1, 1);
    void* b = ggml_new_tensor_4d(context, kF32, 64, 80, 1, 1);
    void* product = ggml_mul_mat(context, a, b);
    void* const sources[] = {a, b};
    at.src = only_offset(size, sizeof sources, 8,
                         [&](size_t o) { return bytes_at(product, o, sources, sizeof sources); });
    if (at.src == kNone) return "src";

    void* norm = ggml_rms_norm(context, a, 1.2345e-3F);
    const float eps = 1.2345e-3F;
    at.params = only_offset(size, 4, 4, [&](size_t o) { return bytes_at(norm, o, &eps, 4); });
    if (at.params == kNone || at.params + 64 > size) return "op_params";

    const size_t offset = 1284;
    void* view = ggml_view_1d(context, a, 100, offset);
    at.view_src = pointer_in(view, size, a, at.src);
    if (at.view_src == kNone) return "view_src";
    at.view_offs = only_offset(size, 8, 8, [&](size_t o) {
      return o != at.params && bytes_at(view, o, &offset, sizeof offset);
    });
    if (at.view_offs == kNone) return "view_offs";

    void* sum = ggml_add(context, a, a);
    void* const with_op[] = {a, product, norm, view, sum};
    at.op = only_offset(size, 4, 4, [&](size_t o) {
      int ops[5];
      for (int i = 0; i < 5; ++i) {
        ops[i] = read<int>(with_op[i], o);
        if (ops[i] < 0 || ops[i] >= kMaxOp) return false;
        for (int k = 0; k < i; ++k)
          if (ops[k] == ops[i]) return false;
      }
      for (int i = 0; i < 5; ++i)
        if (strcmp(ggml_op_name(ops[i]), ggml_op_desc(with_op[i])) != 0) return false;
      return true;
    });
    if (at.op == kNone) return "op";

    ggml_set_input(typed[0]);
    ggml_set_output(typed[3]);
    at.flags = only_offset(size, 4, 4, [&](size_t o) {
      // typed[1] and shaped have the same words, except where their types and shapes differ.
      const int input = read<int>(typed[0], o), output = read<int>(typed[3], o);
      return o != at.type && read<int>(typed[1], o) == 0 && read<int>(shaped, o) == 0 &&
             input == 1 && output == 2;
    });
    if (at.flags == kNone) return "flags";
    at.input_flag = 1;
    const int32_t before = flags(sum);
    ggml_build_forward_expand(ggml_new_graph(context), sum);
    at.compute_flag = flags(sum) & ~before;

    // In memory of its own.
    void* other = ggml_init({1U << 16U, nullptr, true});
    if (other == nullptr) return "memory";
    void* stored = ggml_new_tensor_1d(other, kF32, 32);
    allocated = ggml_backend_alloc_ctx_tensors(other, backend);
    at.buffer = allocated == nullptr ? kNone : pointer_in(stored, size, allocated);
    at.data = allocated == nullptr ? kNone : pointer_in(stored, size, ggml_get_data(stored));
    if (allocated != nullptr) ggml_backend_buffer_free(allocated);
    ggml_free(other);
    if (at.buffer == kNone) return "buffer";
    if (at.data == kNone) return "data";
    return nullptr;
  };
  missing = find();
  ggml_free(context);
  if (missing != nullptr) return missing;

  // Sources end where the next field begins.
  const size_t fields[] = {at.type,     at.ne,        at.nb,   at.op,     at.params, at.flags,
                           at.view_src, at.view_offs, at.data, at.buffer, at.name,   at.size};
  size_t end = at.size;
  size_t last = 0;
  for (const size_t field : fields) {
    if (field > at.src && field < end) end = field;
    if (field != at.size && field != at.name && field > last) last = field;
  }
  at.sources = (end - at.src) / sizeof(void*);
  if (at.sources > 32) at.sources = 32;
  at.first_bytes = at.name;
  at.second_begin = at.name + at.name_bytes;
  // Behind the name there usually is nothing that matters.
  at.second_bytes = last < at.name && at.src < at.name ? 0 : at.size - at.second_begin;
  return nullptr;
}

// A graph of VIEW, RMS_NORM, MUL, RESHAPE and ADD.
void Library::find_tick_rule(void* backend) {
  ticks = Ticks::Never;
  const SetAbort set_abort = abort_setter(backend);
  if (set_abort == nullptr) return;
  void* context = ggml_init({1U << 20U, nullptr, true});
  if (context == nullptr) return;
  void* input = ggml_new_tensor_1d(context, kF32, 32);
  void* weight = ggml_new_tensor_1d(context, kF32, 32);
  void* view = ggml_view_1d(context, input, 32, 0);
  void* norm = ggml_rms_norm(context, view, 1e-5F);
  void* product = ggml_mul(context, norm, weight);
  void* shaped = ggml_reshape_2d(context, product, 8, 4);
  void* sum = ggml_add(context, shaped, shaped);
  void* graph = ggml_new_graph(context);
  ggml_build_forward_expand(graph, sum);
  void* buffer = ggml_backend_alloc_ctx_tensors(context, backend);
  if (buffer != nullptr && ggml_graph_n_nodes(graph) == 5) {
    memset(ggml_get_data(input), 0, 32 * sizeof(float));
    memset(ggml_get_data(weight), 0, 32 * sizeof(float));
    int count = 0;
    set_abort(backend, count_tick, &count);
    ggml_backend_graph_compute(backend, graph);
    set_abort(backend, nullptr, nullptr);
    ticks = count == 5   ? Ticks::PerNode
            : count == 3 ? Ticks::PerOp
            : count == 2 ? Ticks::PerFusedOp
                         : Ticks::Never;
  }
  if (buffer != nullptr) ggml_backend_buffer_free(buffer);
  ggml_free(context);
}

}  // namespace tt::attach
