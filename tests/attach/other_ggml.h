// The functions of ggml that attach/agent and other_llama.cpp use, with types of their own: see
// other_ggml.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

struct InitParams {
  std::size_t mem_size;
  void* mem_buffer;
  bool no_alloc;
};

extern "C" {
void* ggml_init(InitParams params);
void ggml_free(void* context);
void* ggml_new_tensor_1d(void* context, int type, std::int64_t n);
void* ggml_new_tensor_4d(void* context, int type, std::int64_t a, std::int64_t b, std::int64_t c,
                         std::int64_t d);
void* ggml_view_1d(void* context, void* of, std::int64_t n, std::size_t offset);
void* ggml_reshape_2d(void* context, void* of, std::int64_t a, std::int64_t b);
void* ggml_mul_mat(void* context, void* a, void* b);
void* ggml_rms_norm(void* context, void* of, float eps);
void* ggml_mul(void* context, void* a, void* b);
void* ggml_add(void* context, void* a, void* b);
void* ggml_get_rows(void* context, void* a, void* b);
const char* ggml_get_name(const void* tensor);
void* ggml_set_name(void* tensor, const char* name);
void ggml_set_input(void* tensor);
void ggml_set_output(void* tensor);
void* ggml_get_data(const void* tensor);
const char* ggml_op_name(int op);
const char* ggml_op_desc(const void* tensor);
const char* ggml_type_name(int type);
std::int64_t ggml_blck_size(int type);
std::size_t ggml_type_size(int type);
std::size_t ggml_nbytes(const void* tensor);
void* ggml_new_graph(void* context);
void ggml_build_forward_expand(void* graph, void* tensor);
int ggml_graph_n_nodes(void* graph);
void* ggml_graph_node(void* graph, int i);
void* ggml_backend_alloc_ctx_tensors(void* context, void* backend);
void ggml_backend_buffer_free(void* buffer);
void ggml_backend_buffer_set_usage(void* buffer, int usage);
const char* ggml_backend_buffer_name(void* buffer);
bool ggml_backend_buffer_is_host(void* buffer);
int ggml_backend_buffer_get_usage(void* buffer);
std::size_t ggml_backend_buffer_get_size(void* buffer);
void* ggml_backend_buffer_get_type(void* buffer);
void* ggml_backend_buft_get_device(void* type);
const char* ggml_backend_dev_name(void* device);
int ggml_backend_dev_type(void* device);
void* ggml_backend_dev_backend_reg(void* device);
void* ggml_backend_get_device(void* backend);
void ggml_backend_tensor_get(const void* tensor, void* to, std::size_t offset, std::size_t bytes);
int ggml_backend_graph_compute(void* backend, void* graph);
const char* ggml_backend_name(void* backend);
void ggml_backend_synchronize(void* backend);
int ggml_backend_sched_get_n_copies(void* scheduler);
void* ggml_backend_sched_get_tensor_backend(void* scheduler, void* tensor);
int ggml_backend_sched_get_n_backends(void* scheduler);
void* ggml_backend_sched_get_backend(void* scheduler, int i);
void* ggml_backend_reg_get_proc_address(void* registry, const char* name);
void ggml_backend_sched_set_eval_callback(void* scheduler, bool (*callback)(void*, bool, void*),
                                          void* data);
int ggml_backend_sched_graph_compute_async(void* scheduler, void* graph);
// Of this library only.
void* other_ggml_backend();
void* other_ggml_scheduler(void* backend);
// of other_llama.cpp
void other_llama_run(int steps);
}
