#include <charconv>
#include <limits>
#include <type_traits>
#include <utility>

#include "analysis/access_table.h"
#include "analysis/layer_subgraph.h"
#include "analysis/node_table.h"
#include "analysis/op_table.h"
#include "analysis/step_summary.h"
#include "analysis/template_list.h"
#include "analysis/tensor_table.h"
#include "api/access_cursor.h"
#include "api/trace_json.h"
#include "server/answers.h"
#include "server/parameters.h"
#include "server/routes.h"

namespace tt {

namespace {

constexpr std::uint64_t kUsualRows = 1000;
constexpr std::uint64_t kUsualSteps = 100;  // each is derived from its template when asked for
constexpr std::uint64_t kMostIds = std::numeric_limits<std::uint32_t>::max();

using Request = httplib::Request;
using Response = httplib::Response;
template <class Value>
using OrProblem = std::expected<Value, Problem>;

// A whole number in the path; anything else names nothing that there is.
OrProblem<std::uint32_t> number_in_path(const Request& request, const char* name,
                                        const char* from_where) {
  const std::string& text = request.path_params.at(name);
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    return std::unexpected(Problem{Fault::NotFound, from_where});
  return number;
}

OrProblem<StepId> step_of(const Request& request) {
  return number_in_path(request, "step", "Steps are numbered from 0.")
      .transform([](std::uint32_t number) { return StepId{number}; });
}

OrProblem<TemplateId> template_of(const Request& request) {
  const char* const where = "Templates are numbered from 1: /templates of the session lists them.";
  return number_in_path(request, "template", where)
      .and_then([&](std::uint32_t number) -> OrProblem<TemplateId> {
        if (number == 0) return std::unexpected(Problem{Fault::NotFound, where});
        return TemplateId{number};
      });
}

OrProblem<LayerId> layer_of_path(const Request& request) {
  return number_in_path(request, "layer", "Layers are numbered from 0.")
      .and_then([](std::uint32_t number) -> OrProblem<LayerId> {
        if (!std::in_range<std::int32_t>(number)) {
          return std::unexpected(Problem{Fault::NotFound, "No model has so many layers."});
        }
        return LayerId{static_cast<std::int32_t>(number)};
      });
}

// Reads parameters one after the other and keeps the first problem.
class Reading {
 public:
  template <class Value>
  Value take(OrProblem<Value> value) {
    if (value) return *std::move(value);
    if (!problem_) problem_ = value.error();
    return {};
  }
  const std::optional<Problem>& problem() const { return problem_; }

