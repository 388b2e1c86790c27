#include <algorithm>
#include <format>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/common/session_layers.h"
#include "analysis/report/comparison.h"
#include "analysis/weights/sequentiality.h"
#include "api/json/analysis/comparison_json.h"
#include "api/json/analysis/heat_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/session_cache.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kMaxPixels = 4096;  // per side
constexpr std::uint64_t kDefaultWidth = 1400, kDefaultHeight = 800;

// Half-open range of two parameters; the end defaults to `max`. nullopt when neither is
// present.
template <class T>
std::optional<Range<T>> range_parameter(const Request& request, ParameterReader& read,
                                        const char* from, const char* to, std::uint64_t max) {
  const Bounds ends = read.take(bounds_parameters(request, from, to, max));
  if (!ends.from && !ends.to) return std::nullopt;
  return Range<T>{static_cast<T>(ends.from.value_or(0)), static_cast<T>(ends.to.value_or(max))};
}

// The layers are set by IndexQuery, because they depend on the session, which is not open yet.
TraceFilter trace_filter(const Request& request, ParameterReader& read) {
  return {.phase = read.take(enum_parameter(request, "phase", Phase::Other)),
          .tokens = range_parameter<std::uint64_t>(request, read, "from_token", "to_token", kMaxId),
          .steps = range_parameter<std::uint64_t>(request, read, "from_step", "to_step", kMaxId),
          .time = range_parameter<std::int64_t>(request, read, "from_ns", "to_ns", kMaxJsonInteger),
          .layers = {},
          .component = read.take(enum_parameter(request, "component", Component::Input)),
          .kernel = read.take(enum_parameter(request, "kernel", Kernel::Device)),
          .op = read.take(text_parameter(request, "op")),
          .tensor = read.take(text_parameter(request, "tensor")),
          .kind = read.take(enum_parameter(request, "kind", TensorKind::Input)),
          .source = read.take(enum_parameter(request, "source", Source::Buffer))};
}

// A number of pixels, 1 or more.
std::uint32_t pixels_of(const Request& request, ParameterReader& read, const char* name,
                        std::uint64_t default_value) {
  auto pixels = number_parameter(request, name, kMaxPixels);
  if (!pixels || *pixels == 0U) {
    pixels = std::unexpected(
        Problem{ErrorCode::BadRequest,
                std::format("\"{}\" must be a whole number from 1 to {}.", name, kMaxPixels)});
  }
  return static_cast<std::uint32_t>(read.take(std::move(pixels)).value_or(default_value));
}

AxisQuery axis(Axis axis, const Request& request, ParameterReader& read, const char* pixels,
               std::uint64_t default_value, const char* from, const char* to) {
  AxisQuery query{.axis = axis};
  query.pixels = pixels_of(request, read, pixels, default_value);
  query.range = range_parameter<std::int64_t>(request, read, from, to, kMaxJsonInteger);
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
        "layer, component, op_kind, op, kernel, phase, tensor, source, expert, head, file, "
        "buffer, all; only x can be time, step or token"))));
  }
  return axis;
}

LeaveOut leave_out_of(const Request& request, ParameterReader& read) {
  return read.take(flag_parameter(request, "clean")).value_or(false) ? LeaveOut::Disturbed
                                                                     : LeaveOut::Nothing;
}

// What the routes of this file use.
struct Services {
  SessionStore& sessions;
  IndexCache& indexes;
  QueryQueue& queue;
};

// Runs a query that uses the index of the session, which is built at the first query.
template <class MakeQuery>
void handle_index_query(const Services& services, const Request& request, Response& response,
                        const MakeQuery& make_query) {
  const auto& [sessions, indexes, queue] = services;
  ParameterReader read;  // make_query reports its problem
  const LeaveOut leave_out = leave_out_of(request, read);
  const std::string& id = request.path_params.at("id");
  const bool is_built = indexes.is_built(leave_out, id, sessions.tag(id));
  handle_session_query(sessions, queue, request, response, make_query,
                       is_built ? Work::Small : Work::AllSteps);
}

