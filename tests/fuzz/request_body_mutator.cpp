// Generates new bodies for request_body_fuzz.cpp: one of four repeats or nests a part of the text,
// one of four changes a value of the document, the others are libFuzzer's own mutations.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/http/mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  using nlohmann::json;
  tt::test::Mutator mutator(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string body;
  if (mutator.once_in(4)) {
    body = mutator.expanded(text, most);
  } else if (mutator.once_in(3) && size < (1 << 10)) {
    const json document = json::parse(text, nullptr, false);
    if (!document.is_discarded())
      body = mutator.document(document).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  if (body.empty() || body.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::ranges::copy(body, data);
  return body.size();
}
