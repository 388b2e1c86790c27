#include "analysis/sets/generality.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <format>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "analysis/common/format_units.h"
#include "analysis/common/valid_prefix.h"
#include "analysis/experts/router_choices.h"
#include "analysis/fields/fields.h"
#include "analysis/index/walk_outlines.h"
#include "analysis/weights/reuse.h"

namespace tt {

namespace {

// ---------------------------------------------------------------- whether two sessions match

std::string shape_of(const ModelWeight& weight) {
  std::size_t dims = weight.ne.size();
  while (dims > 1 && weight.ne[dims - 1] == 1) --dims;
  std::string text = std::to_string(weight.ne[0]);
  for (std::size_t i = 1; i < dims; ++i) text += std::format(" x {}", weight.ne[i]);
  return text;
}

// Why the weights are not those of one model.
std::optional<std::string> mismatch(const LearnedSession& learned, const LearnedSession& tried) {
  if (learned.weights.empty() || tried.weights.empty()) {  // an imported routing log
    std::vector<RouterId> a, b;
    for (const RouterUse& use : learned.experts) a.emplace_back(use.layer, use.router);
    for (const RouterUse& use : tried.experts) b.emplace_back(use.layer, use.router);
    if (a != b) return "the routers are in other layers";
    return std::nullopt;
  }
  for (const auto& [name, weight] : learned.weights) {
    const auto other = tried.weights.find(name);
    if (other == tried.weights.end()) return std::format("{} has no weight {}", tried.name, name);
    if (weight.ne != other->second.ne)
      return std::format("{} is {} in {} and {} in {}", name, shape_of(weight), learned.name,
                         shape_of(other->second), tried.name);
  }
  for (const auto& [name, weight] : tried.weights)
    if (!learned.weights.contains(name))
      return std::format("{} has no weight {}", learned.name, name);
  return std::nullopt;
}

std::vector<LearnedElsewhere> differences(const LearnedSession& learned,
                                          const LearnedSession& tried) {
  std::vector<LearnedElsewhere> differs;
  const auto same_type = [](const auto& a, const auto& b) {
    return a.second.type == b.second.type;
  };
  const auto same_file = [](const ModelFile& a, const ModelFile& b) {
    return a.size == b.size && a.header_hash == b.header_hash;
  };
  // The prompt of an imported routing log is unknown.
  const bool known = !learned.weights.empty() && !tried.weights.empty();
  if (&learned != &tried && (!known || learned.prompt != tried.prompt))
    differs.push_back(LearnedElsewhere::OtherPrompt);
  if (!std::ranges::equal(learned.weights, tried.weights, same_type)) {
    differs.push_back(LearnedElsewhere::OtherQuantization);
  } else if (!std::ranges::equal(learned.files, tried.files, same_file)) {
    differs.push_back(LearnedElsewhere::OtherModel);
  }
  return differs;
}

// ---------------------------------------------------------------- experts

// Choices per expert.
using ExpertCounts = std::map<RouterId, std::map<std::uint32_t, std::uint64_t>>;

void add(ExpertCounts& counts, const std::vector<RouterUse>& uses) {
  for (const RouterUse& use : uses)
    for (const ExpertCount& count : use.used)
      counts[{use.layer, use.router}][count.expert] += count.choices;
}
ExpertCounts counts_of(const std::vector<RouterUse>& uses) {
  ExpertCounts counts;
  add(counts, uses);
  return counts;
}

// Of experts chosen equally often, the one with the lower number is first.
std::uint64_t served(const ExpertCounts& learned, const ExpertCounts& tried, std::uint32_t slots) {
  std::uint64_t sum = 0;
  for (const auto& [router, requests] : tried) {
    const auto found = learned.find(router);
    if (found == learned.end()) continue;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> ranking(found->second.begin(),
                                                                 found->second.end());
    std::ranges::stable_sort(ranking, std::greater{}, [](const auto& of) { return of.second; });
    for (std::size_t i = 0; i < std::min<std::size_t>(slots, ranking.size()); ++i)
      if (const auto at = requests.find(ranking[i].first); at != requests.end()) sum += at->second;
  }
  return sum;
}

std::uint64_t requests_in(const ExpertCounts& counts) {
  std::uint64_t sum = 0;
  for (const auto& [router, experts] : counts)
    for (const auto& [expert, choices] : experts) sum += choices;
  return sum;
}

std::optional<Trial> try_experts(const ExpertCounts& learned, const ExpertCounts& tried,
                                 std::uint32_t slots) {
  if (learned.empty() || tried.empty()) return std::nullopt;
  return Trial{.total = requests_in(tried),
               .learned = served(learned, tried, slots),
               .own = served(tried, tried, slots)};
}

std::uint32_t usual_slots(const std::vector<LearnedSession>& sessions) {
  constexpr std::uint32_t kPart = 4;
  std::uint32_t experts = 0;
  for (const LearnedSession& of : sessions)
    for (const RouterUse& use : of.experts) experts = std::max(experts, use.experts);
  return experts == 0 ? 0 : std::max(1U, experts / kPart);
}

std::optional<double> any_experts(const LearnedSession& session, std::uint32_t slots) {
  double served = 0;
  for (const RouterUse& use : session.experts)
    if (use.experts > 0)
      served += static_cast<double>(use.choices) * std::min(slots, use.experts) / use.experts;
  const std::uint64_t requests = requests_in(counts_of(session.experts));
  if (requests == 0) return std::nullopt;
  return served / static_cast<double>(requests);
}

// ---------------------------------------------------------------- memory

// Reads per part, in the order of the first read.
class ReadCounts {
 public:
  void add(const std::vector<PartReads>& reads) {
    for (const PartReads& of : reads) {
      const auto [at, fresh] = places_.try_emplace(of.part, parts_.size());
      if (fresh) {
        parts_.push_back(of.part);
        reads_.push_back(0);
      }
      reads_[at->second] += of.reads;
    }
  }
  // Those read most often first (most_read_first()).
  std::vector<const WeightPart*> ranking() const {
    std::vector<const WeightPart*> parts;
    for (const std::uint32_t i : most_read_first(reads_)) parts.push_back(&parts_[i]);
    return parts;
  }

