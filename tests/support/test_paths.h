// Absolute paths that tests need. They are in one object file that CMake generates
// (CMakeLists.txt): all others are the same in every clone, so that the compiler cache works
// for a new clone.
#pragma once

#include <string>

namespace tt {

struct TestPaths {
  const char* tree;  // the sources
  const char* bundled_model;
  // Built here.
  const char* tt;
  const char* server;
  const char* worker;     // tt-worker
  const char* extension;  // of SQLite, as .load takes it
  const char* set_clock;  // these two for LD_PRELOAD
  const char* log_flush;
  // The system's.
  const char* dot;
  const char* llama_archs;
  const char* eval_callback;
  const char* rpc_server;
  // Folder of the programs that are built here.
  const char* programs;
};
extern const TestPaths kTestPaths;

// Path of a program that is built here.
inline std::string built_program(const std::string& name) {
  return kTestPaths.programs + ("/" + name);
}

// "docs/sql.md" as an absolute path.
inline std::string source_path(const std::string& path) { return kTestPaths.tree + ("/" + path); }

}  // namespace tt
