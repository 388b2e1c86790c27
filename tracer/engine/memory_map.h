// Where the weights of a loaded model are now, and what other budgets would give.
#pragma once

#include "tracer/gguf/gguf_index.h"
#include "tracer/memory/memory_manager.h"
#include "tracer/request/memory.h"

namespace tt {

// Any thread; takes about 15 ns per mapped page (mincore).
MemoryMap memory_map_of(const GgufIndex& index, const MemoryManager& manager);

}  // namespace tt
