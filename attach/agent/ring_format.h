// What passes from a traced program to `tt attach`: a ring of records in a file in memory, one per
// process. Plain values without the standard library: used on both sides.
//
// The program writes whole records and then moves `head`; the collector reads them and then moves
// `tail`. Both count bytes since the start; the place of byte n is n % capacity. A record starts
// with RecordHead and is padded to 8 bytes. The collector trusts nothing that it reads.
#pragma once

#include <cstdint>

namespace tt::attach {

inline constexpr std::uint32_t kRingMagic = 0x72747474;  // "tttr"
inline constexpr std::uint32_t kRingVersion = 5;
inline constexpr char kFolderVariable[] = "TT_ATTACH_RINGS";  // the collector's folder for rings
inline constexpr char kCapacityVariable[] = "TT_ATTACH_RING_BYTES";
inline constexpr char kPausedVariable[] = "TT_ATTACH_PAUSED";  // set: the ring begins paused
// Set: ops on devices are timed, too, by splitting the graph after each op.
inline constexpr char kExactVariable[] = "TT_ATTACH_EXACT";
inline constexpr char kRingEnding[] = ".ring";  // PID.NUMBER.ring

struct RingHeader {
  std::uint32_t magic = kRingMagic, version = kRingVersion;
  std::uint64_t capacity = 0;  // bytes of the ring, which begins at kRingBegin
  std::int64_t pid = 0;
  // Written by the collector: not 0 stops and 0 continues the recording.
  std::uint64_t paused = 0;
  std::uint64_t steps_lost = 0;  // did not fit, not even their tokens
  std::uint64_t running = 0;     // steps that are recorded and have not ended
  alignas(64) std::uint64_t head = 0;
  alignas(64) std::uint64_t tail = 0;
};
inline constexpr std::uint64_t kRingBegin = 4096;

enum class RecordKind : std::uint32_t {
  Library = 1,  // LibraryRecord, version, path: ggml was found and understood
  Message = 2,  // text for the user
  Model = 3,    // path of a GGUF file that was opened
  Maps = 4,     // lines of /proc/self/maps with files that are no libraries
  Graph = 5,    // GraphRecord and what it counts
  Step = 6,     // StepRecord and what it counts
  End = 7,      // SchedulerRecord: the scheduler was freed
  Program = 8,  // path of the program of the process
};

struct RecordHead {
  std::uint32_t bytes = 0;  // with the head and the padding
  RecordKind kind{};
};

struct LibraryRecord {
  std::uint32_t library = 0;
  // How often the CPU backend reports the end of an op: 0 never, 1 of each node, 2 of each op,
  // 3 of each op, where RMS_NORM and MUL may run as one.
  std::uint32_t ticks = 0;
};

struct SchedulerRecord {
  std::uint64_t scheduler = 0;
};

// Followed by `buffers` BufferRecord, `tensors` TensorRecord, `nodes` u32 (tensors), `ops`
// OpRecord, `backends` texts: the names of the scheduler's backends. Each text is a u32 length and
// its bytes, padded to 4 bytes.
struct GraphRecord {
  std::uint64_t scheduler = 0;  // which of the process: one per context
  std::uint32_t graph = 0;      // number in the process
  std::uint32_t library = 0;
  std::uint32_t buffers = 0, tensors = 0, nodes = 0, ops = 0;
  std::uint32_t backends = 0, padding = 0;
};

// Followed by two texts: name, device.
struct BufferRecord {
  std::uint64_t size = 0;
  std::uint32_t usage = 0;  // of RawBuffer
  std::uint32_t host = 0, on_device = 0, padding = 0;
};

// Followed by `sources` u32 (tensors) and texts: name, op, description of the op, type.
struct TensorRecord {
  std::int64_t ne[4]{};
  std::uint64_t nb[4]{};
  std::int32_t params[16]{};
  std::uint64_t view_offset = 0, address = 0, bytes = 0;
  std::uint32_t view_of = 0, buffer = 0;
  std::uint32_t block_elements = 0, block_bytes = 0;
  std::uint32_t input = 0, computed = 0;
  std::uint32_t sources = 0, padding = 0;
};

struct OpRecord {
  std::uint32_t first = 0, nodes = 0;
};

enum class StepTiming : std::uint32_t { Fast, Learned, Exact, None };

// Followed by `times` i64 (end of each op), `splits` SplitRecord, `copies` CopyRecord, and `slots`
// SlotRecord with their values.
struct StepRecord {
  std::uint64_t scheduler = 0;
  std::uint32_t graph = 0;
  StepTiming timing{};
  std::int64_t begin = 0, first_op = 0, end = 0;  // CLOCK_MONOTONIC
  std::uint32_t times = 0, slots = 0;
  std::uint32_t threads = 0;
  std::uint32_t aborted = 0, dropped = 0, mismatch = 0;
  std::uint32_t slots_lost = 0, thread = 0;
  std::uint32_t splits = 0, copies = 0;
  // Of the process, since it started.
  std::uint64_t voluntary = 0, involuntary = 0, minor = 0, major = 0;
};

// What one backend computed of the graph. The copies of its inputs are the next `copies` ones.
struct SplitRecord {
  std::uint32_t backend = 0;
  std::uint32_t first_op = 0, ops = 0;
  std::uint32_t copies = 0;
  std::int64_t begin = 0, end = 0;  // of the call that computes it
  std::int64_t done = 0;            // a wait for the backend returned; 0: there was none
};

struct CopyRecord {
  std::uint32_t tensor = 0;  // of the graph: what was copied, else its copy; UINT32_MAX: neither
  std::uint32_t from = 0;    // backend; UINT32_MAX: not known
  std::uint64_t bytes = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t wait = 0;                    // in calls that wait for a backend or an event
  std::uint32_t complete = 0, padding = 0;  // else a device copies later
};

// Of a mask there are two lists: the cells that at least one token attends to, and the first two of
// each row; -1: there is none (a row of padding has none).
enum class SlotValuesKind : std::uint32_t { Int32, Int64, Float, Cells, FirstCells };

struct SlotRecord {
  std::uint32_t tensor = 0;
  SlotValuesKind kind{};
  std::uint32_t count = 0, bytes = 0;  // bytes: of the values, padded to 8
};

constexpr std::uint64_t padded(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace tt::attach
