// Paths of the installed files, relative to the running program, so that an installation can
// be moved. Also works in the build folder.
#pragma once

#include <filesystem>

namespace tt {

struct Installation {
  std::filesystem::path bundled_model;  // small trained model; the default model
  std::filesystem::path server;         // tt-server
  std::filesystem::path worker;         // tt-worker
  std::filesystem::path webui;          // built web UI; may not exist
  std::filesystem::path agent;          // preloaded by tt attach; may not exist
};

Installation current_installation();

}  // namespace tt
