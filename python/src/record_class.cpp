#include "record_class.h"

#include "lmemo/key.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

nb::object plain(nb::handle value) {
  if (nb::hasattr(value, "to_dict")) return value.attr("to_dict")();
  if (nb::isinstance<Key>(value)) {
    nb::dict key;
    key["kind"] = value.attr("kind");
    key["digest"] = value.attr("hex");
    key["fields"] = plain(value.attr("fields"));
    return key;
  }
  if (nb::isinstance<LongValue>(value)) {
    nb::dict long_value;
    for (const char* name : {"is_text", "byte_count", "sha256"}) long_value[name] = plain(value.attr(name));
    return long_value;
  }
  if (PyBytes_Check(value.ptr())) return value.attr("hex")();
  if (nb::isinstance<nb::dict>(value)) {
    nb::dict result;
    for (const auto [name, part] : nb::borrow<nb::dict>(value)) result[name] = plain(part);
    return result;
  }
  if (nb::isinstance<nb::list>(value)) {
    nb::list result;
    for (const nb::handle part : value) result.append(plain(part));
    return result;
  }
  if (nb::hasattr(value, "isoformat")) return value.attr("isoformat")();
  return nb::borrow(value);
}

nb::object names_of(nb::handle record) { return record.attr("_fields"); }

}  // namespace

nb::str repr_of_record(nb::handle record) {
  nb::list parts;
  for (const nb::handle name : names_of(record))
    parts.append(nb::str("{}={!r}").format(name, record.attr(name)));
  return nb::str("{}({})").format(record.type().attr("__name__"), nb::str(", ").attr("join")(parts));
}

nb::dict dict_of_record(nb::handle record) {
  nb::dict result;
  for (const nb::handle name : names_of(record)) result[name] = plain(record.attr(name));
  return result;
}

bool records_equal(nb::handle one, nb::handle other) {
  if (!one.type().is(other.type())) return false;
  for (const nb::handle name : names_of(one))
    if (!one.attr(name).equal(other.attr(name))) return false;
  return true;
}

}  // namespace lmemo::python
