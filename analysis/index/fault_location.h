// Attributes page faults to an op, one of its accesses, and a part of the access.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "analysis/index/template_outline.h"
#include "tracer/format/model/step.h"

namespace tt {

// kNone: unknown. The op is the one that ran at the time of the fault. The access is an
// access of this op that contains the address, else any weight access of the template that
// contains it.
struct FaultLocation {
  std::uint32_t op = kNone, access = kNone;  // indices in TemplateOutline
  std::uint32_t part = kNone;                // only if the parts are separate accesses
  friend bool operator==(const FaultLocation&, const FaultLocation&) = default;
};

// For the steps of one template and allocation. One thread at a time.
class FaultLocator {
 public:
  // `addresses`: per tensor of the template; must outlive this object. Empty: not recorded.
  FaultLocator(std::shared_ptr<const TemplateOutline> outline,
               std::span<const std::uint64_t> addresses);

  // Sets the step of the following faults: the earliest begin of its first op, and the end
  // times of the ops that ran.
  void begin_step(Ns first_op, std::span<const Ns> op_ends);
  FaultLocation of(const PageFault& fault) const;

 private:
  bool contains(const OutlineAccess& access, std::uint64_t address) const;
  // kNone: no access of the op contains the address.
  std::uint32_t access_of(std::uint32_t op, std::uint64_t address) const;

  std::shared_ptr<const TemplateOutline> outline_;
  std::span<const std::uint64_t> addresses_;
  std::vector<std::uint32_t> weights_;  // weight accesses, one per view
  Ns first_op_{};
  std::vector<Ns> latest_;  // per op that ran: the maximum end of the ops up to it
};

// The position in the model files that `address`, a byte of the access, is mapped from;
// empty: not mapped from a file.
FileRange in_file(const OutlineAccess& access, std::span<const std::uint64_t> addresses,
                  std::uint64_t address);

}  // namespace tt
