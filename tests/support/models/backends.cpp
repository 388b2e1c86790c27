#include "tests/support/models/backends.h"

#include "tracer/engine/backends.h"

namespace tt::test {

void ensure_backends_loaded() {
  static const bool loaded = [] {
    load_backends({});
    return true;
  }();
  (void)loaded;
}

}  // namespace tt::test
