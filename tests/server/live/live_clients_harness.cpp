#include "tests/server/live/live_clients_harness.h"

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

LiveClientsHarness::LiveClientsHarness(LiveLimits limits)
    : clients(
          {.send =
               [this](ClientId id, Opcode opcode, std::span<const std::byte> bytes) {
                 if (send_queue_full) return false;
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
             if (!in_flight_step || in_flight_step->session != id) return std::nullopt;
             StepInFlight look = *in_flight_step;
             look.first = from;
             look.ends.erase(
                 look.ends.begin(),
                 look.ends.begin() + std::min<std::ptrdiff_t>(from, std::ssize(look.ends)));
             return look;
           },
           .read = [this](BackfillRequest request) { requests.push_back(std::move(request)); },
           .extent = [](const std::string&) { return LiveExtent{}; },
           .now = [this] { return now; }},
          limits) {}

void LiveClientsHarness::state(const std::string& id, JobState job_state) {
  JobStatus status;
  status.n_layers = 1;
  status.id = id;
  status.state = job_state;
  statuses[id] = status;
  clients.state(status);
}

std::vector<json> LiveClientsHarness::events(ClientId id) {
  std::vector<json> out;
  for (const LiveMessage& message : std::exchange(outbox[id], {})) {
    if (message.opcode == Opcode::Text) out.push_back(event_of(message));
  }
  return out;
}

std::vector<std::string> LiveClientsHarness::types(ClientId id) {
  std::vector<std::string> out;
  for (const json& event : events(id)) out.push_back(event["type"]);
  return out;
}

json LiveClientsHarness::event_of(const LiveMessage& message) {
  const auto* text = reinterpret_cast<const char*>(message.bytes.data());
  return json::parse(text, text + message.bytes.size());
}

void LiveClientsHarness::serve_read_request(std::size_t max_records) {
  if (requests.empty()) return;
  const BackfillRequest request = std::move(requests.front());
  requests.pop_front();
  BackfillBatch batch{.client = request.client,
                      .request_id = request.request_id,
                      .session = request.session,
                      .state = file_state,
                      .tokens = static_cast<std::uint32_t>(file_tokens.size()),
                      .steps = static_cast<std::uint32_t>(file_steps.size())};
  if (!has_file) batch.error = TraceError{TraceError::Kind::NotFound, "there is no such file"};
  LivePosition at = request.from;
  while (has_file && batch.records.size() < max_records) {
    if (request.kinds.any_of_step() && at.step < file_steps.size()) {
      batch.records.emplace_back(
          std::make_shared<StepRecord>(request.session, file_steps[at.step++], routed_graph(), 1u));
    } else if (request.kinds.token && at.token < file_tokens.size()) {
      batch.records.emplace_back(TokenRecord{
          .index = at.token, .message = token_event(request.session, file_tokens[at.token], "x")});
      ++at.token;
    } else {
      batch.is_last = true;
      break;
    }
  }
  clients.batch(std::move(batch));
}

void LiveClientsHarness::token(const std::string& session) {
  const Token made{.index = static_cast<std::uint32_t>(file_tokens.size()), .text = {}};
  file_tokens.push_back(made);
  clients.token(session, made, "x");
}

void LiveClientsHarness::step(const std::string& session, const Step& step) {
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

StepInFlight partial_step(const std::string& session, const Step& step, std::size_t ops) {
  StepInFlight part{.session = session, .step = step.id, .first_op = step.first_op, .ends = {}};
  part.ends.assign(step.op_ends.begin(), step.op_ends.begin() + static_cast<std::ptrdiff_t>(ops));
  return part;
}

}  // namespace tt::test
