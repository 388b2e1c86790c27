// What the contract (api/openapi.yaml) says of every route, so that no handler
// has to: which methods a path has and which query parameters an operation has.
// A name that an operation does not have is refused, so that a misspelt filter
// is not taken for no filter; so is one that is given twice.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/problem.h"

namespace httplib {
class Server;
struct Request;
}  // namespace httplib

namespace tt {

// Immutable, any thread.
class RouteContract {
 public:
  explicit RouteContract(std::string_view openapi_json);

  // "GET, HEAD, POST", for the header Allow; empty when there is no such path.
  // `path` is decoded, as in a request.
  std::string methods_of(std::string_view path) const;

  // Why the request's query is refused. None for a path or a method that the
  // contract does not have, such as the files of the page.
  std::optional<Problem> refuse_query(const httplib::Request& request) const;

 private:
  using Parameters = std::set<std::string, std::less<>>;  // names of an operation's
  struct Path {
    std::vector<std::string> segments;                          // empty: any one segment
    std::map<std::string, Parameters, std::less<>> operations;  // by method
  };
  const Path* find(std::string_view path) const;

  std::vector<Path> paths_;
};

// From here on requests with an unknown query parameter are answered 400.
void refuse_unknown_parameters(httplib::Server& http, const RouteContract& contract);

}  // namespace tt