 private:
  std::map<WeightPart, std::size_t> places_;
  std::vector<WeightPart> parts_;
  std::vector<std::uint64_t> reads_;
};

Bytes distinct_bytes(const LearnedSession& session) {
  Bytes sum{};
  for (const PartReads& of : session.reads) sum += of.bytes;
  return sum;
}

using Ranking = std::vector<const WeightPart*>;

// Tries rankings of parts on one session.
class MemoryTrials {
 public:
  MemoryTrials(const LearnedSession& on, Bytes memory) : memory_(memory) {
    ReadCounts own;
    own.add(on.reads);
    for (const PartReads& of : on.reads) {
      parts_.emplace(of.part, &of);
      total_ += of.reads * of.bytes.v;
    }
    own_ = saved(own.ranking());
  }
  std::optional<Trial> run(const Ranking& learned) const {
    if (learned.empty() || total_ == 0) return std::nullopt;
    return Trial{.total = total_, .learned = saved(learned), .own = own_};
  }

 private:
  // Bytes that the parts which fit into the memory, in this order, save: each is loaded by its
  // first read, and the last one may be held in part (pin_curve()).
  std::uint64_t saved(const Ranking& ranking) const {
    std::uint64_t sum = 0, free = memory_.v;
    for (const WeightPart* part : ranking) {
      if (free == 0) break;
      const auto found = parts_.find(*part);
      if (found == parts_.end()) continue;  // takes no memory here
      const std::uint64_t held = std::min(free, found->second->bytes.v);
      sum += (found->second->reads - 1) * held;
      free -= held;
    }
    return sum;
  }

