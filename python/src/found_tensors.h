// Tensors of lmemo.activations as they lie in the store: the records of one prompt, or everything of many prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lmemo/activations.h"

namespace lmemo::python {

// Records of one prompt that belong together: layers, or the tensors of one record.
struct FoundTensors {
  std::vector<Hit> hits;
  std::vector<TensorView> tensors;
  std::vector<size_t> hit_of;  // For each tensor.

  // All layers side by side, as (rows, layers × dim): what extract() returns. Requires: each is (rows, dim).
  Status copy_layers(std::byte* out, TensorType type, uint64_t row_stride) const;
};

// Adds the tensors of a record. False: it is not there, or no sound record.
bool take(Store& store, const Digest& digest, FoundTensors& found);

// What is asked for of every prompt.
struct WantedLayers {
  ActivationPart part = ActivationPart::raw;
  std::string pooling;
  std::vector<int64_t> layers;
  std::vector<TensorType> order;       // Which stored types do; the first that has all layers is taken.
  TensorType type = TensorType::none;  // Of the result. None: the one in which all are stored.
};

// All layers of all prompts, held where they lie.
struct StoredPrompts {
  struct Prompt {
    FoundTensors mask;  // Empty where the part has none: every row counts.
    FoundTensors layers;
    uint64_t rows = 0;
  };
  std::vector<Prompt> prompts;
  TensorType type = TensorType::none, mask_type = TensorType::int64;
  uint64_t longest = 0, columns = 0;  // Of the prompts, and of all layers together.

  // (prompts, longest, columns) and (prompts, longest), with zeros behind the last row of a prompt.
  Status copy_states(std::byte* out) const;
  void copy_masks(std::byte* out) const;
};

// nullopt if anything is missing, is damaged, or does not fit the rest. What is missing by the index is not looked for, so that
// whoever looks again counts it once.
std::optional<StoredPrompts> find_stored(Store& store, const ActivationKeys& keys,
                                         const std::vector<std::string>& prompt_fields,
                                         const WantedLayers& wanted);

// The last row of one layer of each prompt, (prompts, dim), in the one type in which all are stored.
struct LastRows {
  TensorType type = TensorType::none;
  uint64_t columns = 0;
  std::vector<std::byte> rows;
};
// nullopt if one is missing or has no rows, or if they differ in type or width.
std::optional<LastRows> find_last_rows(Store& store, const ActivationKeys& keys,
                                       const std::vector<std::string>& prompt_fields, int64_t layer,
                                       const std::vector<TensorType>& order);

}  // namespace lmemo::python
