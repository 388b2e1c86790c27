// tt-worker [MODEL.gguf]: the helper of tracer/sandbox/sandbox.h. Started by tt-server and tt with
// a socket as file descriptor 3; runs each job in a child process with limits. With a model: jobs
// that need its vocabulary.
#include <string>
#include <string_view>

#include "analysis/sql/query.h"
#include "program/guarded_main.h"
#include "tracer/engine/grammar.h"
#include "tracer/engine/model_check.h"
#include "tracer/sandbox/worker.h"
#include "tracer/text/chat_template.h"

namespace {

tt::JobKind statement_job(const char* name, tt::sql::StatementPlanner& planner) {
  return tt::job_kind(name, [&](std::string_view statement) {
    planner.plan(statement);
    return std::string();
  });
}

int run(int argc, char** argv) {
  if (argc == 1) {
    // Made once, before the children are forked: they only plan their statement.
    tt::sql::StatementPlanner planner, set_planner(tt::sql::TablesOf::Set);
    tt::JinjaEngine engine;
    return tt::serve_jobs({tt::chat_template_job(engine), tt::model_check_job(),
                           tt::metadata_check_job(), statement_job("sql", planner),
                           statement_job("set_sql", set_planner)});
  }
  const auto model = tt::load_vocabulary(argv[1]);
  if (model == nullptr) return 1;
  return tt::serve_jobs({tt::grammar_job(llama_model_get_vocab(model.get()))});
}

}  // namespace

int main(int argc, char** argv) {
  return tt::guarded_main("tt-worker", [&] { return run(argc, argv); });
}
