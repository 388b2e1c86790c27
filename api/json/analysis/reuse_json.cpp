#include "api/json/analysis/reuse_json.h"

namespace tt {

namespace {

Json saved_json(const CachePoint& point) {
  return {{"reads_saved", point.reads}, {"bytes_saved", point.bytes.v}};
}

Json bucket_json(const ReuseHistogram::Bucket& bucket) {
  return {{"reads", bucket.reads}, {"bytes", bucket.bytes.v}};
}

}  // namespace

Json to_json(const Reuse& reuse) {
  const ReuseHistogram& histogram = reuse.histogram;
  Json distances = Json::array();
  for (std::size_t i = 0; i < histogram.buckets.size(); ++i) {
    if (histogram.buckets[i].reads == 0) continue;
    Json bucket = {{"from_bytes", std::uint64_t{1} << i},
                   {"to_bytes", (std::uint64_t{2} << i) - 1}};
    bucket.update(bucket_json(histogram.buckets[i]));
    distances.push_back(std::move(bucket));
  }
  Json curve = Json::array();
  for (std::size_t i = 0; i < reuse.lru.size(); ++i) {
    curve.push_back({{"capacity_bytes", reuse.lru[i].capacity.v},
                     {"lru", saved_json(reuse.lru[i])},
                     {"belady", saved_json(reuse.belady[i])},
                     {"pin", saved_json(reuse.pin[i])}});
  }
  return {{"grain", reuse.grain == Grain::Tensor ? "tensor" : "part"},
          {"items", reuse.items},
          {"reads", reuse.reads},
          {"bytes_read", reuse.bytes.v},
          {"distinct_bytes", reuse.distinct.v},
          {"first", bucket_json(histogram.first)},
          {"distances", std::move(distances)},
          {"curve", std::move(curve)}};
}

}  // namespace tt
