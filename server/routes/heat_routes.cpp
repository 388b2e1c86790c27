#include <algorithm>
#include <format>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/raster.h"
#include "analysis/common/session_layers.h"
#include "analysis/weights/sequentiality.h"
#include "api/json/heat_json.h"
#include "server/http/session_question.h"
#include "server/routes/routes.h"
#include "server/sessions/session_shelf.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;
template <class Value>
using OrProblem = std::expected<Value, Problem>;

constexpr std::uint64_t kMostPixels = 4096;  // per side
constexpr std::uint64_t kUsualWidth = 1400, kUsualHeight = 800;

// Half-open range of two parameters; the end defaults to `max`. nullopt when neither is
// present.
template <class T>
std::optional<Stretch<T>> stretch(const Request& request, ParameterReader& read, const char* from,
                                  const char* to, std::uint64_t max) {
  const Ends ends = read.take(ends_parameters(request, from, to, max));
  if (!ends.from && !ends.to) return std::nullopt;
  return Stretch<T>{static_cast<T>(ends.from.value_or(0)), static_cast<T>(ends.to.value_or(max))};
}

// The layers are set by Asking, because they depend on the session, which is not open yet.
TraceFilter trace_filter(const Request& request, ParameterReader& read) {
  return {.phase = read.take(word_parameter(request, "phase", Phase::Other)),
          .tokens = stretch<std::uint64_t>(request, read, "from_token", "to_token", kMostIds),
          .steps = stretch<std::uint64_t>(request, read, "from_step", "to_step", kMostIds),
          .time = stretch<std::int64_t>(request, read, "from_ns", "to_ns", kMostNumber),
          .layers = {},
          .component = read.take(word_parameter(request, "component", Component::Input)),
          .op = read.take(text_parameter(request, "op")),
          .tensor = read.take(text_parameter(request, "tensor")),
          .kind = read.take(word_parameter(request, "kind", TensorKind::Input)),
          .source = read.take(word_parameter(request, "source", Source::Buffer))};
}

AxisQuery axis(Axis axis, const Request& request, ParameterReader& read, const char* pixels,
               std::uint64_t default_value, const char* from, const char* to) {
  AxisQuery query{.axis = axis};
  query.pixels = static_cast<std::uint32_t>(
      read.take(number_parameter(request, pixels, kMostPixels)).value_or(default_value));
  query.range = stretch<std::int64_t>(request, read, from, to, kMostNumber);
  return query;
}

Value value_of(const Request& request, ParameterReader& read,
               Value default_value = Value::Touched) {
  return read.take(word_parameter(request, "value", Value::Faults)).value_or(default_value);
}

Axis axis_of(const Request& request, ParameterReader& read, const char* name, Axis default_value) {
  return read.take(word_parameter(request, name, Axis::All)).value_or(default_value);
}

// The y axis must be a location, not a time.
Axis place_of(const Request& request, ParameterReader& read, Axis default_value) {
  const Axis axis = axis_of(request, read, "y", default_value);
  if (says_when(axis)) {
    read.take(OrProblem<int>(std::unexpected(not_one_of(
        "y",
        "layer, component, op_kind, op, phase, tensor, source, expert, file, buffer, all; only "
        "x can be time, step or token"))));
  }
  return axis;
}

// Adds the session index to a query of about_session(). `form` converts the result to JSON or
// bytes.
class Asking {
 public:
  Asking(SessionStore& sessions, IndexShelf& indexes, const Request& request, ParameterReader& read)
      : sessions_(sessions),
        indexes_(indexes),
        request_(request),
        layers_(read.take(layers_parameter(request))) {}

