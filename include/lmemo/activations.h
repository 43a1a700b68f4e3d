// The activation face: hidden states and what belongs to them, one record per prompt, layer and kind of result, each computed once.
//
//   LMEMO_ASSIGN(ActivationKeys keys, ActivationKeys::of({{"model", "gpt2"}, {"weights", "a1b2…"}}));
//   const ActivationSlot slot{ActivationPart::raw, 7, "", TensorType::float16};
//   if (std::optional<Hit> hit = store.find(keys.digest(ActivationKeys::prompt(text), slot)))
//     LMEMO_ASSIGN(std::vector<TensorView> tensors, read_tensors(hit->value()));
//
//   ActivationCatalog catalog(store);     // What is there, from the index alone.
//   catalog.models();  catalog.discover(keys.model_encoding(), text);
//
// docs/activations.md is the page for users.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lmemo/store.h"

namespace lmemo {

inline constexpr const char* kActivationKind = "activations";

// ------------------------------------------------------------------------------------------------------ tensors

// The numbers are written to disk.
enum class TensorType : uint8_t {
  none = 0,
  float16 = 1,
  bfloat16 = 2,
  float32 = 3,
  float64 = 4,
  int64 = 5,
  int32 = 6,
  int16 = 7,
  int8 = 8,
  uint8 = 9,
  boolean = 10,
};
inline constexpr TensorType kFloatTypes[] = {TensorType::float32, TensorType::bfloat16, TensorType::float16,
                                             TensorType::float64};

size_t bytes_per_element(TensorType type);  // 0 for what is no type.
std::string_view name_of(TensorType type);  // As torch calls it.
std::optional<TensorType> tensor_type_named(std::string_view name);

inline constexpr size_t kMaxTensorDimensions = 8;
inline constexpr size_t kMaxTensorsPerRecord = 8;

struct TensorView {
  TensorType type = TensorType::none;
  std::vector<uint64_t> shape;
  bool is_compressed = false;
  Bytes stored;  // The elements, last dimension first; or their byte planes (src/codec/half_planes.h).

  uint64_t element_count() const;
  uint64_t byte_count() const { return element_count() * bytes_per_element(type); }
};

// One record: a head, the shapes, and the elements, each tensor at a multiple of 8 bytes.
class TensorRecord {
 public:
  // Adds a tensor and gives room for its elements, to be filled at once.
  std::byte* add(TensorType type, std::vector<uint64_t> shape);
  // With `compress`, float16 and bfloat16 are kept as byte planes.
  Result<std::string> finish(bool compress);

 private:
  struct Part {
    TensorType type;
    std::vector<uint64_t> shape;
    std::string data;
  };
  std::vector<Part> parts_;
};

// A record of one tensor, (rows, columns), from rows that lie `row_stride` bytes apart, to where there is room for it: no byte is
// written twice. `from` and `to` as in copy_elements().
uint64_t record_bytes_of_rows(TensorType to, uint64_t rows, uint64_t columns);
Status write_record_of_rows(TensorType from, const std::byte* source, uint64_t row_stride, TensorType to,
                            uint64_t rows, uint64_t columns, std::byte* out);

// Views into the record. Bytes from disk are hostile: every length is checked before it is used.
Result<std::vector<TensorView>> read_tensors(Bytes record);
// A record of one tensor of rows, as layers are: the same without an allocation. nullopt for every other, sound or not.
struct RowsView {
  TensorType type = TensorType::none;
  uint64_t rows = 0, columns = 0;
  Bytes stored;
};
std::optional<RowsView> read_plain_rows(Bytes record);
// All elements as `to`: the type they are stored in, or another of float16, bfloat16 and float32. `out` takes exactly byte_count() of that type.
// With a row stride, every `row_bytes` of output are that far apart.
Status copy_elements(const TensorView& tensor, TensorType to, std::byte* out, uint64_t row_bytes = 0,
                     uint64_t row_stride = 0);

// ------------------------------------------------------------------------------------------------------ identity

enum class ActivationPart : uint8_t {
  raw,
  pooled,
  router,
  logits,
  top_k_logits,
  perplexity,
  token_perplexity,
  mask
};
std::string_view name_of(ActivationPart part);
std::optional<ActivationPart> activation_part_named(std::string_view name);
constexpr bool has_layer(ActivationPart part) { return part <= ActivationPart::router; }

struct ActivationSlot {
  ActivationPart part = ActivationPart::raw;
  int64_t layer = 0;                     // Of raw, pooled and router.
  std::string pooling;                   // Of pooled: last_token, first_token, mean, max, or any other name.
  TensorType stored = TensorType::none;  // A lossy cast is another identity. None for a mask.
};

// The keys of one model. The fields of the model say whose states these are: model, revision, adapter, dtype, weights, …
class ActivationKeys {
 public:
  // Refuses a model that names a field of the slot.
  static Result<ActivationKeys> of(std::vector<Field> model);

