#include "analysis/common/kernel.h"

#include "analysis/common/rebuilt.h"
#include "tracer/format/model/name_of.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tt {

namespace {

// Rows follow each other without gaps.
bool is_contiguous(const Tensor& tensor) {
  std::uint64_t expected = tensor.block_bytes;
  for (std::size_t i = 0; i < tensor.ne.size(); ++i) {
    if (tensor.ne[i] != 1 && tensor.nb[i] != expected) return false;
    const auto elements = static_cast<std::uint64_t>(tensor.ne[i]);
    expected *= i == 0 ? elements / std::max(tensor.block_elements, 1U) : elements;
  }
  return true;
}

// Whether llamafile's kernels multiply by `rows`, a matrix of this type and shape.
std::optional<bool> multiplied_by_llamafile(const Tensor& matrix, const Tensor& rows) {
  if (rows.ne[1] < 2) return false;  // one token
  constexpr std::array<std::string_view, 4> kBlocks = {"Q4_0", "Q5_0", "Q8_0", "IQ4_NL"};
  if (std::ranges::contains(kBlocks, matrix.type)) return true;
  if (matrix.type != "F32" && matrix.type != "F16" && matrix.type != "BF16") return false;
  // Rows of another type are converted first, which leaves no gaps.
  if (rows.type == matrix.type && !is_contiguous(rows)) return false;
  if (matrix.ne[1] % 4 != 0 || matrix.ne[0] % 8 != 0) return false;
  // The width of the registers is not known; the widest take 32 elements.
  if (matrix.ne[0] % 32 != 0) return std::nullopt;
  return true;
}

}  // namespace

KernelRules kernel_rules_of(const SessionInfo& info) {
  if (!info.fact(kRebuiltStepsFact).empty()) return {.llamafile = std::nullopt, .rebuilt = true};
  const std::string_view features = info.fact("library.features");
  if (features.empty() || !info.fact("host.kernel").ends_with("x86_64")) return {};
  return {.llamafile = features.contains("LLAMAFILE = 1") && features.contains("AVX2 = 1")};
}

std::optional<Kernel> kernel_of(const GraphTemplate& graph, const Op& op,
                                const KernelRules& rules) {
  if (rules.rebuilt) return std::nullopt;
  if (op.device != "CPU") return Kernel::Device;
  const Node& node = graph.node(op.first);
  if (!node.op.starts_with("MUL_MAT") || node.src.size() < 2 || node.src[0] == kNoTensor ||
      node.src[1] == kNoTensor)
    return Kernel::Plain;
  const Tensor& matrix = graph.tensor(node.src[0]);
  if (matrix.buffer.contains("REPACK")) return Kernel::Repacked;
  if (matrix.buffer.contains("AMX")) return Kernel::Amx;
  if (node.op != "MUL_MAT" || rules.llamafile == false) return Kernel::Plain;
  const auto by_llamafile = multiplied_by_llamafile(matrix, graph.tensor(node.src[1]));
  if (by_llamafile == false) return Kernel::Plain;
  if (!by_llamafile || !rules.llamafile) return std::nullopt;
  return Kernel::Llamafile;
}

const char* to_text(Kernel kernel) {
  static constexpr std::array kWords = {"plain", "repacked", "amx", "llamafile", "device"};
  return name_of(kWords, kernel);
}

}  // namespace tt
