#include "tests/tracer/backends.h"

#include "tracer/backends.h"

namespace tt::test {

void need_backends() {
  static const bool loaded = [] {
    load_backends({});
    return true;
  }();
  (void)loaded;
}

}  // namespace tt::test
