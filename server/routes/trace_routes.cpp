#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "analysis/accesses/access_table.h"
#include "analysis/tables/node_table.h"
#include "analysis/tables/op_table.h"
#include "analysis/tables/step_summary.h"
#include "analysis/tables/template_list.h"
#include "analysis/tables/tensor_table.h"
#include "api/json/access_cursor.h"
#include "api/json/raster_json.h"
#include "api/json/step_format.h"
#include "api/json/trace_json.h"
#include "server/http/session_query_handler.h"
#include "server/routes/session_routes.h"
#include "server/sessions/session_cache.h"

namespace tt {

namespace {

constexpr std::uint64_t kDefaultSteps = 100;  // each step is derived from its template on request

using Request = httplib::Request;

OrProblem<Order<TensorSort>> tensor_order(const Request& request) {
  static constexpr SortKeys<TensorSort, 5> kSortKeys{{{"tensor", TensorSort::ByTensor},
                                                      {"name", TensorSort::ByName},
                                                      {"layer", TensorSort::ByLayer},
                                                      {"size", TensorSort::BySize},
                                                      {"offset", TensorSort::ByOffset}}};
  return order_parameter(request, kSortKeys);
}

OpFilter op_filter(const Request& request, ParameterReader& read) {
  return {.name = read.take(text_parameter(request, "name")),
          .layer = read.take(layer_parameter(request)),
          .component = read.take(enum_parameter(request, "component", Component::Input))};
}

OrProblem<Order<OpSort>> op_order(const Request& request) {
  static constexpr SortKeys<OpSort, 5> kSortKeys{{{"op", OpSort::ByOp},
                                                  {"name", OpSort::ByName},
                                                  {"duration", OpSort::ByDuration},
                                                  {"bytes", OpSort::ByBytes},
                                                  {"layer", OpSort::ByLayer}}};
  return order_parameter(request, kSortKeys);
}

// Filter parameters of both access lists.
AccessFilter access_filter(const Request& request, ParameterReader& read) {
  AccessFilter filter;
  filter.tensor = tensor_filter(request, read, "tensor");
  filter.write = read.take(flag_parameter(request, "write"));
  constexpr std::uint64_t kMaxExpert = std::numeric_limits<std::int32_t>::max();
  if (const auto expert = read.take(number_parameter(request, "expert", kMaxExpert)))
    filter.expert = static_cast<std::int32_t>(*expert);
  return filter;
}

OrProblem<Order<AccessSort>> access_order(const Request& request) {
  static constexpr SortKeys<AccessSort, 4> kSortKeys{{{"time", AccessSort::ByTime},
                                                      {"bytes", AccessSort::ByBytes},
                                                      {"offset", AccessSort::ByOffset},
                                                      {"tensor", AccessSort::ByTensor}}};
  return order_parameter(request, kSortKeys);
}

AccessQuery access_query(const Request& request, ParameterReader& read) {
  AccessQuery query;
  const Bounds ends = read.take(bounds_parameters(request, "first_step", "last_step", kMaxId));
  query.first_step = StepId{static_cast<std::uint32_t>(ends.from.value_or(0))};
  if (ends.to) query.last_step = StepId{static_cast<std::uint32_t>(*ends.to)};
  query.phase = read.take(enum_parameter(request, "phase", Phase::Other));
  query.filter = access_filter(request, read);
  query.filter.op_name = read.take(text_parameter(request, "op"));
  query.order = read.take(access_order(request));
  return query;
}

// With `last`, the page has the last steps instead of those of `range`.
std::expected<Page<StepSummary>, TraceError> step_page(const SessionReader& reader, PageRange range,
                                                       std::optional<std::uint64_t> last,
                                                       const ContinueCheck& keep_going) {
  if (last) {
    const auto total = reader.step_count();
    if (!total) return std::unexpected(total.error());
    range = {.from = *total - std::min<std::uint64_t>(*last, *total), .limit = *last};
  }
  return step_summaries(reader, range, keep_going);
}

void add_template_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  add_session_query(http, sessions, queue, "templates",
                    [](const Request&, ParameterReader&) { return template_list; });

  add_session_query(http, sessions, queue, "templates/:template/nodes",
                    [](const Request& request, ParameterReader& read) {
                      const TemplateId graph = read.take(template_in_path(request));
                      const PageRange range = read.take(page_parameters(request, kDefaultRows));
                      return [=](const SessionReader& reader) {
                        return node_table(reader, graph, range);
                      };
                    });

