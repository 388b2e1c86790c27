// Strong types for ids, times and sizes, so that units are checked by the compiler.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tt {

template <class Tag, class Rep>
struct Strong {
  Rep v{};
  friend constexpr auto operator<=>(Strong, Strong) = default;
};

using NodeId = Strong<struct NodeTag, std::uint32_t>;          // index into GraphTemplate::nodes
using OpId = Strong<struct OpTag, std::uint32_t>;              // index into GraphTemplate::ops
using TensorId = Strong<struct TensorTag, std::uint32_t>;      // index into GraphTemplate::tensors
using SlotId = Strong<struct SlotTag, std::uint32_t>;          // index into GraphTemplate::slots
using TemplateId = Strong<struct TemplateTag, std::uint32_t>;  // number within one session, from 1
using AllocationId = Strong<struct AllocTag, std::uint32_t>;   // number within one session, from 1
using StepId = Strong<struct StepTag, std::uint32_t>;          // number within one session, from 0
using LayerId = Strong<struct LayerTag, std::int32_t>;         // N of blk.N; kNoLayer: none

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;
inline constexpr TensorId kNoTensor{kNone};
inline constexpr NodeId kNoNode{kNone};
inline constexpr OpId kNoOp{kNone};
inline constexpr SlotId kNoSlot{kNone};
inline constexpr LayerId kNoLayer{-1};

// Nanoseconds since the session's start (steady clock).
using Ns = Strong<struct NsTag, std::int64_t>;
// Modulo 2^64: times from a file are untrusted and may overflow.
constexpr Ns operator-(Ns a, Ns b) {
  return Ns{
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a.v) - static_cast<std::uint64_t>(b.v))};
}
constexpr Ns operator+(Ns a, Ns b) {
  return Ns{
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a.v) + static_cast<std::uint64_t>(b.v))};
}

using Bytes = Strong<struct BytesTag, std::uint64_t>;
constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes{a.v + b.v}; }
constexpr Bytes& operator+=(Bytes& a, Bytes b) {
  a.v += b.v;
  return a;
}

// A byte range of a model file. `length` 0: not in a file.
struct FileRange {
  std::uint32_t file = 0;  // index into SessionInfo::model_files (split GGUFs have several)
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  constexpr bool empty() const { return length == 0; }
  friend constexpr bool operator==(const FileRange&, const FileRange&) = default;
};

}  // namespace tt

template <class Tag, class Rep>
struct std::hash<tt::Strong<Tag, Rep>> {
  std::size_t operator()(tt::Strong<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.v); }
};
