# Writes OUTPUT, a C++ header with the script: the package (MODULE) and what follows it (DIALECT).
file(READ "${MODULE}" module)
file(READ "${DIALECT}" dialect)
file(WRITE "${OUTPUT}" "// Generated from ${MODULE} and dialect.js.
#pragma once

namespace tt {

inline constexpr char kJinjaScript[] = R\"jinja((function () {
const module = { exports: {} };
${module}
)jinja\"
R\"jinja(${dialect}
return { render, fill };
})())jinja\";

}  // namespace tt
")
