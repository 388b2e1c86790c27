// Entry point of tt.
#include <string>

#include "cli/app.h"
#include "cli/terminal/standard_output.h"
#include "program/command_line.h"
#include "program/guarded_main.h"
#include "tracer/format/file/shared_memory_guard.h"

namespace {

int run(int argc, char** argv) {
  int exit_code = 0;
  const auto app = tt::cli::make_app(exit_code);
  exit_code = tt::parse(*app, tt::cli::replace_help_verb(*app, tt::arguments_of(argc, argv)))
                  .value_or(exit_code);
  return tt::cli::finish_output(tt::name_with_verbs(*app), exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  return tt::guarded_main("tt", [&] {
    tt::guard_shared_memory();
    return run(argc, argv);
  });
}
