#include "analysis/common/no_such_part.h"

#include <format>

#include "analysis/common/format_units.h"

namespace tt {

TraceError no_such_part(std::string_view whole, std::string_view part, std::uint64_t asked,
                        std::uint64_t count) {
  return {TraceError::Kind::NotFound,
          std::format("The {} has no {} {}: it has {}, numbered from 0.", whole, part, asked,
                      counted(count, part))};
}

}  // namespace tt
