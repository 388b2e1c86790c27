// Reconstructs the answer of a recorded session, token by token, as the client received it:
// from the recorded tokens and the facts request.stop.N and request.silent.
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

  // Takes the session's tokens in order, from the first; returns the text to append.
  std::string push(const Token& token);
  // The text held back, after the last token of a session that has ended.
  std::string rest() { return stream_.flush(); }

 private:
  bool is_silent(std::int32_t id) const;

  TextStream stream_;
  std::vector<std::pair<std::int32_t, std::int32_t>> silent_;  // first and last, ascending
};

// Formats ascending ids as "0-2 7 9-11", and parses them; invalid text is skipped.
std::string format_ranges(const std::vector<std::int32_t>& ids);
std::vector<std::pair<std::int32_t, std::int32_t>> parse_ranges(const std::string& text);

}  // namespace tt
