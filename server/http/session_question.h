// What the routes about one session share: parameters are read, the first problem
// is kept, the session is opened, the question is asked, the answer has an ETag.
// A handler says which parameters there are and which function of analysis/
// answers:
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

// Reads parameters one after the other and keeps the first problem.
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

// Of the path; what is no such number names nothing that there is.
std::expected<StepId, Problem> step_in_path(const httplib::Request& request);
std::expected<TemplateId, Problem> template_in_path(const httplib::Request& request);
std::expected<LayerId, Problem> layer_in_path(const httplib::Request& request);

// source, layer and component, kind too, and part of the name under `name`.
TensorFilter tensor_filter(const httplib::Request& request, ParameterReader& read,
                           const char* name = "name");

// Whether a long walk is still worth it: until the client has gone, or the
// server's stop has cut it off.
KeepGoing while_connected(const httplib::Request& request);

// X-Whole-Steps, where the session's file is damaged and the answer is about the steps
// before that.
void tell_damage(httplib::Response& response, std::optional<std::uint32_t> whole_steps);

// NotFound where the request's "layer" is none that the session's model has.
std::expected<void, TraceError> expect_asked_layer(const httplib::Request& request,
                                                   const SessionReader& reader);

// Answers with what a question says of the session that the path names (`id`), up to its
// damage where it has some.
// `ask(read)` turns the request into the question: a function of a SessionReader
// that returns JSON or a TextAnswer, or what to_json() takes, or a TraceError.
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
