// What is true of a session, as data: findings, and the advice that follows from them. The words
// are in api/text/finding_text.h. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracer/format/model/step.h"

namespace tt {

enum class FindingTopic : std::uint8_t {
  Recording,
  Machine,
  BytesRead,
  Speed,
  Order,
  Repeat,
  Waits,
  Memory,
  Values,
  Drafts,
  Phases
};
const char* to_text(FindingTopic);

// The names of a kind's figures are in session_findings.cpp, where it is decided.
enum class FindingKind : std::uint8_t {
  DamagedFile,
  ReusedPrefix,
  RepeatedPrompt,
  LoadWarning,
  AlteredValues,
  MachineVerdict,
  LeftOutSteps,
  TokenBytes,
  MappedShare,
  SpeedLimit,
  PromptSpeed,
  FirstToken,
  GenerationSpeed,
  EvaluationTime,
  ReadInOrder,
  SameWeights,
  PatternPrediction,
  DiskWaits,
  EnoughMemory,
  WeightsFit,
  MemoryBudget,
  NotANumber,
  Drafts,
  PromptAndGeneration,
};
const char* to_text(FindingKind);

// Main: one of each topic, for a summary. Warning: the other figures need it to be understood.
enum class FindingRole : std::uint8_t { Main, Detail, Warning };
const char* to_text(FindingRole);

enum class FigureUnit : std::uint8_t {
  Count,
  Size,      // bytes
  Duration,  // ns
  Share,     // 0 to 1
  Rate,      // bytes per second
  TokensPerSecond,
  Word  // a name, or one of a few words
};
const char* to_text(FigureUnit);

struct Figure {
  std::string name;  // "bytes_per_token"
  FigureUnit unit = FigureUnit::Count;
  std::variant<double, std::string> value;  // std::string: of unit Word
  friend bool operator==(const Figure&, const Figure&) = default;
};

// Figures by name. A figure that is not known is absent.
class Figures {
 public:
  Figures& add(std::string name, FigureUnit unit, double value) {
    all_.push_back({.name = std::move(name), .unit = unit, .value = value});
    return *this;
  }
  Figures& add(std::string name, std::string word) {
    all_.push_back({.name = std::move(name), .unit = FigureUnit::Word, .value = std::move(word)});
    return *this;
  }
  template <class Number>
  Figures& add(std::string name, FigureUnit unit, const std::optional<Number>& value) {
    return value ? add(std::move(name), unit, static_cast<double>(*value)) : *this;
  }
  std::optional<double> number(std::string_view name) const;
  double number_or(std::string_view name, double other) const {
    return number(name).value_or(other);
  }
  std::string_view word(std::string_view name) const;  // "": there is none
  const std::vector<Figure>& all() const { return all_; }
  friend bool operator==(const Figures&, const Figures&) = default;

 private:
  std::vector<Figure> all_;
};

// The steps from which the figures were computed.
struct FindingBasis {
  std::optional<Phase> phase;  // nullopt: all phases
  std::uint64_t steps = 0;
  bool clean_only = false;  // without those that the machine disturbed
  friend bool operator==(const FindingBasis&, const FindingBasis&) = default;
};

struct Finding {
  FindingTopic topic = FindingTopic::Recording;
  FindingKind kind = FindingKind::DamagedFile;
  FindingRole role = FindingRole::Detail;
  FindingBasis basis{};
  Figures figures{};
  friend bool operator==(const Finding&, const Finding&) = default;
};

enum class AdviceKind : std::uint8_t {
  DoNotTrust,
  ThreadsAboveProcessors,  // and the machine disturbed the session
  StopOtherPrograms,
  RaiseCpuLimit,
  SimplerSampling,
  PinWeights,
  LessWeightsOrMoreMemory,
  KeepWeights,
  FewerBytes,
  FlashAttention,
  FewerThreads,
  MoreThreads,
  Repack,
  UseDevice,
  MoreLayersOnDevice,
  ChangeNothing,
};
const char* to_text(AdviceKind);

// What a piece of advice gains at most, as a share of the time of generation. Estimated from the
// recording; only a second recording measures it.
struct Advice {
  AdviceKind kind = AdviceKind::ChangeNothing;
  Figures figures{};
  std::optional<double> estimated_gain{};
  friend bool operator==(const Advice&, const Advice&) = default;
};

// Where the figures of a topic can be checked: a request, a query and a view of the page.
enum class EvidenceView : std::uint8_t { Table, Map, MemoryBudget, ComparePhases };
const char* to_text(EvidenceView);
struct Evidence {
  FindingTopic topic = FindingTopic::Recording;
  EvidenceView view = EvidenceView::Table;
  const char* shows = "";    // "totals by op type"
  const char* rows = "";     // an axis
  const char* across = "";   // map: the axis from left to right; "": the token axis
  const char* value = "";    // map: the value; table: the column that rows are sorted by
  const char* filter = "";   // of the page
  bool generated = false;    // of the generated tokens, if there are some
  bool undisturbed = false;  // of the clean steps, if the machine disturbed the session
  const char* rest = "";     // below /api/v1/sessions/{id}/; "{step}": the figure of this name
  const char* sql = "";
};
// `has_experts`: of the model.
const Evidence& evidence_of(FindingTopic topic, bool has_experts);

}  // namespace tt
