// Export and import preserve accesses, times, tokens and experts.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "analysis/report/validation.h"
#include "api/exchange/import/import.h"
#include "api/exchange/run_folder/run_folder.h"
#include "api/json/json.h"
#include "tests/api/exchange/export_check.h"
#include "tests/api/exchange/round_trip_check.h"
#include "tests/api/exchange/test_models.h"
#include "tests/support/models/traced_model.h"
#include "tests/support/sessions/small_session.h"

namespace tt::test {
namespace {

using namespace tt::exchange;

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Import, RoundTripsDenseMoeRecurrentAndSplitModels) {
  for_each_test_model([](std::string_view, const std::filesystem::path& path) {
    TracedModel model(path);
    const auto run = model.run(greedy_tokens(9, 6));
    const SessionReader reader = run.reader();
    expect_round_trips(reader);
  });
}

// Those of step 0 need several lines; the first nodes of fused pairs are not captured.
TEST(Import, KeepsCapturedValues) {
  TracedModel model(generated_model({.shape = "moe", .dims = {.layers = 4}}));
  GenerationRequest request = greedy_tokens(64, 4);
  request.reuse_prefix = false;
  request.capture = {".*@S0", "router", "attention@S1", "lens@S1", "l_out@K8@S2-", "ffn_moe_out@F16"};
  const auto run = model.run(request);
  const SessionReader reader = run.reader();
  std::uint64_t outputs = 0, not_captured = 0;
  const auto read = reader.for_each_values(StepId{0}, UINT32_MAX, [&](const StepValues& of) {
    outputs += of.outputs.size();
    not_captured += of.not_captured;
    return true;
  });
  ASSERT_TRUE(read.has_value());
  EXPECT_GT(outputs, 100U);
  EXPECT_GT(not_captured, 0U);
  const std::string log = export_text(reader, {.format = Format::Ndjson});
  std::size_t lines = 0;
  for (auto at = log.find("captured_values"); at != std::string::npos;
       at = log.find("captured_values", at + 1))
    ++lines;
  EXPECT_GT(lines, 2 * run.steps().size()) << "each line has the word twice";
  expect_round_trips(reader);
}

TEST(Import, SharesTemplatesBetweenSteps) {
  TracedModel model(generated_model({.shape = "moe"}));
  const auto run = model.run(greedy_tokens(5, 30));
  const TempFolder folder;
  write_text(folder / "s.ndjson", export_text(run.reader(), {.format = Format::Ndjson}));
  ASSERT_TRUE(import_log(folder / "s.ndjson", folder / "s.ttrace").has_value());
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_LE(after.template_ids().value().size(), 2 * run.reader().template_ids().value().size());
}

TEST(Import, MinimalLogHasStepsAndTokens) {
  const SmallSession session({small_step(0), small_step(1)});
  const TempFolder folder;
  write_text(folder / "s.ndjson",
             export_text(session.reader(), {.format = Format::Ndjson, .level = LogLevel::Minimal}));
  const auto imported = import_log(folder / "s.ndjson", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->steps, 2U);
  EXPECT_EQ(imported->accesses, 0U);
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_EQ(after.step(StepId{1}).value().end, Ns{260});
}

TEST(Import, AcceptsOlderLogWithTypeField) {
  const TempFolder folder;
  write_text(folder / "old.log", R"({"type":"session_start","session_id":"old-1","n_layers":2}
{"type":"step_begin","timestamp_ns":1000,"token_id":0,"phase":"prompt"}
{"type":"tensor_log","timestamp_ns":1010,"token_id":0,"layer_id":0,"operation_type":"MUL_MAT","tensor_name":"blk.0.attn_q.weight","tensor_ptr":4096,"file_offset":300,"size_bytes":256}
{"type":"tensor_log","timestamp_ns":1020,"token_id":0,"layer_id":1,"operation_type":"MUL_MAT_ID","tensor_name":"blk.1.ffn_up_exps.weight","file_offset":1300,"size_bytes":100,"expert_id":3,"expert_rank":0,"routing_score":0.5}
{"type":"step_end","timestamp_ns":1100}
{"type":"step_begin","timestamp_ns":1200,"token_id":1,"phase":"generate"}
{"type":"tensor_log","timestamp_ns":1210,"token_id":1,"layer_id":0,"operation_type":"MUL_MAT","tensor_name":"blk.0.attn_q.weight","tensor_ptr":4096,"file_offset":300,"size_bytes":256}
{"type":"session_end"}
)");
  const auto imported = import_log(folder / "old.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->steps, 2U);
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_EQ(after.info().value().id, "old-1");
  EXPECT_EQ(walked_totals(after),
            (FiveTotals{.accesses = 3, .read = 612, .from_file = 612, .of_experts = 1}));
  const auto lines = accesses_in(after);
  EXPECT_TRUE(lines[0].contains("reads blk.0.attn_q.weight")) << lines[0];
  EXPECT_TRUE(lines[0].contains("256 bytes at 1000, file 0 300+256")) << lines[0];
  EXPECT_TRUE(lines[1].contains("file 0 1300+100, expert 3 rank 0 score 0.5")) << lines[1];
  const Step prompt = after.step(StepId{0}).value(), generate = after.step(StepId{1}).value();
  EXPECT_EQ(prompt.begin, Ns{1000});
  EXPECT_EQ(prompt.first_op, Ns{1010});
  EXPECT_EQ(prompt.op_ends, (std::vector{Ns{1020}, Ns{1100}}));
  EXPECT_EQ(prompt.end, Ns{1100});
  EXPECT_EQ(generate.begin, Ns{1200});
  EXPECT_EQ(generate.op_ends, std::vector{Ns{1210}});
  EXPECT_EQ(generate.end, Ns{1210}) << "without step_end the rows determine the end";
}

// The names of another tracer; `type` twice in one object; times in ms; and what cannot be kept.
TEST(Import, NamesWhatASessionCannotKeep) {
  const TempFolder folder;
  write_text(folder / "f.log", R"({"type":"session_start","session_id":"f1","mood":"good"}
{"type":"step_begin","step":0,"token_id":0,"timestamp_ms":1.0}
{"type":"layer_begin","layer":0}
{"type":"tensor_log","name":"blk.0.attn_q.weight","type":"q4_K","shape":[64,64],"element_count":4096,"memory_bytes":2304,"layer":0,"op":"MUL_MAT","timestamp_us":1100,"duration_us":50.5}
{"type":"tensor_log","name":"Qcur-0","dtype":"f32","shape":[64],"memory_bytes":256,"layer":0,"op":"MUL_MAT","timestamp_us":1200,"duration_ms":0.1}
{"type":"layer_end","layer":0}
{"type":"layer_end","layer":1}
{"type":"step_end","step":0,"duration_ms":2.5}
{"type":"alarm"}
{"type":"session_end"}
)");
  const auto imported = import_log(folder / "f.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->steps, 1U);
  EXPECT_EQ(imported->accesses, 2U);
  EXPECT_EQ(imported->bytes, 2304U + 256U);
  const std::string ignored =
      "event alarm (1 line), layer_step (1 line), session_start.mood (1 line), "
      "tensor_log.element_count (1 line), tensor_log.shape (2 lines)";
  EXPECT_EQ(ignored_text(*imported), ignored);
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_EQ(after.info().value().fact("trace.import_ignored"), ignored);
  const Step step = after.step(StepId{0}).value();
  EXPECT_EQ(step.begin, Ns{1'000'000});
  EXPECT_EQ(step.op_ends, (std::vector{Ns{1'150'500}, Ns{1'300'000}}));
  EXPECT_EQ(step.end, Ns{3'500'000});
  const auto lines = accesses_in(after);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].contains("reads blk.0.attn_q.weight")) << lines[0];
  std::string types;
  for (const Tensor& tensor : after.graph(step.graph).value()->tensors)
    if (!tensor.type.empty()) types += tensor.name + " " + tensor.type + "; ";
  EXPECT_EQ(types, "blk.0.attn_q.weight q4_K; Qcur-0 f32; ");
}

// Our own log has the fields of other tracers, too, and loses nothing that a session can keep.
TEST(Import, OwnLogIsKept) {
  TracedModel model(generated_model({.shape = "moe"}));
  const auto run = model.run(greedy_tokens(5, 3));
  const TempFolder folder;
  const std::string log = export_text(run.reader(), {.format = Format::Ndjson});
  write_text(folder / "s.ndjson", log);
  const auto imported = import_log(folder / "s.ndjson", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  for (const auto& [name, lines] : imported->ignored)
    EXPECT_TRUE(name == "tensor_log.shape" || name == "tensor_log.element_count") << name;
  std::istringstream in(log);
  std::map<std::string, int> events;
  std::map<std::int32_t, std::uint64_t> read_by_layer, of_layer_steps;
  for (std::string line; std::getline(in, line);) {
    const Json entry = Json::parse(line);
    EXPECT_EQ(entry["event"], entry["type"]);
    ++events[entry["event"].get<std::string>()];
    if (entry["event"] == "layer_step") {
      of_layer_steps[entry["layer_id"].get<std::int32_t>()] +=
          entry["bytes_read"].get<std::uint64_t>();
      EXPECT_NEAR(entry["duration_ms"].get<double>(), entry["duration_ns"].get<double>() / 1e6,
                  1e-9);
    }
    if (entry["event"] == "step_end") {
      EXPECT_TRUE(entry["duration_ms"].is_number()) << line;
    }
    if (entry["event"] != "tensor_log") continue;
    EXPECT_EQ(entry["dtype"], entry["tensor_type"]);
    EXPECT_EQ(entry["memory_bytes"], entry["tensor_bytes"]);
    std::int64_t elements = 1;
    for (const Json& n : entry["shape"]) elements *= n.get<std::int64_t>();
    EXPECT_EQ(entry["element_count"], elements);
    if (!entry["write"].get<bool>() && entry.contains("op_layer_id"))
      read_by_layer[entry["op_layer_id"].get<std::int32_t>()] +=
          entry["size_bytes"].get<std::uint64_t>();
  }
  EXPECT_EQ(of_layer_steps, read_by_layer);
  EXPECT_GE(events["layer_step"], events["step_begin"] * 8);
}

// Fields missing in the line of a step are derived from its rows; ops end with their step.
TEST(Import, DerivesOlderStepFromItsLines) {
  const TempFolder folder;
  write_text(folder / "old.log", R"({"type":"session_start","session_id":"old-2"}
{"type":"step_begin","timestamp_ns":100,"phase":"prompt"}
{"type":"tensor_log","timestamp_ns":110,"duration_ns":5,"token_id":0,"tensor_name":"a","size_bytes":8}
{"type":"tensor_log","timestamp_ns":120,"duration_ns":500,"token_id":0,"tensor_name":"b","size_bytes":8}
{"type":"step_end","timestamp_ns":200,"aborted":true}
{"type":"step_begin","phase":"generate","dropped":true}
{"type":"tensor_log","timestamp_ns":310,"token_id":1,"tensor_name":"a","size_bytes":8}
{"type":"step_end","timestamp_ns":400}
{"type":"step_begin","timestamp_ns":500}
{"type":"tensor_log","timestamp_ns":510,"tensor_name":"a","size_bytes":8}
{"type":"step_end","timestamp_ns":450}
{"type":"session_end"}
)");
  const auto imported = import_log(folder / "old.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  struct Expected {
    Ns begin, first_op, end;
    std::vector<Ns> op_ends;
    std::uint32_t token;
    bool dropped, aborted;
  };
  const Expected expected[] = {
      {Ns{100}, Ns{110}, Ns{200}, {Ns{115}, Ns{200}}, 0, false, true},
      {Ns{310}, Ns{310}, Ns{400}, {Ns{400}}, 1, true, false},
      {Ns{500}, Ns{510}, Ns{510}, {Ns{510}}, 2, false, false},
  };
  for (std::uint32_t i = 0; i < std::size(expected); ++i) {
    SCOPED_TRACE(i);
    const Step step = after.step(StepId{i}).value();
    EXPECT_EQ(step.begin, expected[i].begin);
    EXPECT_EQ(step.first_op, expected[i].first_op);
    EXPECT_EQ(step.end, expected[i].end);
    EXPECT_EQ(step.op_ends, expected[i].op_ends);
    EXPECT_EQ(step.first_token, expected[i].token);
    EXPECT_EQ(step.n_tokens, 1U);
    EXPECT_EQ(step.dropped, expected[i].dropped);
    EXPECT_EQ(step.aborted, expected[i].aborted);
  }
  const auto validation = validate(folder / "s.ttrace");
  ASSERT_TRUE(validation.has_value()) << validation.error().message;
  EXPECT_TRUE(validation->passed());
}

TEST(Import, ReportsLineOfInvalidLog) {
  const TempFolder folder;
  struct Case {
    const char* text;
    const char* expected_error;
  };
  for (const Case c :
       {Case{"", "neither session_start"}, Case{"{\n", ":1: Not a log"},
        Case{"{\"event\":\"session_start\",\"id\":\"a\"}\n[1]\n", ":2: "},
        Case{"{\"event\":\"session_start\"}\n{\"event\":\"session_start\"}\n",
             ":2: The log contains a second session"},
        Case{"{\"event\":\"tensor_log\",\"op\":3,\"size_bytes\":1}\n"
             "{\"event\":\"tensor_log\",\"op\":2,\"size_bytes\":1}\n",
             ":2: The ops of a step must"},
        Case{"{\"type\":\"tensor_log\",\"tensor_name\":\"x\"}\n", ":1: A tensor_log must"},
        Case{"{\"event\":\"tensor_log\",\"size_bytes\":1}\n"
             "{\"event\":\"tensor_log\",\"size_bytes\":-1}\n",
             ":2: A tensor_log must"},
        Case{"{\"event\":\"tensor_log\",\"size_bytes\":null}\n", "\"size_bytes\""},
        // Declared counts that would need unbounded memory.
        Case{"{\"event\":\"step_begin\",\"ops\":4000000000}\n"
             "{\"event\":\"tensor_log\",\"size_bytes\":1}\n",
             "Step 0 declares 4000000000 ops but has only 1 accesses."},
        Case{"{\"event\":\"tensor_log\",\"op\":4294967295,\"size_bytes\":1}\n",
             "Step 0 declares 4294967296 ops"},
        Case{"{\"event\":\"step_begin\",\"token_count\":4000000000}\n",
             "Step 0 evaluates token 3999999999; 4000000000 tokens before"},
        Case{"{\"event\":\"tensor_log\",\"operation_type\":\"MUL_MAT_ID\","
             "\"size_bytes\":8,\"expert_id\":1,\"expert_rank\":2147483647}\n",
             "Step 0 declares 2147483648 experts per token."}}) {
    write_text(folder / "bad.log", c.text);
    const auto imported = import_log(folder / "bad.log", folder / "s.ttrace");
    ASSERT_FALSE(imported.has_value()) << c.text;
    EXPECT_TRUE(imported.error().message.contains(c.expected_error)) << imported.error().message;
    std::size_t left = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
      ++left;
    EXPECT_EQ(left, 1U) << "no temporary file remains";
  }
}

TEST(Import, StoresTooManyCellsAsBytes) {
  const TempFolder folder;
  write_text(
      folder / "wide.log",
      R"({"event":"tensor_log","operation_type":"FLASH_ATTN_EXT","tensor_name":"cache_k_l0",)"
      R"("tensor_kind":"kv","extent":"cells","unit_bytes":1,"size_bytes":1125899906842624})");
  const auto imported = import_log(folder / "wide.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_EQ(walked_totals(after), (FiveTotals{.accesses = 1, .read = std::uint64_t{1} << 50}));
}

// A number out of range counts as missing.
TEST(Import, IgnoresOutOfRangeNumbers) {
  const TempFolder folder;
  write_text(
      folder / "odd.log",
      R"({"event":"tensor_log","tensor_name":"a","size_bytes":1e300,"timestamp_ns":1e300})"
      "\n"
      R"({"event":"tensor_log","op":1,"tensor_name":"b","size_bytes":7.0,"expert_id":1e10})");
  const auto imported = import_log(folder / "odd.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->bytes, 7U);
}

// A log of another tracer without session_start and step_begin events.
TEST(Import, DerivesStepsFromRowsAlone) {
  const TempFolder folder;
  write_text(folder / "rows.log",
             R"({"type":"tensor_log","tensor_name":"a","size_bytes":8,"token_id":40}
{"type":"tensor_log","tensor_name":"nothing","size_bytes":0,"token_id":40}
{"type":"tensor_log","tensor_name":"b","size_bytes":16,"token_id":40}
{"type":"tensor_log","tensor_name":"a","size_bytes":8,"token_id":41,"phase":"generate"}
)");
  const auto imported = import_log(folder / "rows.log", folder / "s.ttrace");
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->steps, 2U);
  EXPECT_EQ(imported->accesses, 3U);
  const SessionReader after = SessionReader::open(folder / "s.ttrace").value();
  EXPECT_EQ(after.step_count().value(), 2U);
  EXPECT_EQ(after.token_count().value(), 2U);
  EXPECT_EQ(after.step(StepId{1}).value().phase, Phase::Generate);
  // The counts of the import result match the file.
  EXPECT_EQ(walked_totals(after), (FiveTotals{.accesses = 3, .read = 32}));
}

TEST(Import, ReportsLocationOfRunFolderDamage) {
  const SmallSession session({small_step(0)});
  const TempFolder folder;
  ASSERT_TRUE(export_run_folder(session.reader(), {}, folder / "run").has_value());
  EXPECT_EQ(std::filesystem::file_size(folder / "run/tensor_access.bin"), 16 * kRecordBytes);
  ASSERT_FALSE(export_run_folder(session.reader(), {}, folder / "run").has_value());

  AccessRecord record;
  record.access = 4000;
  const auto bytes = bytes_of(record);
  write_text(folder / "run/tensor_access.bin", {bytes.data(), bytes.size()});
  const auto bad = import_run_folder(folder / "run", folder / "s.ttrace");
  ASSERT_FALSE(bad.has_value());
  EXPECT_TRUE(bad.error().message.contains("tensor_access.bin:1")) << bad.error().message;
  std::filesystem::remove(folder / "run/accesses.csv");
  const auto missing = import_run_folder(folder / "run", folder / "s.ttrace");
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message.contains("accesses.csv")) << missing.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder / "s.ttrace"));
}

