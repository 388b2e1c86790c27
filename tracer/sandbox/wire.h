// What a Sandbox and its helper send each other. Private to sandbox.cpp and worker.cpp; both are
// always of the same build.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tt::sandbox_wire {

// The helper's connection: a SOCK_SEQPACKET socket. The helper sends one byte when it is ready;
// then it receives one JobHeader per job, with the job's socket as ancillary data (SCM_RIGHTS).
inline constexpr int kControlFd = 3;

struct JobHeader {
  std::array<char, 24> kind{};  // with a terminating 0
  std::uint64_t memory_bytes = 0, stack_bytes = 0;
  std::uint32_t cpu_seconds = 0, message_cpu_ms = 0;  // 0: unlimited
};

// A job's connection: a SOCK_SEQPACKET socket. A packet is a type byte and up to kPartBytes of a
// message. The last packet is sent by the helper: Exited and the wait status (int).
enum class Packet : char { Part = 'p', LastPart = 'l', Exited = 'x' };
inline constexpr std::size_t kPartBytes = 64U << 10;

// Exit codes of a child. Others, and signals, are crashes.
inline constexpr int kExitMemory = 71, kExitException = 70, kExitUnknownKind = 64;
inline constexpr int kForkFailed = -1;  // instead of a wait status

}  // namespace tt::sandbox_wire
