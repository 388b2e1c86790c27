// Checks requests against the API specification (api/openapi.yaml) for all routes: the methods
// of each path and the query parameters of each operation. Unknown and repeated parameters are
// rejected, so that a misspelled filter is not silently ignored. A route that the specification
// lacks cannot be called (add_page_routes()).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/problem.h"

namespace httplib {
struct Request;
}

namespace tt {

// Immutable; any thread.
class RouteContract {
 public:
  explicit RouteContract(std::string_view openapi_json);

  // The value of the Allow header, such as "GET, HEAD, POST"; empty for an unknown path.
  // `path` is percent-decoded, as in a request.
  std::string methods_of(std::string_view path) const;

  // The path that was probably meant by one that does not exist, such as a path of llama-server,
  // with the method if another one is likely; empty: none is similar.
  std::string similar_path(std::string_view path) const;

  // Returns the problem with the query parameters, or nullopt when they are valid. Paths and
  // methods outside the specification, such as files of the web UI, are not checked.
  std::optional<Problem> check_query(const httplib::Request& request) const;

 private:
  using Parameters = std::set<std::string, std::less<>>;  // query parameter names of an operation
  struct Path {
    std::vector<std::string> segments;                          // empty: a path parameter
    std::map<std::string, Parameters, std::less<>> operations;  // by method
  };
  const Path* find(std::string_view path) const;

  std::vector<Path> paths_;
};

}  // namespace tt
