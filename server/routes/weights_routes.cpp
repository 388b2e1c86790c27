// Values of weights, read from the files of the models that the server lists.
#include <algorithm>
#include <format>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/weights/weight_uses.h"
#include "api/json/analysis/weights_json.h"
#include "api/json/raster_json.h"
#include "api/json/row_uses.h"
#include "server/http/session_query_handler.h"
#include "server/routes/routes.h"
#include "tracer/text/nearest.h"
#include "tracer/weights/importance_file.h"
#include "tracer/weights/model_comparison.h"
#include "tracer/weights/quantization_error.h"
#include "tracer/weights/quantization_mix.h"
#include "tracer/weights/tensor_details.h"
#include "tracer/weights/tensor_picture.h"

namespace tt {

namespace {

using Request = httplib::Request;
using Response = httplib::Response;

constexpr std::uint64_t kSmallBytes = 128U << 20;  // decoded in less than a second
constexpr std::uint64_t kMaxMixRows = 1'000'000;

// Of the files: equal requests share one computation.
std::string version_of(const GgufIndex& index) {
  std::string version = "weights";
  for (const ModelFile& file : index.files())
    version += std::format("-{}-{}", file.size, file.mtime_ns);
  return version;
}

// The file may change while it is read; a query that is cancelled has no client.
Problem read_problem(const std::string& error) { return {ErrorCode::ModelDamaged, error + "."}; }

template <class Value>
OrProblem<Value> or_problem(std::expected<Value, std::string> value) {
  return std::move(value).transform_error(read_problem);
}

// Of the tensors that can be decoded.
std::uint64_t bytes_of(const GgufIndex& index) {
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : index.tensors())
    if (undecodable_reason(tensor).empty()) bytes += tensor.file.length;
  return bytes;
}
// Of the tensors of both models that are compared with each other.
std::uint64_t compared_bytes(const GgufIndex& reference, const GgufIndex& model) {
  std::uint64_t bytes = 0;
  for (const GgufTensor& tensor : model.tensors())
    if (const GgufTensor* other = reference.find(tensor.name);
        other != nullptr && incomparable_reason(*other, tensor).empty())
      bytes += other->file.length + tensor.file.length;
  return bytes;
}
using Progress = QueryQueue::Progress;

void respond_found(Response& out, const OrProblem<Json>& found) {
  if (found) {
    respond(out, *found);
  } else {
    respond(out, found.error());
  }
}

class WeightsRoutes {
 public:
  WeightsRoutes(ModelManager& model_manager, SessionStore& sessions, QueryQueue& queue)
      : model_manager_(model_manager), sessions_(sessions), queue_(queue) {}

  void list(const Request& request, Response& response) const {
    auto index = model_manager_.structure(request.path_params.at("model"));
    if (!index) return respond(response, index.error());
    const std::uint64_t bytes = bytes_of(*index);
    run(request, response, *std::move(index), bytes,
        [](const GgufIndex& of, WeightReader& reader, Response& out,
           const ContinueCheck& keep_going) {
          respond_found(out, or_problem(tensor_summaries(reader, of, keep_going))
                                 .transform([](const auto& found) { return to_json(found); }));
        });
  }

  void details(const Request& request, Response& response) const {
    ParameterReader read;
    constexpr std::uint64_t kMaxLargestRows = 1000, kDefaultRows = 20;
    const auto rows = static_cast<std::size_t>(
        read.take(number_parameter(request, "rows", kMaxLargestRows)).value_or(kDefaultRows));
    of_tensor(
        request, response, read,
        [](const GgufTensor& tensor) { return OrProblem<RowRange>(all_rows(tensor)); },
        [rows](const GgufTensor& tensor, RowRange, WeightReader& reader, Response& out,
               const ContinueCheck& keep_going) {
          respond_found(out, or_problem(tensor_details(reader, tensor, keep_going))
                                 .transform([&](const TensorDetails& found) {
                                   Json json = to_json(found), largest = Json::array();
                                   for (const auto* row : found.largest_rows(rows))
                                     largest.push_back(to_json(*row));
                                   json["largest_rows"] = std::move(largest);
                                   return json;
                                 }));
        });
  }

