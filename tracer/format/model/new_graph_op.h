#pragma once

#include <cstdint>
#include <string>

namespace tt {

// The op that runs in a graph that is seen for the first time: its names are in the file only when
// the step has ended.
struct NewGraphOp {
  std::string operation_type, tensor_name;  // those of the output
  std::uint32_t nodes = 0;                  // of the graph, up to this one, views included
};

}  // namespace tt
