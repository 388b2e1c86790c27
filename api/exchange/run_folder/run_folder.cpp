#include "api/exchange/run_folder/run_folder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <format>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/aggregate/breakdown.h"
#include "analysis/aggregate/session_statistics.h"
#include "analysis/columns/values.h"
#include "analysis/tables/tensor_table.h"
#include "api/exchange/import/import.h"
#include "api/exchange/recording/recorded_parts.h"
#include "api/exchange/rows/byte_sink.h"
#include "api/exchange/rows/session_metadata.h"
#include "api/exchange/run_folder/run_images.h"
#include "api/exchange/text/step_json.h"
#include "api/exchange/text/text_rows.h"
#include "api/json/analysis/statistics_json.h"
#include "tracer/text/utf8.h"

namespace tt::exchange {
namespace {

// The fields of a record in file order.
template <class Record, class Field>
void for_each_field(Record& record, Field field) {
  field(record.timestamp_ns);
  field(record.size_bytes);
  field(record.file_offset);
  field(record.tensor_ptr);
  field(record.step);
  field(record.token_id);
  field(record.access);
  field(record.tensor);
  field(record.routing_score);
  field(record.expert_id);
  field(record.expert_rank);
  field(record.attention_head);
  field(record.layer_id);
  field(record.operation_type);
  field(record.flags);
}
static_assert(std::endian::native == std::endian::little);

TraceError does_not_fit(const char* what, std::int64_t value) {
  return {TraceError::Kind::Io,
          std::format("{} {} does not fit into a run folder record. Export to parquet or csv.",
                      what, value)};
}

// Assigns indices to names in order of first use.
class NameTable {
 public:
  std::uint32_t of(const std::string& name) {
    const auto next = static_cast<std::uint32_t>(list_.size());
    const auto [at, is_new] = numbers_.try_emplace(name, next);
    if (is_new) list_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> list_;
};

// Indices for the records of a template: its first line in accesses.csv and the name indices
// per access.
struct TemplateIndices {
  std::uint32_t first_line = 0;
  std::vector<std::uint32_t> tensors, operation_types;
};

class RunFolder {
 public:
  RunFolder(SessionRows& rows, std::filesystem::path folder)
      : rows_(rows), folder_(std::move(folder)) {}

  WriteResult write(const ContinueCheck& keep_going) {
    if (WriteResult done = write_constants(); !done) return done;
    if (WriteResult done = write_records(keep_going); !done) return done;
    if (WriteResult done = write_names(); !done) return done;
    return write_analysis(keep_going);
  }

 private:
  WriteResult write_text(const char* name, const std::string& text) {
    auto file = OutputFile::create(folder_ / name);
    if (!file) return std::unexpected(file.error());
    if (WriteResult done = file->write(text); !done) return done;
    return file->commit();
  }

  // accesses.csv and tensor_names.txt: all templates, once. Also collects the weights.
  WriteResult write_constants() {
    std::string lines = "template";
    for (const AccessColumn& column : access_columns(rows_.per_token())) {
      if (column.varies == Varies::PerAccess) lines += std::string(",") + column.name;
    }
    lines += ",file_bytes\n";
    std::uint32_t line = 0;
    const WriteResult read = rows_.for_each_template([&](TemplateId id, const RowTemplate& graph) {
      TemplateIndices& indices = numbers_[id];
      indices.first_line = line;
      const RowScope scope{
          .session = &rows_.session(), .graph = &graph, .step = nullptr, .addresses = {}};
      const GraphTemplate& tensors = *graph.derived->graph;
      for (std::uint32_t i = 0; i < graph.derived->accesses.size(); ++i, ++line) {
        const Access& access = graph.derived->accesses[i];
        indices.tensors.push_back(names_.of(to_valid_utf8(tensors.tensor(access.tensor).name)));
        indices.operation_types.push_back(
            operation_types_.of(to_valid_utf8(graph.op_names[access.op.v])));
        lines += std::to_string(id.v);
        ExportRow row;
        row.access.access = i;
        for (const AccessColumn& column : access_columns(rows_.per_token())) {
          if (column.varies != Varies::PerAccess) continue;
          lines += ',';
          append_csv(lines, column.cell(scope, row));
        }
        lines += access.range.empty() ? ",\n" : std::format(",{}\n", access.range.length);
      }
      for (const Tensor& tensor : tensors.tensors) {
        if (tensor.kind != TensorKind::Weight || tensor.file.empty() || tensor.view_of != kNoTensor)
          continue;
        add_weight(tensor);
      }
    });
    if (!read) return read;
    return write_text("accesses.csv", lines);
  }