// Adds the session index to a query of handle_index_query(). `form` converts the result to
// JSON or bytes.
class IndexQuery {
 public:
  IndexQuery(const Services& services, const Request& request, ParameterReader& read)
      : sessions_(services.sessions),
        indexes_(services.indexes),
        id_(request.path_params.at("id")),
        layers_(read.take(layers_parameter(request))),
        leave_out_(leave_out_of(request, read)) {}

  // `compute(index, query, keep_going)` computes the result, `form(found)` converts it to Json or
  // TextResponse. The layers of the query filter are set here.
  template <class Query, class Compute, class Form>
  auto make_query(const Query& parsed, const Compute& compute, const Form& form) const {
    return [=, *this](const SessionReader& reader, const ContinueCheck& keep_going) {
      using Found = decltype(compute(std::declval<const SessionIndex&>(), parsed, ContinueCheck()));
      using Formed = std::expected<decltype(form(*std::declval<Found>())), TraceError>;
      Query query = parsed;
      auto layers = resolve_layers(reader, layers_);
      if (!layers) return Formed(std::unexpected(layers.error()));
      query.filter.layers = *std::move(layers);
      const auto index =
          indexes_.get_or_build(leave_out_, id_, sessions_.tag(id_), reader, keep_going);
      if (!index) return Formed(std::unexpected(index.error()));
      auto found = compute(**index, query, keep_going);
      if (!found) return Formed(std::unexpected(found.error()));
      return Formed(form(*found));
    };
  }

 private:
  SessionStore& sessions_;
  IndexCache& indexes_;
  std::string id_;
  LayerSet layers_;
  LeaveOut leave_out_;
};

struct OrderQuery {
  TraceFilter filter;
  std::uint64_t gap = kDefaultGap;
  PageRange page;
};

// JSON, or the format of api/raster_format.md with format=columns.
auto raster_query(const IndexQuery& index_query, const Request& request, ParameterReader& read,
                  const RasterQuery& query) {
  static constexpr std::string_view kFormats[] = {"json", "columns"};
  const bool columns = read.take(enum_parameter(request, "format", kFormats, "json")) == "columns";
  if (!columns && std::uint64_t{query.x.pixels} * query.y.pixels > kMaxJsonCells) {
    read.take(OrProblem<int>(std::unexpected(Problem{
        ErrorCode::BadRequest,
        std::format(
            "A raster of more than {} cells (width times height) requires format=columns. Set it, "
            "or reduce width or height.",
            kMaxJsonCells)})));
  }
  return index_query.make_query(
      query,
      [](const SessionIndex& index, const RasterQuery& parsed, const ContinueCheck& keep_going) {
        return raster(index, parsed, keep_going);
      },
      [columns](const Raster& found) {
        return columns ? TextResponse{columns_of(found), kColumnsType}
                       : TextResponse{json_of(found), "application/json"};
      });
}

