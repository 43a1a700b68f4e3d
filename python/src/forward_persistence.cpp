#include "forward_persistence.h"

#include <algorithm>

#include "faces/forward/value_codec.h"
#include "forward_values.h"
#include "lmemo/forward.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// False if this value has no place in a key.
bool to_field_value(PyObject* part, FieldValue& value) {
  if (part == Py_None) return value = FieldValue(), true;
  if (PyBool_Check(part)) return value = FieldValue(part == Py_True), true;
  if (is_str(part)) return value = FieldValue(utf8_of(part)), true;
  if (PyFloat_CheckExact(part)) return value = FieldValue(PyFloat_AS_DOUBLE(part)), true;
  if (PyBytes_CheckExact(part))
    return value = FieldValue(Blob{std::string(text_of(BufferView(part).bytes()))}), true;
  if (PyLong_CheckExact(part)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(part, &overflow);
    value = FieldValue(int64_t{number});
    return overflow == 0;
  }
  // A prompt of several parts, such as a prompt and its completion.
  if (!PyTuple_CheckExact(part)) return false;
  std::string encoded;
  if (!encode_value(part, false, encoded)) return false;
  value = FieldValue(Blob{std::move(encoded)});
  return true;
}

// A view that carries its model (lmemo.forward.ModelView) names its fields; a plain one is its text.
bool add_view(PyObject* view, std::vector<Field>& fields) {
  if (PyUnicode_CheckExact(view)) {
    fields.push_back({"view_id", FieldValue(utf8_of(view))});
    return true;
  }
  const nb::object named = nb::getattr(nb::handle(view), "_key_fields", nb::none());
  if (named.is_none()) {
    fields.push_back({"view_id", {}});
    return to_field_value(view, fields.back().value);
  }
  for (const nb::handle pair : named) {
    fields.push_back({utf8_of(pair[0]), {}});
    const nb::object value = pair[1];
    if (!to_field_value(value.ptr(), fields.back().value)) return false;
  }
  return true;
}

}  // namespace

std::optional<Key> store_key_of(const KeyView& key, bool uses_float16) {
  if (key.count != kCallParts || !is_str(key.part[0])) return std::nullopt;
  ForwardRequest request;
  request.op = utf8_of(key.part[0]);
  request.uses_float16 = uses_float16;
  if (!add_view(key.part[1], request.view) || !to_field_value(key.part[2], request.prompt) ||
      !to_field_value(key.part[3], request.top_k))
    return std::nullopt;
  Result<Key> made = forward_key(std::move(request));
  if (!made.ok()) return std::nullopt;
  return std::move(made).value();
}

Persistence::Persistence(nb::object store, bool uses_float16)
    : store_object_(std::move(store)), uses_float16_(uses_float16) {
  if (!nb::try_cast(store_object_, store_) || store_ == nullptr) {
    PyErr_Format(PyExc_TypeError, "store: expected a lmemo.Store or None, found %.200s",
                 Py_TYPE(store_object_.ptr())->tp_name);
    throw nb::python_error();
  }
}

Persistence::Found Persistence::find(const KeyView& key, nb::object& value) const {
  const std::optional<Key> store_key = store_key_of(key, uses_float16_);
  const std::shared_ptr<Store> store = store_->hold_if_open();
  if (!store_key || store == nullptr) return Found::no;
  const std::optional<Hit> hit = store->find(store_key->digest());
  store_->deliver_notices();
  if (!hit) return Found::no;
  Result<nb::object> decoded = decode_value(hit->value());
  if (!decoded.ok()) return Found::unreadable;
  value = std::move(decoded).value();
  return Found::yes;
}

bool Persistence::put(const KeyView& key, nb::object& value) const {
  if (store_->is_closed() || store_->is_read_only()) return false;
  const std::optional<Key> store_key = store_key_of(key, uses_float16_);
  if (!store_key) return false;
  std::string bytes;
  if (!encode_value(value, uses_float16_, bytes)) return false;
  if (uses_float16_) {
    // Everybody gets the rounded result, whoever computed it.
    Result<nb::object> rounded = decode_value(bytes_of(bytes));
    if (!rounded.ok()) return false;
    value = std::move(rounded).value();
  }
  // Only now: encoding may run Python code, and other threads with it.
  const std::shared_ptr<Store> store = store_->hold_if_open();
  if (store == nullptr) return false;
  Status status;
  {
    const nb::gil_scoped_release released;
    // Who computed it before us wrote the same: no second copy.
    const std::optional<Hit> known = store->find(*store_key);
    if (!known || !std::ranges::equal(known->value(), bytes_of(bytes)))
      status = store->put(*store_key, bytes_of(bytes));
  }
  store_->deliver_notices();
  return status.ok();
}

void Persistence::flush() const {
  const std::shared_ptr<Store> store = store_->hold_if_open();
  if (store == nullptr || store_->is_read_only()) return;
  {
    const nb::gil_scoped_release released;
    static_cast<void>(store->flush());  // A failure is a notice, as with put: a cache ends no run.
  }
  store_->deliver_notices();
}

}  // namespace lmemo::python