  void picture(const Request& request, Response& response) const {
    ParameterReader read;
    const CellOf of =
        read.take(enum_parameter(request, "value", CellOf::MinimumFactor)).value_or(CellOf::Mean);
    const Bounds x = read.take(bounds_parameters(request, "x_from", "x_to", kMaxJsonInteger));
    const Bounds y = read.take(bounds_parameters(request, "y_from", "y_to", kMaxJsonInteger));
    const auto width = read.take(pixels_parameter(request, "width", kDefaultPictureWidth));
    const auto height = read.take(pixels_parameter(request, "height", kDefaultPictureHeight));
    const bool columns = read.take(columns_parameter(request, width, height));
    const auto axes_of = [=](const GgufTensor& tensor) {
      const auto axis = [](std::uint64_t size, const Bounds& bounds, std::uint32_t pixels) {
        return picture_axis(size, bounds.from.value_or(0), bounds.to.value_or(size), pixels);
      };
      return std::pair(axis(static_cast<std::uint64_t>(tensor.ne[0]), x, width),
                       axis(row_count(tensor), y, height));
    };
    of_tensor(
        request, response, read,
        [=](const GgufTensor& tensor) -> OrProblem<RowRange> {
          if (const std::string why = no_picture_reason(tensor, of); !why.empty())
            return std::unexpected(not_shown(tensor, why));
          const auto [columns_axis, rows_axis] = axes_of(tensor);
          if (!columns_axis || !rows_axis) return std::unexpected(outside(tensor));
          return RowRange{.first = rows_axis->from, .count = rows_axis->to - rows_axis->from};
        },
        [=](const GgufTensor& tensor, RowRange, WeightReader& reader, Response& out,
            const ContinueCheck& keep_going) {
          const auto [columns_axis, rows_axis] = axes_of(tensor);
          const auto found =
              or_problem(tensor_picture(reader, tensor, *columns_axis, *rows_axis, of, keep_going));
          if (!found) return respond(out, found.error());
          respond(out, columns ? TextResponse{columns_of(*found, tensor.name), kColumnsType}
                               : TextResponse{json_of(*found, tensor.name), "application/json"});
        });
  }

  void value(const Request& request, Response& response) const {
    ParameterReader read;
    const std::uint64_t row =
        read.take(number_parameter(request, "row", kMaxJsonInteger)).value_or(0);
    const std::uint64_t column =
        read.take(number_parameter(request, "column", kMaxJsonInteger)).value_or(0);
    of_tensor(
        request, response, read,
        [=](const GgufTensor& tensor) -> OrProblem<RowRange> {
          if (row >= row_count(tensor) || column >= static_cast<std::uint64_t>(tensor.ne[0]))
            return std::unexpected(outside(tensor));
          return RowRange{.first = row, .count = 1};
        },
        [column](const GgufTensor& tensor, RowRange rows, WeightReader& reader, Response& out,
                 const ContinueCheck&) {
          respond_found(out, or_problem(tensor_value(reader, tensor, rows.first, column))
                                 .transform([&](const TensorValue& found) {
                                   Json json{{"tensor", tensor.name}, {"type", tensor.type}};
                                   json.update(to_json(found));
                                   return json;
                                 }));
        });
  }

  // Against another model.
  void errors(const Request& request, Response& response) const {
    ParameterReader read;
    auto pair = models(request, read);
    if (!pair) return respond(response, pair.error());
    const std::uint64_t bytes = compared_bytes(pair->reference, pair->model);
    compare(request, response, *std::move(pair), bytes,
            [](const OpenModel& reference, const OpenModel& model, const Weighing& weighing,
               Response& out, const ContinueCheck& keep_going) {
              respond_found(out,
                            or_problem(compare_models(reference, model, {}, weighing, keep_going))
                                .transform([](const auto& found) { return to_json(found); }));
            });
  }

