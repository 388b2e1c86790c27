// Statistics of the captured outputs of ops over all their tokens: range, norm, kurtosis,
// magnitudes, and the channels with the largest values (docs/values.md). Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "analysis/common/page.h"
#include "analysis/fields/declare.h"
#include "tracer/format/file/session_reader.h"

namespace tt {

// One element of every row.
struct Channel {
  std::uint64_t channel = 0;  // index in the row
  double mean = 0, max = 0;   // of the absolute values
  double share = 0;           // of the sum of the squares of all channels
};

// The values with an absolute value from 2^exponent to below 2^(exponent + 1).
struct Magnitude {
  std::int64_t exponent = 0;
  std::uint64_t values = 0;
};

// All captured outputs of one name. Figures are of the finite values; nullopt: there are none.
struct OutputChannels {
  std::string output;
  LayerId layer = kNoLayer;
  std::uint64_t rows = 0;      // of all steps; a row is a token, or a head of a token
  std::uint64_t channels = 0;  // per row
  std::uint64_t zeros = 0, nan = 0, inf = 0;
  std::optional<double> min{}, max{}, mean{}, std{};
  std::optional<double> norm{};      // mean over rows of the root of the sum of the squares
  std::optional<double> kurtosis{};  // 3: as a normal distribution; nullopt: all values are equal
  std::vector<Channel> top{};        // the largest share first, at most 8
  std::vector<Magnitude> magnitudes{};  // ascending, without empty ones and zeros
};

struct ChannelsQuery {
  std::optional<LayerId> layer{};  // nullopt: all
  std::string output{};            // empty: all
  PageRange page{};
};

// In the order in which the outputs were captured first. Errors: NotFound, the session has no such
// layer.
std::expected<Page<OutputChannels>, TraceError> output_channels(
    const SessionReader& reader, const ChannelsQuery& query,
    const ContinueCheck& keep_going = never_cancel);

Fields<Page<OutputChannels>> fields_of(const Page<OutputChannels>*);

// For a session without them, or without what was asked for.
inline constexpr const char* kNoCapturedOutput =
    "The session has no captured output of this name and layer. Record with --capture, such as "
    "--capture l_out, or with \"capture\": [\"l_out\"] in the request.";

}  // namespace tt