  const Bytes memory_;
  std::map<WeightPart, const PartReads*> parts_;
  std::uint64_t total_ = 0, own_ = 0;
};

// ---------------------------------------------------------------- order of reads

// The pattern with the ranges that another session reads of the same weights.
std::vector<PatternEntry> moved(const LearnedSession& learned, const LearnedSession& tried) {
  std::vector<PatternEntry> entries = learned.pattern;
  for (PatternEntry& entry : entries) {
    const auto part = part_of(learned.weights, entry.tensor, entry.file);
    entry.file = part ? range_of(tried.weights, *part) : FileRange{};
  }
  return entries;
}

bool predict_the_same(const std::vector<PatternEntry>& a, const std::vector<PatternEntry>& b) {
  return std::ranges::equal(a, b, [](const PatternEntry& x, const PatternEntry& y) {
    return x.kind == y.kind && x.tensor == y.tensor && x.file == y.file;
  });
}

// Tries several patterns in one walk over a session. Sessions of one model often have the same
// pattern, which is tried once.
class OrderTrials {
 public:
  // Returns the number of the trial.
  std::size_t add(std::vector<PatternEntry> entries) {
    const auto known = std::ranges::find_if(
        patterns_, [&](const auto& of) { return predict_the_same(of, entries); });
    const auto number = static_cast<std::size_t>(known - patterns_.begin());
    if (known == patterns_.end()) patterns_.push_back(std::move(entries));
    return number;
  }
  std::expected<std::vector<Prediction>, TraceError> run(const SessionReader& reader,
                                                         std::uint64_t complete_tokens,
                                                         const ContinueCheck& keep_going) const {
    std::vector<std::unique_ptr<PatternTally>> tallies;
    for (const auto& entries : patterns_)
      tallies.push_back(std::make_unique<PatternTally>(reader, complete_tokens, entries));
    const auto walked = walk_outlines(reader, kAllRows, keep_going,
                                      [&](const SessionReader::StepRow& row,
                                          StepDecoder& decoder) -> std::expected<void, TraceError> {
                                        for (const auto& tally : tallies)
                                          if (auto added = tally->add(row, decoder); !added)
                                            return added;
                                        return {};
                                      });
    if (!walked) return std::unexpected(walked.error());
    std::vector<Prediction> found;
    for (const auto& tally : tallies) found.push_back(tally->take().prediction);
    return found;
  }

