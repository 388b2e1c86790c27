#include "analysis/values/channels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "analysis/common/session_layers.h"
#include "analysis/fields/page_fields.h"
#include "analysis/tables/value_summary.h"
#include "analysis/values/walk_values.h"
#include "tracer/format/model/captured_kinds.h"

namespace tt {

namespace {

// Mean and central moments, one value after the other (Pébay's formulas): sums of powers would
// cancel where the mean is large.
class Moments {
 public:
  void add(double value) {
    const double before = n_++;
    const double delta = value - mean_, step = delta / n_, term = delta * step * before;
    mean_ += step;
    fourth_ +=
        term * step * step * (n_ * n_ - 3 * n_ + 3) + 6 * step * step * second_ - 4 * step * third_;
    third_ += term * step * (n_ - 2) - 3 * step * second_;
    second_ += term;
  }
  double mean() const { return mean_; }
  double std() const { return std::sqrt(second_ / n_); }
  std::optional<double> kurtosis() const {
    if (second_ <= 0) return std::nullopt;
    return n_ * fourth_ / (second_ * second_);
  }

 private:
  double n_ = 0, mean_ = 0, second_ = 0, third_ = 0, fourth_ = 0;
};

struct ChannelSums {
  double absolute = 0, squares = 0, max = 0;
  std::uint64_t n = 0;
};

// The sums of all outputs of one name.
class Sums {
 public:
  void add(const OutputValues& values) {
    const std::size_t width = values.ne[0];
    if (width == 0 || values.values.size() < width) return;
    // The keys of attention become more from step to step.
    if (width > channels_.size()) channels_.resize(width);
    std::span<const float> rest = values.values;
    for (; rest.size() >= width; rest = rest.subspan(width)) add_row(rest.first(width));
  }

  void describe(OutputChannels& of) const {
    of.rows = rows_;
    of.channels = channels_.size();
    of.zeros = zeros_;
    of.nan = nan_;
    of.inf = inf_;
    if (finite_ == 0) return;
    of.min = min_;
    of.max = max_;
    of.mean = moments_.mean();
    of.std = moments_.std();
    of.norm = norms_ / static_cast<double>(rows_);
    of.kurtosis = moments_.kurtosis();
    of.top = top();
    for (const auto& [exponent, values] : magnitudes_)
      of.magnitudes.push_back({.exponent = exponent, .values = values});
  }

 private:
  void add_row(std::span<const float> row) {
    ++rows_;
    double squares = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double value = double{row[i]};
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? nan_ : inf_);
        continue;
      }
      min_ = finite_ == 0 ? value : std::min(min_, value);
      max_ = finite_ == 0 ? value : std::max(max_, value);
      ++finite_;
      moments_.add(value);
      const double size = std::abs(value);
      if (size == 0)
        ++zeros_;
      else
        ++magnitudes_[std::ilogb(size)];
      squares += size * size;
      ChannelSums& channel = channels_[i];
      channel.absolute += size;
      channel.squares += size * size;
      channel.max = std::max(channel.max, size);
      ++channel.n;
    }
    norms_ += std::sqrt(squares);
  }

  std::vector<Channel> top() const {
    constexpr std::size_t kTop = 8;
    double all = 0;
    std::vector<Channel> list;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      const ChannelSums& of = channels_[i];
      all += of.squares;
      if (of.squares > 0)
        list.push_back({.channel = i,
                        .mean = of.absolute / static_cast<double>(of.n),
                        .max = of.max,
                        .share = of.squares});
    }
    std::ranges::stable_sort(list, std::ranges::greater{}, &Channel::share);
    list.resize(std::min(kTop, list.size()));
    for (Channel& channel : list) channel.share /= all;
    return list;
  }

  std::uint64_t rows_ = 0, finite_ = 0, zeros_ = 0, nan_ = 0, inf_ = 0;
  double min_ = 0, max_ = 0, norms_ = 0;
  Moments moments_;
  std::vector<ChannelSums> channels_;
  std::map<std::int64_t, std::uint64_t> magnitudes_;  // by exponent
};

}  // namespace

