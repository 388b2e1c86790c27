#include "api/exchange/rows/export_columns.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/columns/access_columns.h"

namespace tt::exchange {
namespace {

// The accessors of analysis/columns/access_columns.h. Those of PerAccess columns use the
// template's access, because `row` may have only its index.
struct Row {
  const RowScope& scope;
  const ExportRow& row;

  const Step& step() const { return *scope.step; }
  const StepAccess& access() const { return row.access; }
  std::uint32_t place() const { return row.access.access; }
  std::uint32_t part() const { return row.part; }
  const Access& rule() const { return scope.graph->derived->accesses[place()]; }
  OpId op_id() const { return rule().op; }
  TensorId tensor_id() const { return rule().tensor; }
  bool is_write() const { return rule().write; }
  const GraphTemplate& graph() const { return *scope.graph->derived->graph; }
  const Op& op() const { return graph().op(op_id()); }
  const Tensor& tensor() const { return graph().tensor(tensor_id()); }
  Category category() const { return scope.graph->derived->categories[tensor_id().v]; }
  std::string_view operation_type() const { return scope.graph->op_names[op_id().v]; }
  std::string_view device() const { return op().device; }
  std::string_view tensor_name() const { return tensor().name; }
  std::string_view tensor_type() const { return tensor().type; }
  Ns begin() const { return step().op_begin(op_id()); }
  std::optional<Ns> duration() const { return step().op_duration(op_id()); }
  std::optional<Ns> self() const { return row.self; }
  std::uint64_t address() const { return address_of(scope, row); }
  std::optional<std::int32_t> head() const { return columns::unless_negative(row.head); }
  std::uint32_t heads() const { return scope.graph->heads[place()].count; }
  std::string_view session_id() const { return scope.session->id; }
};

class CellOutput {
 public:
  explicit CellOutput(Cell& cell) : cell_(cell) {}
  void null() { cell_ = std::monostate{}; }
  void flag(bool v) { cell_ = v; }
  void integer(std::int64_t v) { cell_ = v; }
  void count(std::uint64_t v) { cell_ = v; }
  void real(float v) { cell_ = v; }
  void text(std::string_view v) { cell_ = v; }
  void text_copy(std::string v) {
    static thread_local std::string latest;
    latest = std::move(v);
    cell_ = std::string_view(latest);
  }

 private:
  Cell& cell_;
};

constexpr auto kAllColumns = columns::map_columns<Row>(
    columns::access_columns(), []<class Get>(const columns::ColumnInfo& info, Get) {
      return AccessColumn{info, [](const RowScope& scope, const ExportRow& row) {
                            Cell cell;
                            CellOutput out(cell);
                            columns::write(Get{}(Row{scope, row}), out);
                            return cell;
                          }};
    });

constexpr auto kAccessColumns = [] {
  constexpr auto kept = [](const AccessColumn& column) { return !column.of_op; };
  std::array<AccessColumn, std::ranges::count_if(kAllColumns, kept)> out{};
  std::ranges::copy_if(kAllColumns, out.begin(), kept);
  return out;
}();

Cell name_of_part(const RowScope& scope, const ExportRow& row) {
  const Row of{scope, row};
  Cell cell;
  CellOutput out(cell);
  if (row.access.expert < 0) {
    out.text(of.tensor_name());
  } else {
    out.text_copy(columns::expert_name(of.tensor_name(), row.access.expert));
  }
  return cell;
}

Cell number_of_qkv_type(const RowScope& scope, const ExportRow& row) {
  const Role role = Row{scope, row}.tensor().role;
  const bool known = role >= Role::Q && role <= Role::O;
  return known ? static_cast<std::uint64_t>(role) - static_cast<std::uint64_t>(Role::Q) + 1
               : std::uint64_t{0};
}

// As wide as the columns that they replace, so that all tables have the same columns.
constexpr auto kTokenColumns = [] {
  auto out = kAccessColumns;
  for (AccessColumn& column : out) {
    const std::string_view name = column.name;
    if (name == "tensor_name") {
      column.meaning = "name of the tensor in ggml; of an expert, the name of its part";
      column.varies = Varies::PerRow;
      column.cell = name_of_part;
    } else if (name == "qkv_type") {
      column.meaning = "role of the tensor in attention: 0 none, 1 Q, 2 K, 3 V, 4 QKV, 5 O";
      column.type = CellType::UInt32;
      column.null = "";
      column.words = nullptr;
      column.cell = number_of_qkv_type;
    }
  }
  return out;
}();

}  // namespace

std::span<const AccessColumn> access_columns(bool per_token) {
  return per_token ? std::span<const AccessColumn>(kTokenColumns) : kAccessColumns;
}

std::uint64_t address_of(const RowScope& scope, const ExportRow& row) {
  const std::uint32_t place = row.access.access;
  const std::uint64_t address =
      tt::address_of(scope.addresses, scope.graph->derived->accesses[place], row.access.expert);
  if (address == 0 || row.slice < 0) return address;
  return address + static_cast<std::uint64_t>(row.slice) * scope.graph->heads[place].bytes.v;
}

std::vector<std::string> step_text_values(const AccessColumn& column, const SessionInfo& session) {
  std::vector<std::string> values;
  if (column.words == nullptr) {  // the session id
    const RowScope scope{.session = &session, .graph = nullptr, .step = nullptr, .addresses = {}};
    values.emplace_back(std::get<std::string_view>(column.cell(scope, {})));
  } else {
    for (int i = 0; i < column.words->count; ++i) values.emplace_back(column.words->word(i));
  }
  return values;
}

}  // namespace tt::exchange
