// Copies the values of a slot from a running graph into a step's buffer, without allocating.
// Called on the inference thread at the end of an op that reads the tensor, when it is
// complete and not yet overwritten (docs/llama-cpp.md).
#pragma once

#include "tracer/probe/step_buffer.h"

struct ggml_tensor;

namespace tt {

// How a slot's values are copied: unchanged, or, for an attention mask, as the indices of the
// cells that at least one query attends to.
enum class SlotCopy : std::uint8_t { Values, AttendedCells };
SlotCopy slot_copy_for(const ggml_tensor& node);

// Whether the tensor's bytes can be read through its pointer: false on another device and for
// repacked tensors. A view uses the buffer of its root.
bool is_on_host(const ggml_tensor& tensor);

// The part of the copy that is constant for a tensor: computed once per graph.
struct SlotPlan {
  SlotCopy how = SlotCopy::Values;
  bool on_host = true;  // false: the tensor is on another device and is fetched (exact mode)
  // Size and type of values that are contiguous on the host. bytes 0: they are not.
  std::uint32_t bytes = 0;
  CapturedSlot::Values values = CapturedSlot::Values::Int32;
};
SlotPlan slot_plan(const ggml_tensor& source, SlotCopy how);

// Appends to arena and `captured`. Returns false, and adds nothing, if it did not fit.
bool copy_slot(const ggml_tensor& source, const SlotPlan& plan, std::uint32_t slot,
               StepBuffer& buffer) noexcept;

}  // namespace tt
