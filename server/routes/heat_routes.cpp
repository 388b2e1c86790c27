#include <algorithm>
#include <format>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/raster.h"
#include "analysis/aggregate/row_figures.h"
#include "analysis/parameters/filter_parameters.h"
#include "api/json/raster_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/session_cache.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

// Half-open range of two parameters; the end defaults to `max`. nullopt when neither is
// present.
std::optional<Range<std::int64_t>> range_parameter(const Request& request, ParameterReader& read,
                                                   const char* from, const char* to,
                                                   std::uint64_t max) {
  const Bounds ends = read.take(bounds_parameters(request, from, to, max));
  if (!ends.from && !ends.to) return std::nullopt;
  return Range<std::int64_t>{static_cast<std::int64_t>(ends.from.value_or(0)),
                             static_cast<std::int64_t>(ends.to.value_or(max))};
}

FilterQuery filter_query(const Request& request, ParameterReader& read) {
  static const Parameters<FilterQuery> parameters = filter_parameters();
  const auto text = [&](const std::string& name) -> std::optional<std::string> {
    if (!request.has_param(name)) return std::nullopt;
    return request.get_param_value(name);
  };
  return read.take(parameters.parse(text).transform_error(
      [](const ParameterError& error) { return parameter_problem(error.name, error.detail); }));
}

AxisQuery axis(Axis axis, const Request& request, ParameterReader& read, const char* pixels,
               std::uint32_t default_value, const char* from, const char* to) {
  AxisQuery query{.axis = axis};
  query.pixels = read.take(pixels_parameter(request, pixels, default_value));
  query.range = range_parameter(request, read, from, to, kMaxJsonInteger);
  return query;
}

Value value_of(const Request& request, ParameterReader& read,
               Value default_value = Value::Touched) {
  return read.take(enum_parameter(request, "value", Value::Faults)).value_or(default_value);
}

Axis axis_of(const Request& request, ParameterReader& read, const char* name, Axis default_value) {
  return read.take(enum_parameter(request, name, Axis::All)).value_or(default_value);
}

// The y axis must be a location, not a time.
Axis location_axis(const Request& request, ParameterReader& read, Axis default_value) {
  const Axis axis = axis_of(request, read, "y", default_value);
  if (is_temporal(axis)) {
    read.take(OrProblem<int>(std::unexpected(not_one_of(
        "y",
        "layer, component, op_kind, op, kernel, phase, tensor, source, type, expert, head, file, "
        "buffer, all; only x can be time, step or token"))));
  }
  return axis;
}

// Whether the answer has the figures of the rows: of the steps or tokens of x.
bool wants_figures(const Request& request, ParameterReader& read, const RasterQuery& query) {
  const bool wanted = read.take(flag_parameter(request, "row_figures")).value_or(false);
  if (wanted && query.x.axis != Axis::Step && query.x.axis != Axis::Token)
    read.take(OrProblem<int>(std::unexpected(Problem{
        ErrorCode::BadRequest, "\"row_figures\" is for the x axes step and token. Set x."})));
  return wanted;
}

// What the routes of this file use.
struct Services {
  SessionStore& sessions;
  IndexCache& indexes;
  QueryQueue& queue;
};

// Runs a raster query, which uses the index of the session; it is built at the first query.
template <class MakeQuery>
void handle_raster_query(const Services& services, const Request& request, Response& response,
                         const MakeQuery& make_query) {
  const auto& [sessions, indexes, queue] = services;
  ParameterReader read;  // make_query reports its problem
  const LeaveOut leave_out = filter_query(request, read).leave_out;
  const std::string& id = request.path_params.at("id");
  // Row figures read every step, also with an index.
  const bool is_built =
      indexes.is_built(leave_out, id, sessions.tag(id)) && !request.has_param("row_figures");
  handle_session_query(sessions, queue, request, response, make_query,
                       is_built ? Work::Small : Work::AllSteps);
}

