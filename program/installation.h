// Where the parts of this installation lie: found relative to the running
// program, so that an installed tree can be moved. In the build folder the
// same questions have answers, too.
#pragma once

#include <filesystem>

namespace tt {

struct Installation {
  std::filesystem::path bundled_model;  // small, trained; serves when no model is named
  std::filesystem::path checker;        // tt-check-model
  std::filesystem::path webui;          // the built page; may not exist
};

Installation installation_of_this_program();

}  // namespace tt
