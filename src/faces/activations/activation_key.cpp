#include <algorithm>

#include "base/little_endian.h"
#include "base/sha256.h"
#include "lmemo/activations.h"
#include "store/fields_block.h"

namespace lmemo {
namespace {

constexpr std::string_view kPartNames[] = {"raw",          "pooled",     "router",           "logits",
                                           "top_k_logits", "perplexity", "token_perplexity", "mask"};
constexpr std::string_view kSlotFields[] = {"layer", "part", "pooling", "prompt", "stored"};
constexpr uint8_t kText = 4, kLongText = 6;

std::vector<Field> fields_of(const std::vector<Field>& model, const ActivationSlot& slot) {
  std::vector<Field> fields = model;
  fields.push_back({"part", FieldValue(name_of(slot.part))});
  fields.push_back({"prompt", ""});
  if (has_layer(slot.part)) fields.push_back({"layer", int64_t{0}});
  if (slot.part == ActivationPart::pooled) fields.push_back({"pooling", slot.pooling});
  if (slot.stored != TensorType::none) fields.push_back({"stored", FieldValue(name_of(slot.stored))});
  return fields;
}

}  // namespace

std::string_view name_of(ActivationPart part) { return kPartNames[static_cast<size_t>(part)]; }

std::optional<ActivationPart> activation_part_named(std::string_view name) {
  const auto found = std::find(std::begin(kPartNames), std::end(kPartNames), name);
  if (found == std::end(kPartNames)) return std::nullopt;
  return static_cast<ActivationPart>(found - std::begin(kPartNames));
}

Result<ActivationKeys> ActivationKeys::of(std::vector<Field> model) {
  for (const Field& field : model)
    if (std::find(std::begin(kSlotFields), std::end(kSlotFields), field.name) != std::end(kSlotFields))
      return Error{ErrorCode::invalid_argument, "a model cannot have a field \"" + field.name +
                                                    "\": it belongs to the entry; use another name"};
  ActivationKeys keys;
  LMEMO_ASSIGN(const Key alone, Key::of(kActivationKind, model));
  // With room for the fields of the slot.
  LMEMO_TRY(
      Key::of(kActivationKind, fields_of(model, {ActivationPart::pooled, 0, "mean", TensorType::float16})));
  std::vector<std::string_view> fields;
  split_encoding(text_of(alone.encoding()), fields);
  for (const std::string_view field : fields) keys.model_encoding_ += field;
  keys.model_ = std::move(model);
  keys.templates_ = std::make_shared<Templates>();
  return keys;
}

std::string ActivationKeys::prompt(std::string_view text) {
  std::string field("\6prompt");
  if (text.size() <= kMaxInlineValueBytes) {
    field += static_cast<char>(kText);
    append_le(field, static_cast<uint32_t>(text.size()));
    field += text;
    return field;
  }
  field += static_cast<char>(kLongText);
  append_le(field, uint32_t{8 + 32});
  append_le(field, static_cast<uint64_t>(text.size()));
  field += text_of(sha256(bytes_of(text)).bytes);
  return field;
}

const ActivationKeys::Template& ActivationKeys::template_of(const ActivationSlot& slot) const {
  const bool is_pooled = slot.part == ActivationPart::pooled;
  std::atomic<const Template*>& known =
      templates_->known[static_cast<size_t>(slot.part) << 4 | static_cast<size_t>(slot.stored)];
  if (!is_pooled)
    if (const Template* found = known.load(std::memory_order_acquire)) return *found;
  std::string name{static_cast<char>(slot.part), static_cast<char>(slot.stored)};
  if (is_pooled) name += slot.pooling;
  const std::lock_guard<std::mutex> lock(templates_->mutex);
  std::unique_ptr<const Template>& made = templates_->made[name];
  if (made) return *made;
  Template gaps;
  // A pooling of any length is fine for a key, and of() has seen that the rest is.
  const Result<Key> key = Key::of(kActivationKind, fields_of(model_, slot));
  const std::string_view encoding = text_of(key->encoding());
  std::vector<std::string_view> fields;
  split_encoding(encoding, fields);
  std::string* part = has_layer(slot.part) ? &gaps.before_layer : &gaps.between;
  *part = encoding.substr(0, static_cast<size_t>(fields.front().data() - encoding.data()));
  for (const std::string_view field : fields) {
    const std::string_view field_name = parts_of_field(field)->name;
    if (field_name == "prompt") {
      part = &gaps.after;
    } else if (field_name == "layer") {
      *part += field.substr(0, field.size() - sizeof(int64_t));
      part = &gaps.between;
    } else {
      *part += field;
    }
  }
  made = std::make_unique<const Template>(std::move(gaps));
  if (!is_pooled) known.store(made.get(), std::memory_order_release);
  return *made;
}

std::string ActivationKeys::encoding(std::string_view prompt_field, const ActivationSlot& slot) const {
  const Template& gaps = template_of(slot);
  std::string encoding;
  encoding.reserve(gaps.before_layer.size() + gaps.between.size() + gaps.after.size() + prompt_field.size() +
                   8);
  encoding += gaps.before_layer;
  if (has_layer(slot.part)) append_le(encoding, slot.layer);
  encoding += gaps.between;
  encoding += prompt_field;
  encoding += gaps.after;
  return encoding;
}

Digest ActivationKeys::digest(std::string_view prompt_field, const ActivationSlot& slot) const {
  return digest_of_key(encoding(prompt_field, slot));
}

Result<Key> ActivationKeys::key(std::string_view prompt_field, const ActivationSlot& slot) const {
  return Key::from_encoding(bytes_of(encoding(prompt_field, slot)));
}

}  // namespace lmemo
