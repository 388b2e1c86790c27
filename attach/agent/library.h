// One copy of ggml in the traced program: its functions, and where the fields of its ggml_tensor
// are. No header of ggml is used: fields are found by making tensors with the program's own
// functions and looking for their known values.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace tt::attach {

struct InitParams {  // struct ggml_init_params
  size_t mem_size;
  void* mem_buffer;
  bool no_alloc;
};

using AbortCallback = bool (*)(void* data);
using EvalCallback = bool (*)(void* tensor, bool ask, void* data);
using SetAbort = void (*)(void* backend, AbortCallback callback, void* data);
using SetThreads = void (*)(void* backend, int threads);

// result, name, arguments. Handles are void*, enums int.
#define TT_GGML_FUNCTIONS(X)                                                     \
  X(void*, ggml_init, (InitParams))                                              \
  X(void, ggml_free, (void*))                                                    \
  X(void*, ggml_new_tensor_1d, (void*, int, int64_t))                            \
  X(void*, ggml_new_tensor_4d, (void*, int, int64_t, int64_t, int64_t, int64_t)) \
  X(void*, ggml_view_1d, (void*, void*, int64_t, size_t))                        \
  X(void*, ggml_reshape_2d, (void*, void*, int64_t, int64_t))                    \
  X(void*, ggml_mul_mat, (void*, void*, void*))                                  \
  X(void*, ggml_rms_norm, (void*, void*, float))                                 \
  X(void*, ggml_mul, (void*, void*, void*))                                      \
  X(void*, ggml_add, (void*, void*, void*))                                      \
  X(void*, ggml_new_graph, (void*))                                              \
  X(void, ggml_build_forward_expand, (void*, void*))                             \
  X(int, ggml_graph_n_nodes, (void*))                                            \
  X(void*, ggml_graph_node, (void*, int))                                        \
  X(const char*, ggml_get_name, (const void*))                                   \
  X(void*, ggml_set_name, (void*, const char*))                                  \
  X(void, ggml_set_input, (void*))                                               \
  X(void, ggml_set_output, (void*))                                              \
  X(void*, ggml_get_data, (const void*))                                         \
  X(const char*, ggml_op_name, (int))                                            \
  X(const char*, ggml_op_desc, (const void*))                                    \
  X(const char*, ggml_type_name, (int))                                          \
  X(int64_t, ggml_blck_size, (int))                                              \
  X(size_t, ggml_type_size, (int))                                               \
  X(size_t, ggml_nbytes, (const void*))                                          \
  X(void*, ggml_backend_alloc_ctx_tensors, (void*, void*))                       \
  X(void, ggml_backend_buffer_free, (void*))                                     \
  X(const char*, ggml_backend_buffer_name, (void*))                              \
  X(bool, ggml_backend_buffer_is_host, (void*))                                  \
  X(int, ggml_backend_buffer_get_usage, (void*))                                 \
  X(size_t, ggml_backend_buffer_get_size, (void*))                               \
  X(void*, ggml_backend_buffer_get_type, (void*))                                \
  X(void*, ggml_backend_buft_get_device, (void*))                                \
  X(const char*, ggml_backend_dev_name, (void*))                                 \
  X(int, ggml_backend_dev_type, (void*))                                         \
  X(void*, ggml_backend_dev_backend_reg, (void*))                                \
  X(void*, ggml_backend_get_device, (void*))                                     \
  X(void, ggml_backend_tensor_get, (const void*, void*, size_t, size_t))         \
  X(int, ggml_backend_graph_compute, (void*, void*))                             \
  X(const char*, ggml_backend_name, (void*))                                     \
  X(void, ggml_backend_synchronize, (void*))                                     \
  X(int, ggml_backend_sched_get_n_copies, (void*))                               \
  X(void*, ggml_backend_sched_get_tensor_backend, (void*, void*))                \
  X(int, ggml_backend_sched_get_n_backends, (void*))                             \
  X(void*, ggml_backend_sched_get_backend, (void*, int))                         \
  X(void*, ggml_backend_reg_get_proc_address, (void*, const char*))              \
  X(void, ggml_backend_sched_set_eval_callback, (void*, EvalCallback, void*))

// Offsets of the fields of ggml_tensor, in bytes.
struct TensorLayout {
  size_t size, type, ne, nb, op, params, flags, src, view_src, view_offs, data, buffer, name;
  size_t name_bytes, sources;
  int32_t input_flag;
  int32_t compute_flag;  // 0: this version has none, and computes each node
  // The bytes that tell whether a tensor is as before: all but its name.
  size_t first_bytes, second_begin, second_bytes;
  size_t image_bytes() const { return first_bytes + second_bytes; }
};

// How often the CPU backend calls the abort callback.
enum class Ticks : uint32_t { Never, PerNode, PerOp, PerFusedOp };

struct Library {
  Library* next;
  void* compute;  // the real ggml_backend_sched_graph_compute_async: its identity
  uint32_t number;
  bool understood;
  Ticks ticks;
  char path[512];
  const char* version;
  TensorLayout at;
#define TT_DECLARE(result, name, arguments) result(*name) arguments;
  TT_GGML_FUNCTIONS(TT_DECLARE)
#undef TT_DECLARE

  template <class T>
  static T read(const void* tensor, size_t offset) {
    T value;
    memcpy(&value, static_cast<const char*>(tensor) + offset, sizeof value);
    return value;
  }
  int op(const void* t) const { return read<int>(t, at.op); }
  int type(const void* t) const { return read<int>(t, at.type); }
  int32_t flags(const void* t) const { return read<int32_t>(t, at.flags); }
  const char* src(const void* t, size_t i) const {
    return read<const char*>(t, at.src + i * sizeof(void*));
  }
  const char* view_src(const void* t) const { return read<const char*>(t, at.view_src); }
  void* buffer(const void* t) const {  // a view has that of its owner
    void* own = read<void*>(t, at.buffer);
    const char* owner = view_src(t);
    return own != nullptr || owner == nullptr ? own : read<void*>(owner, at.buffer);
  }
  const char* data(const void* t) const { return read<const char*>(t, at.data); }
  void shape(const void* t, int64_t* ne, uint64_t* nb) const {
    memcpy(ne, static_cast<const char*>(t) + at.ne, 4 * sizeof *ne);
    memcpy(nb, static_cast<const char*>(t) + at.nb, 4 * sizeof *nb);
  }
  SetAbort abort_setter(void* backend) const;  // null: the backend reports no ops

  // Finds the functions in the library that contains `real_compute`. Returns the name of one that
  // is missing, or null.
  const char* open(void* real_compute);
  // Both return the field, or what differs, that is not understood; null: success. `backend`: any
  // of the program, which allocates one tensor.
  const char* find_fields(void* backend);
  void find_tick_rule(void* backend);  // sets `ticks`
};

}  // namespace tt::attach
