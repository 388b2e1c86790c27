// What a session says about itself: everything needed to understand the
// recording without the machine it was made on. A value.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tracer/format/model/ids.h"

namespace tt {

inline constexpr std::uint32_t kFormatVersion = 2;  // of the files, docs/trace-format.md

enum class Level : std::uint8_t { Off, Minimal, Detailed, Verbose };
enum class SessionState : std::uint8_t { Running, Done, Cancelled, Failed, Recovered };

struct ModelFile {
  std::string path;
  std::uint64_t size = 0;  // bytes
  std::int64_t mtime_ns = 0;
  std::string header_hash;  // XXH64 of everything before the data section, hex
  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

struct SessionInfo {
  std::string id;                 // unique: UTC time and random part; also the file's stem
  std::string title;              // start of the prompt; may be renamed
  std::int64_t start_utc_ns = 0;  // Unix time of Ns{0}
  Level level = Level::Detailed;
  bool exact_timing = false;
  SessionState state = SessionState::Running;
  std::string error;  // why it failed, for people
  std::vector<ModelFile> model_files;
  std::uint32_t n_layers = 0, n_heads = 0, n_heads_kv = 0, n_embd = 0, n_vocab = 0;
  std::uint32_t n_experts = 0, n_experts_used = 0;
  // Everything else, in a fixed order: hyper-parameters ("model."), prompt and
  // sampling ("request."), host ("host."), library versions ("library."),
  // recorder facts ("trace."), how the context was made ("context."), how it
  // ended ("result."): name -> text.
  std::vector<std::pair<std::string, std::string>> facts;
  // The text of one; empty: it is not there.
  std::string_view fact(std::string_view name) const {
    for (const auto& [key, value] : facts)
      if (key == name) return value;
    return {};
  }
  // One of them as a number; none: it is not there, or not one.
  std::optional<std::uint64_t> fact_number(std::string_view name) const {
    const std::string_view text = fact(name);
    std::uint64_t number = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
  }
  friend bool operator==(const SessionInfo&, const SessionInfo&) = default;
};

// What the recorder lost, never silently.
struct LossCounters {
  std::uint64_t steps_without_times = 0;  // no free buffer
  std::uint64_t slot_values_dropped = 0;  // a slot did not fit its buffer
  std::uint64_t count_mismatches = 0;     // executed ops differed from the template's
  std::uint64_t steps_not_written = 0;    // the disk was full or failed
  std::uint64_t page_faults_lost = 0;     // more at once than the kernel had room for
  friend bool operator==(const LossCounters&, const LossCounters&) = default;
};

const char* to_text(Level);
const char* to_text(SessionState);

}  // namespace tt