 private:
  std::optional<Problem> problem_;
};

TensorFilter tensor_filter(const Request& request, Reading& reading) {
  return {.name = reading.take(text_parameter(request, "name")),
          .kind = reading.take(word_parameter(request, "kind", TensorKind::Input)),
          .source = reading.take(word_parameter(request, "source", Source::Buffer)),
          .layer = reading.take(layer_parameter(request)),
          .component = reading.take(word_parameter(request, "component", Component::Input))};
}

OrProblem<Order<TensorSort>> tensor_order(const Request& request) {
  static constexpr SortWords<TensorSort, 5> kWords{{{"tensor", TensorSort::ByTensor},
                                                    {"name", TensorSort::ByName},
                                                    {"layer", TensorSort::ByLayer},
                                                    {"size", TensorSort::BySize},
                                                    {"offset", TensorSort::ByOffset}}};
  return order_parameter(request, kWords);
}

OpFilter op_filter(const Request& request, Reading& reading) {
  return {.name = reading.take(text_parameter(request, "name")),
          .layer = reading.take(layer_parameter(request)),
          .component = reading.take(word_parameter(request, "component", Component::Input))};
}

OrProblem<Order<OpSort>> op_order(const Request& request) {
  static constexpr SortWords<OpSort, 5> kWords{{{"op", OpSort::ByOp},
                                                {"name", OpSort::ByName},
                                                {"duration", OpSort::ByDuration},
                                                {"bytes", OpSort::ByBytes},
                                                {"layer", OpSort::ByLayer}}};
  return order_parameter(request, kWords);
}

// What both lists of accesses can be asked for.
AccessFilter access_filter(const Request& request, Reading& reading) {
  AccessFilter filter;
  filter.tensor.name = reading.take(text_parameter(request, "tensor"));
  filter.tensor.source = reading.take(word_parameter(request, "source", Source::Buffer));
  filter.tensor.layer = reading.take(layer_parameter(request));
  filter.tensor.component = reading.take(word_parameter(request, "component", Component::Input));
  filter.write = reading.take(flag_parameter(request, "write"));
  constexpr std::uint64_t kMostExperts = std::numeric_limits<std::int32_t>::max();
  if (const auto expert = reading.take(number_parameter(request, "expert", kMostExperts)))
    filter.expert = static_cast<std::int32_t>(*expert);
  return filter;
}

OrProblem<Order<AccessSort>> access_order(const Request& request) {
  static constexpr SortWords<AccessSort, 4> kWords{{{"time", AccessSort::ByTime},
                                                    {"bytes", AccessSort::ByBytes},
                                                    {"offset", AccessSort::ByOffset},
                                                    {"tensor", AccessSort::ByTensor}}};
  return order_parameter(request, kWords);
}

AccessQuery access_query(const Request& request, Reading& reading) {
  AccessQuery query;
  const auto first = reading.take(number_parameter(request, "first_step", kMostIds));
  query.first_step = StepId{static_cast<std::uint32_t>(first.value_or(0))};
  if (const auto last = reading.take(number_parameter(request, "last_step", kMostIds)))
    query.last_step = StepId{static_cast<std::uint32_t>(*last)};
  query.phase = reading.take(word_parameter(request, "phase", Phase::Other));
  query.filter = access_filter(request, reading);
  query.order = reading.take(access_order(request));
  return query;
}

std::expected<Page<Token>, TraceError> token_page(const SessionReader& reader, PageRange range) {
  const auto total = reader.token_count();
  if (!total) return std::unexpected(total.error());
  auto rows = reader.tokens(static_cast<std::uint32_t>(range.from),
                            static_cast<std::uint32_t>(range.limit));
  if (!rows) return std::unexpected(rows.error());
  return Page<Token>{.total = *total, .rows = *std::move(rows)};
}

// Whether a long walk is still worth it: until the client has gone, or the
// server's stop has cut it off.
KeepGoing while_connected(const Request& request) {
  return [&request] { return !request.is_connection_closed(); };
}

// Answers with what a question says of the session that the path names.
// `ask(reading)` turns the request into the question: a function of a
// SessionReader that returns JSON, or what to_json() takes, or a TraceError.
template <class Ask>
void about_session(SessionStore& sessions, const Request& request, Response& response, Ask ask) {
  Reading reading;
  const auto question = ask(reading);
  if (reading.problem()) return answer(response, *reading.problem());
  const std::string& id = request.path_params.at("id");
  if (unchanged(request, response, sessions.tag(id))) return;
  const auto reader = sessions.open(id);
  if (!reader) return answer(response, problem_of(reader.error()));
  const auto found = question(*reader);
  if (!found) return answer(response, problem_of(found.error()));
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*found)>, Json>) {
    answer(response, *found);
  } else {
    answer(response, to_json(*found));
  }
}