  void errors_of_tensor(const Request& request, Response& response) const {
    ParameterReader read;
    const std::string name = take_name(request, read);
    auto pair = models(request, read);
    if (!pair) return respond(response, pair.error());
    const GgufTensor* const tensor = pair->model.find(name);
    if (tensor == nullptr) return respond(response, no_such_tensor(pair->model, name));
    const GgufTensor* const other = pair->reference.find(name);
    const std::uint64_t bytes = tensor->file.length + (other == nullptr ? 0 : other->file.length);
    pair->weighed.tensor = name;
    compare(request, response, *std::move(pair), bytes,
            [name](const OpenModel& reference, const OpenModel& model, const Weighing& weighing,
                   Response& out, const ContinueCheck& keep_going) {
              respond_found(
                  out, or_problem(compare_tensor(reference, model, *model.index.find(name),
                                                 {.worst = kWorstErrors}, weighing, keep_going))
                           .transform([](const auto& found) { return json_with_worst(found); }));
            });
  }

  // Types with which the model has a size.
  void mix(const Request& request, Response& response) const {
    ParameterReader read;
    const auto bytes = read.take(number_parameter(request, "bytes", kMaxJsonInteger));
    if (!bytes)
      read.take(OrProblem<int>(std::unexpected(Problem{
          ErrorCode::BadRequest, R"("bytes" must be the number of bytes of all tensors.)"})));
    const auto rows = read.take(number_parameter(request, "rows", kMaxMixRows));
    if (rows == 0)
      read.take(OrProblem<int>(std::unexpected(parameter_problem("rows", "must be at least 1"))));
    const MixOptions options{.bytes = bytes.value_or(0),
                             .rows = static_cast<std::size_t>(rows.value_or(MixOptions().rows))};
    const WeighedBy weighed = take_weighed(request, read);
    if (read.problem()) return respond(response, *read.problem());
    auto index = model_manager_.structure(request.path_params.at("model"));
    if (!index) return respond(response, index.error());
    const std::uint64_t all = bytes_of(*index);
    // Of each tensor only some rows are read.
    run(
        request, response, *std::move(index), all,
        [options, weighed, &sessions = sessions_](const GgufIndex& of, WeightReader& reader,
                                                  Response& out, const ContinueCheck& keep_going) {
          const auto weighing = weighed.read(sessions, of, keep_going);
          if (!weighing) return respond(out, weighing.error());
          const auto found = quantization_mix(reader, of, options, *weighing, keep_going);
          if (!found) return respond(out, Problem{ErrorCode::BadRequest, found.error() + "."});
          respond(out, to_json(*found));
        },
        Bytes::AtMost, weighed);
  }

 private:
  // What errors are weighed by.
  struct WeighedBy {
    std::optional<GgufIndex> imatrix;  // a file of the list of models; nullopt: none is given
    std::string session;               // empty: none is given
    std::string tensor;                // whose importances are read; empty: of all