// JSON, or the format of api/raster_format.md with format=columns.
auto raster_query(const Services& services, const Request& request, ParameterReader& read,
                  const RasterQuery& parsed, const FilterQuery& part, bool has_figures = false) {
  const bool columns = read.take(columns_parameter(request, parsed.x.pixels, parsed.y.pixels));
  return [=, id = request.path_params.at("id")](
             const SessionReader& reader,
             const ContinueCheck& keep_going) -> std::expected<TextResponse, TraceError> {
    const auto& [sessions, indexes, queue] = services;
    RasterQuery query = parsed;
    auto filter = filter_of(part, reader);
    if (!filter) return std::unexpected(filter.error());
    // A range of times may have become that of the x axis.
    filter->time = parsed.filter.time;
    query.filter = *std::move(filter);
    const auto index =
        indexes.get_or_build(part.leave_out, id, sessions.tag(id), reader, keep_going);
    if (!index) return std::unexpected(index.error());
    const auto found = raster(**index, query, keep_going);
    if (!found) return std::unexpected(found.error());
    std::optional<RowFigures> figures;
    if (has_figures) {
      auto of_rows = row_figures(**index, query, *found, keep_going);
      if (!of_rows) return std::unexpected(of_rows.error());
      figures = *std::move(of_rows);
    }
    const RowFigures* shown = figures ? &*figures : nullptr;
    return columns ? TextResponse{columns_of(*found, shown), kColumnsType}
                   : TextResponse{json_of(*found, shown), "application/json"};
  };
}

void add_raster_routes(httplib::Server& http, const Services& services) {
  http.Get("/api/v1/sessions/:id/heatmap", [services](const Request& request, Response& response) {
    handle_raster_query(services, request, response, [&](ParameterReader& read) {
      const FilterQuery part = filter_query(request, read);
      const RasterQuery query{.x = axis(axis_of(request, read, "x", Axis::Token), request, read,
                                        "width", kDefaultPictureWidth, "x_from", "x_to"),
                              .y = axis(location_axis(request, read, Axis::Layer), request, read,
                                        "height", kDefaultPictureHeight, "y_from", "y_to"),
                              .value = value_of(request, read),
                              .filter = part.filter};
      return raster_query(services, request, read, query, part,
                          wants_figures(request, read, query));
    });
  });

  http.Get("/api/v1/sessions/:id/memory-map",
           [services](const Request& request, Response& response) {
             handle_raster_query(services, request, response, [&](ParameterReader& read) {
               static constexpr std::string_view kMemories[] = {"file", "buffer"};
               const bool buffer =
                   read.take(enum_parameter(request, "memory", kMemories, "file")) == "buffer";
               const FilterQuery part = filter_query(request, read);
               const RasterQuery query{.x = axis(buffer ? Axis::Buffer : Axis::File, request, read,
                                                 "width", kDefaultPictureWidth, "from", "to"),
                                       .y = {.axis = Axis::All, .pixels = 1},
                                       .value = value_of(request, read),
                                       .filter = part.filter};
               return raster_query(services, request, read, query, part);
             });
           });

  http.Get("/api/v1/sessions/:id/timeline", [services](const Request& request, Response& response) {
    handle_raster_query(services, request, response, [&](ParameterReader& read) {
      const FilterQuery part = filter_query(request, read);
      RasterQuery query{.x = {.axis = Axis::Time},
                        .y = axis(location_axis(request, read, Axis::File), request, read, "height",
                                  kDefaultPictureHeight, "y_from", "y_to"),
                        .value = value_of(request, read),
                        .filter = part.filter};
      query.x.pixels = read.take(pixels_parameter(request, "width", kDefaultPictureWidth));
      query.x.range = std::exchange(query.filter.time, std::nullopt);
      return raster_query(services, request, read, query, part);
    });
  });
}

}  // namespace

void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                     QueryQueue& queue) {
  const Services services{.sessions = sessions, .indexes = indexes, .queue = queue};
  add_raster_routes(http, services);
}

}  // namespace tt
