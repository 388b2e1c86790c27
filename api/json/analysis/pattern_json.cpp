#include "api/json/analysis/pattern_json.h"

namespace tt {

namespace {

const char* to_text(PatternEntry::Kind kind) {
  switch (kind) {
    case PatternEntry::Kind::Fixed:
      return "fixed";
    case PatternEntry::Kind::Routed:
      return "routed";
    case PatternEntry::Kind::Row:
      return "row";
  }
  return "fixed";
}

Json entry_json(const PatternEntry& entry) {
  return {{"tensor_name", entry.tensor},
          {"kind", to_text(entry.kind)},
          {"op", entry.op.v},
          {"file_index", entry.file.file},
          {"file_offset", entry.file.offset},
          {"size_bytes", entry.part_bytes.v * entry.parts},
          {"parts", entry.parts},
          {"part_bytes", entry.part_bytes.v},
          {"tensor_bytes", entry.file.length},
          {"layer_id", entry.layer == kNoLayer ? Json() : Json(entry.layer.v)},
          {"component", tt::to_text(entry.component)}};
}

}  // namespace

Json to_json(const Determinism& determinism) {
  Json differing;
  for (std::size_t i = 0; i < kCauses; ++i)
    differing[tt::to_text(static_cast<Cause>(i))] = determinism.differing[i];
  Json firsts = Json::array();
  for (const FirstDifference& first : determinism.firsts) {
    firsts.push_back({{"cause", tt::to_text(first.cause)},
                      {"step", first.step.v},
                      {"before", first.before.v},
                      {"op", first.op.v},
                      {"tensor_name", first.tensor}});
  }
  return {{"pairs", determinism.pairs},
          {"identical", determinism.identical},
          {"same_weights", determinism.same_weights},
          {"accesses", determinism.accesses},
          {"differing", std::move(differing)},
          {"first_differences", std::move(firsts)}};
}

Json to_json(const AccessPattern& pattern, const Determinism& determinism,
             const SessionInfo& session) {
  Json files = Json::array();
  for (const ModelFile& file : session.model_files)
    files.push_back({{"path", file.path}, {"size", file.size}, {"header_hash", file.header_hash}});
  Json entries = Json::array();
  for (const PatternEntry& entry : pattern.entries) entries.push_back(entry_json(entry));
  const Prediction& prediction = pattern.prediction;
  return {{"version", 1},
          {"session", session.id},
          {"model_files", std::move(files)},
          {"prediction",
           {{"accuracy", prediction.accuracy()},
            {"steps_learned", prediction.steps_learned},
            {"steps_tried", prediction.steps_tried},
            {"reads", prediction.reads},
            {"right", prediction.right},
            {"bytes", prediction.bytes.v},
            {"right_bytes", prediction.right_bytes.v}}},
          {"determinism", to_json(determinism)},
          {"per_token_pattern", std::move(entries)}};
}

}  // namespace tt
