// The fields of a page of rows.
#pragma once

#include "analysis/common/page.h"
#include "analysis/fields/fields.h"

namespace tt {

// `schema`: of the page in api/openapi.yaml; `rows`: the name of the list.
template <class Row>
Fields<Page<Row>> page_fields(const char* schema, const char* rows = "rows") {
  return Fields<Page<Row>>(schema)
      .add("total", kTotalRows, &Page<Row>::total)
      .add(rows, "", &Page<Row>::rows);
}

}  // namespace tt
