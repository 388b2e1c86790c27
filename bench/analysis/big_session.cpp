#include "bench/analysis/big_session.h"

#include <cstdio>
#include <cstdlib>
#include <format>
#include <optional>
#include <print>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/common/derived_graphs.h"
#include "tracer/format/file/session_reader.h"
#include "tracer/format/file/session_writer.h"

namespace tt::bench {

namespace {

class Repeater {
 public:
  Repeater(const SessionReader& reader, SessionWriter& writer, std::uint64_t accesses)
      : reader_(reader), writer_(writer), accesses_(accesses), graphs_(reader) {}

  Status run() {
    if (auto copied = copy_graphs(); !copied) return copied;
    Status done = repeat(0, [](const Step&) { return true; });
    const auto first_generated = first_generated_;
    while (done && made_.accesses < accesses_) {
      if (!first_generated) {
        return std::unexpected(
            TraceError{TraceError::Kind::NotFound, "The session has no generated step to repeat."});
      }
      done = repeat(*first_generated, [](const Step& s) { return s.phase == Phase::Generate; });
    }
    return done;
  }
  const BigSession& made() const { return made_; }

 private:
  Status copy_graphs() {
    const auto ids = reader_.template_ids();
    if (!ids) return std::unexpected(ids.error());
    for (const TemplateId id : *ids) {
      const auto graph = reader_.graph(id);
      if (!graph) return std::unexpected(graph.error());
      if (auto added = writer_.add_template(id, **graph); !added) return added;
    }
    for (AllocationId id{1};; ++id.v) {
      const auto allocation = reader_.allocation(id);
      if (!allocation && allocation.error().kind == TraceError::Kind::NotFound) return {};
      if (!allocation) return std::unexpected(allocation.error());
      if (auto added = writer_.add_allocation(*allocation); !added) return added;
    }
  }

  template <class Wanted>
  Status repeat(std::uint32_t first, Wanted wanted) {
    Status done;
    const auto read = reader_.for_each_step(StepId{first}, UINT32_MAX, [&](const Step& step) {
      if (step.phase == Phase::Generate && !first_generated_) first_generated_ = step.id.v;
      if (wanted(step)) done = add(step);
      return done.has_value() && made_.accesses < accesses_;
    });
    return done ? read : done;
  }

  Status add(Step step) {
    auto tokens = reader_.tokens(step.first_token, step.n_tokens);
    if (!tokens) return std::unexpected(tokens.error());
    const auto derived = graphs_.of(step.graph);
    if (!derived) return std::unexpected(derived.error());
    step.id = StepId{static_cast<std::uint32_t>(made_.steps++)};
    step.first_token = tokens_;
    for (Token& token : *tokens) {
      token.index = tokens_;
      token.position = static_cast<std::int32_t>(tokens_++);
    }
    shift(step);
    made_.ops += step.op_ends.size();
    if (*derived)
      made_.accesses += totals_of(*(*derived)->graph, (*derived)->accesses, step).accesses;
    if (auto added = writer_.add_tokens(*tokens); !added) return added;
    if (auto added = writer_.add_step(step); !added) return added;
    return made_.steps % 1024 == 0 ? writer_.commit() : Status{};
  }

  // Moves the step to the current end of the session and scales every duration by a random
  // factor from 0.9 to 1.1.
  void shift(Step& step) {
    const auto jittered = [&](Ns from, Ns to) {
      const std::uint64_t per_1024 = 922 + random_() % 205;
      return static_cast<std::int64_t>(static_cast<std::uint64_t>((to - from).v) * per_1024 / 1024);
    };
    Ns before = step.first_op, at{now_.v + jittered(step.begin, step.first_op)};
    const Step old = step;
    step.begin = now_;
    step.first_op = at;
    for (Ns& end : step.op_ends) {
      at = Ns{at.v + jittered(before, end)};
      before = std::exchange(end, at);
    }
    now_ = step.end = Ns{at.v + jittered(before, old.end)};
    now_.v += 1000;
  }

  const SessionReader& reader_;
  SessionWriter& writer_;
  const std::uint64_t accesses_;
  DerivedGraphCache graphs_;
  std::mt19937_64 random_{1};
  std::optional<std::uint32_t> first_generated_;
  std::uint32_t tokens_ = 0;
  Ns now_{};
  BigSession made_;
};

}  // namespace

std::expected<BigSession, TraceError> make_big_session(const std::filesystem::path& from,
                                                       const std::filesystem::path& to,
                                                       std::uint64_t accesses) {
  const auto reader = SessionReader::open(from);
  if (!reader) return std::unexpected(reader.error());
  auto info = reader->info();
  if (!info) return std::unexpected(info.error());
  std::error_code none;
  std::filesystem::remove(to, none);
  info->id = to.stem();
  auto writer = SessionWriter::create(to, *info);
  if (!writer) return std::unexpected(writer.error());
  Repeater repeater(*reader, **writer, accesses);
  if (auto done = repeater.run(); !done) return std::unexpected(done.error());
  info->state = SessionState::Done;
  if (auto done = (*writer)->finish(*info, {}); !done) return std::unexpected(done.error());
  BigSession made = repeater.made();
  made.file_bytes = std::filesystem::file_size(to, none);
  return made;
}

std::filesystem::path default_session(const char* program, DefaultModel of,
                                      std::uint64_t accesses) {
  namespace fs = std::filesystem;
  const bool dense = of == DefaultModel::Dense;
  const std::string name = dense ? "dense" : "experts";
  std::error_code none;
  const fs::path folder = fs::temp_directory_path() / "tensor-trace-bench";
  const fs::path big = folder / std::format("{}-{}M.ttrace", name, accesses / 1'000'000);
  if (fs::exists(big, none)) return big;
  fs::create_directories(folder, none);
  const fs::path model = folder / (name + ".gguf"), small = folder / (name + ".ttrace");
  const std::string tt = (fs::path(program).parent_path() / "tt").string();
  const auto run = [&](const std::string& arguments) {
    const std::string command = "'" + tt + "' " + arguments + " >/dev/null";
    if (std::system(command.c_str()) == 0) return true;
    std::println(stderr, "{} failed; is tt built in the same folder as this program?", command);
    return false;
  };
  const std::string shape =
      dense ? "tinyllama-1.1b --embd 256 --heads 8 --kv-heads 4 --ff 768" : "qwen3-moe-like";
  if (!fs::exists(small, none) &&
      (!run(std::format("model {} --force -o '{}'", shape, model.string())) ||
       !run(std::format("record -q --force -m '{}' -p 'Once upon a time' -n 500 --ignore-eos "
                        "-o '{}'",
                        model.string(), small.string()))))
    return {};
  std::println(stderr, "writing {}", big.string());
  const fs::path half = big.string() + ".part";
  const auto made = make_big_session(small, half, accesses);
  if (!made) {
    std::println(stderr, "{}", made.error().message);
    return {};
  }
  fs::rename(half, big, none);
  return big;
}

}  // namespace tt::bench
