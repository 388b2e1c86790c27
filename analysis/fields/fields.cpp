#include "analysis/fields/fields.h"

#include "analysis/common/spread.h"

namespace tt {

Fields<FileRange> fields_of(const FileRange*) {
  return Fields<FileRange>("FileRange")
      .add("model_file", "index of the file of a split model", &FileRange::file)
      .add("file_offset", "start of the range in the file", &FileRange::offset, {.unit = "bytes"})
      .add("file_bytes", "length of the range; 0: not in a file", &FileRange::length,
           {.unit = "bytes"});
}

Fields<Spread> fields_of(const Spread*) {
  return Fields<Spread>("Spread")
      .add("p5", "", &Spread::p5)
      .add("median", "", &Spread::median)
      .add("p95", "", &Spread::p95);
}

}  // namespace tt