// A run folder of two steps whose metadata was rewritten by another program.
TEST(Import, AcceptsAnyMetadataFormatting) {
  const SmallSession session({small_step(0), small_step(1)});
  const TempFolder folder;
  ASSERT_TRUE(export_run_folder(session.reader(), {}, folder / "run").has_value());
  ASSERT_TRUE(import_run_folder(folder / "run", folder / "before.ttrace").has_value());
  const auto before = accesses_in(SessionReader::open(folder / "before.ttrace").value());
  std::ifstream in(folder / "run/trace_metadata.json");
  Json metadata = Json::parse(in);
  metadata["session"]["title"] = R"(a "steps":[{}, "]" \" title)";
  int number = 0;
  // Keys sorted by name, with and without white space.
  for (const int indent : {-1, 0, 4}) {
    SCOPED_TRACE(indent);
    write_text(folder / "run/trace_metadata.json", metadata.dump(indent, '\t'));
    const auto path = folder.path() / std::format("{}.ttrace", ++number);
    const auto imported = import_run_folder(folder / "run", path);
    ASSERT_TRUE(imported.has_value()) << imported.error().message;
    EXPECT_EQ(imported->steps, 2U);
    const SessionReader after = SessionReader::open(path).value();
    EXPECT_EQ(accesses_in(after), before);
    EXPECT_EQ(after.info()->title, metadata["session"]["title"].get<std::string>());
  }
}

