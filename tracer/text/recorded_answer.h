// Reconstructs the answers of a recorded session, token by token, as the clients received them:
// from the recorded tokens and the facts request.stop.N and request.silent. A session of several
// requests has an answer of each one, whose tokens alternate.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

  // Takes the session's tokens in order, from the first; returns the text to append to the answer
  // of the token's sequence.
  std::string push(const Token& token);
  // The text held back, after the last token of a session that has ended.
  std::string rest() { return stream_.flush(); }
  // That of a sequence.
  std::string rest(std::optional<std::uint32_t> sequence);

 private:
  bool is_silent(std::int32_t id) const;
  TextStream& stream_of(std::optional<std::uint32_t> sequence);

  TextStream stream_;  // of tokens without a sequence
  // The server cuts no text of other programs at stop strings.
  std::map<std::uint32_t, TextStream> streams_;
  std::vector<std::pair<std::int32_t, std::int32_t>> silent_;  // first and last, ascending
};

// What each token of a part of a session adds to the answer of its sequence, in their order.
// `before`: the tokens before the part, at least answer_look_back() of them (or all). `is_end`: the
// session has ended, and the last token is its last: what was held back belongs to the last token
// of its answer.
std::vector<std::string> answer_texts(const SessionInfo& info, std::span<const Token> before,
                                      std::span<const Token> tokens, bool is_end);
// So many tokens can hold the beginning of a character or of a stop string.
std::uint32_t answer_look_back(const SessionInfo& info);

// The answer of a sequence.
struct SequenceAnswer {
  std::optional<std::uint32_t> sequence;
  std::string text;
  // Tokens before its first step: the cache had them, and they were not evaluated. The session may
  // lack their texts (Token::reused).
  std::uint32_t reused = 0;
};
// Of all tokens of an ended session: each answer that has tokens, in the order of the sequences.
std::vector<SequenceAnswer> recorded_answers(const SessionInfo& info,
                                             std::span<const Token> tokens);

// Formats ascending ids as "0-2 7 9-11", and parses them; invalid text is skipped.
std::string format_ranges(const std::vector<std::int32_t>& ids);
std::vector<std::pair<std::int32_t, std::int32_t>> parse_ranges(const std::string& text);

}  // namespace tt
