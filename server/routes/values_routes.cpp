// Captured values of one op as a picture and as a file of numpy. Their list, statistics and numbers
// are analyses (analysis/values/captured_outputs.h); all of them as safetensors: export_routes.cpp.
#include <expected>
#include <format>
#include <string>
#include <utility>

#include "analysis/values/captured_outputs.h"
#include "api/exchange/values/value_files.h"
#include "api/json/analysis/weights_json.h"
#include "api/json/raster_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "tracer/weights/array_picture.h"

namespace tt {

namespace {

using Request = httplib::Request;

CapturedPlace place_of(const Request& request, ParameterReader& read) {
  return {.step = read.take(step_in_path(request)),
          .op = read.take(op_in_path(request)),
          .output = read.take(text_parameter(request, "output"))};
}

// What a cell is of several values: those of captured values have no blocks.
OrProblem<CellOf> cell_parameter(const Request& request) {
  return enum_parameter(request, "value", CellOf::MaxAbs)
      .transform([](const std::optional<CellOf>& of) { return of.value_or(CellOf::Mean); });
}

struct Ranges {
  Bounds x, y;
  std::uint32_t width = 0, height = 0;
};

std::expected<TextResponse, TraceError> picture_of(const OutputValues& output,
                                                   const std::string& name, const Ranges& asked,
                                                   CellOf of, bool columns) {
  const CapturedArray array = array_of(output);
  const auto axis = [](std::uint64_t size, const Bounds& bounds, std::uint32_t pixels) {
    return picture_axis(size, bounds.from.value_or(0), bounds.to.value_or(size), pixels);
  };
  const auto x = axis(array.ne[0], asked.x, asked.width);
  const auto y = axis(array.rows(), asked.y, asked.height);
  if (!x || !y)
    return std::unexpected(
        TraceError{TraceError::Kind::NotFound,
                   std::format("The values have {} rows of {} numbers; the request is outside.",
                               array.rows(), array.ne[0])});
  const TensorPicture picture = array_picture(array.values, *x, *y, of);
  return columns ? TextResponse{columns_of(picture, name), kColumnsType}
                 : TextResponse{json_of(picture, name), "application/json"};
}

}  // namespace

void add_values_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  add_session_query(
      http, sessions, queue, "steps/:step/ops/:op/values/picture",
      [](const Request& request, ParameterReader& read) {
        const CapturedPlace place = place_of(request, read);
        const CellOf of = read.take(cell_parameter(request));
        const Ranges asked{
            .x = read.take(bounds_parameters(request, "x_from", "x_to", kMaxJsonInteger)),
            .y = read.take(bounds_parameters(request, "y_from", "y_to", kMaxJsonInteger)),
            .width = read.take(pixels_parameter(request, "width", kDefaultPictureWidth)),
            .height = read.take(pixels_parameter(request, "height", kDefaultPictureHeight))};
        const bool columns = read.take(columns_parameter(request, asked.width, asked.height));
        return [=](const SessionReader& reader) {
          return captured_output(reader, place).and_then([&](const OutputValues& output) {
            return picture_of(output, place.output, asked, of, columns);
          });
        };
      });
  add_session_query(http, sessions, queue, "steps/:step/ops/:op/values/file",
                    [](const Request& request, ParameterReader& read) {
                      const CapturedPlace place = place_of(request, read);
                      return [=](const SessionReader& reader) {
                        return captured_output(reader, place).transform([](const OutputValues& of) {
                          return TextResponse{exchange::npy_of(of), "application/octet-stream"};
                        });
                      };
                    });
}

}  // namespace tt