 private:
  std::vector<std::vector<PatternEntry>> patterns_;
};

// ---------------------------------------------------------------- the table

constexpr std::optional<Trial> Trials::* kParts[] = {&Trials::experts, &Trials::order,
                                                     &Trials::memory};
constexpr std::optional<MeanTrial> GeneralityMean::* kMeans[] = {
    &GeneralityMean::experts, &GeneralityMean::order, &GeneralityMean::memory};

void add(GeneralityMean& mean, const Trials& trials) {
  ++mean.pairs;
  for (std::size_t i = 0; i < std::size(kParts); ++i) {
    const std::optional<Trial>& trial = trials.*kParts[i];
    if (!trial) continue;
    auto& sum = mean.*kMeans[i];
    if (!sum) sum = MeanTrial{.largest_loss = trial->loss()};
    ++sum->trials;
    sum->share += trial->share();
    sum->own_share += trial->own_share();
    sum->loss += trial->loss();
    sum->largest_loss = std::max(sum->largest_loss, trial->loss());
  }
}

void divide(GeneralityMean& mean) {
  for (const auto part : kMeans) {
    if (!(mean.*part)) continue;
    MeanTrial& sum = *(mean.*part);
    const auto n = static_cast<double>(sum.trials);
    sum.share /= n;
    sum.own_share /= n;
    sum.loss /= n;
  }
}

std::vector<GeneralityMean> means_of(const Generality& found) {
  std::map<std::vector<LearnedElsewhere>, GeneralityMean> by_difference;
  for (const GeneralityPair& pair : found.pairs) {
    if (pair.learned_on == pair.tried_on || pair.refused) continue;
    GeneralityMean& mean = by_difference[pair.differs];
    mean.differs = pair.differs;
    add(mean, pair.trials);
  }
  std::vector<GeneralityMean> means;
  for (auto& [differs, mean] : by_difference) means.push_back(std::move(mean));
  GeneralityMean left_out;
  for (const LeftOut& of : found.leave_one_out)
    if (of.learned_on > 0) add(left_out, of.trials);
  if (left_out.pairs > 0) means.push_back(std::move(left_out));
  for (GeneralityMean& mean : means) divide(mean);
  return means;
}

std::string model_of(const LearnedSession& session) {
  if (session.files.empty()) return "";
  return std::filesystem::path(session.files.front().path).filename().string();
}

}  // namespace

const char* to_text(LearnedElsewhere of) {
  switch (of) {
    case LearnedElsewhere::OtherPrompt:
      return "prompt";
    case LearnedElsewhere::OtherQuantization:
      return "quantization";
    case LearnedElsewhere::OtherModel:
      return "model";
  }
  return "model";
}

std::expected<Generality, TraceError> generality(
    std::span<const std::string> names,
    const std::function<std::expected<SessionReader, TraceError>(std::size_t)>& open,
    const GeneralityQuery& query, const ContinueCheck& keep_going) {
  const auto named = [&](std::size_t i, TraceError error) {
    error.message = std::format("{}: {}", names[i], error.message);
    return std::unexpected(std::move(error));
  };
  Generality found;
  std::vector<LearnedSession> sessions;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto reader = open(i);
    if (!reader) return named(i, std::move(reader.error()));
    auto learned = query_valid_prefix(
        *reader, [&](const SessionReader& of) { return learn_session(of, keep_going); },
        keep_going);
    if (!learned) return named(i, std::move(learned.error()));
    learned->name = names[i];
    found.sessions.push_back(
        {.name = names[i],
         .model = model_of(*learned),
         .prompt_tokens = static_cast<std::uint32_t>(learned->prompt.size()),
         .tokens = learned->tokens,
         .memory = query.memory.value_or(Bytes{distinct_bytes(*learned).v / 2}),
         .readable_steps = reader->readable_steps()});
    sessions.push_back(*std::move(learned));
  }
  // From here the sessions are learned; they are read again only to try orders of reads.
  found.slots = usual_slots(sessions);
  if (found.slots > 0 && query.slots > 0) found.slots = query.slots;
  const auto count = static_cast<std::uint32_t>(sessions.size());
  std::vector<ExpertCounts> experts;
  std::vector<ReadCounts> reads;
  std::vector<Ranking> rankings;
  for (const LearnedSession& of : sessions) {
    experts.push_back(counts_of(of.experts));
    reads.emplace_back().add(of.reads);
  }
  for (const ReadCounts& of : reads) rankings.push_back(of.ranking());
  found.pairs.resize(std::size_t{count} * count);
  for (std::uint32_t tried = 0; tried < count; ++tried) {
    const LearnedSession& on = sessions[tried];
    found.sessions[tried].any_experts = any_experts(on, found.slots);
    const MemoryTrials memory(on, found.sessions[tried].memory);
    OrderTrials orders;
    std::map<std::uint32_t, std::size_t> order_of;  // by session
    ExpertCounts other_experts;
    ReadCounts other_reads;
    LeftOut left_out{.tried_on = tried};
    for (std::uint32_t learned = 0; learned < count; ++learned) {
      if (!keep_going()) return std::unexpected(cancelled_error());
      const LearnedSession& from = sessions[learned];
      GeneralityPair& pair = found.pairs[std::size_t{learned} * count + tried];
      pair = {.learned_on = learned, .tried_on = tried};
      pair.refused = mismatch(from, on);
      if (pair.refused) continue;
      pair.differs = differences(from, on);
      pair.trials.experts = try_experts(experts[learned], experts[tried], found.slots);
      pair.trials.memory = memory.run(rankings[learned]);
      if (!from.pattern.empty() && on.complete_tokens > 1)
        order_of[learned] = orders.add(moved(from, on));
      if (learned == tried) continue;
      ++left_out.learned_on;
      add(other_experts, from.experts);
      other_reads.add(from.reads);
    }
    left_out.trials.experts = try_experts(other_experts, experts[tried], found.slots);
    left_out.trials.memory = memory.run(other_reads.ranking());

    auto reader = open(tried);
    if (!reader) return named(tried, std::move(reader.error()));
    const auto predictions = query_valid_prefix(
        *reader,
        [&](const SessionReader& of) { return orders.run(of, on.complete_tokens, keep_going); },
        keep_going);
    if (!predictions) return named(tried, predictions.error());
    const auto own = order_of.find(tried);
    for (const auto& [learned, order] : order_of) {
      const Prediction& of = (*predictions)[order];
      if (own == order_of.end() || of.reads == 0) continue;
      const Trial trial{
          .total = of.reads, .learned = of.right, .own = (*predictions)[own->second].right};
      found.pairs[std::size_t{learned} * count + tried].trials.order = trial;
      if (learned == tried) continue;
      Trial& sum = left_out.trials.order ? *left_out.trials.order : left_out.trials.order.emplace();
      sum.total += trial.total;
      sum.learned += trial.learned;
      sum.own += trial.own;
    }
    found.leave_one_out.push_back(std::move(left_out));
  }
  found.means = means_of(found);
  return found;
}

