#include "found_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lmemo::python {
namespace {

// The digests of all layers in the first stored type that has them all; none if there is no such type.
std::vector<Digest> digests_of(Store& store, const ActivationKeys& keys, std::string_view prompt_field,
                               const WantedLayers& wanted, ActivationSlot& slot) {
  std::vector<Digest> digests;
  for (const TensorType type : wanted.order) {
    slot.stored = type;
    digests.clear();
    for (const int64_t layer : wanted.layers) {
      slot.layer = layer;
      const Digest digest = keys.digest(prompt_field, slot);
      if (!store.contains(digest)) break;
      digests.push_back(digest);
    }
    if (digests.size() == wanted.layers.size()) return digests;
  }
  return {};
}

bool are_rows(const FoundTensors& layers, TensorType type) {
  return std::ranges::all_of(layers.tensors, [&](const TensorView& tensor) {
    return tensor.type == type && tensor.shape.size() == 2 && tensor.shape == layers.tensors.front().shape;
  });
}

}  // namespace

Status FoundTensors::copy_layers(std::byte* out, TensorType type, uint64_t row_stride) const {
  for (const TensorView& tensor : tensors) {
    const uint64_t row_bytes = tensor.shape.at(1) * bytes_per_element(type);
    LMEMO_TRY(copy_elements(tensor, type, out, row_bytes, row_stride));
    out += row_bytes;
  }
  return {};
}

bool take(Store& store, const Digest& digest, FoundTensors& found) {
  std::optional<Hit> hit = store.find(digest);
  if (!hit) return false;
  Result<std::vector<TensorView>> tensors = read_tensors(hit->value());
  if (!tensors.ok() || tensors->empty()) return false;
  for (TensorView& tensor : *tensors) {
    found.tensors.push_back(std::move(tensor));
    found.hit_of.push_back(found.hits.size());
  }
  found.hits.push_back(std::move(*hit));
  return true;
}

std::optional<StoredPrompts> find_stored(Store& store, const ActivationKeys& keys,
                                         const std::vector<std::string>& prompt_fields,
                                         const WantedLayers& wanted) {
  struct Places {
    std::optional<Digest> mask;
    std::vector<Digest> layers;
    TensorType stored = TensorType::none;
  };
  std::vector<Places> places(prompt_fields.size());
  const bool has_mask = wanted.part == ActivationPart::raw;
  for (size_t i = 0; i < places.size(); ++i) {
    if (has_mask) {
      places[i].mask = keys.digest(prompt_fields[i], {ActivationPart::mask, 0, "", TensorType::none});
      if (!store.contains(*places[i].mask)) return std::nullopt;
    }
    ActivationSlot slot{wanted.part, 0, wanted.pooling, TensorType::none};
    places[i].layers = digests_of(store, keys, prompt_fields[i], wanted, slot);
    if (places[i].layers.empty()) return std::nullopt;
    places[i].stored = slot.stored;
  }

  StoredPrompts found;
  found.type = wanted.type != TensorType::none ? wanted.type
               : places.empty()                ? wanted.type
                                               : places[0].stored;
  found.prompts.resize(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    if (wanted.type == TensorType::none && places[i].stored != found.type) return std::nullopt;
    StoredPrompts::Prompt& prompt = found.prompts[i];
    for (const Digest& digest : places[i].layers)
      if (!take(store, digest, prompt.layers)) return std::nullopt;
    if (prompt.layers.tensors.size() != wanted.layers.size() || !are_rows(prompt.layers, places[i].stored))
      return std::nullopt;
    const std::vector<uint64_t>& shape = prompt.layers.tensors.front().shape;
    const uint64_t columns = shape[1] * wanted.layers.size();
    if (i == 0) found.columns = columns;
    if (columns != found.columns) return std::nullopt;
    prompt.rows = shape[0];
    found.longest = std::max(found.longest, prompt.rows);
    if (!has_mask) continue;
    // A second tensor of the mask's record is the prompt itself.
    if (!take(store, *places[i].mask, prompt.mask)) return std::nullopt;
    const TensorView& mask = prompt.mask.tensors.front();
    if (mask.shape != std::vector<uint64_t>{prompt.rows} || mask.is_compressed) return std::nullopt;
    if (i == 0) found.mask_type = mask.type;
    if (mask.type != found.mask_type) return std::nullopt;
  }
  return found;
}

Status StoredPrompts::copy_states(std::byte* out) const {
  const uint64_t stride = columns * bytes_per_element(type);
  for (const Prompt& prompt : prompts) {
    if (prompt.rows > 0) LMEMO_TRY(prompt.layers.copy_layers(out, type, stride));
    std::memset(out + prompt.rows * stride, 0, (longest - prompt.rows) * stride);
    out += longest * stride;
  }
  return {};
}

void StoredPrompts::copy_masks(std::byte* out) const {
  const uint64_t element = bytes_per_element(mask_type);
  for (const Prompt& prompt : prompts) {
    std::memset(out, 0, longest * element);
    if (prompt.mask.tensors.empty()) {
      for (uint64_t row = 0; row < prompt.rows; ++row) out[row * element] = std::byte{1};  // Little-endian.
    } else if (prompt.rows > 0) {
      std::memcpy(out, prompt.mask.tensors.front().stored.data(), prompt.rows * element);
    }
    out += longest * element;
  }
}

std::optional<LastRows> find_last_rows(Store& store, const ActivationKeys& keys,
                                       const std::vector<std::string>& prompt_fields, int64_t layer,
                                       const std::vector<TensorType>& order) {
  LastRows found;
  std::vector<std::byte> whole;
  const WantedLayers wanted{ActivationPart::raw, "", {layer}, order};
  for (const std::string& field : prompt_fields) {
    ActivationSlot slot{ActivationPart::raw, layer, "", TensorType::none};
    const std::vector<Digest> digest = digests_of(store, keys, field, wanted, slot);
    const std::optional<Hit> hit = digest.empty() ? std::nullopt : store.find(digest.front());
    if (!hit) return std::nullopt;
    Bytes elements;
    uint64_t rows = 0, columns = 0;
    if (const std::optional<RowsView> plain = read_plain_rows(hit->value())) {
      elements = plain->stored, rows = plain->rows, columns = plain->columns;
      if (plain->type != slot.stored) return std::nullopt;
    } else {
      const Result<std::vector<TensorView>> tensors = read_tensors(hit->value());
      if (!tensors.ok() || tensors->size() != 1) return std::nullopt;
      const TensorView& tensor = tensors->front();
      if (tensor.shape.size() != 2 || tensor.type != slot.stored) return std::nullopt;
      whole.resize(tensor.byte_count());
      if (!copy_elements(tensor, tensor.type, whole.data()).ok()) return std::nullopt;
      elements = whole, rows = tensor.shape[0], columns = tensor.shape[1];
    }
    if (found.type == TensorType::none) {
      found.type = slot.stored, found.columns = columns;
      found.rows.reserve(prompt_fields.size() * columns * bytes_per_element(found.type));
    }
    if (rows == 0 || slot.stored != found.type || columns != found.columns) return std::nullopt;
    const Bytes last = elements.last(columns * bytes_per_element(found.type));
    found.rows.insert(found.rows.end(), last.begin(), last.end());
  }
  return found;
}

}  // namespace lmemo::python