void add_raster_routes(httplib::Server& http, const Services& services) {
  http.Get("/api/v1/sessions/:id/heatmap", [services](const Request& request, Response& response) {
    handle_index_query(services, request, response, [&](ParameterReader& read) {
      const RasterQuery query{.x = axis(axis_of(request, read, "x", Axis::Token), request, read,
                                        "width", kDefaultWidth, "x_from", "x_to"),
                              .y = axis(location_axis(request, read, Axis::Layer), request, read,
                                        "height", kDefaultHeight, "y_from", "y_to"),
                              .value = value_of(request, read),
                              .filter = trace_filter(request, read)};
      return raster_query(IndexQuery(services, request, read), request, read, query);
    });
  });

  http.Get("/api/v1/sessions/:id/memory-map",
           [services](const Request& request, Response& response) {
             handle_index_query(services, request, response, [&](ParameterReader& read) {
               static constexpr std::string_view kMemories[] = {"file", "buffer"};
               const bool buffer =
                   read.take(enum_parameter(request, "memory", kMemories, "file")) == "buffer";
               const RasterQuery query{.x = axis(buffer ? Axis::Buffer : Axis::File, request, read,
                                                 "width", kDefaultWidth, "from", "to"),
                                       .y = {.axis = Axis::All, .pixels = 1},
                                       .value = value_of(request, read),
                                       .filter = trace_filter(request, read)};
               return raster_query(IndexQuery(services, request, read), request, read, query);
             });
           });

  http.Get("/api/v1/sessions/:id/timeline", [services](const Request& request, Response& response) {
    handle_index_query(services, request, response, [&](ParameterReader& read) {
      RasterQuery query{.x = {.axis = Axis::Time},
                        .y = axis(location_axis(request, read, Axis::File), request, read, "height",
                                  kDefaultHeight, "y_from", "y_to"),
                        .value = value_of(request, read),
                        .filter = trace_filter(request, read)};
      query.x.pixels = pixels_of(request, read, "width", kDefaultWidth);
      query.x.range = std::exchange(query.filter.time, std::nullopt);
      return raster_query(IndexQuery(services, request, read), request, read, query);
    });
  });
}

// Row keys: all axes except bytes and time, which is unbounded.
OrProblem<Axis> by_parameter(const Request& request, Axis default_value) {
  const auto by = enum_parameter(request, "by", Axis::All);
  if (!by) return std::unexpected(by.error());
  const Axis axis = by->value_or(default_value);
  if (is_byte_axis(axis) || axis == Axis::Time) {
    return std::unexpected(
        not_one_of("by",
                   "step, token, layer, component, op_kind, op, kernel, phase, tensor, source, "
                   "expert, head, all"));
  }
  return axis;
}

OrProblem<std::optional<Order<Value>>> row_order(const Request& request) {
  if (!request.has_param("sort")) return std::nullopt;
  static constexpr SortKeys<Value, 9> kSortKeys{{{"bytes", Value::Touched},
                                                 {"bytes_read", Value::BytesRead},
                                                 {"bytes_written", Value::BytesWritten},
                                                 {"accesses", Value::Accesses},
                                                 {"reads", Value::Reads},
                                                 {"writes", Value::Writes},
                                                 {"executions", Value::Executions},
                                                 {"time", Value::Time},
                                                 {"faults", Value::Faults}}};
  return order_parameter(request, kSortKeys).transform([](Order<Value> order) {
    return std::optional(order);
  });
}

bool step_times_of(const Request& request, ParameterReader& read) {
  return read.take(flag_parameter(request, "step_times")).value_or(false);
}

// The two tokens, steps or layers to compare: one pair of parameters.
WithinQuery within_query(const Request& request, ParameterReader& read) {
  struct Pair {
    Axis axis;
    const char *left, *right;
  };
  static constexpr Pair kPairs[] = {{Axis::Token, "left_token", "right_token"},
                                    {Axis::Step, "left_step", "right_step"},
                                    {Axis::Layer, "left_layer", "right_layer"}};
  WithinQuery query;
  std::size_t given = 0;
  bool complete = true;
  for (const auto& [axis, left, right] : kPairs) {
    const auto a = read.take(number_parameter(request, left, kMaxId));
    const auto b = read.take(number_parameter(request, right, kMaxId));
    if (!a && !b) continue;
    ++given;
    complete = complete && a && b;
    query.axis = axis;
    query.left = a.value_or(0);
    query.right = b.value_or(0);
  }
  const auto reject = [&](const char* detail) {
    read.take(OrProblem<int>(std::unexpected(Problem{ErrorCode::BadRequest, detail})));
  };
  if (given != 1 || !complete)
    reject(
        "Set left_token and right_token, left_step and right_step, or left_layer and right_layer.");
  if (query.axis == Axis::Layer && request.has_param("layers"))
    reject("layers cannot be combined with left_layer and right_layer. Omit it.");
  return query;
}

