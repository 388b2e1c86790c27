#include "server/sessions/thread_heap.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constinit thread_local std::int64_t heap_bytes = 0;

void* counted(void* block) noexcept {
  heap_bytes += static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}

// As the standard requires: asks the new-handler until there is memory or none to ask.
template <class Allocate>
void* allocate(const Allocate& try_once) {
  for (;;) {
    if (void* block = try_once(); block != nullptr) return counted(block);
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void release(void* block) noexcept {
  if (block == nullptr) return;
  heap_bytes -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

namespace tt {

std::int64_t thread_heap_bytes() noexcept { return heap_bytes; }

}  // namespace tt

// The other forms (arrays, nothrow, sized) call these, as the standard library defines them.
void* operator new(std::size_t size) {
  return allocate([size] { return std::malloc(size == 0 ? 1 : size); });
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  const std::size_t whole = (size + align - 1) / align * align;
  return allocate([=] { return std::aligned_alloc(align, whole == 0 ? align : whole); });
}
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
