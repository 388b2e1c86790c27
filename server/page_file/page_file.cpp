#include "server/page_file/page_file.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <format>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/values/captured_outputs.h"
#include "api/json/json.h"
#include "server/http/query_queue.h"
#include "server/http/statement_check.h"
#include "server/page_file/route_caller.h"
#include "server/routes/session_routes.h"
#include "server/sessions/session_cache.h"
#include "server/sessions/session_files.h"
#include "server/sessions/session_store.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/model/lens_values.h"

namespace tt {
namespace {

namespace fs = std::filesystem;
using exchange::ByteSink;

TraceError failure(std::string message) { return {TraceError::Kind::Io, std::move(message)}; }

// ---- The page ---------------------------------------------------------------------------

// One thing that the page asks, with placeholders for what depends on the session.
struct Question {
  std::string each;  // for what it is asked: once, tokens, steps, step, template, layer, output
  std::uint64_t every = 0;     // of tokens and steps: rows of a page
  std::uint64_t beyond = 0;    // not asked in a session that has no more rows
  bool needed = false;         // the page does not open without it
  bool captured = false;       // only of a session with captured values
  std::string method, target;  // below /api/v1/
  std::string body;            // JSON; empty: none
};

struct Viewer {
  std::string before, after;  // HTML around the questions
  std::vector<Question> questions;
};

std::expected<Viewer, TraceError> read_viewer(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return std::unexpected(TraceError{
        TraceError::Kind::NotFound,
        std::format("The page is not installed: {} is missing. Build it with ./tt build (needs "
                    "Node.js and npm).",
                    path.string())});
  }
  const std::string html(std::istreambuf_iterator<char>(file), {});
  constexpr std::string_view kBegin = R"(<script type="application/json" id="questions">)";
  constexpr std::string_view kEnd = "</script>";
  const std::size_t begin = html.find(kBegin);
  const std::size_t end = html.find(kEnd, std::min(begin, html.size()));
  const Json list =
      end == std::string::npos
          ? Json()
          : Json::parse(html.substr(begin + kBegin.size(), end - begin - kBegin.size()), nullptr,
                        /*allow_exceptions=*/false);
  if (!list.is_array())
    return std::unexpected(failure(path.string() + " is not the page of this version."));
  Viewer viewer{
      .before = html.substr(0, begin), .after = html.substr(end + kEnd.size()), .questions = {}};
  for (const Json& one : list) {
    viewer.questions.push_back({.each = one.value("each", ""),
                                .every = one.value("every", std::uint64_t{0}),
                                .beyond = one.value("beyond", std::uint64_t{0}),
                                .needed = one.value("needed", false),
                                .captured = one.value("captured", false),
                                .method = one.value("method", ""),
                                .target = one.value("target", ""),
                                .body = one.value("body", "")});
  }
  return viewer;
}

// ---- What the questions are asked for ---------------------------------------------------

using Values = std::vector<std::pair<std::string_view, std::string>>;  // by placeholder

struct Shape {
  std::uint32_t steps = 0, tokens = 0, layers = 0;
  std::uint32_t first = 0, end = 0;                  // the steps whose details are held
  std::map<std::uint32_t, std::uint32_t> templates;  // with the first step of each
  std::vector<std::uint32_t> same;  // by step: the first step of its template, or the step itself
  std::vector<CapturedPlace> outputs;  // captured, without the logit lens, whose values are texts
};

std::expected<Shape, TraceError> shape_of(const PageFileOptions& options) {
  const auto reader = SessionReader::open(options.session);
  if (!reader) return std::unexpected(reader.error());
  const auto info = reader->info();
  const auto steps = reader->step_count();
  const auto tokens = reader->token_count();
  if (!info) return std::unexpected(info.error());
  if (!steps) return std::unexpected(steps.error());
  if (!tokens) return std::unexpected(tokens.error());
  Shape shape{.steps = *steps,
              .tokens = *tokens,
              .layers = info->n_layers,
              .templates = {},
              .same = {},
              .outputs = {}};
  shape.first = options.first.v;
  // A last step that the session does not have is allowed.
  shape.end = options.last && options.last->v < *steps ? options.last->v + 1 : *steps;
  // Ends before a damaged step, as the answers do.
  (void)reader->for_each_step_row(StepId{0}, *steps, [&](const SessionReader::StepRow& row) {
    const std::uint32_t step = row.head.id.v;
    const std::uint32_t graph = row.head.graph.v;
    shape.same.push_back(graph == 0 ? step
                                    : shape.templates.try_emplace(graph, step).first->second);
    return true;
  });
  (void)for_each_captured(*reader, {}, never_cancel,
                          [&](StepId step, const GraphTemplate&, const std::string& name,
                              const OutputValues& output) -> std::expected<void, TraceError> {
                            if (output.of != kLensValues)
                              shape.outputs.push_back({step, output.op, name});
                            return {};
                          });
  return shape;
}

// As the page encodes it in a query: URLSearchParams of the browser.
std::string form_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("*-._").contains(c)) {
      encoded += c;
    } else {
      encoded += c == ' ' ? "+" : std::format("%{:02X}", byte);
    }
  }
  return encoded;
}