// ---------------------------------------------------------------- words

std::string difference_text(const std::vector<LearnedElsewhere>& differs) {
  if (differs.empty()) return "the same model and prompt";
  std::string text;
  for (const LearnedElsewhere of : differs)
    text += std::format("{}another {}", text.empty() ? "" : " and ", to_text(of));
  return text;
}

namespace {

std::string percent(double share) { return std::format("{:.1f}", 100 * std::abs(share)); }

// "..., 4.2 percentage points less than with the session's own (at most 7.0)."
std::string compared_with_own(const MeanTrial& mean) {
  const std::string loss = percent(mean.loss), largest = percent(mean.largest_loss);
  std::string text = ", as with the session's own";
  if (loss != "0.0")
    text = std::format(", {} percentage points {} than with the session's own", loss,
                       mean.loss > 0 ? "less" : "more");
  if (mean.trials > 1 && mean.largest_loss > 0 && largest != loss)
    text += std::format(" (at most {} less)", largest);
  return text + ".";
}

double mean_of_any_experts(const Generality& found) {
  double sum = 0;
  std::size_t sessions = 0;
  for (const GeneralitySession& session : found.sessions) {
    sum += session.any_experts.value_or(0);
    sessions += session.any_experts.has_value();
  }
  return sessions == 0 ? 0 : sum / static_cast<double>(sessions);
}

}  // namespace

std::vector<std::string> sentences_of(const Generality& found) {
  std::vector<std::string> sentences;
  if (!found.means.empty() && !found.means.back().differs) {
    const GeneralityMean& mean = found.means.back();
    const std::string learned =
        std::format("Learned on the other session{}", found.sessions.size() == 2 ? "" : "s");
    if (mean.experts) {
      sentences.push_back(std::format(
          "{}, a cache of the most used experts, {} in each layer, serves {} % of the requests{} "
          "Any {} would serve {} %.",
          learned, found.slots, percent(mean.experts->share), compared_with_own(*mean.experts),
          counted(found.slots, "expert"), percent(mean_of_any_experts(found))));
    }
    if (mean.order) {
      sentences.push_back(std::format("{}, the order of the reads predicts {} % of the reads{}",
                                      learned, percent(mean.order->share),
                                      compared_with_own(*mean.order)));
    }
    if (mean.memory) {
      sentences.push_back(
          std::format("{}, the weights to keep in memory save {} % of the bytes "
                      "read{}",
                      learned, percent(mean.memory->share), compared_with_own(*mean.memory)));
    }
  }
  const auto refused = static_cast<std::uint64_t>(std::ranges::count_if(
      found.pairs, [](const GeneralityPair& pair) { return pair.refused.has_value(); }));
  if (refused > 0)
    sentences.push_back(std::format("{} {} not tried, because the weights do not match.",
                                    counted(refused, "pair"), refused == 1 ? "was" : "were"));
  return sentences;
}

static consteval columns::Enumeration words_of(LearnedElsewhere) {
  return columns::words_to("", LearnedElsewhere::OtherModel);
}