TEST(Import, RejectsInvalidMetadata) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "run");
  write_text(folder / "run/accesses.csv", "op\n0\n");
  write_text(folder / "run/tensor_access.bin", "");
  const std::string large(17 << 20, 'x'), list(17 << 20, ',');
  const std::pair<std::string, const char*> cases[] = {
      {"", "Not the metadata"},
      {"[]", "Not the metadata"},
      {R"({"session":{}})", "Not the metadata"},
      {R"({"steps":[]})", "Not the metadata"},
      {R"({"session":{},"steps":{}})", "Not the metadata"},
      {R"({"session":{},"steps":[)", "Not the metadata"},
      {R"({"session":{},"steps":[{})", "Not the metadata"},
      {R"({"session":{},"steps":[{]})", "Not the metadata"},
      {R"({"session":{},"steps":[]}})", "Not the metadata"},
      {R"({"session":{},"st\u0065ps":[{}]})", "Not the metadata"},
      {R"({"session":{},"steps":[{},]})", "A step is not an object"},
      {R"({"session":{},"steps":[,{}]})", "A step is not an object"},
      {R"({"session":{},"steps":[1]})", "A step is not an object"},
      {R"({"session":{},"steps":[[{}]]})", "A step is not an object"},
      {R"({"session":{},"steps":[{"step":}]})", "A step is not an object"},
      {R"({"session":{},"steps":[{"a":")" + large + R"("}]})", "larger than 16 MiB"},
      {R"({"session":{},"a":[)" + list + R"(],"steps":[]})", "larger than 16 MiB"}};
  for (const auto& [text, expected_error] : cases) {
    SCOPED_TRACE(text.substr(0, 60));
    write_text(folder / "run/trace_metadata.json", text);
    const auto imported = import_run_folder(folder / "run", folder / "s.ttrace");
    ASSERT_FALSE(imported.has_value());
    EXPECT_EQ(imported.error().kind, TraceError::Kind::Damaged);
    EXPECT_TRUE(imported.error().message.contains(expected_error)) << imported.error().message;
    EXPECT_FALSE(std::filesystem::exists(folder / "s.ttrace"));
  }
}