// Calls `ask` with the values of each use of the question, until it returns false.
template <class Ask>
void for_each_use(const Question& question, const std::string& session, const Shape& shape,
                  const Ask& ask) {
  const Values of_session = {{"{session}", session}};
  const auto with = [&](Values more) {
    more.insert(more.end(), of_session.begin(), of_session.end());
    return more;
  };
  const auto pages = [&](std::uint64_t rows) {
    const std::uint64_t every = std::max<std::uint64_t>(question.every, 1);
    if (question.beyond != 0 && rows <= question.beyond) return;
    for (std::uint64_t from = 0; from == 0 || from < rows; from += every)
      if (!ask(with({{"{from}", std::to_string(from)}, {"{to}", std::to_string(from + every)}})))
        return;
  };
  if (question.captured && shape.outputs.empty()) return;
  if (question.each == "once") ask(of_session);
  if (question.each == "tokens") pages(shape.tokens);
  if (question.each == "steps") pages(shape.steps);
  if (question.each == "step") {
    for (std::uint32_t step = shape.first; step < shape.end; ++step)
      if (!ask(with({{"{step}", std::to_string(step)}, {"{next}", std::to_string(step + 1)}})))
        return;
  }
  if (question.each == "output") {
    for (const CapturedPlace& place : shape.outputs)
      if (!ask(with({{"{step}", std::to_string(place.step.v)},
                     {"{op}", std::to_string(place.op.v)},
                     {"{output}", form_encoded(place.output)}})))
        return;
  }
  for (const auto& [number, step] : shape.templates) {
    const Values of_template = {{"{template}", std::to_string(number)},
                                {"{step}", std::to_string(step)}};
    if (question.each == "template" && !ask(with(of_template))) return;
    if (question.each != "layer") continue;
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
      Values values = of_template;
      values.emplace_back("{layer}", std::to_string(layer));
      if (!ask(with(std::move(values)))) return;
    }
  }
}

std::string filled(std::string text, const Values& values) {
  for (const auto& [placeholder, value] : values) {
    for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;
         at += value.size())
      text.replace(at, placeholder.size(), value);
  }
  return text;
}

// ---- The file ---------------------------------------------------------------------------

