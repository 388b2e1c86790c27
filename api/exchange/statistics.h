// What statistics.json of a run folder says: counts, bytes and time, in all and by
// phase, layer, kind of op, component and memory source; the tensors with most bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/exchange/session_rows.h"
#include "api/json.h"

namespace tt::exchange {

class Statistics {
 public:
  void add(const StepRows& rows);
  Json json() const;

 private:
  struct Line {
    std::uint64_t accesses = 0, read = 0, written = 0;
    void add(const StepAccess& access) {
      ++accesses;
      (access.write ? written : read) += access.touched.v;
    }
  };
  using Lines = std::map<std::string, Line>;
  static Json json_of(const Lines& lines, std::size_t most = SIZE_MAX);

  std::uint64_t steps_ = 0, tokens_ = 0;
  std::int64_t step_ns_ = 0;
  Line all_;
  Lines phases_, operation_types_, components_, sources_, tensors_;
  std::map<std::int32_t, Line> layers_;
};

}  // namespace tt::exchange
