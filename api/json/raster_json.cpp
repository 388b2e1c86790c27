#include "api/json/raster_json.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "api/json/result_json.h"

namespace tt {

namespace {

static_assert(std::endian::native == std::endian::little);

bool is_count(double value) {
  constexpr double kExact = 9007199254740992.0;
  return value == std::floor(value) && std::abs(value) < kExact;
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
          {"largest", number_json(raster.largest)},
          {"shown", number_json(raster.shown)},
          {"total", number_json(raster.total)},
          {"damaged_steps", raster.damaged_steps},
          {"left_out_steps", raster.left_out_steps}};
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

}  // namespace tt