std::expected<Page<OutputChannels>, TraceError> output_channels(const SessionReader& reader,
                                                                const ChannelsQuery& query,
                                                                const ContinueCheck& keep_going) {
  if (query.layer)
    if (auto there = validate_layers(reader, LayerSet::one(*query.layer)); !there)
      return std::unexpected(there.error());
  struct Output {
    std::string name;
    LayerId layer;
    Sums sums;
  };
  std::vector<Output> outputs;
  std::map<std::pair<std::string, LayerId>, std::size_t> places;
  const auto walked = walk_values(
      reader, keep_going, [&](const GraphTemplate& graph, const Step&, const StepValues& of) {
        for (const OutputValues& values : of.outputs) {
          if (is_top(values.of) || (values.of != ValuesOf::Output && !is_source(values.of)))
            continue;
          const LayerId layer = graph.op(values.op).layer;
          std::string name = value_name(graph, values);
          if ((query.layer && *query.layer != layer) ||
              (!query.output.empty() && query.output != name))
            continue;
          const auto [at, added] = places.try_emplace({name, layer}, outputs.size());
          if (added) outputs.push_back({.name = std::move(name), .layer = layer, .sums = {}});
          outputs[at->second].sums.add(values);
        }
      });
  if (!walked) return std::unexpected(walked.error());
  if (outputs.empty() && !query.output.empty())
    return std::unexpected(TraceError{TraceError::Kind::NotFound, kNoCapturedOutput});
  Page<OutputChannels> page;
  for (const Output& output : outputs) {
    if (!query.page.contains(page.total++)) continue;
    output.sums.describe(
        page.rows.emplace_back(OutputChannels{.output = output.name, .layer = output.layer}));
  }
  return page;
}

static Fields<Channel> fields_of(const Channel*) {
  return Fields<Channel>("Channel")
      .add("channel", "index in the row", &Channel::channel)
      .add("mean", "of the absolute values", &Channel::mean)
      .add("max", "of the absolute values", &Channel::max)
      .add("share", "of the sum of the squares of all channels", &Channel::share,
           {.unit = "0 to 1"});
}

static Fields<Magnitude> fields_of(const Magnitude*) {
  return Fields<Magnitude>("Magnitude")
      .add("exponent", "absolute values from 2^exponent to below 2^(exponent + 1)",
           &Magnitude::exponent)
      .add("values", "", &Magnitude::values);
}

static Fields<OutputChannels> fields_of(const OutputChannels*) {
  constexpr const char* kNoValue = "no finite value";
  return Fields<OutputChannels>("OutputChannels")
      .add("output", "name of the output", &OutputChannels::output)
      .add("layer", "null: outside the layers", &OutputChannels::layer)
      .add("rows", "of all steps: tokens, or heads of tokens", &OutputChannels::rows)
      .add("channels", "elements of a row", &OutputChannels::channels)
      .add("zeros", "", &OutputChannels::zeros)
      .add("nan", "", &OutputChannels::nan)
      .add("inf", "", &OutputChannels::inf)
      .add("min", "of the finite values", &OutputChannels::min, {.null = kNoValue})
      .add("max", "of the finite values", &OutputChannels::max, {.null = kNoValue})
      .add("mean", "of the finite values", &OutputChannels::mean, {.null = kNoValue})
      .add("std", "of the finite values", &OutputChannels::std, {.null = kNoValue})
      .add("norm", "root of the sum of the squares of a row, mean over rows", &OutputChannels::norm,
           {.null = kNoValue})
      .add("kurtosis", "3: as a normal distribution; more: some values are far larger",
           &OutputChannels::kurtosis, {.null = "no finite value, or all are equal"})
      .add("top", "the channels with the largest share of the squares, at most 8",
           &OutputChannels::top)
      .add("magnitudes", "histogram of the absolute values, ascending",
           &OutputChannels::magnitudes);
}

Fields<Page<OutputChannels>> fields_of(const Page<OutputChannels>*) {
  return page_fields<OutputChannels>("OutputChannelsPage");
}

}  // namespace tt