  add_session_query(http, sessions, queue, "templates/:template/tensors",
                    [](const Request& request, ParameterReader& read) {
                      const TemplateId graph = read.take(template_in_path(request));
                      const TensorFilter filter = tensor_filter(request, read);
                      const auto order = read.take(tensor_order(request));
                      const PageRange range = read.take(page_parameters(request, kDefaultRows));
                      return [=](const SessionReader& reader) {
                        return tensor_table(reader, graph, filter, order, range);
                      };
                    });
}

void add_step_routes(httplib::Server& http, SessionStore& sessions, QueryQueue& queue) {
  add_session_query(http, sessions, queue, "tokens",
                    [](const Request& request, ParameterReader& read) {
                      const PageRange range = read.take(page_parameters(request, kDefaultRows));
                      return [=](const SessionReader& reader) { return token_page(reader, range); };
                    });

  add_session_query(
      http, sessions, queue, "steps", [](const Request& request, ParameterReader& read) {
        const PageRange range = read.take(page_parameters(request, kDefaultSteps));
        const auto last = read.take(number_parameter(request, "last", kMaxRows));
        static constexpr std::string_view kStepFormats[] = {"json", "columns"};
        const bool columns =
            read.take(enum_parameter(request, "format", kStepFormats, "json")) == "columns";
        return [=](const SessionReader& reader, const ContinueCheck& keep_going) {
          return step_page(reader, range, last, keep_going)
              .transform([&](const Page<StepSummary>& page) {
                return columns ? TextResponse{columns_of(page), kColumnsType}
                               : TextResponse{text_of(to_json(page)), "application/json"};
              });
        };
      });

  add_session_query(http, sessions, queue, "steps/:step/ops",
                    [](const Request& request, ParameterReader& read) {
                      const StepId step = read.take(step_in_path(request));
                      const OpFilter filter = op_filter(request, read);
                      const auto order = read.take(op_order(request));
                      const PageRange range = read.take(page_parameters(request, kDefaultRows));
                      return [=](const SessionReader& reader) {
                        return op_table(reader, step, filter, order, range);
                      };
                    });
}

void add_access_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                       QueryQueue& queue) {
  add_session_query(http, sessions, queue, "steps/:step/accesses",
                    [](const Request& request, ParameterReader& read) {
                      const StepId step = read.take(step_in_path(request));
                      AccessFilter filter = access_filter(request, read);
                      if (const auto op = read.take(number_parameter(request, "op", kMaxId)))
                        filter.op = OpId{static_cast<std::uint32_t>(*op)};
                      const auto order = read.take(access_order(request));
                      const PageRange range = read.take(page_parameters(request, kDefaultRows));
                      return [=](const SessionReader& reader) {
                        return access_table(reader, step, filter, order, range);
                      };
                    });

  add_session_query(
      http, sessions, queue, "accesses", [&](const Request& request, ParameterReader& read) {
        const std::string id = request.path_params.at("id");
        const AccessQuery query = access_query(request, read);
        const auto limit = read.take(number_parameter(request, "limit", kMaxRows));
        std::optional<AccessId> after;
        const auto cursor = read.take(text_parameter(request, "cursor"));
        if (!cursor.empty()) after = read.take(parse_cursor(cursor, id, query));
        return [=, &sessions, &indexes](const SessionReader& reader,
                                        const ContinueCheck& keep_going) {
          std::optional<IndexCache::Handle> handle;
          const auto index = [&]() -> std::expected<const SessionIndex*, TraceError> {
            auto cached = indexes.get_or_build(id, sessions.tag(id), reader, keep_going);
            if (!cached) return std::unexpected(cached.error());
            return &*handle.emplace(*std::move(cached));
          };
          return access_page(reader, query, after, limit.value_or(kDefaultRows), keep_going, index)
              .transform([&](const AccessPage& page) { return accesses_json(page, id, query); });
        };
      });
}

}  // namespace

void add_trace_routes(httplib::Server& http, SessionStore& sessions, IndexCache& indexes,
                      QueryQueue& queue) {
  add_template_routes(http, sessions, queue);
  add_step_routes(http, sessions, queue);
  add_access_routes(http, sessions, indexes, queue);
}

}  // namespace tt