  // `ask(index, query, keep_going)` computes the result, `form(found)` converts it to Json or
  // TextAnswer. The layers of the query filter are set here.
  template <class Query, class Ask, class Form>
  auto question(const Query& asked, const Ask& ask, const Form& form) const {
    return [=, *this](const SessionReader& reader) {
      using Found = decltype(ask(std::declval<const SessionIndex&>(), asked, KeepGoing()));
      using Formed = std::expected<decltype(form(*std::declval<Found>())), TraceError>;
      const std::string& id = request_.path_params.at("id");
      const KeepGoing keep_going = while_connected(request_);
      Query query = asked;
      auto layers = layers_in(reader, layers_);
      if (!layers) return Formed(std::unexpected(layers.error()));
      query.filter.layers = *std::move(layers);
      const auto index = indexes_.lend(id, sessions_.tag(id), reader, keep_going);
      if (!index) return Formed(std::unexpected(index.error()));
      auto found = ask(**index, query, keep_going);
      if (!found) return Formed(std::unexpected(found.error()));
      return Formed(form(*found));
    };
  }

 private:
  SessionStore& sessions_;
  IndexShelf& indexes_;
  const Request& request_;
  LayerSet layers_;
};

struct OrderQuery {
  TraceFilter filter;
  std::uint64_t gap = kUsualGap;
  PageRange page;
};

// JSON, or the format of api/columns.md with format=columns.
auto picture(const Asking& asking, const Request& request, ParameterReader& read,
             const RasterQuery& query) {
  static constexpr std::string_view kFormats[] = {"json", "columns"};
  const bool columns = read.take(word_parameter(request, "format", kFormats, "json")) == "columns";
  if (!columns && std::uint64_t{query.x.pixels} * query.y.pixels > kMostJsonCells) {
    read.take(OrProblem<int>(std::unexpected(Problem{
        Fault::BadRequest,
        std::format(
            "A raster of more than {} cells is available only with format=columns. Set it, or "
            "reduce width or height.",
            kMostJsonCells)})));
  }
  return asking.question(
      query,
      [](const SessionIndex& index, const RasterQuery& asked, const KeepGoing& keep_going) {
        return raster(index, asked, keep_going);
      },
      [columns](const Raster& found) {
        return columns ? TextAnswer{columns_of(found), kColumnsType}
                       : TextAnswer{json_of(found), "application/json"};
      });
}

void add_picture_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes) {
  http.Get("/api/v1/sessions/:id/heatmap", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      const RasterQuery query{.x = axis(axis_of(request, read, "x", Axis::Token), request, read,
                                        "width", kUsualWidth, "x_from", "x_to"),
                              .y = axis(place_of(request, read, Axis::Layer), request, read,
                                        "height", kUsualHeight, "y_from", "y_to"),
                              .value = value_of(request, read),
                              .filter = trace_filter(request, read)};
      return picture(Asking(sessions, indexes, request, read), request, read, query);
    });
  });

  http.Get("/api/v1/sessions/:id/memory-map", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      static constexpr std::string_view kMemories[] = {"file", "buffer"};
      const bool buffer =
          read.take(word_parameter(request, "memory", kMemories, "file")) == "buffer";
      const RasterQuery query{.x = axis(buffer ? Axis::Buffer : Axis::File, request, read, "width",
                                        kUsualWidth, "from", "to"),
                              .y = {.axis = Axis::All, .pixels = 1},
                              .value = value_of(request, read),
                              .filter = trace_filter(request, read)};
      return picture(Asking(sessions, indexes, request, read), request, read, query);
    });
  });

  http.Get("/api/v1/sessions/:id/timeline", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      RasterQuery query{.x = {.axis = Axis::Time},
                        .y = axis(place_of(request, read, Axis::File), request, read, "height",
                                  kUsualHeight, "y_from", "y_to"),
                        .value = value_of(request, read),
                        .filter = trace_filter(request, read)};
      query.x.pixels = static_cast<std::uint32_t>(
          read.take(number_parameter(request, "width", kMostPixels)).value_or(kUsualWidth));
      query.x.range = std::exchange(query.filter.time, std::nullopt);
      return picture(Asking(sessions, indexes, request, read), request, read, query);
    });
  });
}

