// Metadata of a session: everything needed to interpret the recording without the
// machine on which it was made. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "tracer/format/model/ids.h"
#include "tracer/text/parse_number.h"

namespace tt {

inline constexpr std::uint32_t kFormatVersion = 8;  // docs/trace-format.md

// Limits on the metadata, which the writer and the reader enforce.
inline constexpr std::size_t kMaxSessionFacts = 16'384, kMaxModelFiles = 4096;
inline constexpr std::size_t kMaxMetadataBytes = 64u << 20;  // all texts together
inline constexpr std::size_t kMaxTemplates = 65'536;

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
  std::string error;  // why it failed, for the user
  std::vector<ModelFile> model_files;
  std::uint32_t n_layers = 0, n_heads = 0, n_heads_kv = 0, n_embd = 0, n_vocab = 0;
  std::uint32_t n_experts = 0, n_experts_used = 0;
  // All other metadata as name -> text, in a fixed order: hyper-parameters ("model."),
  // prompt and sampling ("request."), host ("host."), library versions ("library."),
  // recorder ("trace."), context parameters ("context."), memory budget
  // ("memory."), result ("result.").
  std::vector<std::pair<std::string, std::string>> facts;
  // Value of the fact `name`; empty: not found.
  std::string_view fact(std::string_view name) const {
    for (const auto& [key, value] : facts)
      if (key == name) return value;
    return {};
  }
  // Value of the fact `name` as a number; nullopt: not found or not a number.
  std::optional<std::uint64_t> fact_number(std::string_view name) const {
    return parse_number<std::uint64_t>(fact(name));
  }
  friend bool operator==(const SessionInfo&, const SessionInfo&) = default;
};

// What the recorder dropped. Every loss is counted here.
struct LossCounters {
  std::uint64_t steps_without_times = 0;  // no free buffer
  std::uint64_t slot_values_dropped = 0;  // a slot did not fit its buffer
  std::uint64_t count_mismatches = 0;     // executed ops differed from the template's
  std::uint64_t steps_not_written = 0;    // the disk was full or failed
  std::uint64_t page_faults_lost = 0;     // the kernel's ring buffer overflowed
  friend bool operator==(const LossCounters&, const LossCounters&) = default;
};

const char* to_text(Level);
const char* to_text(SessionState);

}  // namespace tt
