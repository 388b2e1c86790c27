// The contract as a table, to judge the answers to requests that nobody wrote:
// which statuses, media types and problems an operation may answer with. The
// full judgement of every field is webui/test/contract's.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/door/raw_client.h"

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
    std::string body_type;  // empty: it has no body
    nlohmann::json body_example;
    std::map<int, std::set<std::string>> responses;  // media types by status; none: no body
  };
  const std::vector<Operation>& operations() const { return operations_; }

  // The operation that a request names; null for one that the contract does not
  // have. HEAD names that of GET. `target` is as in the request line.
  const Operation* named_by(std::string_view method, std::string_view target) const;

  // What is wrong with an answer to a request of the operation, or of none
  // (null); empty: nothing is.
  std::string complaint(const Operation* operation, std::string_view method,
                        const RawResponse& answer) const;

 private:
  std::string problem_complaint(const RawResponse& answer) const;

  std::vector<Operation> operations_;
  std::map<int, std::set<std::string>> any_request_;
  std::set<std::string> problem_codes_;
};

}  // namespace tt::test
