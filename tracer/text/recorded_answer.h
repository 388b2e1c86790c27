// The answer of a recorded session, token by token, as the client heard it while
// it was generated: from the tokens in the file and what the session says about
// its request (facts request.stop.N and request.silent).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracer/format/model/session.h"
#include "tracer/format/model/step.h"
#include "tracer/text/text_stream.h"

namespace tt {

class RecordedAnswer {
 public:
  explicit RecordedAnswer(const SessionInfo& info);

  // Takes the session's tokens in order, from the first; returns what the answer grows by.
  std::string push(const Token& token);
  // What was held back, after the last token of a session that has ended.
  std::string rest() { return stream_.flush(); }

 private:
  bool is_silent(std::int32_t id) const;

  TextStream stream_;
  std::vector<std::pair<std::int32_t, std::int32_t>> silent_;  // first and last, ascending
};

// Ascending ids as "0-2 7 9-11", and back; what is no such list is skipped.
std::string to_ranges(const std::vector<std::int32_t>& ids);
std::vector<std::pair<std::int32_t, std::int32_t>> ranges_from(const std::string& text);

}  // namespace tt
