// What a page fault was for: which op, which of its accesses, and what part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/index/template_outline.h"
#include "tracer/format/model/step.h"

namespace tt {

// kNone: not known. An op is that which ran at the time of the fault; an access is the
// op's own whose bytes hold the address, else any of the template that is of a weight.
struct FaultPlace {
  std::uint32_t op = kNone, access = kNone;  // in TemplateOutline
  std::uint32_t part = kNone;                // of an access whose parts are accesses of their own
  friend bool operator==(const FaultPlace&, const FaultPlace&) = default;
};

// Of the steps of one template and allocation. One thread at a time.
class FaultPlaces {
 public:
  // `addresses`: per tensor of the template, longer lived than this; empty: not recorded.
  FaultPlaces(std::shared_ptr<const TemplateOutline> outline,
              std::span<const std::uint64_t> addresses);

  // The step that the next faults are of: when its first op could begin, and the ends of
  // those that ran.
  void begin_step(Ns first_op, std::span<const Ns> op_ends);
  FaultPlace of(const PageFault& fault) const;

 private:
  bool holds(const OutlineAccess& access, std::uint64_t address) const;
  // kNone: none of the op's.
  std::uint32_t access_of(std::uint32_t op, std::uint64_t address) const;

  std::shared_ptr<const TemplateOutline> outline_;
  std::span<const std::uint64_t> addresses_;
  std::vector<std::uint32_t> weights_;  // accesses of weights, one of each view
  Ns first_op_{};
  std::vector<Ns> latest_;  // per op that ran, the latest end up to its own
};

// Where in the model's files a byte of an access is mapped from; empty: from none.
FileRange in_file(const OutlineAccess& access, std::span<const std::uint64_t> addresses,
                  std::uint64_t address);

}  // namespace tt
