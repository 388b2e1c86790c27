// Which implementation of ggml ran an op, as far as a recording tells.
#pragma once

#include <cstdint>
#include <optional>

#include "tracer/format/model/graph_template.h"
#include "tracer/format/model/session.h"

namespace tt {

// Plain: that of ggml's CPU backend for every layout. Repacked, Amx: for weights that were
// converted when the model was loaded. Llamafile: matrix multiplication by llamafile's tinyBLAS.
// Device: that of another device.
enum class Kernel : std::uint8_t { Plain, Repacked, Amx, Llamafile, Device };
const char* to_text(Kernel);

// What the choice of ggml depends on, besides the graph.
struct KernelRules {
  // llamafile's kernels are compiled in, and the processor has what all of them need (x86-64 with
  // AVX2); nullopt: not known.
  std::optional<bool> llamafile;
  // The graphs were rebuilt from the rows of a log (rebuilt.h), which do not tell.
  bool rebuilt = false;
};
KernelRules kernel_rules_of(const SessionInfo& info);

// Rules as in ggml_compute_forward_mul_mat() and llamafile_sgemm() of ggml's CPU backend. nullopt:
// they depend on what was not recorded.
std::optional<Kernel> kernel_of(const GraphTemplate& graph, const Op& op, const KernelRules& rules);

}  // namespace tt
