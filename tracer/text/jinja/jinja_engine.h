// The engine of Jinja templates: the npm package @huggingface/jinja and dialect.js, in QuickJS.
// docs/templates.md describes what it renders.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tt {

// One JavaScript runtime with the script loaded (about 4 MiB, 10 ms to make). One thread. May be
// made before a fork() and used in the child.
class JinjaEngine {
 public:
  JinjaEngine();
  ~JinjaEngine();
  JinjaEngine(const JinjaEngine&) = delete;
  JinjaEngine& operator=(const JinjaEngine&) = delete;

  // Calls a function of dialect.js with a JSON text; returns its result, UTF-8.
  //   render  a conversation by a chat template
  //   fill    {template, variables}: the text of a template of our own
  // Throws std::bad_alloc if memory runs out, std::runtime_error if a template of fill is wrong or
  // the calls are too deep. Runs as long as the template does: call it with untrusted templates
  // only in a sandbox.
  std::string call(const char* function, std::string_view json);

 private:
  struct Runtime;
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace tt
