// Graphs: one layer of a step, or selected layers of a step or a template, complete or
// collapsed.
#include <array>
#include <string_view>
#include <utility>

#include "analysis/graph/graph_part.h"
#include "api/json/trace_json.h"
#include "api/text/graph_dot.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"

namespace tt {

namespace {

using Request = httplib::Request;

struct GraphForm {
  bool collapse = false, dot = false;

  TextResponse of(const GraphPart& part) const {
    if (dot) {
      return {collapse ? collapsed_dot(part) : to_dot(part), "text/vnd.graphviz; charset=utf-8"};
    }
    return {text_of(collapse ? collapsed_json(part) : to_json(part)), "application/json"};
  }
};

GraphForm graph_form(const Request& request, ParameterReader& read) {
  static constexpr std::array<std::string_view, 2> kFormats = {"json", "dot"};
  return {.collapse = read.take(flag_parameter(request, "collapse")).value_or(false),
          .dot = read.take(enum_parameter(request, "format", kFormats, "json")) == "dot"};
}

}  // namespace

void add_graph_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  add_session_query(http, sessions, queue, "steps/:step/layers/:layer",
                    [](const Request& request, ParameterReader& read) {
                      const StepId step = read.take(step_in_path(request));
                      const LayerId layer = read.take(layer_in_path(request));
                      return [=](const SessionReader& reader) {
                        return part_of_step(reader, step, LayerSet::one(layer))
                            .transform([&](const GraphPart& part) {
                              Json json = to_json(part);
                              json["layer"] = layer.v;
                              return json;
                            });
                      };
                    });

  add_session_query(
      http, sessions, queue, "steps/:step/graph",
      [](const Request& request, ParameterReader& read) {
        const StepId step = read.take(step_in_path(request));
        const LayerSet layers = read.take(layers_parameter(request));
        const GraphForm form = graph_form(request, read);
        return [=](const SessionReader& reader) {
          return part_of_step(reader, step, layers).transform([&](const GraphPart& part) {
            return form.of(part);
          });
        };
      });

  add_session_query(
      http, sessions, queue, "templates/:template/graph",
      [](const Request& request, ParameterReader& read) {
        const TemplateId graph = read.take(template_in_path(request));
        const LayerSet layers = read.take(layers_parameter(request));
        const GraphForm form = graph_form(request, read);
        return [=](const SessionReader& reader) {
          return part_of_template(reader, graph, layers).transform([&](const GraphPart& part) {
            return form.of(part);
          });
        };
      });
}

}  // namespace tt