    OrProblem<Weighing> read(SessionStore& sessions, const GgufIndex& model,
                             const ContinueCheck& keep_going) const {
      const auto bad = [](std::string why) {
        return Problem{ErrorCode::BadRequest, std::move(why)};
      };
      Weighing out;
      if (imatrix) {
        auto importances = read_importance(*imatrix, tensor, keep_going).transform_error(bad);
        if (!importances) return std::unexpected(std::move(importances.error()));
        out.importances = *std::move(importances);
      }
      if (session.empty()) return out;
      auto reader = sessions.open(session);
      if (!reader) return std::unexpected(problem_of(reader.error()));
      const auto found = query_valid_prefix(
          *reader, [&](const SessionReader& of) { return weight_uses(of, keep_going); },
          keep_going);
      if (!found) return std::unexpected(problem_of(found.error()));
      auto uses = row_uses(*found, model).transform_error(bad);
      if (!uses) return std::unexpected(std::move(uses.error()));
      out.uses = *std::move(uses);
      return out;
    }
  };
  struct ModelPair {
    GgufIndex reference, model;
    WeighedBy weighed;
  };
  // The parameters `imatrix` and `session`.
  WeighedBy take_weighed(const Request& request, ParameterReader& read) const {
    WeighedBy out{
        .imatrix = {}, .session = read.take(text_parameter(request, "session")), .tensor = {}};
    if (const std::string id = read.take(text_parameter(request, "imatrix")); !id.empty())
      out.imatrix = read.take(model_manager_.structure(id).transform(
          [](GgufIndex index) { return std::optional(std::move(index)); }));
    return out;
  }
  // `version`: of the models, of which `bytes` bytes are read.
  QueryQueue::Subject subject_of(std::string version, std::uint64_t bytes,
                                 const WeighedBy& weighed) const {
    if (weighed.imatrix) {
      version += "-" + version_of(*weighed.imatrix);
      bytes += importance_bytes(*weighed.imatrix, weighed.tensor);
    }
    QueryQueue::Subject subject{.version = std::move(version), .small = bytes <= kSmallBytes};
    if (weighed.session.empty()) return subject;
    const auto of_session = query_subject(sessions_, weighed.session, Work::AllSteps);
    subject.small = subject.small && of_session.small;
    subject.version = of_session.version.transform(
        [&](const std::string& one) { return *subject.version + "-" + one; });
    return subject;
  }
  // The model of the path and that of the parameter `reference`.
  OrProblem<ModelPair> models(const Request& request, ParameterReader& read) const {
    const std::string reference = read.take(text_parameter(request, "reference"));
    if (reference.empty())
      read.take(OrProblem<int>(std::unexpected(
          Problem{ErrorCode::BadRequest, R"("reference" must be the id of a model.)"})));
    WeighedBy weighed = take_weighed(request, read);
    if (read.problem()) return std::unexpected(*read.problem());
    auto model = model_manager_.structure(request.path_params.at("model"));
    if (!model) return std::unexpected(model.error());
    auto other = model_manager_.structure(reference);
    if (!other) return std::unexpected(other.error());
    if (std::string why = incomparable_reason(*other, *model); !why.empty())
      return std::unexpected(Problem{ErrorCode::BadRequest, std::move(why) + "."});
    return ModelPair{
        .reference = *std::move(other), .model = *std::move(model), .weighed = std::move(weighed)};
  }

  using Compare = std::function<void(const OpenModel& reference, const OpenModel& model,
                                     const Weighing& weighing, Response&, const ContinueCheck&)>;
  // `bytes`: how many are read of the models.
  void compare(const Request& request, Response& response, ModelPair pair, std::uint64_t bytes,
               Compare compute) const {
    auto progress = std::make_shared<Progress>(bytes);
    QueryQueue::Subject subject =
        subject_of(version_of(pair.reference) + "-" + version_of(pair.model), bytes, pair.weighed);
    subject.progress = progress;
    queue_.respond(
        request, response, subject,
        [pair = std::move(pair), compute = std::move(compute), progress = std::move(progress),
         &sessions = sessions_](Response& out, const ContinueCheck& keep_going) {
          auto reference = WeightReader::open(pair.reference);
          if (!reference) return respond(out, read_problem(reference.error()));
          auto model = WeightReader::open(pair.model);
          if (!model) return respond(out, read_problem(model.error()));
          const auto weighing = pair.weighed.read(sessions, pair.model, keep_going);
          if (!weighing) return respond(out, weighing.error());
          compute({.index = pair.reference, .reader = *reference},
                  {.index = pair.model, .reader = *model}, *weighing, out, [&] {
                    progress->read_bytes = reference->bytes_read() + model->bytes_read();
                    return keep_going();
                  });
        });
  }

  static std::string take_name(const Request& request, ParameterReader& read) {
    std::string name = read.take(text_parameter(request, "name"));
    if (name.empty())
      read.take(OrProblem<int>(std::unexpected(
          Problem{ErrorCode::BadRequest, R"("name" must be the name of a tensor.)"})));
    return name;
  }

