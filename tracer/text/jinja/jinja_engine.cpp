#include "tracer/text/jinja/jinja_engine.h"

#include <array>
#include <cstddef>
#include <ctime>
#include <new>
#include <stdexcept>

#include "jinja_script.h"

// Third-party header: disable warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include <quickjs.h>
#pragma GCC diagnostic pop

namespace tt {

namespace {

// Of the 4 MiB that a job has (JobLimits::stack_bytes); native frames of QuickJS need the rest.
constexpr std::size_t kStackBytes = 3U << 20;

// strftime(format): the present local time.
JSValue format_now(JSContext* context, JSValue, int count, JSValue* arguments) {
  if (count < 1) return JS_NewString(context, "");
  const char* format = JS_ToCString(context, arguments[0]);
  if (format == nullptr) return JS_EXCEPTION;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 256> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), format, &local);
  JS_FreeCString(context, format);
  return JS_NewStringLen(context, text.data(), length);
}

}  // namespace

struct JinjaEngine::Runtime {
  Runtime() : runtime(JS_NewRuntime()), context(runtime ? JS_NewContext(runtime) : nullptr) {
    if (context == nullptr) {
      if (runtime != nullptr) JS_FreeRuntime(runtime);
      throw std::bad_alloc();
    }
    JS_SetMaxStackSize(runtime, kStackBytes);
  }
  ~Runtime() {
    JS_FreeValue(context, strftime);
    JS_FreeValue(context, functions);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
  }
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The value, or the pending exception as one of C++.
  JSValue checked(JSValue value) const {
    if (!JS_IsException(value)) return value;
    const JSValue error = JS_GetException(context);
    const char* text = JS_ToCString(context, error);
    const std::string message = text != nullptr ? text : "out of memory";
    JS_FreeCString(context, text);
    JS_FreeValue(context, error);
    if (message.contains("out of memory")) throw std::bad_alloc();
    throw std::runtime_error(message);
  }

  JSRuntime* runtime;
  JSContext* context;
  JSValue functions = JS_UNDEFINED, strftime = JS_UNDEFINED;
};

JinjaEngine::JinjaEngine() : runtime_(std::make_unique<Runtime>()) {
  JSContext* const context = runtime_->context;
  runtime_->functions = runtime_->checked(
      JS_Eval(context, kJinjaScript, sizeof kJinjaScript - 1, "jinja.js", JS_EVAL_TYPE_GLOBAL));
  runtime_->strftime = runtime_->checked(JS_NewCFunction(context, format_now, "strftime", 1));
}

JinjaEngine::~JinjaEngine() = default;

std::string JinjaEngine::call(const char* function, std::string_view json) {
  JSContext* const context = runtime_->context;
  JS_UpdateStackTop(runtime_->runtime);  // another thread or depth than that of the constructor
  const JSValue called =
      runtime_->checked(JS_GetPropertyStr(context, runtime_->functions, function));
  std::array<JSValue, 2> arguments{JS_NewStringLen(context, json.data(), json.size()),
                                   JS_DupValue(context, runtime_->strftime)};
  const JSValue result =
      JS_Call(context, called, JS_UNDEFINED, static_cast<int>(arguments.size()), arguments.data());
  for (const JSValue& argument : arguments) JS_FreeValue(context, argument);
  JS_FreeValue(context, called);
  runtime_->checked(result);
  std::size_t length = 0;
  const char* text = JS_ToCStringLen(context, &length, result);
  JS_FreeValue(context, result);
  if (text == nullptr) throw std::bad_alloc();
  std::string copy(text, length);
  JS_FreeCString(context, text);
  return copy;
}

}  // namespace tt
