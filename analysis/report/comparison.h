// Two sessions side by side: two prompts, two settings, two quantizations of one
// model. Tokens are aligned by their index, templates by their structure, sums by
// name: what is only in one of them has no other side. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/aggregate/breakdown.h"
#include "analysis/common/page.h"
#include "analysis/index/session_index.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// A session and what is kept of it; both outlive the call.
struct ComparedSession {
  const SessionIndex& index;
  const SessionReader& reader;
};

struct ComparedRow {
  std::string name;
  std::optional<TraceSums> left, right;  // none: only in the other
};
struct ComparedBy {
  Axis by = Axis::OpKind;
  std::vector<ComparedRow> rows;  // the largest difference in time first, then in bytes
};

struct ComparedToken {
  std::uint32_t index = 0;
  std::optional<Token> left, right;
  // Of the step that evaluated it, shared by the tokens of the step; none: it was not evaluated.
  std::optional<Ns> left_ns, right_ns;
};
struct TokenAlignment {
  std::uint32_t left = 0, right = 0;  // tokens
  std::uint32_t common = 0;           // leading tokens that are the same
  Page<ComparedToken> rows;
};

// Identical: the same fingerprint. SameOps: the same ops on tensors of the same
// names, which may differ in type, shape and place. Only*: nothing of the kind there.
enum class TemplateMatch : std::uint8_t { Identical, SameOps, OnlyLeft, OnlyRight };
const char* to_text(TemplateMatch);
struct ComparedTemplate {
  TemplateMatch match = TemplateMatch::Identical;
  TemplateId left{}, right{};  // 0: none
  std::uint32_t left_steps = 0, right_steps = 0, left_ops = 0, right_ops = 0;
  friend bool operator==(const ComparedTemplate&, const ComparedTemplate&) = default;
};

// What was asked for, of which model and machine: a fact that is not the same.
struct ComparedFact {
  std::string name;
  std::optional<std::string> left, right;  // none: it is not told there
  friend bool operator==(const ComparedFact&, const ComparedFact&) = default;
};

struct Comparison {
  TraceSums left, right;
  std::vector<ComparedFact> facts;  // by name; without results
  TokenAlignment tokens;
  std::vector<ComparedTemplate> templates;  // in the order of the left ones
  std::vector<ComparedBy> by;               // phase, component, layer, op kind, tensor
};

// `tokens`: which rows of the alignment.
std::expected<Comparison, TraceError> compare(const ComparedSession& left,
                                              const ComparedSession& right, PageRange tokens,
                                              const KeepGoing& keep_going = always);

}  // namespace tt
