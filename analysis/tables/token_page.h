// The prompt and generated tokens of a session, with what each adds to the answer.
#pragma once

#include <expected>
#include <string>

#include "analysis/common/page.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

struct AnsweredToken {
  Token token;
  std::string answer;  // answer_texts()
};

std::expected<Page<AnsweredToken>, TraceError> token_page(const SessionReader& reader,
                                                          PageRange range);

}  // namespace tt
