#include "server/http/session_query_handler.h"

#include <format>

#include "analysis/common/session_layers.h"
#include "tracer/text/parse_number.h"

namespace tt {

namespace {

using Request = httplib::Request;

// A whole number in the path. Anything else is NotFound with the detail `from_where`.
OrProblem<std::uint32_t> number_in_path(const Request& request, const char* name,
                                        const char* from_where) {
  const auto number = parse_number<std::uint32_t>(request.path_params.at(name));
  if (!number) {
    return std::unexpected(
        Problem{ErrorCode::NotFound, std::format("\"{}\" is not the number of a {}. {}",
                                                 request.path_params.at(name), name, from_where)});
  }
  return *number;
}

}  // namespace

OrProblem<StepId> step_in_path(const Request& request) {
  return number_in_path(request, "step",
                        "Steps are numbered from 0. /steps of the session lists them.")
      .transform([](std::uint32_t number) { return StepId{number}; });
}

OrProblem<OpId> op_in_path(const Request& request) {
  return number_in_path(request, "op",
                        "Ops are numbered from 0. /steps/STEP/ops of the session lists them.")
      .transform([](std::uint32_t number) { return OpId{number}; });
}

OrProblem<TemplateId> template_in_path(const Request& request) {
  const char* const where = "Templates are numbered from 1. /templates of the session lists them.";
  return number_in_path(request, "template", where)
      .and_then([&](std::uint32_t number) -> OrProblem<TemplateId> {
        if (number == 0) return std::unexpected(Problem{ErrorCode::NotFound, where});
        return TemplateId{number};
      });
}

OrProblem<LayerId> layer_in_path(const Request& request) {
  return number_in_path(request, "layer", "Layers are numbered from 0.")
      .and_then([](std::uint32_t number) -> OrProblem<LayerId> {
        if (!std::in_range<std::int32_t>(number)) {
          return std::unexpected(Problem{ErrorCode::NotFound, "No model has that many layers."});
        }
        return LayerId{static_cast<std::int32_t>(number)};
      });
}

TensorFilter tensor_filter(const Request& request, ParameterReader& read, const char* name) {
  const auto layer = read.take(layer_parameter(request));
  return {.name = read.take(text_parameter(request, name)),
          .kind = read.take(enum_parameter(request, "kind", TensorKind::Input)),
          .source = read.take(enum_parameter(request, "source", Source::Buffer)),
          .layers = layer ? LayerSet::one(*layer) : LayerSet::all(),
          .component = read.take(enum_parameter(request, "component", Component::Input))};
}

std::optional<LayerId> detail::layer_of(const Request& request) {
  return layer_parameter(request).value_or(std::nullopt);
}

Status detail::check_layer(std::optional<LayerId> layer, const SessionReader& reader) {
  return layer ? validate_layers(reader, LayerSet::one(*layer)) : Status();
}

void set_damage_header(httplib::Response& response, std::optional<std::uint32_t> readable_steps) {
  if (readable_steps) response.set_header("X-Whole-Steps", std::to_string(*readable_steps));
}

QueryQueue::Subject query_subject(SessionStore& sessions, const std::string& id, Work work) {
  // About 5 million accesses: less than a second for each of the queries.
  constexpr std::uint64_t kSmallBytes = 4u << 20;
  const auto is_small = [&] {
    const auto entry = sessions.entry(id);
    return entry && entry->file_bytes <= kSmallBytes;
  };
  return {.version = sessions.tag(id), .small = work == Work::Small || is_small()};
}

ContinueCheck while_connected(const Request& request) {
  return [&request] { return !request.is_connection_closed(); };
}

}  // namespace tt
