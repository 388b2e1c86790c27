#include "analysis/common/operations.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace tt {

namespace {

struct PerElement {
  std::string_view op;  // without the function: "UNARY", of "UNARY(SILU)"
  double operations;    // of each element of the output
};
// SOFT_MAX scales, adds the mask, subtracts the maximum, takes the exponential, adds and divides.
// A norm squares, adds and multiplies; NORM also takes the mean and subtracts it. ROPE multiplies
// each element with a sine and a cosine and adds. GLU multiplies what UNARY gives.
constexpr std::array kPerElement = std::to_array<PerElement>({
    {"ADD", 1},      {"ADD1", 1},   {"ADD_ID", 1},   {"SUB", 1},     {"MUL", 1},
    {"DIV", 1},      {"SCALE", 1},  {"SQR", 1},      {"SQRT", 1},    {"LOG", 1},
    {"SIN", 1},      {"COS", 1},    {"CLAMP", 1},    {"UNARY", 1},   {"LEAKY_RELU", 1},
    {"GLU", 2},      {"ROPE", 3},   {"RMS_NORM", 3}, {"L2_NORM", 3}, {"NORM", 5},
    {"SOFT_MAX", 6}, {"CPY", 0},    {"CONT", 0},     {"DUP", 0},     {"GET_ROWS", 0},
    {"SET_ROWS", 0}, {"CONCAT", 0}, {"REPEAT", 0},   {"PAD", 0},     {"FILL", 0},
});

double elements_of(const Tensor& tensor) {
  double elements = 1;
  for (const std::int64_t n : tensor.ne) elements *= static_cast<double>(n);
  return elements;
}

const Tensor* source_of(const GraphTemplate& graph, const Node& node, std::size_t number) {
  return number < node.src.size() && node.src[number] != kNoTensor ? &graph.tensor(node.src[number])
                                                                   : nullptr;
}

// Elements of each cell that a query of a head multiplies, and the cells that are read.
struct Cells {
  double width = 0, count = 0;
};
Cells cells_of(const GraphTemplate& graph, const Node& node, std::size_t number,
               const ReadOfSource& bytes_read) {
  const Tensor* cache = source_of(graph, node, number);
  if (cache == nullptr || cache->block_bytes == 0) return {};
  const auto width = static_cast<double>(cache->ne[0]), heads = static_cast<double>(cache->ne[2]);
  if (width * heads <= 0) return {};
  const double elements = bytes_read(node.src[number]) / cache->block_bytes * cache->block_elements;
  return {.width = width, .count = elements / (width * heads)};
}

// The values may be a part of the keys, and then have no accesses of their own.
std::optional<double> attention(const GraphTemplate& graph, const Node& node,
                                const ReadOfSource& bytes_read) {
  const Tensor* queries = source_of(graph, node, 0);
  const Cells keys = cells_of(graph, node, 1, bytes_read),
              values = cells_of(graph, node, 2, bytes_read);
  if (queries == nullptr || keys.width <= 0 || values.width <= 0) return std::nullopt;
  const double each = static_cast<double>(queries->ne[1]) * static_cast<double>(queries->ne[2]);
  return 2 * each * std::max(keys.count, values.count) * (keys.width + values.width);
}

std::optional<double> operations_of_node(const GraphTemplate& graph, const Node& node,
                                         const ReadOfSource& bytes_read) {
  const std::string_view op = std::string_view(node.op).substr(0, node.op.find('('));
  const double output = elements_of(graph.tensor(node.output));
  const Tensor* first = source_of(graph, node, 0);
  if (op == "MUL_MAT" || op == "MUL_MAT_ID")
    return first == nullptr ? std::nullopt
                            : std::optional(2 * output * static_cast<double>(first->ne[0]));
  if (op == "FLASH_ATTN_EXT") return attention(graph, node, bytes_read);
  if (op == "SUM_ROWS") return first == nullptr ? std::nullopt : std::optional(elements_of(*first));
  const auto found = std::ranges::find(kPerElement, op, &PerElement::op);
  if (found == kPerElement.end()) return std::nullopt;
  return found->operations * output;
}

}  // namespace

std::optional<double> operations_of(const GraphTemplate& graph, const Op& op,
                                    const ReadOfSource& bytes_read) {
  double sum = 0;
  for (std::uint32_t i = op.first.v; i <= op.last().v; ++i) {
    const Node& node = graph.nodes[i];
    if (!node.computed) continue;
    const auto own = operations_of_node(graph, node, bytes_read);
    if (!own) return std::nullopt;
    sum += *own;
  }
  return sum;
}

}  // namespace tt