  // The prompt's field of a key, made once for all layers.
  static std::string prompt(std::string_view text);
  Digest digest(std::string_view prompt_field, const ActivationSlot& slot) const;
  Result<Key> key(std::string_view prompt_field, const ActivationSlot& slot) const;

  const std::vector<Field>& model() const { return model_; }
  // The model's fields as they stand in a key: how the catalog tells models apart.
  const std::string& model_encoding() const { return model_encoding_; }

 private:
  // A key with two gaps: the layer's eight bytes, and the prompt's field.
  struct Template {
    std::string before_layer, between, after;
  };
  struct Templates {
    std::mutex mutex;  // Guards made.
    std::map<std::string, std::unique_ptr<const Template>> made;
    // Of made, those without a pooling: by part and stored type.
    std::array<std::atomic<const Template*>, 256> known{};
  };
  const Template& template_of(const ActivationSlot& slot) const;
  std::string encoding(std::string_view prompt_field, const ActivationSlot& slot) const;

  std::vector<Field> model_;
  std::string model_encoding_;
  std::shared_ptr<Templates> templates_;
};

// ------------------------------------------------------------------------------------------------------- catalog

struct ActivationModel {
  std::string encoding;                                     // As ActivationKeys::model_encoding().
  std::vector<Field> model;                                 // As ActivationKeys::of() takes them.
  std::vector<std::pair<std::string, std::string>> fields;  // For people, sorted by name.
  std::string name;                                         // The field "model", if it is a text.
  std::string hash;                                         // 16 hexadecimal digits of the encoding.
  uint64_t stored_bytes = 0, prompts = 0, entries = 0;
  int64_t oldest_ns = 0, newest_ns = 0;
  std::map<int64_t, uint64_t> raw_layers;  // How many prompts have it.
  std::set<std::string> poolings;
  bool has_router = false, has_logits = false, has_perplexity = false, has_token_perplexity = false;
};

struct DiscoveredPrompt {
  // By stored type, sorted.
  struct Layer {
    int64_t layer;
    TensorType stored;
  };
  std::vector<Layer> raw, router;
  std::map<std::string, std::vector<Layer>> pooled;
  std::vector<TensorType> logits, top_k_logits, perplexity, token_perplexity;
  bool has_mask = false;
};

// What the small records of a prompt say: the tokens that its mask counts, and how many of the largest logits there are.
struct PromptSizes {
  std::optional<uint64_t> tokens, top_k;
};
PromptSizes sizes_of(Store& store, const ActivationKeys& keys, std::string_view prompt_field,
                     const DiscoveredPrompt& prompt);

// Follows the store. Every function may be called from any thread.
class ActivationCatalog {
 public:
  explicit ActivationCatalog(Store& store);
  ~ActivationCatalog();

  Result<std::vector<ActivationModel>> models();
  // nullopt if nothing is there. By model_encoding and the prompt's field of a key.
  Result<std::optional<DiscoveredPrompt>> discover(std::string_view model_encoding,
                                                   std::string_view prompt_field);
  // For each prompt, in no particular order, which of `layers` have raw states.
  Result<std::vector<std::vector<bool>>> coverage(std::string_view model_encoding,
                                                  const std::vector<int64_t>& layers);

 private:
  class View;
  Store& store_;
  std::mutex mutex_;  // Guards everything below.
  FollowPosition position_;
  std::unique_ptr<View> view_;
};

}  // namespace lmemo