// Row keys: all axes except bytes and time, which is unbounded.
OrProblem<Axis> by_parameter(const Request& request, Axis default_value) {
  const auto by = word_parameter(request, "by", Axis::All);
  if (!by) return std::unexpected(by.error());
  const Axis axis = by->value_or(default_value);
  if (is_bytes(axis) || axis == Axis::Time) {
    return std::unexpected(
        not_one_of("by",
                   "step, token, layer, component, op_kind, op, phase, tensor, source, "
                   "expert, all"));
  }
  return axis;
}

OrProblem<std::optional<Order<Value>>> order_of_rows(const Request& request) {
  if (!request.has_param("sort")) return std::nullopt;
  static constexpr SortWords<Value, 9> kWords{{{"bytes", Value::Touched},
                                               {"bytes_read", Value::BytesRead},
                                               {"bytes_written", Value::BytesWritten},
                                               {"accesses", Value::Accesses},
                                               {"reads", Value::Reads},
                                               {"writes", Value::Writes},
                                               {"executions", Value::Executions},
                                               {"time", Value::Time},
                                               {"faults", Value::Faults}}};
  return order_parameter(request, kWords).transform([](Order<Value> order) {
    return std::optional(order);
  });
}

// A percentage parameter as a fraction.
double percent(const Request& request, ParameterReader& read, const char* name,
               double default_value) {
  return read.take(percent_parameter(request, name)).value_or(default_value) / 100;
}

void add_sum_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes) {
  http.Get("/api/v1/sessions/:id/breakdown", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      const BreakdownQuery query{.by = read.take(by_parameter(request, Axis::Layer)),
                                 .filter = trace_filter(request, read),
                                 .order = read.take(order_of_rows(request)),
                                 .page = read.take(page_parameters(request, kUsualRows))};
      return Asking(sessions, indexes, request, read)
          .question(
              query,
              [](const SessionIndex& index, const BreakdownQuery& asked,
                 const KeepGoing& keep_going) { return breakdown(index, asked, keep_going); },
              [](const Breakdown& found) { return to_json(found); });
    });
  });

  http.Get("/api/v1/sessions/:id/hot", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      const HotQuery query{.by = read.take(by_parameter(request, Axis::Tensor)),
                           .value = value_of(request, read, Value::Accesses),
                           .hot_share = percent(request, read, "hot_percent", 10),
                           .cold_share = percent(request, read, "cold_percent", 50),
                           .filter = trace_filter(request, read),
                           .page = read.take(page_parameters(request, kUsualRows))};
      return Asking(sessions, indexes, request, read)
          .question(
              query,
              [](const SessionIndex& index, const HotQuery& asked, const KeepGoing& keep_going) {
                return hot_cold(index, asked, keep_going);
              },
              [](const HotCold& found) { return to_json(found); });
    });
  });

  http.Get("/api/v1/sessions/:id/sequentiality", [&](const Request& request, Response& response) {
    about_session(sessions, request, response, [&](ParameterReader& read) {
      const OrderQuery query{
          .filter = trace_filter(request, read),
          .gap = read.take(number_parameter(request, "gap", kMostNumber)).value_or(kUsualGap),
          .page = read.take(page_parameters(request, kUsualRows))};
      return Asking(sessions, indexes, request, read)
          .question(
              query,
              [](const SessionIndex& index, const OrderQuery& asked, const KeepGoing& keep_going) {
                return sequentiality(index, asked.filter, asked.gap, asked.page, keep_going);
              },
              [](const Sequentiality& found) { return to_json(found); });
    });
  });
}

}  // namespace

void add_heat_routes(httplib::Server& http, SessionStore& sessions, IndexShelf& indexes) {
  add_picture_routes(http, sessions, indexes);
  add_sum_routes(http, sessions, indexes);
}

}  // namespace tt
