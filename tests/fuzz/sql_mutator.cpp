// Generates new statements for sql_fuzz.cpp: one of four repeats, nests or doubles a part of the
// statement, the others are libFuzzer's own mutations.
#include <algorithm>
#include <string>

#include "tests/server/http/mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  tt::test::Mutator mutator(seed);
  if (!mutator.once_in(4)) return LLVMFuzzerMutate(data, size, most);
  const std::string statement =
      mutator.expanded(std::string(reinterpret_cast<const char*>(data), size), most);
  std::ranges::copy(statement, data);
  return statement.size();
}
