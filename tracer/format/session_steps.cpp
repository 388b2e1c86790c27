// The steps of a session, one by one or one after the other: their rows, and what was measured
// in each, which stands in a table of its own.
#include <algorithm>
#include <format>
#include <string>
#include <utility>

#include "tracer/format/blob_codec.h"
#include "tracer/format/session_reader_impl.h"
#include "tracer/format/session_tables.h"

namespace tt {

namespace {

constexpr const char* kSelectStep =
    "SELECT id, phase, timing, template, allocation, begin_ns, end_ns, first_op_ns, first_token, "
    "n_tokens, threads, n_ops, dropped, aborted, packed, crc FROM tt_step ";
constexpr const char* kSelectMeasured = "SELECT step, packed, crc FROM tt_measured ";

}  // namespace

// The row that stands ready in `statement`, which is that of step `id`.
std::expected<void, TraceError> SessionReader::Impl::read_row(const Statement& statement, StepId id,
                                                              StepRow& row) const {
  RowIn in(statement);
  Step& step = row.head;
  step.id = StepId{in.integer<std::uint32_t>()};
  const auto phase = enum_of(in.text(), Phase::Other);
  const auto timing = enum_of(in.text(), Timing::None);
  step.graph = TemplateId{in.integer<std::uint32_t>()};
  step.allocation = AllocationId{in.integer<std::uint32_t>()};
  step.begin = Ns{in.integer<std::int64_t>()};
  step.end = Ns{in.integer<std::int64_t>()};
  step.first_op = Ns{in.integer<std::int64_t>()};
  step.first_token = in.integer<std::uint32_t>();
  step.n_tokens = in.integer<std::uint32_t>();
  step.threads = in.integer<std::uint32_t>();
  row.ops = in.integer<std::uint64_t>();
  step.dropped = in.flag();
  step.aborted = in.flag();
  row.packed = in.blob();
  row.measured = {};
  if (!in.sound() || !phase || !timing || step.id != id)
    return std::unexpected(damage(std::format("step {}", id.v)));
  step.phase = *phase;
  step.timing = *timing;
  return {};
}

// The row of tt_measured that stands ready in `statement`, which is that of step `id`.
std::expected<void, TraceError> SessionReader::Impl::read_measured(const Statement& statement,
                                                                   StepId id, StepRow& row) const {
  RowIn in(statement);
  const StepId of{in.integer<std::uint32_t>()};
  row.measured = in.blob();
  if (!in.sound() || of != id)
    return std::unexpected(damage(std::format("what was measured in step {}", id.v)));
  return {};
}

std::expected<void, TraceError> SessionReader::Impl::walk_to_measured(StepId id, StepRow& row) {
  while (sqlite3_data_count(get_measured.get()) == 0 ||
         sqlite3_column_int64(get_measured.get(), 0) < std::int64_t{id.v}) {
    const auto found = get_measured.step();
    if (!found) return std::unexpected(found.error());
    if (!*found) break;
  }
  return read_measured(get_measured, id, row);
}

std::expected<Step, TraceError> SessionReader::Impl::read_step(StepId id) {
  if (auto ready = prepare(get_step, std::string(kSelectStep) + "WHERE id = ?"); !ready)
    return std::unexpected(ready.error());
  const ScopedReset reset(get_step);
  sqlite3_bind_int64(get_step.get(), 1, id.v);
  const auto found = get_step.step();
  if (!found) return std::unexpected(found.error());
  const std::string name = std::format("step {}", id.v);
  if (!*found) return std::unexpected(absent(name));

  StepRow row;
  if (auto read = read_row(get_step, id, row); !read) return std::unexpected(read.error());
  const auto unpacked = [&]() -> std::expected<void, DecodeError> {
    if (version < kMeasuredSince) return unpack_step_before_3(row.packed, row.head);
    return unpack_step(row.packed, row.head).and_then([&] {
      return row.measured.empty() ? std::expected<void, DecodeError>()
                                  : unpack_measured(row.measured, row.head);
    });
  };
  // Of the same moment: the statement above holds the connection's snapshot.
  const ScopedReset reset_measured(get_step_measured);
  if (version >= kMeasuredSince && row.head.graph.v != 0) {
    if (auto ready = prepare(get_step_measured, std::string(kSelectMeasured) + "WHERE step = ?");
        !ready)
      return std::unexpected(ready.error());
    sqlite3_bind_int64(get_step_measured.get(), 1, id.v);
    if (const auto there = get_step_measured.step(); !there) return std::unexpected(there.error());
    if (auto read = read_measured(get_step_measured, id, row); !read)
      return std::unexpected(read.error());
  }
  if (const auto done = unpacked(); !done)
    return std::unexpected(damage(name + ", " + done.error().text()));
  if (row.head.op_ends.size() != row.ops) return std::unexpected(damage(name + ", its op count"));
  return std::move(row.head);
}

std::expected<Step, TraceError> SessionReader::step(StepId id) const {
  if (impl_->whole && id.v >= impl_->whole->steps)
    return std::unexpected(impl_->absent(std::format("step {} before its damage", id.v)));
  auto step = impl_->read_step(id);
  if (!step && step.error().kind == TraceError::Kind::NotFound) {
    // A hole among the rows is damage; past the last one is the end. A step that is
    // before the end now may have been written since it was looked for.
    const auto n = step_count();
    if (!n) return std::unexpected(n.error());
    if (id.v >= *n) return step;
    step = impl_->read_step(id);
    if (!step && step.error().kind == TraceError::Kind::NotFound)
      return std::unexpected(impl_->damage(std::format("step {} is missing", id.v)));
  }
  if (!step) return step;
  // Callers index these by OpId and SlotId.
  std::size_t ops = 0, slots = 0;
  if (step->graph.v != 0) {
    const auto of = graph(step->graph);
    if (!of) return std::unexpected(of.error());
    ops = (*of)->ops.size();
    slots = (*of)->slots.size();
  }
  const bool fits =
      step->op_ends.size() <= ops && (step->slots.empty() || step->slots.size() == slots) &&
      std::ranges::all_of(step->stats, [&](const ValueStats& s) { return s.op.v < ops; });
  if (!fits)
    return std::unexpected(impl_->damage(std::format("step {} does not fit its template", id.v)));
  return step;
}

std::expected<void, TraceError> SessionReader::for_each_step(
    StepId first, std::uint32_t count, const std::function<bool(const Step&)>& row) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto next = step(StepId{first.v + i});
    if (!next && next.error().kind == TraceError::Kind::NotFound) return {};
    if (!next) return std::unexpected(next.error());
    if (!row(*next)) return {};
  }
  return {};
}

