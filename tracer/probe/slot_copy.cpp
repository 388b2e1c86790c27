#include "tracer/probe/slot_copy.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <cstring>
#include <optional>
#include <utility>

#include "tracer/probe/attended_cells.h"

namespace tt {

namespace {

std::optional<CapturedSlot::Values> kind_of(ggml_type type) {
  switch (type) {
    case GGML_TYPE_I32:
      return CapturedSlot::Values::Int32;
    case GGML_TYPE_I64:
      return CapturedSlot::Values::Int64;
    case GGML_TYPE_F32:
      return CapturedSlot::Values::Float;
    default:
      return std::nullopt;
  }
}
std::uint32_t bytes_of(CapturedSlot::Values values) {
  return values == CapturedSlot::Values::Int64 ? 8 : 4;
}

// Collects one flag byte per cell over all queries, then writes the cell indices. A mask on
// another device is fetched row by row, into the arena after the flags.
bool copy_attended_cells(const ggml_tensor& mask, bool on_host, std::uint32_t slot,
                         StepBuffer& buffer) {
  const auto cells = static_cast<std::size_t>(mask.ne[0]);
  const std::size_t row_bytes = ggml_row_size(mask.type, mask.ne[0]);
  const std::size_t row_at = (cells * (sizeof(std::int32_t) + 1) + 7) / 8 * 8;
  if (buffer.arena_used + row_at + (on_host ? 0 : row_bytes) > buffer.arena_size) return false;
  auto* ids = reinterpret_cast<std::int32_t*>(buffer.arena.get() + buffer.arena_used);
  auto* attended = reinterpret_cast<std::uint8_t*>(ids + cells);
  auto* fetched = reinterpret_cast<char*>(ids) + row_at;
  std::memset(attended, 0, cells);
  const auto* base = static_cast<const char*>(mask.data);
  for (std::int64_t i3 = 0; i3 < mask.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < mask.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < mask.ne[1]; ++i1) {
        const std::size_t at = static_cast<std::size_t>(i1) * mask.nb[1] +
                               static_cast<std::size_t>(i2) * mask.nb[2] +
                               static_cast<std::size_t>(i3) * mask.nb[3];
        if (!on_host) ggml_backend_tensor_get(&mask, fetched, at, row_bytes);
        const char* row = on_host ? base + at : fetched;
        mark_attended(row, mask.type == GGML_TYPE_F16, cells, attended);
      }
    }
  }
  const std::uint32_t count = number_attended(attended, cells, ids);
  buffer.captured.push_back({.slot = slot,
                             .count = count,
                             .offset = buffer.arena_used,
                             .values = CapturedSlot::Values::Int32});
  buffer.arena_used += (count * sizeof(std::int32_t) + 7) / 8 * 8;
  return true;
}

}  // namespace

SlotCopy slot_copy_for(const ggml_tensor& node) {
  return node.op == GGML_OP_FLASH_ATTN_EXT ? SlotCopy::AttendedCells : SlotCopy::Values;
}

bool is_on_host(const ggml_tensor& tensor) {
  const ggml_backend_buffer_t buffer = tensor.buffer != nullptr || tensor.view_src == nullptr
                                           ? tensor.buffer
                                           : tensor.view_src->buffer;
  return buffer == nullptr || ggml_backend_buffer_is_host(buffer);
}

SlotPlan slot_plan(const ggml_tensor& source, SlotCopy how) {
  SlotPlan plan{.how = how, .on_host = is_on_host(source)};
  const auto values = kind_of(source.type);
  if (!values) return plan;
  plan.values = *values;
  const std::size_t bytes = ggml_nbytes(&source);
  if (how == SlotCopy::Values && plan.on_host && ggml_is_contiguous(&source) &&
      std::in_range<std::uint32_t>(bytes))
    plan.bytes = static_cast<std::uint32_t>(bytes);
  return plan;
}

bool copy_slot(const ggml_tensor& source, const SlotPlan& plan, std::uint32_t slot,
               StepBuffer& buffer) noexcept {
  if (buffer.captured.size() == buffer.captured.capacity()) return false;
  if (plan.bytes > 0) {
    if (buffer.arena_used + plan.bytes > buffer.arena_size) return false;
    std::memcpy(buffer.arena.get() + buffer.arena_used, source.data, plan.bytes);
    buffer.captured.push_back({.slot = slot,
                               .count = plan.bytes / bytes_of(plan.values),
                               .offset = buffer.arena_used,
                               .values = plan.values});
    buffer.arena_used += (plan.bytes + 7) / 8 * 8;
    return true;
  }
  const bool on_host = plan.on_host;
  if (plan.how == SlotCopy::AttendedCells &&
      (source.type == GGML_TYPE_F16 || source.type == GGML_TYPE_F32)) {
    return copy_attended_cells(source, on_host, slot, buffer);
  }
  const auto values = kind_of(source.type);
  if (!values) return false;
  CapturedSlot captured{.slot = slot, .offset = buffer.arena_used, .values = *values};
  const std::size_t value_bytes = bytes_of(*values);
  const auto row_values = static_cast<std::size_t>(source.ne[0]);
  const std::size_t bytes = static_cast<std::size_t>(ggml_nelements(&source)) * value_bytes;
  if (buffer.arena_used + bytes > buffer.arena_size) return false;
  captured.count = static_cast<std::uint32_t>(bytes / value_bytes);

  std::byte* out = buffer.arena.get() + buffer.arena_used;
  for (std::int64_t i3 = 0; i3 < source.ne[3]; ++i3) {
    for (std::int64_t i2 = 0; i2 < source.ne[2]; ++i2) {
      for (std::int64_t i1 = 0; i1 < source.ne[1]; ++i1) {
        const std::size_t at = static_cast<std::size_t>(i1) * source.nb[1] +
                               static_cast<std::size_t>(i2) * source.nb[2] +
                               static_cast<std::size_t>(i3) * source.nb[3];
        if (!on_host) {
          ggml_backend_tensor_get(&source, out, at, row_values * value_bytes);
        } else if (source.nb[0] == value_bytes) {
          std::memcpy(out, static_cast<const char*>(source.data) + at, row_values * value_bytes);
        } else {
          for (std::size_t i0 = 0; i0 < row_values; ++i0) {
            std::memcpy(out + i0 * value_bytes,
                        static_cast<const char*>(source.data) + at + i0 * source.nb[0],
                        value_bytes);
          }
        }
        out += row_values * value_bytes;
      }
    }
  }
  buffer.captured.push_back(captured);
  buffer.arena_used += (bytes + 7) / 8 * 8;
  return true;
}

}  // namespace tt