  // After the records: with rows per token, the parts of experts have names of their own.
  WriteResult write_names() {
    std::string names;
    for (std::size_t i = 0; i < names_.list().size(); ++i) {
      std::string name = names_.list()[i];
      for (char& c : name)
        if (c == '\n' || c == '\r') c = ' ';  // one line per name
      names += std::format("{}\t{}\n", i, name);
    }
    return write_text("tensor_names.txt", names);
  }

  // gguf_structure.csv, with the heat of each weight as `tt hot` has it.
  WriteResult write_structure(const SessionIndex& index, Range<std::uint64_t> steps,
                              const ContinueCheck& keep_going) {
    const auto hot = hot_cold(
        index, {.by = Axis::Tensor, .filter = {.steps = steps, .kind = TensorKind::Weight}},
        keep_going);
    if (!hot) return std::unexpected(hot.error());
    std::map<std::string, Heat> heat;
    for (const HotCold::Row& row : hot->rows) heat.emplace(row.row.name, row.heat);
    std::string text =
        "tensor_name,file_offset,size_bytes,layer_id,component_type,model_file,tensor_type,shape,"
        "heat\n";
    for (const auto& [place, weight] : weights_) {
      const auto found = heat.find(weight.name);
      text +=
          std::format("{},{}\n", weight.line, found == heat.end() ? "" : to_text(found->second));
    }
    return write_text("gguf_structure.csv", text);
  }

  // With rows per token, a line for each expert of a weight, under the name that its rows have.
  void add_weight(const Tensor& tensor) {
    const std::int64_t experts = tensor.ne[2];
    const bool divided = rows_.per_token() && tensor.name.contains("_exps") && experts > 1 &&
                         std::cmp_less_equal(experts, INT16_MAX) && tensor.ne[3] == 1;
    for (std::int64_t e = 0; e < (divided ? experts : 1); ++e) {
      Tensor part = tensor;
      if (divided) {
        part.name = columns::expert_name(tensor.name, static_cast<std::int32_t>(e));
        part.file.length = tensor.file.length / static_cast<std::uint64_t>(experts);
        part.file.offset += static_cast<std::uint64_t>(e) * part.file.length;
        part.ne[2] = 1;
      }
      weights_.try_emplace({part.file.offset, to_valid_utf8(part.name)},
                           Weight{.name = tensor.name, .line = structure_line(part)});
    }
  }

  static std::string structure_line(const Tensor& tensor) {
    std::string text;
    append_csv(text, std::string_view(tensor.name));
    text += std::format(",{},{},", tensor.file.offset, tensor.file.length);
    text += std::to_string(tensor.layer.v);  // -1: none, so that the column has only integers
    text += std::format(",{},{},", to_text(tensor.component), tensor.file.file);
    append_csv(text, std::string_view(tensor.type));
    text += std::format(",{}x{}x{}x{}", tensor.ne[0], tensor.ne[1], tensor.ne[2], tensor.ne[3]);
    return text;
  }

