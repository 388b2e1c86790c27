// Copies what a slot holds out of a running graph into a step's buffer: a few
// loads and stores, no allocation. Called on the inference thread at the end of
// an op that reads the tensor, when it is complete and still there
// (docs/llama-cpp.md).
#pragma once

#include "tracer/probe/step_buffer.h"

struct ggml_tensor;

namespace tt {

// How a slot's values are taken: as they are, or, for an attention mask, the
// cells that at least one query attends to.
enum class SlotCopy : std::uint8_t { Values, AttendedCells };
SlotCopy slot_copy_for(const ggml_tensor& node);

// Whether the tensor's bytes can be read through its pointer: not on another
// device, and not repacked. A view lives where what it views lives.
bool is_on_host(const ggml_tensor& tensor);

// What of that is the same as long as the tensor is: worked out once per graph.
struct SlotPlan {
  SlotCopy how = SlotCopy::Values;
  bool on_host = true;  // false: the tensor lives on another device and is fetched (exact mode)
  // Of values that lie one behind the other on the host: so many bytes, of this kind. 0: they
  // do not.
  std::uint32_t bytes = 0;
  CapturedSlot::Values values = CapturedSlot::Values::Int32;
};
SlotPlan slot_plan(const ggml_tensor& source, SlotCopy how);

// Appends to arena and `captured`. False when it did not fit (nothing is added).
bool copy_slot(const ggml_tensor& source, const SlotPlan& plan, std::uint32_t slot,
               StepBuffer& buffer) noexcept;

}  // namespace tt