// A record of 64 bytes may refer to a name of 1 MiB.
TEST(Import, RunFolderMemoryIsBounded) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "run");
  write_text(folder / "run/trace_metadata.json", R"({"session":{},"steps":[{"step":0}]})");
  write_text(folder / "run/accesses.csv", "op,tensor_name\n0," + std::string(1 << 20, 'n') + "\n");
  write_text(folder / "run/tensor_access.bin", std::string(300 * kRecordBytes, '\0'));
  const auto names = import_run_folder(folder / "run", folder / "s.ttrace");
  ASSERT_FALSE(names.has_value());
  EXPECT_TRUE(names.error().message.contains("MiB of names")) << names.error().message;
  write_text(folder / "run/accesses.csv", "op\n" + std::string((1 << 20) + 1, '\n'));
  const auto lines = import_run_folder(folder / "run", folder / "s.ttrace");
  ASSERT_FALSE(lines.has_value());
  EXPECT_TRUE(lines.error().message.contains("lines")) << lines.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder / "s.ttrace"));
}

TEST(RunFolder, RecordLayoutMatchesDocumentation) {
  const AccessRecord record{.timestamp_ns = -5,
                            .size_bytes = std::uint64_t{1} << 40,
                            .file_offset = std::uint64_t{1} << 50,
                            .tensor_ptr = 0x7fff12345678,
                            .step = 1,
                            .token_id = 2,
                            .access = 3,
                            .tensor = 4,
                            .routing_score = 0.25f,
                            .expert_id = 300,
                            .expert_rank = 7,
                            .attention_head = 511,
                            .layer_id = 126,
                            .operation_type = 9,
                            .flags = 3};
  const auto bytes = bytes_of(record);
  EXPECT_EQ(bytes_of(record_from(bytes, kRunFolderVersion)), bytes);
  // At the offsets documented in docs/exports.md.
  std::int16_t expert = 0, head = 0;
  std::memcpy(&expert, bytes.data() + 52, 2);
  std::memcpy(&head, bytes.data() + 56, 2);
  EXPECT_EQ(expert, 300);
  EXPECT_EQ(head, 511);
  // None is 255 in the file. Expert 255 exists, too: a bit of the flags tells them apart.
  for (const std::int16_t number : {std::int16_t{-1}, std::int16_t{255}}) {
    AccessRecord other = record;
    other.expert_id = other.attention_head = number;
    const auto in_file = bytes_of(other);
    std::memcpy(&expert, in_file.data() + 52, 2);
    std::memcpy(&head, in_file.data() + 56, 2);
    EXPECT_EQ(expert, 255);
    EXPECT_EQ(head, 255);
    const AccessRecord read = record_from(in_file, kRunFolderVersion);
    EXPECT_EQ(read.expert_id, number);
    EXPECT_EQ(read.attention_head, number);
    EXPECT_EQ((read.flags & kHasExpert) != 0, number == 255);
  }
}