  // tensor_access.bin and trace_metadata.json; the steps are written to both in parallel.
  WriteResult write_records(const ContinueCheck& keep_going) {
    auto metadata = OutputFile::create(folder_ / "trace_metadata.json");
    if (!metadata) return std::unexpected(metadata.error());
    auto records = OutputFile::create(folder_ / "tensor_access.bin");
    if (!records) return std::unexpected(records.error());
    auto recording = OutputFile::create(folder_ / kRecording);
    if (!recording) return std::unexpected(recording.error());
    const ByteSink metadata_sink = metadata->sink(), record_sink = records->sink(),
                   part_sink = recording->sink();
    BufferedSink text(metadata_sink), binary(record_sink), parts(part_sink);
    RecordedPartsWriter part_writer(rows_.reader());
    auto facts = session_metadata(rows_);
    if (!facts) return std::unexpected(facts.error());
    const Json header = {
        {"format", "tensor-trace run folder"}, {"format_version", kRunFolderVersion},
        {"record_bytes", kRecordBytes},        {"rows_per_token", rows_.per_token()},
        {"session", *std::move(facts)},        {"operation_types", operation_types_.list()}};
    text.text() = text_of(header);
    text.text().pop_back();  // continue the object
    text.text() += ",\n\"steps\":[";
    bool first = true;
    std::uint32_t next_token = 0;
    StepTotals all, of_step;
    const WriteResult walked = rows_.for_each_step(
        [&](const StepRows& step_rows) -> WriteResult {
          for (const ExportRow& row : step_rows.rows) {
            of_step.add(row.access, step_rows.repeated);
            all.add(row.access, step_rows.repeated);
            const auto record = record_of(step_rows.scope, row);
            if (!record) return std::unexpected(record.error());
            const auto bytes = bytes_of(*record);
            binary.text().append(bytes.data(), bytes.size());
            if (WriteResult done = binary.flush_if_full(); !done) return done;
          }
          if (!step_rows.last_part) return {};
          const Step& step = *step_rows.step;
          if (WriteResult done = part_writer.append(parts.text(), step); !done) return done;
          if (WriteResult done = parts.flush_if_full(); !done) return done;
          Json json = step_begin_json(step, step_rows.scope.graph);
          json["end_ns"] = step.end.v;
          if (!step.op_ends.empty()) json["last_op_end_ns"] = step.op_ends.back().v;
          json.update(step_end_json(step, std::exchange(of_step, {})));
          auto tokens = new_tokens(rows_.reader(), step, next_token);
          if (!tokens) return std::unexpected(tokens.error());
          json["tokens"] = *std::move(tokens);
          text.text() += first ? "\n" : ",\n";
          first = false;
          text.text() += text_of(json);
          return text.flush_if_full();
        },
        keep_going);
    if (!walked) return walked;
    Json totals = Json::object();
    all.add_to(totals);
    auto tokens = unevaluated_tokens(rows_, next_token);
    if (!tokens) return std::unexpected(tokens.error());
    text.text() +=
        std::format("\n],\n\"tokens\":{},\n\"totals\":{}}}\n", text_of(*tokens), text_of(totals));
    for (BufferedSink* out : {&text, &binary, &parts})
      if (WriteResult done = out->flush(); !done) return done;
    if (WriteResult done = recording->commit(); !done) return done;
    if (WriteResult done = records->commit(); !done) return done;
    return metadata->commit();
  }

  WriteResult write_analysis(const ContinueCheck& keep_going) {
    const auto index = SessionIndex::build(rows_.reader(), keep_going);
    if (!index) return std::unexpected(index.error());
    const std::uint64_t known = index->steps().size(), first = rows_.first().v;
    const Range<std::uint64_t> steps{std::min(first, known),
                                     std::min(first + rows_.steps(), known)};
    if (WriteResult done = write_structure(*index, steps, keep_going); !done) return done;
    std::error_code failed;
    std::filesystem::create_directory(folder_ / "analysis", failed);
    constexpr std::size_t kMaxWeights = 50;
    const Json statistics = to_json(session_statistics(*index, {.steps = steps}), kMaxWeights);
    const std::string text = statistics.dump(2, ' ', false, Json::error_handler_t::replace);
    if (WriteResult done = write_text("analysis/statistics.json", text + "\n"); !done) return done;
    return write_run_images(*index, steps, folder_ / "analysis", keep_going);
  }

