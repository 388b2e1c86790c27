// Common code of the routes that query one session: parse the parameters and keep the first
// problem, open the session, run the query, send the response with an ETag. A handler reads
// its parameters and returns the function of analysis/ to run:
//
//   about_session(sessions, request, response, [&](ParameterReader& read) {
//     const PageRange range = read.take(page_parameters(request, kUsualRows));
//     return [=](const SessionReader& reader) { return node_table(reader, range); };
//   });
#pragma once

#include <httplib.h>

#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "analysis/common/page.h"
#include "analysis/common/tensor_filter.h"
#include "analysis/common/up_to_damage.h"
#include "api/json/trace_json.h"
#include "server/http/answers.h"
#include "server/http/parameters.h"
#include "server/sessions/session_store.h"

namespace tt {

inline constexpr std::uint64_t kMostIds = std::numeric_limits<std::uint32_t>::max();

// Collects parsed parameters and keeps the first problem.
class ParameterReader {
 public:
  template <class Value>
  Value take(std::expected<Value, Problem> value) {
    if (value) return *std::move(value);
    if (!problem_) problem_ = value.error();
    return {};
  }
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  std::optional<Problem> problem_;
};

// Path parameters. NotFound when the text is not a number.
std::expected<StepId, Problem> step_in_path(const httplib::Request& request);
std::expected<TemplateId, Problem> template_in_path(const httplib::Request& request);
std::expected<LayerId, Problem> layer_in_path(const httplib::Request& request);

// Reads the parameters kind, source, layer and component, and a name substring from the
// parameter `name`.
TensorFilter tensor_filter(const httplib::Request& request, ParameterReader& read,
                           const char* name = "name");

// Returns false once the client has disconnected or the server has cut off the request at
// shutdown.
KeepGoing while_connected(const httplib::Request& request);

// Sets X-Whole-Steps when the session file is damaged and the response covers only the steps
// before the damage.
void tell_damage(httplib::Response& response, std::optional<std::uint32_t> whole_steps);

// NotFound when the session's model does not have the layer of the parameter "layer".
std::expected<void, TraceError> expect_asked_layer(const httplib::Request& request,
                                                   const SessionReader& reader);

// Runs a query on the session of the path parameter "id" and sends the result. For a damaged
// file the query covers the steps before the damage. `ask(read)` converts the request into the
// query: a function of a SessionReader that returns Json, a TextAnswer or a type with
// to_json(), or a TraceError.
template <class Ask>
void about_session(SessionStore& sessions, const httplib::Request& request,
                   httplib::Response& response, Ask ask) {
  ParameterReader read;
  const auto question = ask(read);
  if (read.problem()) return answer(response, *read.problem());
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  auto reader = sessions.open(id);
  if (!reader) return answer(response, problem_of(reader.error()));
  if (const auto there = expect_asked_layer(request, *reader); !there)
    return answer(response, problem_of(there.error()));
  const auto found = ask_up_to_damage(*reader, question, while_connected(request));
  if (!found) return answer(response, problem_of(found.error()));
  tell_damage(response, reader->whole_steps());
  using Found = std::remove_cvref_t<decltype(*found)>;
  if constexpr (std::is_same_v<Found, Json> || std::is_same_v<Found, TextAnswer>) {
    answer(response, *found);
  } else {
    answer(response, to_json(*found));
  }
}

}  // namespace tt