std::expected<void, TraceError> SessionReader::for_each_step_row(
    StepId first, std::uint32_t count, Measured measured,
    const std::function<bool(const StepRow&)>& row) const {
  // A statement is a snapshot, which keeps a writer from folding its WAL in.
  constexpr std::uint32_t kStepsAtOnce = 4096;
  std::uint64_t end = std::uint64_t{first.v} + count;
  if (impl_->whole) end = std::min<std::uint64_t>(end, impl_->whole->steps);
  if (end <= first.v) return {};
  Statement& get = impl_->get_steps;
  if (auto ready =
          impl_->prepare(get, std::string(kSelectStep) + "WHERE id >= ? ORDER BY id LIMIT ?");
      !ready)
    return ready;
  const bool old = impl_->version < kMeasuredSince;
  const bool apart = measured == Measured::Read && !old;
  Statement& get_measured = impl_->get_measured;
  if (apart)
    if (auto ready = impl_->prepare(
            get_measured, std::string(kSelectMeasured) + "WHERE step >= ? ORDER BY step LIMIT ?");
        !ready)
      return ready;
  // A row of an older file, as this version has it.
  Step whole;
  Blob parted, parted_measured;
  const auto part = [&](StepRow& of) -> std::expected<void, TraceError> {
    whole = of.head;
    const auto packed =
        unpack_step_before_3(of.packed, whole).and_then([&] { return pack_step(whole); });
    if (!packed)
      return std::unexpected(
          impl_->damage(std::format("step {}, {}", of.head.id.v, packed.error().text())));
    of.packed = parted = *packed;
    if (measured == Measured::Read && whole.graph.v != 0)
      of.measured = parted_measured = pack_measured(whole);
    return {};
  };
  StepRow next;
  std::uint64_t there = 0;  // steps that there were before the statement began
  for (std::uint64_t i = first.v; i < end;) {
    const ScopedReset reset(get), reset_measured(get_measured);
    const std::uint64_t stop = std::min(i + kStepsAtOnce, end);
    for (Statement* statement : {&get, &get_measured}) {
      if (!*statement) continue;
      sqlite3_bind_int64(statement->get(), 1, static_cast<std::int64_t>(i));
      sqlite3_bind_int64(statement->get(), 2, static_cast<std::int64_t>(stop - i));
    }
    for (; i < stop; ++i) {
      const StepId id{static_cast<std::uint32_t>(i)};
      const auto found = get.step();
      if (!found) return std::unexpected(found.error());
      if (!*found || sqlite3_column_int64(get.get(), 0) != static_cast<std::int64_t>(i)) {
        get_measured.reset();  // which holds the snapshot
        const auto total = step_count();
        if (!total) return std::unexpected(total.error());
        if (i >= *total) return {};
        if (*found || i < there)
          return std::unexpected(impl_->damage(std::format("step {} is missing", i)));
        // Where the snapshot ended; a writer has added some since.
        there = *total;
        break;
      }
      if (auto read = impl_->read_row(get, id, next); !read) return read;
      if (old)
        if (auto read = part(next); !read) return read;
      if (apart && next.head.graph.v != 0)
        if (auto read = impl_->walk_to_measured(id, next); !read) return read;
      if (!row(next)) return {};
    }
  }
  return {};
}

}  // namespace tt
