// The tables of a session, one function per table. docs/sql.md documents the columns.
#pragma once

#include "analysis/sql/virtual_table.h"

namespace tt::sql {

Table access_table();
Table access_total_table();
Table edge_table();
Table expert_table();
Table fault_table();
Table metadata_table();
Table model_table();
Table op_table();
Table op_total_table();
Table residency_table();
Table session_table();
Table split_table();
Table split_copy_table();
Table step_table();
Table template_table();
Table tensor_table();
Table token_table();
Table value_table();

}  // namespace tt::sql