void add_sum_routes(httplib::Server& http, const Services& services) {
  http.Get("/api/v1/sessions/:id/breakdown", [services](const Request& request,
                                                        Response& response) {
    handle_index_query(services, request, response, [&](ParameterReader& read) {
      const BreakdownQuery query{.by = read.take(by_parameter(request, Axis::Layer)),
                                 .filter = trace_filter(request, read),
                                 .order = read.take(row_order(request)),
                                 .page = read.take(page_parameters(request, kDefaultRows)),
                                 .step_times = step_times_of(request, read)};
      return IndexQuery(services, request, read)
          .make_query(
              query,
              [](const SessionIndex& index, const BreakdownQuery& parsed,
                 const ContinueCheck& keep_going) { return breakdown(index, parsed, keep_going); },
              [](const Breakdown& found) { return to_json(found); });
    });
  });

  http.Get("/api/v1/sessions/:id/hot", [services](const Request& request, Response& response) {
    handle_index_query(services, request, response, [&](ParameterReader& read) {
      const auto hot = read.take(percent_parameter(request, "hot_percent"));
      const auto cold = read.take(percent_parameter(request, "cold_percent"));
      HotQuery query{.by = read.take(by_parameter(request, Axis::Tensor)),
                     .value = read.take(enum_parameter(request, "value", Value::Faults)),
                     .filter = trace_filter(request, read),
                     .page = read.take(page_parameters(request, kDefaultRows)),
                     .step_times = step_times_of(request, read)};
      query.set_shares(hot, cold);
      if (query.hot_share + query.cold_share > 1) {
        read.take(OrProblem<int>(std::unexpected(
            Problem{ErrorCode::BadRequest,
                    "\"hot_percent\" and \"cold_percent\" overlap: together they must be at most "
                    "100."})));
      }
      return IndexQuery(services, request, read)
          .make_query(
              query,
              [](const SessionIndex& index, const HotQuery& parsed,
                 const ContinueCheck& keep_going) { return hot_cold(index, parsed, keep_going); },
              [](const HotCold& found) { return to_json(found); });
    });
  });

  http.Get("/api/v1/sessions/:id/comparison",
           [services](const Request& request, Response& response) {
             handle_index_query(services, request, response, [&](ParameterReader& read) {
               WithinQuery query = within_query(request, read);
               query.value = value_of(request, read, Value::Time);
               query.filter = trace_filter(request, read);
               query.page = read.take(page_parameters(request, kDefaultRows));
               return IndexQuery(services, request, read)
                   .make_query(
                       query,
                       [](const SessionIndex& index, const WithinQuery& parsed,
                          const ContinueCheck& keep_going) {
                         return compare_within(index, parsed, keep_going);
                       },
                       [](const WithinComparison& found) { return to_json(found); });
             });
           });

  http.Get("/api/v1/sessions/:id/sequentiality", [services](const Request& request,
                                                            Response& response) {
    handle_index_query(services, request, response, [&](ParameterReader& read) {
      const OrderQuery query{
          .filter = trace_filter(request, read),
          .gap = read.take(number_parameter(request, "gap", kMaxJsonInteger)).value_or(kDefaultGap),
          .page = read.take(page_parameters(request, kDefaultRows))};
      return IndexQuery(services, request, read)
          .make_query(
              query,
              [](const SessionIndex& index, const OrderQuery& parsed,
                 const ContinueCheck& keep_going) {
                return sequentiality(index, parsed.filter, parsed.gap, parsed.page, keep_going);
              },
              [](const Sequentiality& found) { return to_json(found); });
    });
  });
}

}  // namespace

void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                     QueryQueue& queue) {
  const Services services{.sessions = sessions, .indexes = indexes, .queue = queue};
  add_raster_routes(http, services);
  add_sum_routes(http, services);
}

}  // namespace tt
