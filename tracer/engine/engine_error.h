// The short form of a failure of an Engine.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "tracer/engine/engine.h"

namespace tt {

inline std::unexpected<EngineError> engine_error(EngineError::Kind kind, std::string message) {
  return std::unexpected(EngineError{kind, std::move(message)});
}

}  // namespace tt
