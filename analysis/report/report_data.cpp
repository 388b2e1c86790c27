// Gathers the data of a report.
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "analysis/report/report.h"

namespace tt {

namespace {

// Validates on a thread of its own: this takes as long as all other figures together.
class Validating {
 public:
  explicit Validating(const std::filesystem::path& file)
      : validation_(
            std::async([this, file] { return validate(file, [this] { return !stopped_; }); })) {}
  ~Validating() { stopped_ = true; }  // and the future waits for the thread
  Validating(const Validating&) = delete;
  Validating& operator=(const Validating&) = delete;

  std::expected<Validation, TraceError> result(const ContinueCheck& keep_going) {
    do {
      if (!keep_going()) return std::unexpected(cancelled_error());
    } while (validation_.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout);
    return validation_.get();
  }

 private:
  std::atomic<bool> stopped_ = false;
  std::future<std::expected<Validation, TraceError>> validation_;
};

// What the best policies would save, at the capacities of data.lru.
std::expected<void, TraceError> gather_policies(const ReadSequence& sequence, ReportData& data,
                                                const ContinueCheck& keep_going) {
  std::vector<Bytes> capacities;
  for (const CachePoint& point : data.lru) capacities.push_back(point.capacity);
  if (capacities.empty()) return {};
  auto pin = pin_curve(sequence, capacities, keep_going);
  if (!pin) return std::unexpected(pin.error());
  auto belady = belady_curve(sequence, capacities, keep_going);
  if (!belady) return std::unexpected(belady.error());
  data.pin = *std::move(pin);
  data.belady = *std::move(belady);
  return {};
}

}  // namespace

std::expected<ReportData, TraceError> gather_report_data(const std::filesystem::path& file,
                                                         const SessionIndex& index,
                                                         const SessionReader& reader,
                                                         const ContinueCheck& keep_going,
                                                         const ProgressCallback& progress) {
  Validating validating(file);
  ReadSequence reads;
  auto figures = gather_session_figures(index, reader, keep_going, progress, &reads);
  if (!figures) return std::unexpected(figures.error());
  ReportData data{*std::move(figures), {}, {}, {}};
  if (const auto found = gather_policies(reads, data, keep_going); !found)
    return std::unexpected(found.error());
  progress("validating");
  auto validation = validating.result(keep_going);
  if (!validation) return std::unexpected(validation.error());
  data.validation = *std::move(validation);
  return data;
}

}  // namespace tt
