#include "api/reuse_json.h"

namespace tt {

namespace {

Json saved_json(const CachePoint& point) {
  return {{"reads_saved", point.reads}, {"bytes_saved", point.bytes.v}};
}

Json bucket_json(const ReuseHistogram::Bucket& bucket) {
  return {{"reads", bucket.reads}, {"bytes", bucket.bytes.v}};
}

}  // namespace

Json to_json(const ReadSequence& sequence, Grain grain, const ReuseHistogram& histogram,
             const ReuseCurves& curves) {
  Json distances = Json::array();
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    if (histogram.buckets[i].reads == 0) continue;
    Json bucket = {{"from_bytes", std::uint64_t{1} << i},
                   {"to_bytes", (std::uint64_t{2} << i) - 1}};
    bucket.update(bucket_json(histogram.buckets[i]));
    distances.push_back(std::move(bucket));
  }
  Json curve = Json::array();
  for (std::size_t i = 0; i < curves.lru.size(); ++i) {
    curve.push_back({{"capacity_bytes", curves.lru[i].capacity.v},
                     {"lru", saved_json(curves.lru[i])},
                     {"belady", saved_json(curves.belady[i])},
                     {"pin", saved_json(curves.pin[i])}});
  }
  return {{"grain", grain == Grain::Tensor ? "tensor" : "part"},
          {"items", sequence.items.size()},
          {"reads", sequence.reads.size()},
          {"bytes_read", sequence.bytes().v},
          {"distinct_bytes", sequence.distinct_bytes().v},
          {"first", bucket_json(histogram.first)},
          {"distances", std::move(distances)},
          {"curve", std::move(curve)}};
}

}  // namespace tt
