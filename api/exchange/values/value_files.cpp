#include "api/exchange/values/value_files.h"

#include <cstddef>
#include <cstdint>
#include <format>
#include <span>
#include <string_view>
#include <vector>

#include "api/json/json.h"

namespace tt::exchange {

namespace {

// The dimensions, outermost first, without those of 1 that are outermost.
std::vector<std::uint64_t> array_shape(const OutputValues& values) {
  std::size_t dimensions = values.ne.size();
  while (dimensions > 1 && values.ne[dimensions - 1] == 1) --dimensions;
  return {values.ne.rend() - static_cast<std::ptrdiff_t>(dimensions), values.ne.rend()};
}

std::string_view bytes_of(const OutputValues& values) {
  const auto bytes = std::as_bytes(std::span(values.values));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string npy_of(const OutputValues& values) {
  std::string shape;
  for (const std::uint64_t n : array_shape(values)) shape += std::format("{}, ", n);
  std::string header =
      std::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape);
  constexpr std::size_t kFixed = 10, kAlignment = 64;
  const std::size_t size = kFixed + header.size() + 1;  // with the line break
  header.append((kAlignment - size % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string npy("\x93NUMPY\x01\x00", 8);
  npy += static_cast<char>(header.size() & 0xFF);
  npy += static_cast<char>(header.size() >> 8);
  npy += header;
  npy += bytes_of(values);
  return npy;
}

// The format: the length of the header in 8 bytes, the header as JSON, the values one array after
// the other.
std::expected<void, TraceError> write_safetensors(const SessionReader& reader,
                                                  const CapturedSelection& selection,
                                                  const ByteSink& sink,
                                                  const ContinueCheck& keep_going) {
  Json header = Json::object();
  std::uint64_t at = 0;
  const auto listed = for_each_captured(
      reader, selection, keep_going,
      [&](StepId step, const GraphTemplate&, const std::string& name,
          const OutputValues& of) -> std::expected<void, TraceError> {
        const std::uint64_t end = at + bytes_of(of).size();
        header[std::format("step{}.op{}.{}", step.v, of.op.v, name)] = {
            {"dtype", "F32"}, {"shape", array_shape(of)}, {"data_offsets", {at, end}}};
        at = end;
        return {};
      });
  if (!listed) return std::unexpected(listed.error());
  std::string text = text_of(header);
  constexpr std::size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string length;
  for (unsigned shift = 0; shift < 64; shift += 8)
    length += static_cast<char>(text.size() >> shift & 0xFF);
  if (auto written = sink(length + text); !written) return written;
  const auto written =
      for_each_captured(reader, selection, keep_going,
                        [&](StepId, const GraphTemplate&, const std::string&,
                            const OutputValues& of) { return sink(bytes_of(of)); });
  if (!written) return std::unexpected(written.error());
  return {};
}

}  // namespace tt::exchange
