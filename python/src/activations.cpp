// lmemo.activations from below: tensors in and out of records, without a detour over Python objects.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/claim_file.h"
#include "base/large_copy.h"
#include "bindings.h"
#include "errors.h"
#include "found_tensors.h"
#include "lmemo/activations.h"
#include "store_object.h"
#include "torch_tensor.h"
#include "values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace lmemo::python {
namespace {

constexpr uint64_t kLongCopyBytes = 256 << 10;  // Above this, others may run meanwhile.

TensorType type_of(std::string_view name) {
  const std::optional<TensorType> type = tensor_type_named(name);
  if (!type) throw nb::value_error(("unknown dtype \"" + std::string(name) + "\"").c_str());
  return *type;
}

ActivationPart part_of(std::string_view name) {
  const std::optional<ActivationPart> part = activation_part_named(name);
  if (!part) throw nb::value_error(("unknown part \"" + std::string(name) + "\"").c_str());
  return *part;
}

std::byte* at_address(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// Copies one tensor of those that were found.
void copy_tensor(const FoundTensors& found, size_t number, uint64_t address, const std::string& to,
                 uint64_t row_bytes, uint64_t row_stride) {
  const TensorType type = type_of(to);
  const TensorView& tensor = found.tensors.at(number);
  Status status;
  if (tensor.byte_count() >= kLongCopyBytes) {
    const nb::gil_scoped_release released;
    status = copy_elements(tensor, type, at_address(address), row_bytes, row_stride);
  } else {
    status = copy_elements(tensor, type, at_address(address), row_bytes, row_stride);
  }
  raise_if_failed(status);
}

void copy_layers(const FoundTensors& found, std::byte* out, TensorType type, uint64_t row_stride) {
  Status status;
  {
    const nb::gil_scoped_release released;
    status = found.copy_layers(out, type, row_stride);
  }
  raise_if_failed(status);
}

std::string_view prompt_bytes(nb::handle prompt, std::string& kept) {
  Py_ssize_t length = 0;
  if (PyUnicode_Check(prompt.ptr())) {
    if (const char* text = PyUnicode_AsUTF8AndSize(prompt.ptr(), &length))
      return {text, static_cast<size_t>(length)};
    PyErr_Clear();  // A lone surrogate.
    kept = utf8_of(prompt);
    return kept;
  }
  throw nb::type_error("prompt: expected str");
}

std::vector<std::string> fields_of_prompts(const nb::list& prompts) {
  std::vector<std::string> fields;
  fields.reserve(prompts.size());
  for (const nb::handle prompt : prompts) {
    std::string kept;
    fields.push_back(ActivationKeys::prompt(prompt_bytes(prompt, kept)));
  }
  return fields;
}

class Activations {
 public:
  explicit Activations(nb::object store)
      : object_(std::move(store)), store_(nb::cast<StoreObject*>(object_)), catalog_(nullptr) {}

  // Before the first tensor is made, and once. Also: keys by the plain name of a model, and who makes those that are not known yet.
  void use_torch(nb::object empty, nb::object from_dlpack, nb::dict types, nb::dict plain_keys,
                 nb::object make_keys) {
    torch_ = TorchTensors(std::move(empty), std::move(from_dlpack), std::move(types));
    plain_keys_ = std::move(plain_keys);
    make_keys_ = std::move(make_keys);
  }
  // Which dtype load_layer() looks for first; None: the widest.
  void prefer(const std::optional<std::string>& dtype) {
    preferred_ = dtype ? type_of(*dtype) : TensorType::none;
  }

  // nullopt: stored. Else the code of the error, of which the user hears by a notice. With a mask, (dtype, address), that comes last.
  using Mask = std::pair<std::string, uint64_t>;
  std::optional<std::string> put_rows(const ActivationKeys& keys, nb::handle prompt, const std::string& part,
                                      const std::string& pooling, const std::vector<int64_t>& layers,
                                      const std::vector<int64_t>& columns, const std::string& stored,
                                      bool compress, const std::string& source, uint64_t address,
                                      uint64_t rows, uint64_t dim, uint64_t row_stride,
                                      const std::optional<Mask>& mask) {
    std::string kept;
    const std::string_view text = prompt_bytes(prompt, kept);
    const std::string prompt_field = ActivationKeys::prompt(text);
    const std::string mask_record = mask ? record_of_mask(*mask, rows, text) : std::string();
    const TensorType from = type_of(source), to = type_of(stored);
    ActivationSlot slot{part_of(part), 0, pooling, to};
    const std::shared_ptr<Store> store = store_->hold();
    Status status;
    Buffer buffer = take_buffer();  // Another thread that comes meanwhile makes one of its own.
    {
      const nb::gil_scoped_release released;
      const uint64_t record_bytes = record_bytes_of_rows(to, rows, dim);
      if (!compress) buffer.make_room_for(layers.size() * record_bytes);
      std::vector<Key> made_keys;
      std::vector<std::string> compressed;
      std::vector<Item> items;
      made_keys.reserve(layers.size() + 1);
      compressed.reserve(layers.size());
      for (size_t i = 0; i < layers.size() && status.ok(); ++i) {
        slot.layer = layers[i];
        const std::byte* const first =
            at_address(address) + static_cast<uint64_t>(columns[i]) * dim * bytes_per_element(from);
        std::byte* const out = buffer.memory.get() + i * record_bytes;
        Result<Key> key = keys.key(prompt_field, slot);
        if (!key.ok()) {
          status = key.error();
        } else if (!compress) {
          status = write_record_of_rows(from, first, row_stride, to, rows, dim, out);
          made_keys.push_back(std::move(*key));
          items.push_back({&made_keys.back(), Bytes(out, record_bytes)});
        } else if (Result<std::string> record = compressed_rows(from, to, first, rows, dim, row_stride);
                   record.ok()) {
          compressed.push_back(std::move(*record));
          made_keys.push_back(std::move(*key));
          items.push_back({&made_keys.back(), bytes_of(compressed.back())});
        } else {
          status = record.error();
        }
      }
      if (status.ok() && mask) {
        const ActivationSlot its_slot{ActivationPart::mask, 0, "", TensorType::none};
        if (Result<Key> key = keys.key(prompt_field, its_slot); !key.ok()) {
          status = key.error();
        } else if (!is_stored(*store, *key, bytes_of(mask_record))) {
          made_keys.push_back(std::move(*key));
          items.push_back({&made_keys.back(), bytes_of(mask_record)});
        }
      }
      if (status.ok()) status = store->put_many(items);
    }
    keep_buffer(std::move(buffer));
    return told(status);
  }

  using Source = std::tuple<std::string, std::vector<uint64_t>, uint64_t>;  // dtype, shape, address
  std::optional<std::string> put_tensors(const ActivationKeys& keys, nb::handle prompt,
                                         const std::string& part, std::optional<std::string> stored,
                                         bool compress, const std::vector<Source>& tensors) {
    std::string kept;
    const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
    ActivationSlot slot{part_of(part), 0, "", stored ? type_of(*stored) : TensorType::none};
    TensorRecord record;
    for (const auto& [name, shape, address] : tensors) {
      const TensorType type = type_of(name);
      std::byte* out = record.add(type, shape);
      TensorView view{type, shape, false, {}};
      std::memcpy(out, at_address(address), view.byte_count());
    }
    const std::string bytes = value_or_raise(record.finish(compress));
    const Key key = value_or_raise(keys.key(prompt_field, slot));
    const std::shared_ptr<Store> store = store_->hold();
    Status status;
    {
      const nb::gil_scoped_release released;
      if (!is_stored(*store, key, bytes_of(bytes))) status = store->put(key, bytes_of(bytes));
    }
    return told(status);
  }

  // All layers in one stored type, the first of `order` that has them all; None if there is none, or if they do not fit together.
  std::optional<FoundTensors> find_layers(const ActivationKeys& keys, nb::handle prompt,
                                          const std::string& part, const std::string& pooling,
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
        const bool fits =
            here.tensors.size() == layers.size() &&
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

  std::optional<FoundTensors> find_record(const ActivationKeys& keys, nb::handle prompt,
                                          const std::string& part, const std::vector<std::string>& order) {
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

  std::optional<FoundTensors> find_key(const Key& key) {
    const std::shared_ptr<Store> store = store_->hold();
    FoundTensors found;
    const bool is_there = take(*store, key.digest(), found);
    store_->deliver_notices();
    if (!is_there) return std::nullopt;
    return found;
  }

  // Which of the layers are not there in one of the stored types, by the index alone.
  std::vector<int64_t> missing_layers(const ActivationKeys& keys, nb::handle prompt, const std::string& part,
                                      const std::string& pooling, const std::vector<int64_t>& layers,
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

  // Raw states of one layer of one prompt as a tensor of its own, (1, rows, dim); None if they are not there. Without a copy where the store
  // can lend them to somebody who may write (Store::find_writable).
  nb::object load_layer(nb::handle model, nb::handle prompt, int64_t layer) {
    const nb::object keys = keys_of(model);
    return load_layer(nb::cast<const ActivationKeys&>(keys), prompt, layer);
  }
  nb::object load_layer(const ActivationKeys& keys, nb::handle prompt, int64_t layer) {
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

  // All layers of all prompts, (prompts, tokens, layers × dim), and the mask, (prompts, tokens), padded on the right; None unless everything is
  // there and fits together. `wanted` is the dtype of the states; None: the one in which all are stored. A single layer of a single prompt is
  // not copied, as in load_layer().
  nb::object load_all(const ActivationKeys& keys, const nb::list& prompts, const std::string& part,
                      const std::string& pooling, const std::vector<int64_t>& layers,
                      const std::vector<std::string>& order, const std::optional<std::string>& wanted) {
    if (prompts.size() == 0 || layers.empty()) return nb::none();
    const std::vector<std::string> fields = fields_of_prompts(prompts);
    WantedLayers asked{part_of(part), pooling, layers, {}, wanted ? type_of(*wanted) : TensorType::none};
    for (const std::string& name : order) asked.order.push_back(type_of(name));
    if (fields.size() == 1 && layers.size() == 1) {
      std::optional<nb::object> made = load_single(keys, fields.front(), asked);
      store_->deliver_notices();
      if (made) return std::move(*made);
    }
    const std::shared_ptr<Store> store = store_->hold();
    std::optional<StoredPrompts> found;
    {
      const nb::gil_scoped_release released;  // The first find of a record reads all of it, to check it.
      found = find_stored(*store, keys, fields, asked);
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

  // The last token's state in one layer of each prompt, (prompts, dim); None unless all are there, in one dtype.
  nb::object load_last_rows(const ActivationKeys& keys, const nb::list& prompts, int64_t layer,
                            const std::vector<std::string>& order) {
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

  // Layers that were found, side by side, as a tensor (1, rows, layers × dim).
  nb::object side_by_side(const FoundTensors& found) {
    if (found.tensors.empty() || found.tensors.front().shape.size() != 2) throw nb::value_error("no layers");
    const TensorView& first = found.tensors.front();
    const uint64_t rows = first.shape[0], columns = first.shape[1] * found.tensors.size();
    const auto [made, out] = fresh(first.type, 1, rows, columns);
    copy_layers(found, out, first.type, columns * bytes_per_element(first.type));
    return made;
  }

  nb::list models() {
    nb::list list;
    for (const ActivationModel& model : models_now()) {
      nb::dict entry, fields;
      for (const auto& [name, value] : model.fields) fields[text_to_python(name)] = text_to_python(value);
      entry["fields"] = fields;
      entry["encoding"] = nb::bytes(model.encoding.data(), model.encoding.size());
      entry["keys"] = nb::cast(value_or_raise(ActivationKeys::of(model.model)));
      entry["name"] = text_to_python(model.name);
      entry["hash"] = model.hash;
      entry["stored_bytes"] = model.stored_bytes;
      entry["prompts"] = model.prompts;
      entry["entries"] = model.entries;
      entry["oldest_ns"] = model.oldest_ns;
      entry["newest_ns"] = model.newest_ns;
      nb::list layers;
      for (const auto& [layer, count] : model.raw_layers) layers.append(layer);
      entry["layers"] = layers;
      entry["has_pooled"] = !model.poolings.empty();
      entry["has_logits"] = model.has_logits;
      entry["has_perplexity"] = model.has_perplexity;
      list.append(entry);
    }
    return list;
  }

  // (raw, {pooling: layers}, router, logits, top_k_logits, perplexity, token_perplexity, tokens, top_k), layers as (layer, dtype); None if nothing is
  // there. tokens and top_k are None where there is no mask and no top-k logits.
  nb::object discover(const ActivationKeys& keys, nb::handle prompt) {
    std::string kept;
    const std::string prompt_field = ActivationKeys::prompt(prompt_bytes(prompt, kept));
    const std::optional<DiscoveredPrompt> found =
        value_or_raise(catalog().discover(keys.model_encoding(), prompt_field));
    const std::shared_ptr<Store> store = store_->hold();
    const PromptSizes sizes = found ? sizes_of(*store, keys, prompt_field, *found) : PromptSizes();
    store_->deliver_notices();
    if (!found) return nb::none();
    const auto layers = [](const std::vector<DiscoveredPrompt::Layer>& from) {
      nb::list list;
      for (const auto& [layer, stored] : from) list.append(nb::make_tuple(layer, name_of(stored).data()));
      return list;
    };
    const auto types = [](const std::vector<TensorType>& from) {
      nb::list list;
      for (const TensorType type : from) list.append(nb::str(name_of(type).data()));
      return list;
    };
    nb::dict pooled;
    for (const auto& [pooling, its_layers] : found->pooled)
      pooled[text_to_python(pooling)] = layers(its_layers);
    return nb::make_tuple(layers(found->raw), pooled, layers(found->router), types(found->logits),
                          types(found->top_k_logits), types(found->perplexity),
                          types(found->token_perplexity), sizes.tokens, sizes.top_k);
  }

  void refresh() {
    const std::shared_ptr<Store> store = store_->hold();
    const nb::gil_scoped_release released;
    store->refresh();
  }

  // What all entries take together.
  uint64_t stored_bytes() {
    uint64_t total = 0;
    for (const ActivationModel& model : models_now()) total += model.stored_bytes;
    return total;
  }

  std::pair<uint64_t, uint64_t> evict(uint64_t target_bytes) {
    const RemovalReport report = value_or_raise(
        store_->without_gil([&](Store& store) { return store.evict_kind(kActivationKind, target_bytes); }));
    return {report.entries, report.stored_bytes};
  }

 private:
  // Most masks are put again with every layer: the same bytes need no second record.
  static bool is_stored(Store& store, const Key& key, Bytes value) {
    const std::optional<Hit> known = store.find(key);
    return known && std::ranges::equal(known->value(), value);
  }
  // With the prompt itself, if its keys do not have it: list_cached_prompts() finds it here.
  static std::string record_of_mask(const Mask& mask, uint64_t rows, std::string_view prompt) {
    TensorRecord record;
    const TensorType type = type_of(mask.first);
    std::byte* const out = record.add(type, {rows});
    if (rows > 0) std::memcpy(out, at_address(mask.second), rows * bytes_per_element(type));
    if (prompt.size() > kMaxInlineValueBytes)
      std::memcpy(record.add(TensorType::uint8, {prompt.size()}), prompt.data(), prompt.size());
    return value_or_raise(record.finish(false));
  }

  // Of a plain name from the dictionary, of a ModelIdentity from the identity.
  nb::object keys_of(nb::handle model) const {
    PyObject* known = nullptr;
    if (PyUnicode_CheckExact(model.ptr())) {
      known = Py_XNewRef(PyDict_GetItemWithError(plain_keys_.ptr(), model.ptr()));
    } else {
      known = PyObject_GetAttr(model.ptr(), keys_name_.ptr());
      PyErr_Clear();
    }
    return known != nullptr ? nb::steal(known) : make_keys_(model);
  }

  static Result<std::string> compressed_rows(TensorType from, TensorType to, const std::byte* source,
                                             uint64_t rows, uint64_t dim, uint64_t row_stride) {
    TensorRecord record;
    std::byte* out = record.add(to, {rows, dim});
    const uint64_t in_bytes = dim * bytes_per_element(from), out_bytes = dim * bytes_per_element(to);
    for (uint64_t row = 0; row < rows; ++row) {
      TensorView view{from, {dim}, false, Bytes(source + row * row_stride, in_bytes)};
      LMEMO_TRY(copy_elements(view, to, out + row * out_bytes));
    }
    return record.finish(true);
  }

  std::optional<std::string> told(const Status& status) {
    store_->deliver_notices();
    if (status.ok()) return std::nullopt;
    return std::string(name_of(status.error().code));
  }

  // (prompts, rows, columns) to be filled, and where.
  std::pair<nb::object, std::byte*> fresh(TensorType type, uint64_t prompts, uint64_t rows,
                                          uint64_t columns) {
    nb::object made = torch_.empty(nb::make_tuple(prompts, rows, columns), type);
    std::byte* const data = at_address(nb::cast<uint64_t>(made.attr("data_ptr")()));
    expect_large(data, prompts * rows * columns * bytes_per_element(type));
    return {std::move(made), data};
  }

  // A record of rows that are stored in this type; None if it is another. In place if its bytes may be written to.
  nb::object tensor_of(WritableHit hit, TensorType stored, uint64_t& row_count) {
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

  nb::object mask_of(const StoredPrompts& found) {
    std::byte* out = nullptr;
    nb::object mask = torch_.small(found.mask_type, found.prompts.size(), found.longest, out);
    found.copy_masks(out);
    return mask;
  }

  // One layer of one prompt, where it lies; None if it is not there. nullopt where it is wanted in another type than it is stored in.
  std::optional<nb::object> load_single(const ActivationKeys& keys, const std::string& field,
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

  nb::object copy_of(const TensorView& tensor) {
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

  ActivationCatalog& catalog() {
    const std::shared_ptr<Store> store = store_->hold();
    const PythonLock lock(mutex_);
    if (store != followed_) {
      catalog_ = std::make_unique<ActivationCatalog>(*store);
      followed_ = store;
    }
    return *catalog_;
  }

  std::vector<ActivationModel> models_now() {
    ActivationCatalog& known = catalog();
    std::optional<Result<std::vector<ActivationModel>>> models;
    {
      const nb::gil_scoped_release released;
      models.emplace(known.models());
    }
    store_->deliver_notices();
    return value_or_raise(std::move(*models));
  }

  // Memory for records, kept from one put to the next: what is new costs a page fault every 4 KB.
  static constexpr uint64_t kMaxKeptBytes = 64 << 20;
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    uint64_t byte_count = 0;
    void make_room_for(uint64_t wanted) {
      if (wanted <= byte_count) return;
      memory = std::make_unique_for_overwrite<std::byte[]>(wanted);
      byte_count = wanted;
    }
  };
  Buffer take_buffer() {
    const PythonLock lock(mutex_);
    return std::exchange(buffer_, {});
  }
  void keep_buffer(Buffer buffer) {
    const PythonLock lock(mutex_);
    if (buffer.byte_count <= kMaxKeptBytes) std::swap(buffer_, buffer);
  }

  nb::object object_;  // Keeps store_ alive.
  StoreObject* store_;
  PythonMutex mutex_;  // Guards the buffer, and which store is followed: one, for as long as it is open.
  Buffer buffer_;
  std::shared_ptr<Store> followed_;
  std::unique_ptr<ActivationCatalog> catalog_;
  TorchTensors torch_;
  nb::dict plain_keys_;
  nb::object make_keys_;
  const nb::object keys_name_ = nb::steal(PyUnicode_InternFromString("_keys"));
  std::atomic<TensorType> preferred_ = TensorType::none;
};

// CPython's own method: nanobind's dispatch would be a tenth of all that loading a layer takes.
PyObject* load_layer(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  try {
    if (count != 3) throw nb::type_error("load_layer() takes model_name, prompt and layer");
    const long long layer = PyLong_AsLongLong(arguments[2]);
    if (layer == -1 && PyErr_Occurred()) return nullptr;
    return nb::inst_ptr<Activations>(self)->load_layer(arguments[0], arguments[1], layer).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}
PyMethodDef kLoadLayer = {
    "load_layer", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&load_layer)), METH_FASTCALL,
    "load_layer($self, model_name, prompt, layer)\n--\n\n"
    "A tensor (1, tokens, dim), or None."};

// From the first to behind the last element that is not zero, of a mask.
std::pair<uint64_t, uint64_t> kept_positions(const std::string& dtype, uint64_t address, uint64_t count) {
  const uint64_t element = bytes_per_element(type_of(dtype));
  const std::byte* const mask = at_address(address);
  const auto counts = [&](uint64_t place) {
    const std::byte* const first = mask + place * element;
    return std::any_of(first, first + element, [](std::byte byte) { return byte != std::byte{0}; });
  };
  uint64_t first = 0, end = count;
  while (first < end && !counts(first)) ++first;
  while (end > first && !counts(end - 1)) --end;
  return first == end ? std::pair<uint64_t, uint64_t>(0, 0) : std::pair(first, end);
}

void convert_floats(const std::string& from, uint64_t source, const std::string& to, uint64_t target,
                    uint64_t count) {
  TensorView view{
      type_of(from), {count}, false, Bytes(at_address(source), count * bytes_per_element(type_of(from)))};
  const TensorType type = type_of(to);
  Status status;
  {
    const nb::gil_scoped_release released;
    status = copy_elements(view, type, at_address(target));
  }
  raise_if_failed(status);
}

}  // namespace

void init_activations(nb::module_& m) {
  nb::class_<ActivationKeys>(m, "ActivationKeys", "The keys of one model's activations.")
      .def(
          "__init__",
          [](ActivationKeys* self, nb::handle fields) {
            new (self) ActivationKeys(value_or_raise(ActivationKeys::of(fields_of(fields, nb::dict()))));
          },
          "fields"_a, nb::sig("def __init__(self, fields: Mapping[str, FieldValue]) -> None"))
      .def(
          "key",
          [](const ActivationKeys& self, nb::handle prompt, const std::string& part,
             std::optional<int64_t> layer, const std::string& pooling, std::optional<std::string> stored) {
            std::string kept;
            return value_or_raise(self.key(
                ActivationKeys::prompt(prompt_bytes(prompt, kept)),
                {part_of(part), layer.value_or(0), pooling, stored ? type_of(*stored) : TensorType::none}));
          },
          "prompt"_a, "part"_a, "layer"_a = nb::none(), "pooling"_a = "", "stored"_a = nb::none(),
          nb::sig("def key(self, prompt: str, part: str, layer: int | None = None, pooling: str = '', "
                  "stored: str | None = None) -> Key"),
          "The key of one entry, for Store.explain and the like.")
      .def_prop_ro(
          "encoding",
          [](const ActivationKeys& self) { return bytes_to_python(bytes_of(self.model_encoding())); },
          nb::sig("def encoding(self) -> bytes"), "The model's fields as they stand in a key.");

  nb::class_<FoundTensors>(
      m, "FoundTensors", "Tensors that were found, where they lie. They stay valid while this object lives.")
      .def("__len__", [](const FoundTensors& self) { return self.tensors.size(); })
      .def(
          "dtype",
          [](const FoundTensors& self, size_t number) {
            return std::string(name_of(self.tensors.at(number).type));
          },
          "number"_a = 0, "The stored dtype, as torch calls it.")
      .def(
          "shape",
          [](const FoundTensors& self, size_t number) {
            return nb::tuple(nb::cast(self.tensors.at(number).shape));
          },
          "number"_a = 0, nb::sig("def shape(self, number: int = 0) -> tuple[int, ...]"))
      .def(
          "is_compressed",
          [](const FoundTensors& self, size_t number) { return self.tensors.at(number).is_compressed; },
          "number"_a = 0)
      .def(
          "hit", [](const FoundTensors& self, size_t number) { return self.hits.at(self.hit_of.at(number)); },
          "number"_a = 0, "The record that holds it: a read-only buffer.")
      .def(
          "offset",
          [](const FoundTensors& self, size_t number) {
            const TensorView& tensor = self.tensors.at(number);
            return tensor.stored.data() - self.hits.at(self.hit_of.at(number)).value().data();
          },
          "number"_a = 0, "Where its elements begin in the record.")
      .def("copy_to", &copy_tensor, "number"_a, "address"_a, "dtype"_a, "row_bytes"_a = 0, "row_stride"_a = 0)
      .def(
          "copy_layers_to",
          [](const FoundTensors& self, uint64_t address, const std::string& dtype, uint64_t row_stride) {
            copy_layers(self, at_address(address), type_of(dtype), row_stride);
          },
          "address"_a, "dtype"_a, "row_stride"_a);

  nb::class_<Activations> native(m, "NativeActivations", "Tensors in and out of a store.");
  native.def(nb::init<nb::object>(), "store"_a, nb::sig("def __init__(self, store: StoreBase) -> None"))
      .def("use_torch", &Activations::use_torch, "empty"_a, "from_dlpack"_a, "types"_a, "plain_keys"_a,
           "make_keys"_a,
           nb::sig("def use_torch(self, empty: Callable[..., typing.Any], from_dlpack: "
                   "Callable[[typing.Any], typing.Any], types: dict[str, typing.Any], plain_keys: dict[str, "
                   "ActivationKeys], make_keys: Callable[[str], ActivationKeys]) -> None"))
      .def("prefer", &Activations::prefer, "dtype"_a.none())
      .def("put_rows", &Activations::put_rows, "keys"_a, "prompt"_a, "part"_a, "pooling"_a, "layers"_a,
           "columns"_a, "stored"_a, "compress"_a, "source"_a, "address"_a, "rows"_a, "dim"_a, "row_stride"_a,
           "mask"_a = nb::none())
      .def("put_tensors", &Activations::put_tensors, "keys"_a, "prompt"_a, "part"_a, "stored"_a.none(),
           "compress"_a, "tensors"_a)
      .def("find_layers", &Activations::find_layers, "keys"_a, "prompt"_a, "part"_a, "pooling"_a, "layers"_a,
           "order"_a)
      .def("find_record", &Activations::find_record, "keys"_a, "prompt"_a, "part"_a, "order"_a)
      .def("find_key", &Activations::find_key, "key"_a)
      .def("missing_layers", &Activations::missing_layers, "keys"_a, "prompt"_a, "part"_a, "pooling"_a,
           "layers"_a, "order"_a)
      .def(
          "load_layer_of",
          [](Activations& self, const ActivationKeys& keys, nb::handle prompt, int64_t layer) {
            return self.load_layer(keys, prompt, layer);
          },
          "keys"_a, "prompt"_a, "layer"_a,
          nb::sig("def load_layer_of(self, keys: ActivationKeys, prompt: str, layer: int) -> typing.Any"))
      .def(
          "load_all", &Activations::load_all, "keys"_a, "prompts"_a, "part"_a, "pooling"_a, "layers"_a,
          "order"_a, "wanted"_a.none(),
          nb::sig(
              "def load_all(self, keys: ActivationKeys, prompts: list[str], part: str, pooling: str, layers: "
              "collections.abc.Sequence[int], order: collections.abc.Sequence[str], wanted: str | None) -> "
              "typing.Any"))
      .def("load_last_rows", &Activations::load_last_rows, "keys"_a, "prompts"_a, "layer"_a, "order"_a,
           nb::sig("def load_last_rows(self, keys: ActivationKeys, prompts: list[str], layer: int, order: "
                   "collections.abc.Sequence[str]) -> typing.Any"))
      .def("side_by_side", &Activations::side_by_side, "found"_a,
           nb::sig("def side_by_side(self, found: FoundTensors) -> typing.Any"))
      .def("models", &Activations::models, nb::sig("def models(self) -> list[dict[str, typing.Any]]"))
      .def("discover", &Activations::discover, "keys"_a, "prompt"_a,
           nb::sig("def discover(self, keys: ActivationKeys, prompt: str) -> typing.Any"))
      .def("refresh", &Activations::refresh)
      .def("stored_bytes", &Activations::stored_bytes)
      .def("evict", &Activations::evict, "target_bytes"_a);
  native.attr("load_layer") =
      nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(native.ptr()), &kLoadLayer));

  nb::class_<ClaimFile>(m, "ClaimFile",
                        "Who works on what, between processes; a dead owner never blocks anybody.")
      .def(
          "__init__",
          [](ClaimFile* self, nb::handle path) {
            new (self) ClaimFile(value_or_raise(ClaimFile::open(path_of(path))));
          },
          "path"_a, nb::sig("def __init__(self, path: str | os.PathLike[str]) -> None"))
      .def(
          "try_claim", [](ClaimFile& claims, uint64_t number) { return claims.try_claim(number); },
          "number"_a)
      .def("release", [](ClaimFile& claims, uint64_t number) { claims.release(number); }, "number"_a);

  m.def("kept_positions", &kept_positions, "dtype"_a, "address"_a, "count"_a,
        "From the first to behind the last element of a mask that counts.");
  m.def(
      "expect_large",
      [](uint64_t address, uint64_t byte_count) { expect_large(at_address(address), byte_count); },
      "address"_a, "byte_count"_a, "Asks for pages of 2 MB for new memory that is about to be written to.");
  m.def("convert_floats", &convert_floats, "from_dtype"_a, "source"_a, "to_dtype"_a, "target"_a, "count"_a,
        "Converts so many floats between float32, float16 and bfloat16, from one address to another.");
}

}  // namespace lmemo::python
