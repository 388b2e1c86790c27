#include "api/json/analysis/heat_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "api/json/analysis/conditions_json.h"

namespace tt {

namespace {

static_assert(std::endian::native == std::endian::little);

// Whole numbers are written as 7, not 7.0, like all other counts and sizes.
bool is_count(double value) {
  constexpr double kExact = 9007199254740992.0;
  return value == std::floor(value) && std::abs(value) < kExact;
}
Json number(double value) {
  if (is_count(value)) return static_cast<std::int64_t>(value);
  return value;
}
void append(std::string& out, double value) {
  if (value == 0) {  // the most frequent value
    out += '0';
    return;
  }
  char text[32];
  const auto end = is_count(value)
                       ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                       : std::to_chars(text, text + sizeof text, value);
  out.append(text, end.ptr);
}

Json axis_json(const RasterAxis& axis) {
  Json sections = Json::array();
  for (const AxisSection& s : axis.sections)
    sections.push_back(
        {{"name", s.name}, {"from", s.range.from}, {"to", s.range.to}, {"origin", s.origin}});
  return {{"axis", to_text(axis.axis)}, {"unit", unit_of(axis.axis)},
          {"size", axis.size},          {"from", axis.range.from},
          {"to", axis.range.to},        {"pixels", axis.pixels},
          {"rows", axis.rows},          {"sections", std::move(sections)}};
}

Json description(const Raster& raster) {
  return {{"value", to_text(raster.value)},
          {"x", axis_json(raster.x)},
          {"y", axis_json(raster.y)},
          {"largest", number(raster.largest)},
          {"shown", number(raster.shown)},
          {"total", number(raster.total)},
          {"damaged_steps", raster.damaged_steps},
          {"left_out_steps", raster.left_out_steps}};
}

Json row_json(const BreakdownRow& row) {
  Json json = {{"name", row.name},
               {"all", to_json(row.all)},
               {"prompt", to_json(row.prompt)},
               {"generate", to_json(row.generate)}};
  if (row.step) {
    json["step_ns"] = to_json(row.step->spread);
    json["step_ns"]["steps"] = row.step->steps;
  }
  return json;
}

template <class Row, class RowJson>
Json rows_json(const std::vector<Row>& rows, RowJson row_of) {
  Json out = Json::array();
  for (const Row& row : rows) out.push_back(row_of(row));
  return out;
}

Json order_json(const ReadOrder& order) {
  return {{"reads", order.reads},
          {"sequential", order.sequential},
          {"bytes", order.bytes.v},
          {"sequential_bytes", order.sequential_bytes.v}};
}

}  // namespace

// Cells are appended to the text directly: a Json value per cell would need four times the
// memory.
std::string json_of(const Raster& raster) {
  std::string out = text_of(description(raster));
  out.back() = ',';
  out += R"("cells":[)";
  for (std::size_t y = 0; y < raster.y.pixels; ++y) {
    out += y == 0 ? "[" : ",[";
    for (std::size_t x = 0; x < raster.x.pixels; ++x) {
      if (x > 0) out += ',';
      append(out, raster.cells[y * raster.x.pixels + x]);
    }
    out += ']';
  }
  return out += "]}";
}

std::string columns_of(const Raster& raster) {
  struct Header {
    std::uint32_t magic = 0x31465454;  // "TTF1"
    std::uint16_t kind = 3, flags = 0;
    std::uint32_t width = 0, height = 0;
    double largest = 0, total = 0;
  };
  static_assert(sizeof(Header) == 32);
  const Header header{.width = raster.x.pixels,
                      .height = raster.y.pixels,
                      .largest = raster.largest,
                      .total = raster.total};
  const std::string text = text_of(description(raster));
  const std::size_t cells = (raster.cells.size() * sizeof(float) + 7) & ~std::size_t{7};
  std::string out(sizeof header + cells, '\0');
  std::memcpy(out.data(), &header, sizeof header);
  char* at = out.data() + sizeof header;
  for (const double cell : raster.cells) {
    const auto value = static_cast<float>(cell);
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
  return out += text;
}

Json to_json(const TraceSums& sums) {
  return {
      {"bytes_read", number(sums.bytes_read)},
      {"bytes_written", number(sums.bytes_written)},
      {"reads", number(sums.reads)},
      {"writes", number(sums.writes)},
      {"executions", number(sums.executions)},
      {"time_ns", number(sums.time_ns)},
      {"faults", number(sums.faults)},
      {"bytes_per_second", sums.time_ns > 0 ? Json(std::round(sums.bytes_per_second())) : Json()}};
}

Json to_json(const Breakdown& breakdown) {
  return {{"by", to_text(breakdown.by)},
          {"total", breakdown.row_count},
          {"rows", rows_json(breakdown.rows, row_json)},
          {"sums", row_json(breakdown.total)},
          {"disk", to_json(breakdown.disk)},
          {"buffer", to_json(breakdown.buffer)},
          {"damaged_steps", breakdown.damaged_steps},
          {"left_out_steps", breakdown.left_out_steps}};
}

Json to_json(const HotCold& hot) {
  Json classes = Json::object();
  for (std::size_t i = 0; i < hot.classes.size(); ++i) {
    const HotCold::Class& of = hot.classes[i];
    classes[to_text(static_cast<Heat>(i))] = {{"rows", of.rows},
                                              {"size_bytes", of.size.v},
                                              {"sums", to_json(of.sums)},
                                              {"step_ns", of.step.v}};
  }
  Json times;
  if (hot.times) {
    times = {{"phase", to_text(hot.times->phase)},
             {"steps", hot.times->used},
             {"learned", hot.times->learned},
             {"interrupted", hot.times->interrupted},
             {"first", hot.times->first},
             {"disturbed", hot.times->disturbed},
             {"verdict", hot.times->verdict ? Json(to_text(*hot.times->verdict)) : Json()},
             {"text", to_text(*hot.times)}};
  }
  Json others = Json::object();
  for (const auto& [kind, sums] : hot.other_kinds) others[to_text(kind)] = to_json(sums);
  return {{"by", to_text(hot.by)},
          {"value", to_text(hot.value)},
          {"kind", hot.kind ? Json(to_text(*hot.kind)) : Json()},
          {"other_kinds", std::move(others)},
          {"note", text_or_null(hot.note)},
          {"times", std::move(times)},
          {"total", hot.row_count},
          {"classes", std::move(classes)},
          {"left_out_steps", hot.left_out_steps},
          {"rows", rows_json(hot.rows, [](const HotCold::Row& row) {
             Json out = row_json(row.row);
             out["heat"] = to_text(row.heat);
             out["size_bytes"] = row.size.v;
             return out;
           })}};
}

Json to_json(const Sequentiality& order) {
  Json layers = Json::array();
  for (const auto& [layer, of] : order.layers) {
    Json row = {{"layer", layer == kNoLayer ? Json() : Json(layer.v)}};
    row.update(order_json(of));
    layers.push_back(std::move(row));
  }
  Json out = {{"gap", order.gap},
              {"sums", order_json(order.total)},
              {"layers", std::move(layers)},
              {"left_out_steps", order.left_out_steps}};
  out.update(page_json("steps", order.steps, [](const Sequentiality::OfStep& row) {
    Json of = {{"step", row.step.v}, {"first_token", row.first_token}, {"tokens", row.n_tokens}};
    of.update(order_json(row.order));
    return of;
  }));
  return out;
}

}  // namespace tt
