// How tensors get into the store.

#include <algorithm>
#include <cstring>

#include "activation_arguments.h"
#include "errors.h"
#include "native_activations.h"

namespace nb = nanobind;

namespace lmemo::python {
namespace {

// Most masks are put again with every layer: the same bytes need no second record.
bool is_stored(Store& store, const Key& key, Bytes value) {
  const std::optional<Hit> known = store.find(key);
  return known && std::ranges::equal(known->value(), value);
}

// With the prompt itself, if its keys do not have it: list_cached_prompts() finds it here.
std::string record_of_mask(const NativeActivations::Mask& mask, uint64_t rows, std::string_view prompt) {
  TensorRecord record;
  const TensorType type = type_of(mask.first);
  std::byte* const out = record.add(type, {rows});
  if (rows > 0) std::memcpy(out, at_address(mask.second), rows * bytes_per_element(type));
  if (prompt.size() > kMaxInlineValueBytes)
    std::memcpy(record.add(TensorType::uint8, {prompt.size()}), prompt.data(), prompt.size());
  return value_or_raise(record.finish(false));
}

Result<std::string> compressed_rows(TensorType from, TensorType to, const std::byte* source, uint64_t rows,
                                    uint64_t dim, uint64_t row_stride) {
  TensorRecord record;
  std::byte* out = record.add(to, {rows, dim});
  const uint64_t in_bytes = dim * bytes_per_element(from), out_bytes = dim * bytes_per_element(to);
  for (uint64_t row = 0; row < rows; ++row) {
    TensorView view{from, {dim}, false, Bytes(source + row * row_stride, in_bytes)};
    LMEMO_TRY(copy_elements(view, to, out + row * out_bytes));
  }
  return record.finish(true);
}

}  // namespace

std::optional<std::string> NativeActivations::put_rows(
    const ActivationKeys& keys, nb::handle prompt, const std::string& part, const std::string& pooling,
    const std::vector<int64_t>& layers, const std::vector<int64_t>& columns, const std::string& stored,
    bool compress, const std::string& source, uint64_t address, uint64_t rows, uint64_t dim,
    uint64_t row_stride, const std::optional<Mask>& mask) {
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

std::optional<std::string> NativeActivations::put_tensors(const ActivationKeys& keys, nb::handle prompt,
                                                          const std::string& part,
                                                          std::optional<std::string> stored, bool compress,
                                                          const std::vector<Source>& tensors) {
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

std::optional<std::string> NativeActivations::told(const Status& status) {
  store_->deliver_notices();
  if (status.ok()) return std::nullopt;
  return std::string(name_of(status.error().code));
}

NativeActivations::Buffer NativeActivations::take_buffer() {
  const PythonLock lock(mutex_);
  return std::exchange(buffer_, {});
}

void NativeActivations::keep_buffer(Buffer buffer) {
  const PythonLock lock(mutex_);
  if (buffer.byte_count <= kMaxKeptBytes) std::swap(buffer_, buffer);
}

}  // namespace lmemo::python