// A folder of version 1 has -1 for none and no bits in the flags.
TEST(Import, ReadsRunFolderOfVersion1) {
  TracedModel model(generated_model({.shape = "moe"}));
  const auto run = model.run(greedy_tokens(4, 2));
  const SessionReader reader = run.reader();
  const TempFolder folder;
  ASSERT_TRUE(export_run_folder(reader, {}, folder / "run").has_value());
  std::string records, metadata;
  {
    std::ifstream file(folder / "run/tensor_access.bin", std::ios::binary);
    records.assign(std::istreambuf_iterator<char>(file), {});
    std::ifstream text(folder / "run/trace_metadata.json", std::ios::binary);
    metadata.assign(std::istreambuf_iterator<char>(text), {});
  }
  for (std::size_t at = 0; at < records.size(); at += kRecordBytes) {
    std::uint16_t flags = 0;
    std::memcpy(&flags, records.data() + at + 62, 2);
    const std::int16_t none = -1;
    if ((flags & kHasExpert) == 0) std::memcpy(records.data() + at + 52, &none, 2);
    if ((flags & kHasHead) == 0) std::memcpy(records.data() + at + 56, &none, 2);
    flags &= 0xFF;
    std::memcpy(records.data() + at + 62, &flags, 2);
  }
  const std::string version = "\"format_version\":2";
  ASSERT_NE(metadata.find(version), std::string::npos);
  metadata.replace(metadata.find(version), version.size(), "\"format_version\":1");
  ASSERT_TRUE(import_run_folder(folder / "run", folder / "new.ttrace").has_value());
  write_text(folder / "run/tensor_access.bin", records);
  write_text(folder / "run/trace_metadata.json", metadata);
  ASSERT_TRUE(import_run_folder(folder / "run", folder / "old.ttrace").has_value());
  const auto expected = accesses_in(reader);
  EXPECT_EQ(accesses_in(SessionReader::open(folder / "new.ttrace").value()).size(),
            expected.size());
  EXPECT_EQ(accesses_in(SessionReader::open(folder / "old.ttrace").value()),
            accesses_in(SessionReader::open(folder / "new.ttrace").value()));
}

}  // namespace
}  // namespace tt::test
