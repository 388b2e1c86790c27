// The OpenAPI contract as a table: the statuses, media types and problem codes that an
// operation may return. Used to check responses to mutated requests. webui/test/contract
// checks every field.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/frontend/raw_client.h"

namespace tt::test {

class ContractTable {
 public:
  explicit ContractTable(std::string_view openapi_json);

  struct Parameter {
    std::string name;
    bool in_path = false;
    nlohmann::json schema;
  };
  struct Operation {
    std::string id, method, path;  // the path with its parameters in braces
    std::vector<Parameter> parameters;
    std::string body_type;  // empty: no request body
    nlohmann::json body_example;
    std::map<int, std::set<std::string>> responses;  // media types by status; none: no body
  };
  const std::vector<Operation>& operations() const { return operations_; }

  // The operation of a request; null when the contract has none. HEAD maps to GET. `target` is
  // the target of the request line.
  const Operation* find_operation(std::string_view method, std::string_view target) const;

  // How the response violates the contract; empty: it conforms. `operation` is null for a
  // request without an operation.
  std::string violation(const Operation* operation, std::string_view method,
                        const RawResponse& answer) const;

 private:
  std::string problem_violation(const RawResponse& answer) const;

  std::vector<Operation> operations_;
  std::map<int, std::set<std::string>> any_request_;
  std::set<std::string> problem_codes_;
};

}  // namespace tt::test