void add_graph_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/templates",
           [&sessions](const Request& request, Response& response) {
             about_session(sessions, request, response, [&](Reading&) {
               return [&](const SessionReader& reader) {
                 return template_list(reader, while_connected(request));
               };
             });
           });

  http.Get("/api/v1/sessions/:id/templates/:template/nodes",
           [&sessions](const Request& request, Response& response) {
             about_session(sessions, request, response, [&](Reading& reading) {
               const TemplateId graph = reading.take(template_of(request));
               const PageRange range = reading.take(page_parameters(request, kUsualRows));
               return [=](const SessionReader& reader) { return node_table(reader, graph, range); };
             });
           });

  http.Get("/api/v1/sessions/:id/templates/:template/tensors",
           [&sessions](const Request& request, Response& response) {
             about_session(sessions, request, response, [&](Reading& reading) {
               const TemplateId graph = reading.take(template_of(request));
               const TensorFilter filter = tensor_filter(request, reading);
               const auto order = reading.take(tensor_order(request));
               const PageRange range = reading.take(page_parameters(request, kUsualRows));
               return [=](const SessionReader& reader) {
                 return tensor_table(reader, graph, filter, order, range);
               };
             });
           });

  http.Get("/api/v1/sessions/:id/steps/:step/layers/:layer", [&sessions](const Request& request,
                                                                         Response& response) {
    about_session(sessions, request, response, [&](Reading& reading) {
      const StepId step = reading.take(step_of(request));
      const LayerId layer = reading.take(layer_of_path(request));
      return [=](const SessionReader& reader) { return layer_of_step(reader, step, layer); };
    });
  });
}

void add_step_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/tokens", [&sessions](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](Reading& reading) {
      const PageRange range = reading.take(page_parameters(request, kUsualRows));
      return [=](const SessionReader& reader) { return token_page(reader, range); };
    });
  });

  http.Get("/api/v1/sessions/:id/steps", [&sessions](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](Reading& reading) {
      const PageRange range = reading.take(page_parameters(request, kUsualSteps));
      return [&request, range](const SessionReader& reader) {
        return step_summaries(reader, range, while_connected(request));
      };
    });
  });

  http.Get("/api/v1/sessions/:id/steps/:step/ops",
           [&sessions](const Request& request, Response& response) {
             about_session(sessions, request, response, [&](Reading& reading) {
               const StepId step = reading.take(step_of(request));
               const OpFilter filter = op_filter(request, reading);
               const auto order = reading.take(op_order(request));
               const PageRange range = reading.take(page_parameters(request, kUsualRows));
               return [=](const SessionReader& reader) {
                 return op_table(reader, step, filter, order, range);
               };
             });
           });
}

void add_access_routes(httplib::Server& http, SessionStore& sessions) {
  http.Get("/api/v1/sessions/:id/steps/:step/accesses",
           [&sessions](const Request& request, Response& response) {
             about_session(sessions, request, response, [&](Reading& reading) {
               const StepId step = reading.take(step_of(request));
               AccessFilter filter = access_filter(request, reading);
               if (const auto op = reading.take(number_parameter(request, "op", kMostIds)))
                 filter.op = OpId{static_cast<std::uint32_t>(*op)};
               const auto order = reading.take(access_order(request));
               const PageRange range = reading.take(page_parameters(request, kUsualRows));
               return [=](const SessionReader& reader) {
                 return access_table(reader, step, filter, order, range);
               };
             });
           });

  http.Get(
      "/api/v1/sessions/:id/accesses", [&sessions](const Request& request, Response& response) {
        about_session(sessions, request, response, [&](Reading& reading) {
          const std::string id = request.path_params.at("id");
          const AccessQuery query = access_query(request, reading);
          const auto limit = reading.take(number_parameter(request, "limit", kMostRows));
          std::optional<AccessPlace> after;
          const auto cursor = reading.take(text_parameter(request, "cursor"));
          if (!cursor.empty()) after = reading.take(parse_cursor(cursor, id, query));
          return [=, &request](const SessionReader& reader) {
            return access_page(reader, query, after, limit.value_or(kUsualRows),
                               while_connected(request))
                .transform([&](const AccessPage& page) { return accesses_json(page, id, query); });
          };
        });
      });
}

}  // namespace

void add_trace_routes(httplib::Server& http, SessionStore& sessions) {
  add_graph_routes(http, sessions);
  add_step_routes(http, sessions);
  add_access_routes(http, sessions);
}

}  // namespace tt