std::string gzip(std::string_view bytes) {
  constexpr int kGzip = 15 + 16;  // the largest window, with the header of gzip
  z_stream stream{};
  std::string packed;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return packed;
  packed.resize(deflateBound(&stream, bytes.size()));
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// A script that no browser runs: its text is data.
std::string element(std::string_view id, std::string_view bytes) {
  return std::format("<script type=\"application/octet-stream\" id=\"{}\">{}</script>\n", id,
                     base64(gzip(bytes)));
}

// The routes of the one session, as tt-server has them.
class Answers {
 public:
  explicit Answers(const fs::path& session)
      // Not a folder: the store finds this session and no other.
      : sessions_(session, {session}),
        indexes_(caches_),
        totals_(caches_),
        queue_(caches_, {.patience = std::chrono::hours(1)}),
        statements_(nullptr) {  // the statements are those of the page
    add_session_list_routes(routes_, sessions_);
    add_trace_routes(routes_, sessions_, indexes_, queue_);
    add_analysis_routes(routes_, sessions_, indexes_, queue_);
    add_heat_routes(routes_, sessions_, indexes_, queue_);
    add_query_routes(routes_, sessions_, totals_, statements_);
    add_graph_routes(routes_, sessions_, queue_);
    add_report_routes(routes_, sessions_, indexes_, queue_);
  }
  // `target`: below /api/v1/.
  RouteAnswer ask(std::string_view method, const std::string& target, std::string_view body) {
    return routes_.ask(method, "/api/v1/" + target, body);
  }

 private:
  SessionStore sessions_;
  CacheRoom caches_;
  IndexCache indexes_;
  TotalsCache totals_;
  QueryQueue queue_;
  StatementCheck statements_;
  RouteCaller routes_;
};

TraceError too_large(std::uint64_t max_bytes) {
  return failure(std::format(
      "The file would be larger than {} MB even without the details of the steps. Open the session "
      "with tt-server, or export a part of it: tt export --from-step A --to-step B -o part.ndjson, "
      "then tt import part.ndjson.",
      max_bytes / 1'000'000));
}

}  // namespace

fs::path viewer_in(const fs::path& webui) { return webui / "viewer.html"; }

Status check_page_file(const PageFileOptions& options) {
  if (const auto viewer = read_viewer(options.viewer); !viewer)
    return std::unexpected(viewer.error());
  const auto reader = SessionReader::open(options.session);
  if (!reader) return std::unexpected(reader.error());
  const auto info = reader->info();
  if (!info) return std::unexpected(info.error());
  if (info->state == SessionState::Running) {
    return std::unexpected(TraceError{TraceError::Kind::Running,
                                      "The session is being recorded. Export it as HTML when it "
                                      "has ended."});
  }
  return {};
}

Status write_page_file(const PageFileOptions& options, const ByteSink& sink,
                       const ContinueCheck& keep_going) {
  auto viewer = read_viewer(options.viewer);
  if (!viewer) return std::unexpected(viewer.error());
  const auto shape = shape_of(options);
  if (!shape) return std::unexpected(shape.error());
  const std::string session = SessionFiles(options.session, {options.session}).external().at(0).id;
  Answers answers(options.session);

  std::uint64_t bytes = viewer->before.size() + viewer->after.size();
  if (Status written = sink(viewer->before); !written) return written;
  nlohmann::json held = nlohmann::json::object();  // by question; sorted, so that it is found fast
  bool is_full = false;
  // Those without which the page does not open come first.
  std::ranges::stable_partition(viewer->questions, &Question::needed);
  for (const Question& question : viewer->questions) {
    Status status;
    for_each_use(question, session, *shape, [&](const Values& values) {
      if (is_full && !question.needed) return false;
      if (!keep_going()) {
        status = std::unexpected(cancelled_error());
        return false;
      }
      const std::string body = filled(question.body, values);
      const std::string target = filled(question.target, values);
      const std::string key =
          std::format("{} {}{}{}", question.method, target, body.empty() ? "" : "\n", body);
      if (held.contains(key)) return true;  // the same for another template
      const RouteAnswer answer = answers.ask(question.method, target, body);
      // What the list of the answers adds to the file for each of them, with some to spare.
      constexpr std::uint64_t kListed = 120;
      const std::string text = element(std::format("a{}", held.size()), answer.body);
      if (bytes + text.size() + kListed * (held.size() + 1) > options.max_bytes) {
        if (question.needed) status = std::unexpected(too_large(options.max_bytes));
        is_full = true;
        return false;
      }
      bytes += text.size();
      const std::size_t number = held.size();
      held[key] = nlohmann::json::array({number, answer.status, answer.type});
      status = sink(text);
      return status.has_value();
    });
    if (!status) return status;
  }
  const nlohmann::json index = {
      {"session", session}, {"same", shape->same}, {"answers", std::move(held)}};
  const std::string list = element("held", index.dump());
  if (Status written = sink(list); !written) return written;
  return sink(viewer->after);
}

}  // namespace tt