static Fields<Trial> fields_of(const Trial*) {
  return Fields<Trial>("GeneralityTrial")
      .add("total", "requests, reads or bytes of the session that it is tried on", &Trial::total)
      .add("learned", "of these, served or predicted with what was learned elsewhere",
           &Trial::learned)
      .add("own", "of these, served or predicted with what the session itself teaches", &Trial::own)
      .add("share", "`learned` divided by `total`", &Trial::share)
      .add("own_share", "`own` divided by `total`", &Trial::own_share)
      .add("loss", "`own_share` minus `share`", &Trial::loss);
}

static Fields<Trials> fields_of(const Trials*) {
  return Fields<Trials>()
      .add("experts",
           "requests of experts that a cache with the most used experts of each layer serves",
           &Trials::experts, {.null = "no choices of experts"})
      .add("order", "reads that the order of the reads predicts", &Trials::order,
           {.null = "no order to learn, or fewer than two generated tokens to try it on"})
      .add("memory", "bytes that the weights most often read save if they are kept in memory",
           &Trials::memory, {.null = "no reads of weights"});
}

static Fields<GeneralityPair> fields_of(const GeneralityPair*) {
  return Fields<GeneralityPair>()
      .add("learned_on", "index of a session", &GeneralityPair::learned_on)
      .add("tried_on", "index of a session; the same one: what it teaches about itself",
           &GeneralityPair::tried_on)
      .add("differs",
           "what differs between the sessions: the prompt, the types of the weights, or the "
           "files (model) with weights of the same types",
           &GeneralityPair::differs)
      .add("refused", "why nothing was tried", &GeneralityPair::refused,
           {.null = "the weights have the same names and shapes"})
      .include(&GeneralityPair::trials);
}

static Fields<LeftOut> fields_of(const LeftOut*) {
  return Fields<LeftOut>()
      .add("tried_on", "index of the session that is left out", &LeftOut::tried_on)
      .add("learned_on", "number of other sessions that its weights match", &LeftOut::learned_on)
      .include(&LeftOut::trials);
}

static Fields<MeanTrial> fields_of(const MeanTrial*) {
  return Fields<MeanTrial>("GeneralityMean")
      .add("trials", "", &MeanTrial::trials)
      .add("share", "", &MeanTrial::share)
      .add("own_share", "", &MeanTrial::own_share)
      .add("loss", "", &MeanTrial::loss)
      .add("largest_loss", "", &MeanTrial::largest_loss);
}

static Fields<GeneralityMean> fields_of(const GeneralityMean*) {
  return Fields<GeneralityMean>()
      .add("differs", "as in `pairs`", &GeneralityMean::differs,
           {.null = "the mean of `leave_one_out`"})
      .add("pairs", "", &GeneralityMean::pairs)
      .add("experts", "", &GeneralityMean::experts)
      .add("order", "", &GeneralityMean::order)
      .add("memory", "", &GeneralityMean::memory);
}

static Fields<GeneralitySession> fields_of(const GeneralitySession*) {
  return Fields<GeneralitySession>()
      .add("name", "", &GeneralitySession::name)
      .add("model", "file name of the model", &GeneralitySession::model)
      .add("prompt_tokens", "", &GeneralitySession::prompt_tokens)
      .add("tokens", "", &GeneralitySession::tokens)
      .add("any_experts", "share of the requests that any `slots` experts serve, expected",
           &GeneralitySession::any_experts, {.null = "no choices of experts"})
      .add("memory_bytes", "memory in the trials on this session", &GeneralitySession::memory)
      .add("readable_steps", "the session is damaged; what follows these steps is not read",
           &GeneralitySession::readable_steps, {.null = "it is not damaged"});
}

Fields<Generality> fields_of(const Generality*) {
  return Fields<Generality>("Generality")
      .add("slots", "experts of each layer that the cache holds; 0: no session has experts",
           &Generality::slots)
      .add("sentences", "the result in sentences", sentences_of)
      .add("sessions", "", &Generality::sessions)
      .add("means",
           "unweighted means over the pairs that differ in the same way, and over "
           "`leave_one_out`",
           &Generality::means)
      .add("leave_one_out", "learned on all other sessions together", &Generality::leave_one_out)
      .add("pairs", "by `learned_on`, then `tried_on`", &Generality::pairs);
}

}  // namespace tt
