#include "server/observability/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "api/text/escape_control_chars.h"

namespace tt {

namespace {

constexpr std::size_t kQueuedLines = 4096;
constexpr const char* kTextLine = "%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %v";
constexpr const char* kJsonLine = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v)";

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::Trace:
      return spdlog::level::trace;
    case LogLevel::Debug:
      return spdlog::level::debug;
    case LogLevel::Info:
      return spdlog::level::info;
    case LogLevel::Warning:
      return spdlog::level::warn;
    case LogLevel::Error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view trimmed(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Returns the text unchanged when it is one word, otherwise quoted.
std::string text_value(std::string_view text) {
  const bool is_word = !text.empty() && std::ranges::none_of(text, [](char c) {
    return c == ' ' || c == '"' || c == '=' || c == '\\';
  });
  if (is_word) return escape_control_chars(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return escape_control_chars(quoted + '"');
}

std::string text_of_fields(std::string_view component, std::string_view message, LogFields fields) {
  std::string line = escape_control_chars(message);
  if (!component.empty()) line += " component=" + text_value(component);
  for (const LogField& field : fields) {
    line += std::format(" {}=", field.name);
    if (const auto* text = std::get_if<std::string_view>(&field.value)) {
      line += text_value(*text);
    } else if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
      line += std::to_string(*number);
    } else {
      line += std::format("{}", std::get<double>(field.value));
    }
  }
  return line;
}

// A JSON object without its opening brace.
std::string json_of_fields(std::string_view component, std::string_view message, LogFields fields) {
  nlohmann::ordered_json line;
  line["message"] = message;
  if (!component.empty()) line["component"] = component;
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { line[std::string(field.name)] = value; }, field.value);
  }
  // ASCII only: a terminal obeys DEL and the control characters of C1 too.
  constexpr bool kAscii = true;
  return line.dump(-1, ' ', kAscii, nlohmann::json::error_handler_t::replace).substr(1);
}

}  // namespace

// Not registered with spdlog, whose registry would keep it alive.
struct Log::Lines {
  bool json;
  std::shared_ptr<spdlog::details::thread_pool> writer;  // drains the queue before it is destroyed
  std::shared_ptr<spdlog::logger> logger;
};

Log::Log(LogOptions options) {
  auto writer = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1);
  auto logger = std::make_shared<spdlog::async_logger>(
      "tt-server", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(), writer,
      spdlog::async_overflow_policy::overrun_oldest);
  logger->set_formatter(options.json ? std::make_unique<spdlog::pattern_formatter>(
                                           kJsonLine, spdlog::pattern_time_type::utc)
                                     : std::make_unique<spdlog::pattern_formatter>(kTextLine));
  logger->set_level(spdlog_level(options.level));
  lines_ = std::make_shared<const Lines>(options.json, std::move(writer), std::move(logger));
}

Log Log::of(std::string_view component) const {
  Log other = *this;
  other.component_ = component;
  return other;
}

bool Log::writes(LogLevel level) const { return lines_->logger->should_log(spdlog_level(level)); }

void Log::write(LogLevel level, std::string_view message, LogFields fields) const {
  if (!writes(level)) return;
  message = trimmed(message);
  if (message.empty()) return;
  const std::string line = lines_->json ? json_of_fields(component_, message, fields)
                                        : text_of_fields(component_, message, fields);
  lines_->logger->log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

std::uint64_t Log::lines_lost() const { return lines_->writer->overrun_counter(); }

}  // namespace tt
