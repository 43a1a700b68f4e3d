// lmemo.activations from below: tensors in and out of records, without a detour over Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "activation_arguments.h"
#include "found_tensors.h"
#include "lmemo/activations.h"
#include "python_mutex.h"
#include "store_object.h"
#include "torch_tensor.h"

namespace lmemo::python {

class NativeActivations {
 public:
  explicit NativeActivations(nanobind::object store)
      : object_(std::move(store)), store_(nanobind::cast<StoreObject*>(object_)) {}

  // Before the first tensor is made, and once. Also: keys by the plain name of a model, and who makes those that are not known yet.
  void use_torch(nanobind::object empty, nanobind::object from_dlpack, nanobind::dict types,
                 nanobind::dict plain_keys, nanobind::object make_keys) {
    torch_ = TorchTensors(std::move(empty), std::move(from_dlpack), std::move(types));
    plain_keys_ = std::move(plain_keys);
    make_keys_ = std::move(make_keys);
  }
  // Which dtype load_layer() looks for first; None: the widest.
  void prefer(const std::optional<std::string>& dtype) {
    preferred_ = dtype ? type_of(*dtype) : TensorType::none;
  }

  // Saving (activation_saving.cpp). nullopt: stored. Else the code of the error, of which the user hears by a notice.

  // With a mask, (dtype, address), that comes last.
  using Mask = std::pair<std::string, uint64_t>;
  std::optional<std::string> put_rows(const ActivationKeys& keys, nanobind::handle prompt,
                                      const std::string& part, const std::string& pooling,
                                      const std::vector<int64_t>& layers, const std::vector<int64_t>& columns,
                                      const std::string& stored, bool compress, const std::string& source,
                                      uint64_t address, uint64_t rows, uint64_t dim, uint64_t row_stride,
                                      const std::optional<Mask>& mask);
  using Source = std::tuple<std::string, std::vector<uint64_t>, uint64_t>;  // dtype, shape, address
  std::optional<std::string> put_tensors(const ActivationKeys& keys, nanobind::handle prompt,
                                         const std::string& part, std::optional<std::string> stored,
                                         bool compress, const std::vector<Source>& tensors);

  // Loading (activation_loading.cpp).

  // All layers in one stored type, the first of `order` that has them all; None if there is none, or if they do not fit together.
  std::optional<FoundTensors> find_layers(const ActivationKeys& keys, nanobind::handle prompt,
                                          const std::string& part, const std::string& pooling,
                                          const std::vector<int64_t>& layers,
                                          const std::vector<std::string>& order);
  std::optional<FoundTensors> find_record(const ActivationKeys& keys, nanobind::handle prompt,
                                          const std::string& part, const std::vector<std::string>& order);
  std::optional<FoundTensors> find_key(const Key& key);
  // Which of the layers are not there in one of the stored types, by the index alone.
  std::vector<int64_t> missing_layers(const ActivationKeys& keys, nanobind::handle prompt,
                                      const std::string& part, const std::string& pooling,
                                      const std::vector<int64_t>& layers,
                                      const std::vector<std::string>& order);
  // Raw states of one layer of one prompt as a tensor of its own, (1, rows, dim); None if they are not there. Without a copy where the store
  // can lend them to somebody who may write (Store::find_writable).
  nanobind::object load_layer(nanobind::handle model, nanobind::handle prompt, int64_t layer);
  nanobind::object load_layer(const ActivationKeys& keys, nanobind::handle prompt, int64_t layer);
  // All layers of all prompts, (prompts, tokens, layers × dim), and the mask, (prompts, tokens), padded on the right; None unless everything is
  // there and fits together. A single layer of a single prompt is not copied, as in load_layer().
  nanobind::object load_all(const ActivationKeys& keys, const nanobind::list& prompts,
                            const WantedLayers& wanted);
  // The last token's state in one layer of each prompt, (prompts, dim); None unless all are there, in one dtype.
  nanobind::object load_last_rows(const ActivationKeys& keys, const nanobind::list& prompts, int64_t layer,
                                  const std::vector<std::string>& order);
  // Layers that were found, side by side, as a tensor (1, rows, layers × dim).
  nanobind::object side_by_side(const FoundTensors& found);

  // What is there (activation_index.cpp).

  nanobind::list models();
  // (raw, {pooling: layers}, router, logits, top_k_logits, perplexity, token_perplexity, tokens, top_k), layers as (layer, dtype); None if nothing is
  // there. tokens and top_k are None where there is no mask and no top-k logits.
  nanobind::object discover(const ActivationKeys& keys, nanobind::handle prompt);
  void refresh();
  // What all entries take together.
  uint64_t stored_bytes();
  std::pair<uint64_t, uint64_t> evict(uint64_t target_bytes);

 private:
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
  Buffer take_buffer();
  void keep_buffer(Buffer buffer);
  std::optional<std::string> told(const Status& status);

  // Of a plain name from the dictionary, of a ModelIdentity from the identity.
  nanobind::object keys_of(nanobind::handle model) const;
  // (prompts, rows, columns) to be filled, and where.
  std::pair<nanobind::object, std::byte*> fresh(TensorType type, uint64_t prompts, uint64_t rows,
                                                uint64_t columns);
  // A record of rows that are stored in this type; None if it is another. In place if its bytes may be written to.
  nanobind::object tensor_of(WritableHit hit, TensorType stored, uint64_t& row_count);
  nanobind::object mask_of(const StoredPrompts& found);
  // One layer of one prompt, where it lies; None if it is not there. nullopt where it is wanted in another type than it is stored in.
  std::optional<nanobind::object> load_single(const ActivationKeys& keys, const std::string& field,
                                              const WantedLayers& asked);
  nanobind::object copy_of(const TensorView& tensor);

  ActivationCatalog& catalog();
  std::vector<ActivationModel> models_now();

  nanobind::object object_;  // Keeps store_ alive.
  StoreObject* store_;
  PythonMutex mutex_;  // Guards the buffer, and which store is followed: one, for as long as it is open.
  Buffer buffer_;
  std::shared_ptr<Store> followed_;
  std::unique_ptr<ActivationCatalog> catalog_;
  TorchTensors torch_;
  nanobind::dict plain_keys_;
  nanobind::object make_keys_;
  const nanobind::object keys_name_ = nanobind::steal(PyUnicode_InternFromString("_keys"));
  std::atomic<TensorType> preferred_ = TensorType::none;
};

}  // namespace lmemo::python
