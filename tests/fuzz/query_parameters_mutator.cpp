// Generates new targets for query_parameters_fuzz.cpp. Half of them are a random operation with
// random parameters, each with a valid or an invalid value; the other half are libFuzzer's own
// mutations.
#include <algorithm>
#include <string>

#include "api/openapi/openapi.h"
#include "tests/server/http/contract_table.h"
#include "tests/server/http/mutator.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using tt::test::ContractTable;
using tt::test::Mutator;

std::string value_of(const ContractTable::Parameter& parameter, Mutator& mutator) {
  if (parameter.in_path && parameter.name == "id") return "plausible";
  if (parameter.name == "with" || parameter.name == "other") return "other";
  const nlohmann::json& schema = parameter.schema;
  if (schema.contains("enum")) {
    const auto& word = schema["enum"][mutator.below(schema["enum"].size())];
    return word.is_string() ? word.get<std::string>() : word.dump();
  }
  const std::string type = schema.value("type", "");
  if (type == "boolean") return mutator.once_in(2) ? "true" : "false";
  if (type == "string") return mutator.once_in(2) ? "0" : "attn";
  return std::to_string(schema.value("minimum", 0) +
                        static_cast<int>(mutator.below(mutator.once_in(4) ? 2000 : 14)));
}

std::string new_target(Mutator& mutator) {
  static const ContractTable contract{tt::openapi_json()};
  const auto& operations = contract.operations();
  const ContractTable::Operation* operation = nullptr;
  do {
    operation = &operations[mutator.below(operations.size())];
  } while (operation->method != "GET" || !operation->path.starts_with("/api/v1/sessions"));
  std::string target = operation->path, query;
  for (const auto& parameter : operation->parameters) {
    const std::string value = value_of(parameter, mutator);
    if (parameter.in_path) {
      const std::string name = "{" + parameter.name + "}";
      target.replace(target.find(name), name.size(), value);
    } else if (mutator.once_in(2)) {
      query += (query.empty() ? "?" : "&") + parameter.name + "=" + value;
    }
  }
  return target + query;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  Mutator mutator(seed);
  if (!mutator.once_in(2)) return LLVMFuzzerMutate(data, size, most);
  const std::string target = new_target(mutator).substr(0, most);
  std::ranges::copy(target, data);
  return target.size();
}
