#include "tests/server/live/live_stage.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "tests/support/sessions/graph_maker.h"

namespace tt::test {

KnownGraphPtr routed_graph() {
  static const KnownGraphPtr made = [] {
    GraphMaker m;
    const auto ids = m.input("ffn_moe_topk-0", {2, 1});
    m.slot(SlotKind::Experts, ids, LayerId{0});
    return std::make_shared<const KnownGraph>(KnownGraph{.graph = m.graph, .accesses = {}});
  }();
  return made;
}

LiveStage::LiveStage(LiveLimits limits)
    : clients(
          {.send =
               [this](ClientId id, Opcode opcode, std::span<const std::byte> bytes) {
                 if (door_is_full) return false;
                 outbox[id].push_back({.opcode = opcode, .bytes = {bytes.begin(), bytes.end()}});
                 return true;
               },
           .close = [this](ClientId id, std::uint16_t code) { closed[id] = code; },
           .pause = [this](ClientId id, std::chrono::milliseconds time) { paused[id] = time; },
           .status = [this](const std::string& id) -> std::optional<JobStatus> {
             const auto found = statuses.find(id);
             if (found == statuses.end()) return std::nullopt;
             return found->second;
           },
           .in_flight = [this](const std::string& id,
                               std::uint32_t from) -> std::optional<StepInFlight> {
             if (!flight || flight->session != id) return std::nullopt;
             StepInFlight look = *flight;
             look.first = from;
             look.ends.erase(
                 look.ends.begin(),
                 look.ends.begin() + std::min<std::ptrdiff_t>(from, std::ssize(look.ends)));
             return look;
           },
           .read = [this](ArchiveRequest request) { requests.push_back(std::move(request)); },
           .extent = [](const std::string&) { return LiveExtent{}; },
           .now = [this] { return now; }},
          limits) {}

void LiveStage::state(const std::string& id, JobState job_state) {
  JobStatus status;
  status.n_layers = 1;
  status.id = id;
  status.state = job_state;
  statuses[id] = status;
  clients.state(status);
}

std::vector<json> LiveStage::events(ClientId id) {
  std::vector<json> out;
  for (const LiveMessage& message : std::exchange(outbox[id], {})) {
    if (message.opcode == Opcode::Text) out.push_back(event_of(message));
  }
  return out;
}

std::vector<std::string> LiveStage::types(ClientId id) {
  std::vector<std::string> out;
  for (const json& event : events(id)) out.push_back(event["type"]);
  return out;
}

json LiveStage::event_of(const LiveMessage& message) {
  const auto* text = reinterpret_cast<const char*>(message.bytes.data());
  return json::parse(text, text + message.bytes.size());
}

void LiveStage::read_one(std::size_t most_records) {
  if (requests.empty()) return;
  const ArchiveRequest request = std::move(requests.front());
  requests.pop_front();
  ArchivePiece piece{.client = request.client,
                     .ticket = request.ticket,
                     .session = request.session,
                     .state = file_state,
                     .tokens = static_cast<std::uint32_t>(file_tokens.size()),
                     .steps = static_cast<std::uint32_t>(file_steps.size())};
  if (!has_file) piece.error = TraceError{TraceError::Kind::NotFound, "there is no such file"};
  LivePosition at = request.from;
  while (has_file && piece.records.size() < most_records) {
    if (request.kinds.of_steps() && at.step < file_steps.size()) {
      piece.records.emplace_back(
          std::make_shared<StepRecord>(request.session, file_steps[at.step++], routed_graph(), 1u));
    } else if (request.kinds.token && at.token < file_tokens.size()) {
      piece.records.emplace_back(TokenRecord{
          .index = at.token, .message = token_event(request.session, file_tokens[at.token], "x")});
      ++at.token;
    } else {
      piece.at_end = true;
      break;
    }
  }
  clients.piece(std::move(piece));
}

void LiveStage::token(const std::string& session) {
  const Token made{.index = static_cast<std::uint32_t>(file_tokens.size()), .text = {}};
  file_tokens.push_back(made);
  clients.token(session, made, "x");
}

void LiveStage::step(const std::string& session, const Step& step) {
  file_steps.push_back(step);
  clients.step(session, step, routed_graph());
}

Step live_step(std::uint32_t id, std::size_t ops) {
  Step step;
  step.id = StepId{id};
  step.timing = Timing::Fast;
  step.n_tokens = 1;
  step.first_token = id;
  step.first_op = Ns{1000 * id};
  for (std::size_t i = 0; i < ops; ++i)
    step.op_ends.push_back(Ns{static_cast<std::int64_t>(1000 * id + 10 * (i + 1))});
  step.slots.push_back({.ints = {id % 4, 7}, .floats = {}});
  return step;
}

StepInFlight part_of(const std::string& session, const Step& step, std::size_t ops) {
  StepInFlight part{.session = session, .step = step.id, .first_op = step.first_op, .ends = {}};
  part.ends.assign(step.op_ends.begin(), step.op_ends.begin() + static_cast<std::ptrdiff_t>(ops));
  return part;
}

}  // namespace tt::test
