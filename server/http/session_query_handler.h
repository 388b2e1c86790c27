// Common code of the routes that query one session: parse the parameters and keep the first
// problem, open the session, run the query, send the response with an ETag. A handler reads
// its parameters and returns the function of analysis/ to run:
//
//   const auto make_query = [](const httplib::Request& request, ParameterReader& read) {
//     const PageRange range = read.take(page_parameters(request, kDefaultRows));
//     return [=](const SessionReader& reader) { return token_page(reader, range); };
//   };
//   add_session_query(http, sessions, queue, "tokens", make_query);
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
#include "analysis/common/valid_prefix.h"
#include "api/json/trace_json.h"
#include "server/http/parameters.h"
#include "server/http/query_queue.h"
#include "server/http/responses.h"
#include "server/sessions/session_store.h"

namespace tt {

inline constexpr std::uint64_t kMaxId = std::numeric_limits<std::uint32_t>::max();

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
std::expected<OpId, Problem> op_in_path(const httplib::Request& request);
std::expected<LayerId, Problem> layer_in_path(const httplib::Request& request);

// Reads the parameters kind, source, layer and component, and a name substring from the
// parameter `name`.
TensorFilter tensor_filter(const httplib::Request& request, ParameterReader& read,
                           const char* name = "name");

// Returns false once the client has disconnected or the server has cut off the request at
// shutdown.
ContinueCheck while_connected(const httplib::Request& request);

// Sets X-Whole-Steps when the session file is damaged and the response covers only the steps
// before the damage.
void set_damage_header(httplib::Response& response, std::optional<std::uint32_t> readable_steps);

// Which queries are small: they do not wait for those that can take a minute
// (QueryQueue::Subject::small).
enum class Work : std::uint8_t {
  Small,     // reads a part of the session, or little of each step
  AllSteps,  // reads every step: small only if the session is
};
QueryQueue::Subject query_subject(SessionStore& sessions, const std::string& id, Work work);

namespace detail {

// The parameter "layer" if it is valid.
std::optional<LayerId> layer_of(const httplib::Request& request);
// NotFound when the session's model does not have this layer.
Status check_layer(std::optional<LayerId> layer, const SessionReader& reader);

}  // namespace detail

// Runs a query on the session of the path parameter "id", through the queue, and sends the result.
// For a damaged file the query covers the steps before the damage. `make_query(read)` converts the
// request into the query: a function of a SessionReader and, if it may take long, a ContinueCheck.
// It returns Json, a TextResponse or a type with to_json(), or a TraceError. The query may outlive
// the request: it owns what it needs.
template <class MakeQuery>
void handle_session_query(SessionStore& sessions, QueryQueue& queue,
                          const httplib::Request& request, httplib::Response& response,
                          MakeQuery make_query, Work work = Work::Small) {
  ParameterReader read;
  auto query = make_query(read);
  if (read.problem()) return respond(response, *read.problem());
  const std::string& id = request.path_params.at("id");
  const QueryQueue::Subject subject = query_subject(sessions, id, work);
  if (not_modified(request, response, subject.version)) return;
  queue.respond(
      request, response, subject,
      [&sessions, id, query = std::move(query), layer = detail::layer_of(request)](
          httplib::Response& out, const ContinueCheck& keep_going) {
        auto reader = sessions.open(id);
        if (!reader) return respond(out, problem_of(reader.error()));
        if (const auto there = detail::check_layer(layer, *reader); !there)
          return respond(out, problem_of(there.error()));
        const auto run = [&](const SessionReader& of) {
          if constexpr (std::is_invocable_v<decltype(query), const SessionReader&,
                                            const ContinueCheck&>) {
            return query(of, keep_going);
          } else {
            return query(of);
          }
        };
        const auto found = query_valid_prefix(*reader, run, keep_going);
        if (!found) return respond(out, problem_of(found.error()));
        set_damage_header(out, reader->readable_steps());
        using Found = std::remove_cvref_t<decltype(*found)>;
        if constexpr (std::is_same_v<Found, Json> || std::is_same_v<Found, TextResponse>) {
          respond(out, *found);
        } else {
          respond(out, to_json(*found));
        }
      });
}

// Adds a route below "/api/v1/sessions/{id}/" that runs a query: `make_query(request, read)`.
template <class MakeQuery>
void add_session_query(httplib::Server& http, SessionStore& sessions, QueryQueue& queue,
                       const std::string& path, MakeQuery make_query) {
  http.Get("/api/v1/sessions/:id/" + path,
           [&sessions, &queue, make_query](const httplib::Request& request,
                                           httplib::Response& response) {
             handle_session_query(sessions, queue, request, response,
                                  [&](ParameterReader& read) { return make_query(request, read); });
           });
}

}  // namespace tt