  using Compute =
      std::function<void(const GgufIndex&, WeightReader&, Response&, const ContinueCheck&)>;
  // `bytes`: how many are read, at most. Exactly: clients that wait are told how far it is.
  enum class Bytes : bool { AtMost, Exactly };
  void run(const Request& request, Response& response, GgufIndex index, std::uint64_t bytes,
           Compute compute, Bytes known = Bytes::Exactly, const WeighedBy& weighed = {}) const {
    auto progress = std::make_shared<Progress>(bytes);
    QueryQueue::Subject subject = subject_of(version_of(index), bytes, weighed);
    if (known == Bytes::Exactly) subject.progress = progress;
    queue_.respond(
        request, response, subject,
        [index = std::move(index), compute = std::move(compute), progress = std::move(progress)](
            Response& out, const ContinueCheck& keep_going) {
          auto reader = WeightReader::open(index);
          if (!reader) return respond(out, read_problem(reader.error()));
          compute(index, *reader, out, [&] {
            progress->read_bytes = reader->bytes_read();
            return keep_going();
          });
        });
  }

  // `rows_of` says which rows of the tensor are read, or that the request is wrong.
  template <class RowsOf, class ComputeOfTensor>
  void of_tensor(const Request& request, Response& response, ParameterReader& read,
                 const RowsOf& rows_of, ComputeOfTensor compute) const {
    const std::string name = take_name(request, read);
    if (read.problem()) return respond(response, *read.problem());
    auto index = model_manager_.structure(request.path_params.at("model"));
    if (!index) return respond(response, index.error());
    const GgufTensor* const tensor = index->find(name);
    if (tensor == nullptr) return respond(response, no_such_tensor(*index, name));
    if (const std::string why = undecodable_reason(*tensor); !why.empty())
      return respond(response, not_shown(*tensor, why));
    const OrProblem<RowRange> rows = rows_of(*tensor);
    if (!rows) return respond(response, rows.error());
    const std::uint64_t all = std::max<std::uint64_t>(row_count(*tensor), 1);
    const std::uint64_t bytes = tensor->file.length / all * rows->count;
    run(request, response, *std::move(index), bytes,
        [name, rows = *rows, compute = std::move(compute)](const GgufIndex& of,
                                                           WeightReader& reader, Response& out,
                                                           const ContinueCheck& keep_going) {
          compute(*of.find(name), rows, reader, out, keep_going);
        });
  }

  static Problem no_such_tensor(const GgufIndex& index, const std::string& name) {
    const auto names = index.tensors() | std::views::transform(&GgufTensor::name);
    return {ErrorCode::NotFound,
            std::format("The model has no tensor \"{}\"{}.", name, did_you_mean(name, names))};
  }
  static Problem not_shown(const GgufTensor& tensor, const std::string& why) {
    return {ErrorCode::BadRequest, std::format("{}: {}.", tensor.name, why)};
  }
  static Problem outside(const GgufTensor& tensor) {
    return {ErrorCode::NotFound, std::format("{} has {} rows of {} values; the request is outside.",
                                             tensor.name, row_count(tensor), tensor.ne[0])};
  }

  ModelManager& model_manager_;
  SessionStore& sessions_;
  QueryQueue& queue_;
};

}  // namespace

void add_weights_routes(httplib::Server& http, ModelManager& model_manager, SessionStore& sessions,
                        QueryQueue& queue) {
  const WeightsRoutes routes(model_manager, sessions, queue);
  const auto add = [&](const char* path,
                       void (WeightsRoutes::*handler)(const Request&, Response&) const) {
    http.Get(path, [routes, handler](const Request& request, Response& response) {
      (routes.*handler)(request, response);
    });
  };
  add("/api/v1/models/:model/weights", &WeightsRoutes::list);
  add("/api/v1/models/:model/weights/tensor", &WeightsRoutes::details);
  add("/api/v1/models/:model/weights/errors", &WeightsRoutes::errors);
  add("/api/v1/models/:model/weights/errors/tensor", &WeightsRoutes::errors_of_tensor);
  add("/api/v1/models/:model/weights/mix", &WeightsRoutes::mix);
  add("/api/v1/models/:model/weights/picture", &WeightsRoutes::picture);
  add("/api/v1/models/:model/weights/value", &WeightsRoutes::value);
}

}  // namespace tt
