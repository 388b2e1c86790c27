// A graph of ggml as plain values: names, numbers and indices, no pointers and no numbers of ops
// or types, which differ between versions of ggml. From the tensors of this process
// (ggml_graph.h), or from those of another one (attach/collector).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

struct RawBuffer {
  enum class Usage : std::uint8_t { Any, Weights, Compute };
  std::string name;  // ggml's: "CPU_Mapped"
  // "CPU", also for memory that a device can read directly; else the device's name, or the
  // buffer's if it has no device.
  std::string device;
  bool host = true;        // its bytes have ggml's layout and are in memory
  bool on_device = false;  // not in memory. Neither: in memory, in another layout (repacked)
  Usage usage = Usage::Any;
  std::uint64_t size = 0;  // bytes
};

struct RawTensor {
  std::string name;
  std::string op;                    // of the node that computes it: "MUL_MAT", "UNARY(SILU)"...
  std::string type;                  // "Q4_K", "F32"...
  std::uint32_t block_elements = 1;  // elements per block of the type
  std::uint32_t block_bytes = 4;     // bytes per block of the type
  std::array<std::int64_t, 4> ne{};
  std::array<std::uint64_t, 4> nb{};
  std::array<std::int32_t, 16> params{};
  bool input = false;             // GGML_TENSOR_FLAG_INPUT
  bool computed = false;          // GGML_TENSOR_FLAG_COMPUTE, and the op does work
  std::uint32_t view_of = kNone;  // index of the tensor that owns the bytes
  std::uint64_t view_offset = 0;
  std::vector<std::uint32_t> src;  // indices, up to the last one that is present; absent: kNone
  std::uint32_t buffer = kNone;    // index into RawGraph::buffers; a view has its owner's
  std::uint64_t address = 0;       // of the data
  std::uint64_t bytes = 0;         // ggml_nbytes()
};

struct RawGraph {
  // In the order in which nodes use them first: sources before the node, an owner before its view.
  std::vector<RawTensor> tensors;
  std::vector<RawBuffer> buffers;
  std::vector<std::uint32_t> nodes;  // indices of tensors, in execution order
};

}  // namespace tt
