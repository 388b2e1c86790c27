#include "tracer/request/memory.h"

#include <array>

#include "tracer/format/model/name_of.h"

namespace tt {

const char* to_text(MemoryState::Phase phase) {
  static constexpr std::array kWords = {"off", "learning", "fits", "active", "unavailable"};
  return name_of(kWords, phase);
}

}  // namespace tt
