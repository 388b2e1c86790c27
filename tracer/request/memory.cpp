#include "tracer/request/memory.h"

namespace tt {

const char* to_text(MemoryState::Phase phase) {
  switch (phase) {
    case MemoryState::Phase::Off:
      return "off";
    case MemoryState::Phase::Learning:
      return "learning";
    case MemoryState::Phase::Fits:
      return "fits";
    case MemoryState::Phase::Active:
      return "active";
    case MemoryState::Phase::Unavailable:
      return "unavailable";
  }
  return "";
}

}  // namespace tt
