// For the header of a result that declares its fields: Fields<Reuse> fields_of(const Reuse*);
#pragma once

namespace tt {

namespace fields {
template <class T>
class Fields;
}
using fields::Fields;

}  // namespace tt
