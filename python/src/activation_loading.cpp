// How tensors come out of the store.

#include <algorithm>

#include "activation_arguments.h"
#include "base/large_copy.h"
#include "errors.h"
#include "native_activations.h"
#include "values.h"

namespace nb = nanobind;

namespace lmemo::python {

std::optional<FoundTensors> NativeActivations::find_layers(const ActivationKeys& keys, nb::handle prompt,
                                                           const std::string& part,
                                                           const std::string& pooling,
                                                           const std::vector<int64_t>& layers,
                                                           const std::vector<std::string>& order) {
  std::string kept;
  const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
  ActivationSlot slot{part_of(part), 0, pooling, TensorType::none};
  std::vector<TensorType> types;
  for (const std::string& name : order) types.push_back(type_of(name));
  const std::shared_ptr<Store> store = store_->hold();
  std::optional<FoundTensors> found;
  {
    const nb::gil_scoped_release released;  // The first find of a record reads all of it, to check it.
    for (const TensorType type : types) {
      slot.stored = type;
      FoundTensors here;
      for (const int64_t layer : layers) {
        slot.layer = layer;
        if (!take(*store, keys.digest(prompt_field, slot), here)) break;
      }
      const bool fits = here.tensors.size() == layers.size() &&
                        std::all_of(here.tensors.begin(), here.tensors.end(), [&](const TensorView& tensor) {
                          return tensor.type == type && tensor.shape.size() == 2 &&
                                 tensor.shape == here.tensors.front().shape;
                        });
      if (!fits) continue;
      found = std::move(here);
      break;
    }
  }
  store_->deliver_notices();
  return found;
}

std::optional<FoundTensors> NativeActivations::find_record(const ActivationKeys& keys, nb::handle prompt,
                                                           const std::string& part,
                                                           const std::vector<std::string>& order) {
  std::string kept;
  const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
  ActivationSlot slot{part_of(part), 0, "", TensorType::none};
  const std::shared_ptr<Store> store = store_->hold();
  FoundTensors found;
  bool is_there = false;
  if (order.empty()) is_there = take(*store, keys.digest(prompt_field, slot), found);
  for (const std::string& name : order) {
    if (is_there) break;
    slot.stored = type_of(name);
    is_there = take(*store, keys.digest(prompt_field, slot), found);
  }
  store_->deliver_notices();
  if (!is_there) return std::nullopt;
  return found;
}

std::optional<FoundTensors> NativeActivations::find_key(const Key& key) {
  const std::shared_ptr<Store> store = store_->hold();
  FoundTensors found;
  const bool is_there = take(*store, key.digest(), found);
  store_->deliver_notices();
  if (!is_there) return std::nullopt;
  return found;
}

std::vector<int64_t> NativeActivations::missing_layers(const ActivationKeys& keys, nb::handle prompt,
                                                       const std::string& part, const std::string& pooling,
                                                       const std::vector<int64_t>& layers,
                                                       const std::vector<std::string>& order) {
  std::string kept;
  const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
  ActivationSlot slot{part_of(part), 0, pooling, TensorType::none};
  std::vector<int64_t> best = layers;
  const StoreInUse store = store_->open();
  for (const std::string& name : order) {
    slot.stored = type_of(name);
    std::vector<int64_t> missing;
    for (const int64_t layer : layers) {
      slot.layer = layer;
      if (!store->contains(keys.digest(prompt_field, slot))) missing.push_back(layer);
    }
    if (missing.size() < best.size()) best = std::move(missing);
    if (best.empty()) break;
  }
  return best;
}

nb::object NativeActivations::load_layer(nb::handle model, nb::handle prompt, int64_t layer) {
  const nb::object keys = keys_of(model);
  return load_layer(nb::cast<const ActivationKeys&>(keys), prompt, layer);
}

nb::object NativeActivations::load_layer(const ActivationKeys& keys, nb::handle prompt, int64_t layer) {
  std::string kept;
  const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
  const StoreInUse store = store_->open();
  nb::object made = nb::none();
  ActivationSlot slot{ActivationPart::raw, layer, "", TensorType::none};
  const TensorType first = preferred_.load(std::memory_order_relaxed);
  for (size_t i = first == TensorType::none ? 1 : 0; i <= std::size(kFloatTypes); ++i) {
    slot.stored = i == 0 ? first : kFloatTypes[i - 1];
    if (i > 0 && slot.stored == first) continue;
    std::optional<WritableHit> hit = store->find_writable(keys.digest(prompt_field, slot));
    if (!hit) continue;
    uint64_t rows = 0;
    made = tensor_of(std::move(*hit), slot.stored, rows);
    if (!made.is_none()) break;
  }
  store_->deliver_notices();
  return made;
}

nb::object NativeActivations::load_all(const ActivationKeys& keys, const nb::list& prompts,
                                       const WantedLayers& wanted) {
  if (prompts.size() == 0 || wanted.layers.empty()) return nb::none();
  const std::vector<std::string> fields = fields_of_prompts(prompts);
  if (fields.size() == 1 && wanted.layers.size() == 1) {
    std::optional<nb::object> made = load_single(keys, fields.front(), wanted);
    store_->deliver_notices();
    if (made) return std::move(*made);
  }
  const std::shared_ptr<Store> store = store_->hold();
  std::optional<StoredPrompts> found;
  {
    const nb::gil_scoped_release released;  // The first find of a record reads all of it, to check it.
    found = find_stored(*store, keys, fields, wanted);
  }
  store_->deliver_notices();
  if (!found) return nb::none();
  const auto [states, out] = fresh(found->type, fields.size(), found->longest, found->columns);
  Status status;
  {
    const nb::gil_scoped_release released;
    status = found->copy_states(out);
  }
  if (!status.ok()) return nb::none();  // It is computed again.
  return nb::make_tuple(states, mask_of(*found));
}

nb::object NativeActivations::load_last_rows(const ActivationKeys& keys, const nb::list& prompts,
                                             int64_t layer, const std::vector<std::string>& order) {
  const std::vector<std::string> fields = fields_of_prompts(prompts);
  std::vector<TensorType> types;
  for (const std::string& name : order) types.push_back(type_of(name));
  const std::shared_ptr<Store> store = store_->hold();
  std::optional<LastRows> found;
  {
    const nb::gil_scoped_release released;
    found = find_last_rows(*store, keys, fields, layer, types);
  }
  store_->deliver_notices();
  if (!found || fields.empty()) return nb::none();
  std::byte* out = nullptr;
  nb::object made = torch_.small(found->type, fields.size(), found->columns, out);
  std::ranges::copy(found->rows, out);
  return made;
}

nb::object NativeActivations::side_by_side(const FoundTensors& found) {
  if (found.tensors.empty() || found.tensors.front().shape.size() != 2) throw nb::value_error("no layers");
  const TensorView& first = found.tensors.front();
  const uint64_t rows = first.shape[0], columns = first.shape[1] * found.tensors.size();
  const auto [made, out] = fresh(first.type, 1, rows, columns);
  copy_layers(found, out, first.type, columns * bytes_per_element(first.type));
  return made;
}

nb::object NativeActivations::keys_of(nb::handle model) const {
  PyObject* known = nullptr;
  if (PyUnicode_CheckExact(model.ptr())) {
    known = Py_XNewRef(PyDict_GetItemWithError(plain_keys_.ptr(), model.ptr()));
  } else {
    known = PyObject_GetAttr(model.ptr(), keys_name_.ptr());
    PyErr_Clear();
  }
  return known != nullptr ? nb::steal(known) : make_keys_(model);
}

std::pair<nb::object, std::byte*> NativeActivations::fresh(TensorType type, uint64_t prompts, uint64_t rows,
                                                           uint64_t columns) {
  nb::object made = torch_.empty(nb::make_tuple(prompts, rows, columns), type);
  std::byte* const data = at_address(nb::cast<uint64_t>(made.attr("data_ptr")()));
  expect_large(data, prompts * rows * columns * bytes_per_element(type));
  return {std::move(made), data};
}

nb::object NativeActivations::tensor_of(WritableHit hit, TensorType stored, uint64_t& row_count) {
  if (hit.own.data() != nullptr)
    if (const std::optional<RowsView> rows = read_plain_rows(hit.hit.value());
        rows && rows->type == stored && !rows->stored.empty()) {
      std::byte* const data = hit.own.data() + (rows->stored.data() - hit.hit.value().data());
      row_count = rows->rows;
      return torch_.over(std::move(hit), data, rows->type, rows->rows, rows->columns);
    }
  const Result<std::vector<TensorView>> tensors = read_tensors(hit.hit.value());
  if (!tensors.ok() || tensors->size() != 1) return nb::none();
  const TensorView& tensor = tensors->front();
  if (tensor.shape.size() != 2 || tensor.type != stored) return nb::none();
  row_count = tensor.shape[0];
  return copy_of(tensor);
}

nb::object NativeActivations::mask_of(const StoredPrompts& found) {
  std::byte* out = nullptr;
  nb::object mask = torch_.small(found.mask_type, found.prompts.size(), found.longest, out);
  found.copy_masks(out);
  return mask;
}

std::optional<nb::object> NativeActivations::load_single(const ActivationKeys& keys, const std::string& field,
                                                         const WantedLayers& asked) {
  const StoreInUse store = store_->open();
  ActivationSlot slot{asked.part, asked.layers.front(), asked.pooling, TensorType::none};
  std::optional<Digest> digest;
  for (const TensorType type : asked.order) {
    slot.stored = type;
    digest = keys.digest(field, slot);
    if (store->contains(*digest)) break;
    digest.reset();
  }
  if (!digest) return nb::none();
  if (asked.type != TensorType::none && asked.type != slot.stored) return std::nullopt;
  StoredPrompts found;
  StoredPrompts::Prompt& prompt = found.prompts.emplace_back();
  if (asked.part == ActivationPart::raw) {
    const Digest of_mask = keys.digest(field, {ActivationPart::mask, 0, "", TensorType::none});
    if (!store->contains(of_mask) || !take(*store, of_mask, prompt.mask)) return nb::none();
  }
  std::optional<WritableHit> hit = store->find_writable(*digest);
  if (!hit) return nb::none();
  nb::object states = tensor_of(std::move(*hit), slot.stored, prompt.rows);
  if (states.is_none()) return states;
  found.longest = prompt.rows;
  if (!prompt.mask.tensors.empty()) {
    const TensorView& mask = prompt.mask.tensors.front();
    if (mask.shape.size() != 1 || mask.shape[0] != prompt.rows || mask.is_compressed) return nb::none();
    found.mask_type = mask.type;
  }
  return nb::make_tuple(states, mask_of(found));
}

nb::object NativeActivations::copy_of(const TensorView& tensor) {
  const auto [made, out] = fresh(tensor.type, 1, tensor.shape[0], tensor.shape[1]);
  Status status;
  if (tensor.byte_count() >= kLongCopyBytes) {
    const nb::gil_scoped_release released;
    status = copy_elements(tensor, tensor.type, out);
  } else {
    status = copy_elements(tensor, tensor.type, out);
  }
  raise_if_failed(status);
  return made;
}

}  // namespace lmemo::python