  std::expected<AccessRecord, TraceError> record_of(const RowScope& scope, const ExportRow& row) {
    const Step& step = *scope.step;
    const StepAccess& access = row.access;
    const TemplateIndices& indices = numbers_[step.graph];
    const Tensor& tensor = scope.graph->derived->graph->tensor(access.tensor);
    const bool is_shared = rows_.per_token() && step.n_tokens > 1;
    constexpr std::int32_t kMaxInt16 = INT16_MAX;
    if (access.expert > kMaxInt16) return std::unexpected(does_not_fit("Expert", access.expert));
    if (row.head > kMaxInt16) return std::unexpected(does_not_fit("Head", row.head));
    if (tensor.layer.v > kMaxInt16 || tensor.layer.v < -1)
      return std::unexpected(does_not_fit("Layer", tensor.layer.v));
    if (indices.operation_types[access.access] > UINT16_MAX)
      return std::unexpected(does_not_fit("Op type", indices.operation_types[access.access]));
    return AccessRecord{
        .timestamp_ns = step.op_begin(access.op).v,
        .size_bytes = access.touched.v,
        .file_offset = access.range.empty() ? UINT64_MAX : access.range.offset,
        .tensor_ptr = address_of(scope, row),
        .step = step.id.v,
        .token_id = step.first_token,
        .access = indices.first_line + access.access,
        .tensor = rows_.per_token() && access.expert >= 0
                      ? names_.of(to_valid_utf8(columns::expert_name(tensor.name, access.expert)))
                      : indices.tensors[access.access],
        .routing_score = access.score,
        .expert_id = static_cast<std::int16_t>(access.expert),
        .expert_rank = static_cast<std::int16_t>(access.expert < 0 ? -1 : access.rank),
        .attention_head = static_cast<std::int16_t>(row.head),
        .layer_id = static_cast<std::int16_t>(tensor.layer.v),
        .operation_type = static_cast<std::uint16_t>(indices.operation_types[access.access]),
        .flags = static_cast<std::uint16_t>(
            (access.write ? 1u : 0u) | static_cast<unsigned>(step.phase) << 1 |
            static_cast<unsigned>(tensor.source) << 4 | (is_shared ? kSharedByTokens : 0u))};
  }

  SessionRows& rows_;
  std::filesystem::path folder_;
  struct Weight {
    std::string name, line;  // line: of gguf_structure.csv, without the heat
  };
  std::map<std::pair<std::uint64_t, std::string>, Weight> weights_;  // in file order
  NameTable names_, operation_types_;
  std::map<TemplateId, TemplateIndices> numbers_;
};

}  // namespace

std::array<char, kRecordBytes> bytes_of(const AccessRecord& record) {
  std::array<char, kRecordBytes> bytes{};
  std::size_t at = 0;
  AccessRecord in_file = record;
  if (record.expert_id >= 0) in_file.flags |= kHasExpert;
  if (record.attention_head >= 0) in_file.flags |= kHasHead;
  if (record.expert_id < 0) in_file.expert_id = kNoneInFile;
  if (record.attention_head < 0) in_file.attention_head = kNoneInFile;
  for_each_field(in_file, [&](const auto& field) {
    std::memcpy(bytes.data() + at, &field, sizeof field);
    at += sizeof field;
  });
  return bytes;
}

AccessRecord record_from(std::span<const char, kRecordBytes> bytes, std::uint32_t version) {
  AccessRecord record;
  std::size_t at = 0;
  for_each_field(record, [&](auto& field) {
    std::memcpy(&field, bytes.data() + at, sizeof field);
    at += sizeof field;
  });
  if (version >= 2 && (record.flags & kHasExpert) == 0) record.expert_id = -1;
  if (version >= 2 && (record.flags & kHasHead) == 0) record.attention_head = -1;
  return record;
}

WriteResult export_run_folder(const SessionReader& reader, ExportRange range,
                              const std::filesystem::path& folder,
                              const ContinueCheck& keep_going) {
  auto rows = SessionRows::open(reader, range);
  if (!rows) return std::unexpected(rows.error());
  auto output = OutputFolder::create(folder);
  if (!output) return std::unexpected(output.error());
  if (WriteResult written = RunFolder(*rows, output->path()).write(keep_going); !written)
    return written;
  return output->commit();
}

}  // namespace tt::exchange
